package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// weights is an open weights.safetensors.
type weights struct {
	data     []byte    // the data section: what the kernels address, without what is invented
	invented *Invented // nil: nothing
	close    func() error
}

// openWeights maps the file and finds its data section. The names in its header are not looked at: the offsets that the
// kernels use were fixed when they were emitted, and the size must be the one they expect, less what is invented.
func openWeights(path string, want int64, invented *Invented) (_ *weights, err error) {
	if invented != nil {
		if what := invented.wrong(want); what != "" {
			return nil, &BuildError{Path: filepath.Join(filepath.Dir(path), ManifestFile), What: what,
				Remedy: recompile}
		}
		want -= invented.Bytes()
	}
	f, size, err := infile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &BuildError{Path: path, What: "the packed weights are missing",
			Remedy: "make them with amkc pack MODEL -o " + path}
	}
	if err != nil {
		return nil, &BuildError{Path: path, What: "the packed weights cannot be read", Err: err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	broken := func(format string, args ...any) error {
		return &BuildError{Path: path, What: fmt.Sprintf(format, args...),
			Remedy: "pack them again with amkc pack MODEL -o " + path}
	}
	if size < 8 {
		return nil, broken("%d bytes are not a safetensors file", size)
	}
	data, unmap, err := mapFile(f, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	header := binary.LittleEndian.Uint64(data)
	if header > uint64(size)-8 {
		err := broken("its header claims %d bytes of the %d in the file", header, size)
		return nil, errors.Join(err, unmap())
	}
	data = data[8+header:]
	if int64(len(data)) != want {
		err := broken("it holds %d bytes of weights, and the kernel was compiled for %d", len(data), want)
		return nil, errors.Join(err, unmap())
	}
	return &weights{data, invented, unmap}, nil
}

// uploadChunk is how much is copied between two looks at the context.
const uploadChunk = 256 << 20

// upload copies the data section to the GPU, and makes between its bytes those that are invented. Each of several GPUs
// has its part of it.
func (w *weights) upload(ctx context.Context, s *Session, progress Progress) error {
	each := s.info.WeightBytes
	data, at := w.data, int64(0) // what is left, and where the next byte goes
	total := int64(len(data)) + w.invented.Bytes()
	copied := func(chunk []byte) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		var report driver.Progress
		if progress != nil {
			report = func(done, _ int) { progress("loading weights", at+int64(done), total) }
		}
		rank := int(at / each)
		to := s.on(rank, s.mem.weights) + driver.Ptr(at%each)
		if err := s.gpus[rank].dev.CopyHtoD(to, chunk, report); err != nil {
			return fmt.Errorf("loading weights: %w", err)
		}
		at += int64(len(chunk))
		return nil
	}
	stored := func(bytes int64) error {
		for end := at + bytes; at < end; {
			chunk := data[:min(uploadChunk, end-at, each-at%each)]
			if err := copied(chunk); err != nil {
				return err
			}
			data = data[len(chunk):]
		}
		return nil
	}
	if w.invented != nil {
		made := make([]byte, uploadChunk)
		for i := range w.invented.Matrices {
			m := &w.invented.Matrices[i]
			if err := stored(m.At - at); err != nil {
				return err
			}
			for from := int64(0); from < m.Bytes; from += uploadChunk {
				chunk := made[:min(uploadChunk, m.Bytes-from)]
				w.invented.fill(chunk, m, from)
				if err := copied(chunk); err != nil {
					return err
				}
			}
		}
	}
	return stored(total - at)
}

// Invented are random weights that weights.safetensors leaves out: a host that loads the build makes them. A byte
// is a function of the seed and of where it is in the packed weights, so that it can be made without those before it.
type Invented struct {
	Seed     uint64           `json:"seed"`
	Patterns []Pattern        `json:"patterns"`
	Matrices []InventedMatrix `json:"matrices"` // in the order of their places
}

// A Pattern makes numbers of a format out of random bits: it repeats from the first byte of a matrix on.
type Pattern struct {
	Keep []byte `json:"keep"` // bits that are random
	Set  []byte `json:"set"`  // bits that are 1
}

// An InventedMatrix is a range of the packed weights that holds a matrix, and the padding up to the next one. At is its
// first byte.
type InventedMatrix struct {
	At      int64 `json:"at"`
	Bytes   int64 `json:"bytes"`
	Pattern int   `json:"pattern"`
}

const word = 8 // bytes that one random number has

// Bytes is the size of all matrices.
func (v *Invented) Bytes() (sum int64) {
	if v != nil {
		for _, m := range v.Matrices {
			sum += m.Bytes
		}
	}
	return sum
}

// Fill makes bytes of a matrix from byte `from` of it on, which is a multiple of 8.
func (v *Invented) Fill(dst []byte, m *InventedMatrix, from int64) {
	p := &v.Patterns[m.Pattern]
	state := mixed(v.Seed) + uint64((m.At+from)/word)*golden
	at := int(from % int64(len(p.Keep)))
	for ; len(dst) >= word; dst = dst[word:] {
		state += golden
		keep, set := binary.LittleEndian.Uint64(p.Keep[at:]), binary.LittleEndian.Uint64(p.Set[at:])
		binary.LittleEndian.PutUint64(dst, mixed(state)&keep|set)
		if at += word; at == len(p.Keep) {
			at = 0
		}
	}
}

// fill is Fill on all processors.
func (v *Invented) fill(dst []byte, m *InventedMatrix, from int64) {
	const least = 1 << 20 // for a processor
	each := max(least, (len(dst)/runtime.NumCPU()+word)/word*word)
	var all sync.WaitGroup
	for at := 0; at < len(dst); at += each {
		all.Go(func() { v.Fill(dst[at:min(len(dst), at+each)], m, from+int64(at)) })
	}
	all.Wait()
}

// golden and mixed are SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
const golden = 0x9e3779b97f4a7c15

func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// wrong says what is wrong with invented weights, and is empty when they can be made: patterns are of whole words, and
// matrices of whole words in order, within the bytes of all weights.
func (v *Invented) wrong(weights int64) string {
	for i, p := range v.Patterns {
		if len(p.Keep) == 0 || len(p.Keep)%word != 0 || len(p.Set) != len(p.Keep) {
			return fmt.Sprintf("pattern %d of its invented weights keeps %d bytes and sets %d; want as many, a "+
				"multiple of %d", i, len(p.Keep), len(p.Set), word)
		}
	}
	end := int64(0)
	for i, m := range v.Matrices {
		if m.At < end || m.At%word != 0 || m.Bytes <= 0 || m.Bytes%word != 0 || m.Bytes > weights-m.At ||
			m.Pattern < 0 || m.Pattern >= len(v.Patterns) {
			return fmt.Sprintf("matrix %d of its invented weights has %d bytes from byte %d on, of pattern %d; want "+
				"a multiple of %d after byte %d, in %d bytes of weights, and one of %d patterns", i, m.Bytes, m.At,
				m.Pattern, word, end, weights, len(v.Patterns))
		}
		end = m.At + m.Bytes
	}
	return ""
}

// Find is the matrix at a place of the packed weights, or nil.
func (v *Invented) Find(at int64) *InventedMatrix {
	if v == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(v.Matrices, at, func(m InventedMatrix, at int64) int {
		return int(min(1, max(-1, m.At-at)))
	})
	if !found {
		return nil
	}
	return &v.Matrices[i]
}
