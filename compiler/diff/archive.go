package diff

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"maps"
	"slices"
)

// maxArchive is the size in bytes from which nobody looks inside an archive: its list of files may be all of it.
const maxArchive = 16 << 20

// Archives compares the files in two zips that are stored and not compressed, such as those that amkc makes. It returns
// nil if the files are the same, or if a zip is of another kind. Without hunks, which take far more memory than the
// zips, no content is treated as text.
func Archives(a, b []byte, hunks bool) []Change {
	entriesA, entriesB := entries(a), entries(b)
	if entriesA == nil || entriesB == nil {
		return nil
	}
	var out []Change
	both := maps.Clone(entriesA)
	maps.Copy(both, entriesB)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		contentA, inA := entriesA[name]
		contentB, inB := entriesB[name]
		if inA && inB && bytes.Equal(contentA, contentB) {
			continue
		}
		fileA, fileB := identity(contentA, inA), identity(contentB, inB)
		if !hunks {
			contentA, contentB = nil, nil
		}
		out = append(out, change(name, fileA, fileB, contentA, contentB))
	}
	return out
}

func identity(content []byte, there bool) *File {
	if !there {
		return nil
	}
	sum := sha256.Sum256(content)
	return &File{int64(len(content)), hex.EncodeToString(sum[:])}
}

// entries are the files of a zip by name, as go reads them; nil for one that is not to be looked into. All of them
// together are no larger than the zip, so that none of its bytes are compared many times.
func entries(archive []byte) map[string][]byte {
	if len(archive) > maxArchive {
		return nil
	}
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil
	}
	out := map[string][]byte{}
	left := uint64(len(archive))
	for _, f := range r.File {
		at, err := f.DataOffset()
		size := f.UncompressedSize64
		if err != nil || f.Method != zip.Store || size != f.CompressedSize64 || size > left ||
			uint64(at) > uint64(len(archive))-size {
			return nil
		}
		left -= size
		content := archive[at : uint64(at)+size]
		if _, twice := out[f.Name]; twice || crc32.ChecksumIEEE(content) != f.CRC32 {
			return nil
		}
		out[f.Name] = content
	}
	return out
}
