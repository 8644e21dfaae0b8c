package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// A prefix is the beginning of a text, with what decoding it has left in the cache. Logits do not depend on how they
// were computed, so that a text which is continued from a loaded prefix is, to the bit, the text that would have been
// decoded from its first token on. A prefix belongs to a build: another one has other rows, or has them elsewhere.
//
// In a file it is in the safetensors format: a tensor "ids" of I32, a tensor "cache" of U8, and in the metadata the
// digest of the build's manifest and that of both tensors' bytes. The cache is, for each layer and each of its heads of
// keys and values, the blocks of 16 rows that the positions of the ids are in, as the kernel has them.

// prefixFormat is the value of "format" in the metadata.
const prefixFormat = "amkc.prefix/1"

// prefixHeader is the header of such a file.
type prefixHeader struct {
	Metadata struct {
		Format string `json:"format"`
		Build  string `json:"build"`  // SHA-256 of the manifest
		SHA256 string `json:"sha256"` // of the data
	} `json:"__metadata__"`
	Cache prefixTensor `json:"cache"`
	IDs   prefixTensor `json:"ids"`
}

type prefixTensor struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// SavePrefix writes the ids, which have been decoded at the positions from 0 on, with their rows of the cache. The
// session may have gone on from there, unless the model has recurrent states.
func (s *Session) SavePrefix(w io.Writer, ids []int) error {
	if s.closed {
		return ErrClosed
	}
	if len(ids) == 0 || len(ids) > s.position {
		return fmt.Errorf("%d ids were to be saved, and %d positions have been decoded", len(ids), s.position)
	}
	if err := s.valid(ids...); err != nil {
		return err
	}
	if s.facts.Recurrent() && (len(ids) < s.position || s.states.after != s.position) {
		return fmt.Errorf("%d ids were to be saved, and the states of the model are not those after them; decode them "+
			"again, and no others after them", len(ids))
	}
	pieces, size, err := s.cachePieces(len(ids))
	if err != nil {
		return err
	}
	data := make([]byte, 0, 4*len(ids)+size)
	data = append(data, words(ids)...)
	for _, p := range pieces {
		end := len(data)
		data = data[:end+p.bytes]
		if err := s.gpus[p.rank].dev.CopyDtoH(data[end:], s.on(p.rank, s.cache())+driver.Ptr(p.at), nil); err != nil {
			return err
		}
	}
	var h prefixHeader
	h.Metadata.Format = prefixFormat
	if h.Metadata.Build, err = s.buildDigest(); err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	h.Metadata.SHA256 = hex.EncodeToString(sum[:])
	h.IDs = prefixTensor{"I32", []int{len(ids)}, [2]int{0, 4 * len(ids)}}
	h.Cache = prefixTensor{"U8", []int{size}, [2]int{4 * len(ids), len(data)}}
	header, err := json.Marshal(&h)
	if err != nil {
		return err
	}
	for len(header)%8 != 0 {
		header = append(header, ' ')
	}
	for _, part := range [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header, data} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// maxPrefixHeader is more than any header that SavePrefix writes.
const maxPrefixHeader = 4096

// LoadPrefix loads the prefix in a file into the cache, and returns its ids. The session is then at the position after
// them. A file of another build, or an incomplete one, is a [PrefixError], and leaves the session at position 0.
func (s *Session) LoadPrefix(ctx context.Context, path string) (ids []int, err error) {
	if s.closed {
		return nil, ErrClosed
	}
	s.Reset()
	f, size, err := infile.Open(path)
	if err != nil {
		return nil, &PrefixError{Path: path, What: "it cannot be read", Err: err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	broken := func(format string, args ...any) error {
		return &PrefixError{Path: path, What: fmt.Sprintf(format, args...)}
	}
	var length [8]byte
	if _, err := io.ReadFull(f, length[:]); err != nil {
		return nil, broken("%d bytes are not a prefix", size)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxPrefixHeader || int64(n) > size-8 {
		return nil, broken("no prefix that this program has saved: its header has %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, broken("it cannot be read: %v", infile.Reason(err))
	}
	var h prefixHeader
	if err := infile.Unmarshal(text, &h); err != nil || h.Metadata.Format != prefixFormat {
		return nil, broken("no prefix that this program has saved")
	}
	build, err := s.buildDigest()
	if err != nil {
		return nil, err
	}
	if h.Metadata.Build != build {
		return nil, broken("saved by another build; decode it once more, and save it again")
	}
	count := h.IDs.Offsets[1] / 4
	if count < 1 || count > s.info.MaxSeq {
		return nil, broken("it has %d ids, and the build %d positions", count, s.info.MaxSeq)
	}
	pieces, cache, err := s.cachePieces(count)
	if err != nil {
		return nil, err
	}
	if want := [2]int{4 * count, 4*count + cache}; h.IDs.Offsets != [2]int{0, want[0]} || h.Cache.Offsets != want ||
		size != int64(8+len(text)+want[1]) {
		return nil, broken("it is not whole: %d ids take %d bytes", count, 8+len(text)+want[1])
	}
	data := make([]byte, 4*count+cache)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, broken("it cannot be read: %v", infile.Reason(err))
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != h.Metadata.SHA256 {
		return nil, broken("damaged: its bytes have another digest than its header says")
	}
	for i := range count {
		ids = append(ids, int(int32(binary.LittleEndian.Uint32(data[4*i:]))))
	}
	if err := s.valid(ids...); err != nil {
		return nil, &PrefixError{Path: path, What: "damaged", Err: err}
	}
	data = data[4*count:]
	for _, p := range pieces {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		at := s.on(p.rank, s.cache()) + driver.Ptr(p.at)
		if err := s.gpus[p.rank].dev.CopyHtoD(at, data[:p.bytes], nil); err != nil {
			return nil, err
		}
		data = data[p.bytes:]
	}
	s.position, s.states = count, recalled{ids: slices.Clone(ids), after: count}
	return ids, nil
}

// A cachePiece is a stretch of the cache on a GPU.
type cachePiece struct{ at, bytes, rank int }

// cachePieces are those that hold the rows of the first n positions, n > 0, with their bytes in all.
func (s *Session) cachePieces(n int) (pieces []cachePiece, total int, err error) {
	for l := range s.facts.Model.Layers {
		m, at, err := s.cacheOf(l)
		if err != nil {
			return nil, 0, err
		}
		if state := s.facts.stateBytes(l); state > 0 {
			pieces, total = append(pieces, cachePiece{at: at, bytes: state}), total+state
			continue
		}
		head, bytes := cacheBlocks(m.MaxSeq)*m.CacheBlock, cacheBlocks(n)*m.CacheBlock
		for h := range m.KVHeads {
			pieces = append(pieces, cachePiece{at: at + h*head, bytes: bytes})
			total += bytes
		}
	}
	of := pieces
	for rank := 1; rank < len(s.gpus); rank++ {
		for _, p := range of {
			p.rank = rank
			pieces, total = append(pieces, p), total+p.bytes
		}
	}
	return pieces, total, nil
}

// buildDigest is the SHA-256 of the manifest, which has the digests of all that the build is made of.
func (s *Session) buildDigest() (string, error) {
	path := filepath.Join(s.dir, ManifestFile)
	text, err := infile.Read(path, infile.Manifest)
	if err != nil {
		return "", &BuildError{Path: path, What: "it cannot be read", Err: err}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
