package builddir

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"amkc/codegen"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

// Stage is the directory in which the build is made, for tools that write files directly.
func (d *Dir) Stage() string { return filepath.Join(d.Path, filepath.FromSlash(newDir)) }

// Reserve fails if the new build needs the name of a user's file, and else creates the stage. Nothing in the directory
// has been modified before. Errors: CodeInTheWay, CodeWrite.
func (d *Dir) Reserve(names []string) error {
	var all diag.List
	seen := map[string]bool{}
	for _, name := range names {
		at, err := d.inTheWay(name)
		if err != nil {
			return err
		}
		if at == "" || seen[at] {
			continue
		}
		seen[at] = true
		all.Add(diag.Errorf(CodeInTheWay, filepath.Join(d.Path, filepath.FromSlash(at)),
			"is yours, and the build needs the name; move it elsewhere, or name another directory"))
	}
	if err := all.Err(); err != nil {
		return err
	}
	if err := d.tree.Mkdir(newDir, 0o777); err != nil {
		return d.cannot(newDir, err)
	}
	return nil
}

// inTheWay returns what keeps a file of the new build from its place: a file of the user's there, or something that is
// not a directory above it.
func (d *Dir) inTheWay(name string) (string, error) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		info, err := d.tree.Lstat(name[:i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case err != nil:
			return "", d.cannot(name[:i], err)
		case !info.IsDir():
			return name[:i], nil
		}
	}
	owner, err := d.owner(name, d.Earlier)
	if err != nil || owner != users {
		return "", err
	}
	return name, nil
}

// Write writes a file of the new build into the stage. Error: CodeWrite.
func (d *Dir) Write(name string, text []byte) error {
	at := path.Join(newDir, name)
	if err := d.makeParents(at); err != nil {
		return d.cannot(name, err)
	}
	f, err := d.tree.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return d.cannot(name, err)
	}
	_, err = f.Write(text)
	if name == host.ManifestFile { // all else can be told to be damaged by it
		err = errors.Join(err, f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return d.cannot(name, err)
	}
	return nil
}

// makeParents makes the directories above a file, each once: a tree opens all that lead to one.
func (d *Dir) makeParents(name string) error {
	for i, c := range name {
		if c != '/' || d.staged[name[:i]] {
			continue
		}
		if err := d.tree.Mkdir(name[:i], 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		d.staged[name[:i]] = true
	}
	return nil
}

// owner says whose a file of the output directory is.
type owner int

const (
	nobody owner = iota // there is none
	builds              // as amkc, or make, has made it
	edited              // amkc made it, and it was edited since
	users
)

// owner says whose the file is that stands at a name, where m is the manifest of the earlier build, or nil.
func (d *Dir) owner(name string, m *codegen.Manifest) (owner, error) {
	info, err := d.tree.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return nobody, nil
	}
	if err != nil {
		return users, d.cannot(name, err)
	}
	if m == nil {
		return users, nil
	}
	digest, listed := m.Files[name]
	if !listed {
		digest, listed = m.Built[name]
	}
	if name == host.WeightsFile || name == host.ManifestFile {
		listed = true
	}
	full := filepath.Join(d.Path, filepath.FromSlash(name))
	switch product := slices.Contains(d.productsOf(m), name); {
	case !listed && !product:
		return users, nil
	case !info.Mode().IsRegular():
		return edited, nil // amkc makes regular files
	case name == host.WeightsFile || name == host.ManifestFile, product && IsProduct(full, name):
		return builds, nil
	case !listed:
		return users, nil
	}
	_, got, err := infile.Digest(full, nil)
	switch {
	case err != nil:
		return users, d.cannot(name, err)
	case got == digest:
		return builds, nil
	}
	return edited, nil
}

// productsOf is products, which sorts all files of a build, once for a manifest: every file is asked for its owner.
func (d *Dir) productsOf(m *codegen.Manifest) []string {
	names, known := d.products[m]
	if !known {
		names = products(m)
		d.products[m] = names
	}
	return names
}

// files lists what a manifest says that a build consists of, without the manifest.
func files(m *codegen.Manifest) []string {
	names := []string{host.WeightsFile}
	for name := range m.Files {
		names = append(names, name)
	}
	for name := range m.Built {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// products lists what make makes of a build: the kernels, the launcher and the library.
func products(m *codegen.Manifest) []string {
	return Products(m.Facts.Model.Name, files(m))
}

// Products lists the outputs of make for a build: the kernels, the launcher of that name, and the library.
func Products(launcher string, files []string) []string {
	var names []string
	if launcher != "" {
		names = append(names, launcher)
	}
	if slices.Contains(files, host.HeaderFile) {
		names = append(names, host.LibraryFile)
	}
	for _, name := range files {
		if base, ok := strings.CutSuffix(name, ".cu"); ok {
			names = append(names, base+".fatbin")
		}
	}
	return names
}
