package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// mostEntries is how many files a directory that a tool is given may have.
const mostEntries = 20_000

// inside returns a path relative to the root, as a verb may be given it. It refuses what leads out of the root.
func (s *Server) inside(name string) (string, error) {
	local := filepath.Clean(name)
	if filepath.IsAbs(local) {
		rel, err := filepath.Rel(s.dir, local)
		if err != nil || !filepath.IsLocal(rel) {
			rel, err = filepath.Rel(s.named, local) // the root by its own name, which may be a link
		}
		if err != nil {
			return "", outside(name)
		}
		local = rel
	}
	if name == "" || !filepath.IsLocal(local) {
		return "", outside(name)
	}
	return "." + string(filepath.Separator) + local, nil
}

func outside(name string) error {
	return diag.Errorf(codeOutside, name, "is not in the root; want a path relative to the root of the server")
}

// existing is inside for a file or a directory that is there: neither it nor anything in it may lead out.
func (s *Server) existing(name string) (string, error) {
	path, err := s.inside(name)
	if err != nil {
		return "", err
	}
	info, err := s.root.Stat(path)
	if err != nil {
		return "", s.unusable(name, path, err)
	}
	if !info.IsDir() {
		return path, nil
	}
	w := walk{s: s, name: name}
	return path, w.directory(filepath.Clean(path), info)
}

// A walk looks at everything that is reached from a directory, by links too: a verb that is given the directory may
// follow them.
type walk struct {
	s       *Server
	name    string
	entries int
	seen    []fs.FileInfo // directories that were reached by a link
}

// directory looks at what a directory holds.
func (w *walk) directory(path string, info fs.FileInfo) error {
	if slices.ContainsFunc(w.seen, func(i fs.FileInfo) bool { return os.SameFile(i, info) }) {
		return nil
	}
	w.seen = append(w.seen, info)
	// The walk follows the directory that it begins at, and no links: each is asked where it leads.
	return fs.WalkDir(w.s.root.FS(), filepath.ToSlash(path), func(at string, d fs.DirEntry, err error) error {
		if w.entries++; err == nil && w.entries > mostEntries {
			return diag.Errorf(codeArgument, w.name, "has more than %d files; want a directory of one model, build or "+
				"campaign", mostEntries)
		}
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			var to fs.FileInfo
			if to, err = w.s.root.Stat(filepath.FromSlash(at)); err == nil && to.IsDir() {
				return w.directory(filepath.FromSlash(at), to)
			}
		}
		if err != nil {
			return w.s.unusable(at, at, err)
		}
		return nil
	})
}

// writable is inside for what is to be written: what is there of it may not lead out.
func (s *Server) writable(name string) (string, error) {
	path, err := s.inside(name)
	if err != nil {
		return "", err
	}
	for at := path; ; at = filepath.Dir(at) {
		_, err := s.root.Lstat(at)
		switch {
		case err == nil && at == path:
			return s.existing(name)
		case err == nil:
			if _, err = s.root.Stat(at); err != nil {
				return "", s.unusable(name, at, err)
			}
			return path, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", s.unusable(name, at, err)
		}
	}
}

// unusable says why a path cannot be used. os.Root tells what leads out from what is not there in words only.
func (s *Server) unusable(name, path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) && !s.isLink(path) {
		return diag.Errorf(codeArgument, name, "is not there; want a path in the root of the server")
	}
	var why *fs.PathError
	if errors.As(err, &why) && strings.Contains(why.Err.Error(), "escapes") {
		return diag.Errorf(codeOutside, name, "leads out of the root; want files, and no links to elsewhere")
	}
	return diag.Errorf(codeArgument, name, "cannot be used: %s", infile.Reason(err))
}

func (s *Server) isLink(path string) bool {
	info, err := s.root.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// read returns the text of a file of the root, the last bytes of it where it has more than most.
func (s *Server) read(name string, most int64) ([]byte, error) {
	path, err := s.existing(name)
	if err != nil {
		return nil, err
	}
	// A pipe would be waited for, and is asked for before it is opened.
	if info, err := s.root.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, diag.Errorf(codeArgument, name, "is not a regular file")
	}
	file, err := s.root.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, s.unusable(name, path, err)
	}
	defer file.Close()
	return tail(file, most)
}

// write writes a file of the root, unless its name is empty.
func (s *Server) write(path string, text []byte) error {
	if path == "" {
		return nil
	}
	if err := s.root.WriteFile(path, text, 0o644); err != nil {
		return s.unusable(path, path, err)
	}
	return nil
}

// tail reads the last bytes of a file, from the beginning of a line if not from the file's.
func tail(file *os.File, most int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	text := make([]byte, min(size, most))
	n, err := file.ReadAt(text, size-int64(len(text)))
	if n < len(text) && err != nil {
		return nil, err
	}
	if size > most {
		_, rest, _ := strings.Cut(string(text), "\n")
		return []byte(rest), nil
	}
	return text, nil
}
