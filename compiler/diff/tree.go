package diff

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"amkc/runtime/infile"
)

// Kind is how a file differs between two directories.
type Kind string

const (
	OnlyInA Kind = "only_in_a"
	OnlyInB Kind = "only_in_b"
	Text    Kind = "text"
	Binary  Kind = "binary" // at least one side is not text, or too large to be read as one
)

// A Change is a file that differs between two directories.
type Change struct {
	Path    string `json:"path"` // relative, with slashes; of a file in an archive, after that of the archive
	Kind    Kind   `json:"kind"`
	Added   int    `json:"added,omitempty"` // lines of Text
	Removed int    `json:"removed,omitempty"`
	A       *File  `json:"a,omitempty"`
	B       *File  `json:"b,omitempty"`
	Hunks   []byte `json:"-"` // unified, of Text
}

// A File is the identity of one side.
type File struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// maxText is the size in bytes from which a file is compared by digest alone.
const maxText = 64 << 20

// Trees compares all files below two directories, sorted by path. Directories are compared only by their files, and
// archives that differ by theirs, see [Archives].
func Trees(dirA, dirB string) ([]Change, error) {
	a, err := files(dirA)
	if err != nil {
		return nil, err
	}
	b, err := files(dirB)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	var out []Change
	for _, path := range slices.Compact(all) {
		_, inA := slices.BinarySearch(a, path)
		_, inB := slices.BinarySearch(b, path)
		changes, err := compare(path, side(dirA, path, inA), side(dirB, path, inB))
		if err != nil {
			return nil, err
		}
		out = append(out, changes...)
	}
	return out, nil
}

func side(dir, path string, there bool) string {
	if !there {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// files lists what is below dir, which may be a link, and is not a directory, sorted.
func files(dir string) ([]string, error) {
	if _, err := infile.List(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	dir, err := filepath.EvalSymlinks(dir) // WalkDir follows no links
	if err != nil {
		return nil, err
	}
	var out []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out = append(out, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(out)
	return out, err
}

// compare returns nothing for equal files. An empty path stands for a file that is not there.
func compare(name, pathA, pathB string) ([]Change, error) {
	a, err := identify(pathA)
	if err != nil {
		return nil, err
	}
	b, err := identify(pathB)
	if err != nil {
		return nil, err
	}
	if a != nil && b != nil && *a == *b {
		return nil, nil
	}
	var contentA, contentB []byte
	if a != nil && b != nil && max(a.Bytes, b.Bytes) <= maxText {
		var errA, errB error
		contentA, errA = infile.Read(pathA, infile.Source)
		contentB, errB = infile.Read(pathB, infile.Source)
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		if path.Ext(name) == ".zip" {
			if changes := Archives(contentA, contentB, true); changes != nil {
				for i := range changes {
					changes[i].Path = name + "/" + changes[i].Path
				}
				return changes, nil
			}
		}
	}
	return []Change{change(name, a, b, contentA, contentB)}, nil
}

// change describes how a file differs, of which one side may be nil. If neither has content, it is too large to read.
func change(name string, a, b *File, contentA, contentB []byte) Change {
	c := Change{Path: name, A: a, B: b, Kind: Binary}
	switch {
	case a == nil:
		c.Kind = OnlyInB
	case b == nil:
		c.Kind = OnlyInA
	case (contentA != nil || contentB != nil) && isText(contentA) && isText(contentB):
		c.Kind, c.Hunks = Text, Unified(contentA, contentB)
		c.Added, c.Removed = Count(c.Hunks)
	}
	return c
}

func isText(content []byte) bool { return utf8.Valid(content) && !bytes.ContainsRune(content, 0) }

func identify(path string) (*File, error) {
	if path == "" {
		return nil, nil
	}
	size, digest, err := infile.Digest(path, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{size, digest}, nil
}
