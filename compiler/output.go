package compiler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"amkc/codegen"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// output is the directory that a build is to become.
type output struct {
	dir      string
	exists   bool
	manifest *codegen.Manifest // of the earlier build there, or nil
}

// openOutput looks at the target before any work is done: it must be new, empty, or an earlier build.
func openOutput(dir string) (*output, error) {
	dir = filepath.Clean(dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // a link stays, and what it points to is replaced
	}
	o := &output{dir: dir}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o, nil
	case err != nil:
		return nil, diag.Errorf(codeOutDir, dir, "cannot be read: %v; want a new directory, an empty one, or an earlier build", err)
	case len(entries) == 0:
		o.exists = true
		return o, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, host.ManifestFile))
	if err != nil {
		return nil, diag.Errorf(codeOutDir, dir, "holds files and no %s, so it is not a build of amkc; want a new directory, an empty one, or an earlier build", host.ManifestFile)
	}
	var m codegen.Manifest
	if err := json.Unmarshal(text, &m); err != nil || m.Files == nil {
		return nil, diag.Errorf(codeOutDir, filepath.Join(dir, host.ManifestFile), "is not a manifest of amkc; want a new directory, an empty one, or an earlier build")
	}
	o.exists, o.manifest = true, &m
	return o, nil
}

// stage is a build being written, in a temporary directory beside its target.
type stage struct {
	out  *output
	dir  string
	done bool
}

func (o *output) stage() (*stage, error) {
	parent := filepath.Dir(o.dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, diag.Errorf(codeWriteOut, parent, "cannot make the directory: %v", err)
	}
	dir, err := os.MkdirTemp(parent, "."+filepath.Base(o.dir)+".partial-")
	if err != nil {
		return nil, diag.Errorf(codeWriteOut, parent, "cannot make a temporary directory: %v", err)
	}
	return &stage{out: o, dir: dir}, os.Chmod(dir, 0o755)
}

// abort removes what has been written, unless it was committed.
func (s *stage) abort() {
	if !s.done {
		os.RemoveAll(s.dir)
	}
}

func (s *stage) write(name string, text []byte) error {
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return diag.Errorf(codeWriteOut, filepath.Join(s.out.dir, name), "cannot be written: %v", err)
	}
	return nil
}

// reuse takes a file of the earlier build over, if it has the size it should have.
func (s *stage) reuse(name string, size int64) bool {
	old := filepath.Join(s.out.dir, name)
	info, err := os.Stat(old)
	return err == nil && info.Size() == size && os.Link(old, filepath.Join(s.dir, name)) == nil
}

// commit puts the stage in the target's place. Files of the target that are not the earlier build's own, and generated ones
// that were edited by hand, are carried over; the latter as NAME.edited, like those whose place a generated one takes.
func (s *stage) commit(m *codegen.Manifest) (diag.List, error) {
	var kept diag.List
	if s.out.manifest != nil {
		var err error
		if kept, err = s.carryOver(m); err != nil {
			return nil, err
		}
	}
	target, old := s.out.dir, ""
	if s.out.exists {
		old = s.dir + ".old"
		if err := os.Rename(target, old); err != nil {
			return nil, diag.Errorf(codeWriteOut, target, "the earlier build cannot be moved aside: %v", err)
		}
	}
	if err := os.Rename(s.dir, target); err != nil {
		failed := diag.Errorf(codeWriteOut, target, "the build cannot be put in place: %v", err)
		if old != "" && os.Rename(old, target) != nil {
			failed.With("what was there is now in " + old)
		}
		return nil, failed
	}
	s.done = true
	if old != "" {
		os.RemoveAll(old)
	}
	return kept, nil
}

// carryOver takes the user's files from the earlier build over into the stage.
func (s *stage) carryOver(m *codegen.Manifest) (diag.List, error) {
	var kept diag.List
	earlier := s.out.manifest
	made := []string{host.ManifestFile, host.WeightsFile, earlier.Facts.Model.Name, m.Facts.Model.Name}
	for name := range earlier.Files {
		if base, ok := strings.CutSuffix(name, ".cu"); ok {
			made = append(made, base+".fatbin")
		}
	}
	err := filepath.WalkDir(s.out.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(s.out.dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if slices.Contains(made, name) {
			return nil
		}
		digest, generated := earlier.Files[name]
		if generated && d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil || codegen.Digest(text) == digest {
				return err
			}
		}
		to := filepath.Join(s.dir, rel)
		if _, err := os.Lstat(to); generated || err == nil {
			to = filepath.Join(s.dir, s.freeName(rel+".edited"))
			why := "is yours, and the new build has a file of that name"
			if generated {
				why = "was edited by hand after amkc wrote it"
			}
			kept.Add(diag.Warningf(codeOutDir, path, "%s; your version is kept as %s", why, filepath.Base(to)))
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return carry(path, to, d)
	})
	if err != nil {
		return nil, diag.Errorf(codeWriteOut, s.out.dir, "your files in the earlier build cannot be carried over: %v", err)
	}
	return kept, nil
}

// freeName returns name, or name with the first number that neither build has a file of yet.
func (s *stage) freeName(name string) string {
	for n, free := 2, name; ; n++ {
		_, staged := os.Lstat(filepath.Join(s.dir, free))
		_, earlier := os.Lstat(filepath.Join(s.out.dir, free))
		if staged != nil && earlier != nil {
			return free
		}
		free = fmt.Sprintf("%s.%d", name, n)
	}
}

// carry makes a file, or a symbolic link, appear under another name as well: by a link where the file system has them.
func carry(from, to string, d fs.DirEntry) error {
	if d.Type()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	if !d.Type().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a link", from)
	}
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// listFiles returns the files below dir, sorted, with forward slashes.
func listFiles(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	slices.Sort(names)
	return names, err
}
