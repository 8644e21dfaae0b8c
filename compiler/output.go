package compiler

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

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
// that were edited by hand, are carried over; the latter as NAME.edited.
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
		if old != "" {
			os.Rename(old, target)
		}
		return nil, diag.Errorf(codeWriteOut, target, "the build cannot be put in place: %v", err)
	}
	s.done = true
	if old != "" {
		os.RemoveAll(old)
	}
	return kept, nil
}

// carryOver copies the user's files from the earlier build into the stage.
func (s *stage) carryOver(m *codegen.Manifest) (diag.List, error) {
	var kept diag.List
	earlier := s.out.manifest
	made := []string{host.ManifestFile, host.WeightsFile, earlier.Facts.Model.Name, m.Facts.Model.Name}
	err := filepath.WalkDir(s.out.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(s.out.dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		digest, generated := earlier.Files[name]
		if slices.Contains(made, name) || filepath.Ext(name) == ".fatbin" {
			return nil
		}
		if generated {
			text, err := os.ReadFile(path)
			if err != nil || codegen.Digest(text) == digest {
				return err
			}
			name += ".edited"
			kept.Add(diag.Warningf(codeOutDir, path, "was edited by hand after amkc wrote it; your version is kept as %s", name))
		}
		to := filepath.Join(s.dir, filepath.FromSlash(name))
		if _, err := os.Stat(to); err == nil {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.Link(path, to)
	})
	if err != nil {
		return nil, diag.Errorf(codeWriteOut, s.out.dir, "your files in the earlier build cannot be carried over: %v", err)
	}
	return kept, nil
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
