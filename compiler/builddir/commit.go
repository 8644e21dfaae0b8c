package builddir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"amkc/codegen"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

// Commit moves the staged build into place. Its manifest, which must exist, lists its files. A listed file that is not
// staged is that of the earlier build, and stays. The warnings name the user's files that were kept under another name.
func (d *Dir) Commit() (diag.List, error) {
	if err := d.tree.Rename(newDir, readyDir); err != nil {
		return nil, d.cannot(newDir, err)
	}
	return d.install()
}

// settle deals with what a process that was killed has left.
func (d *Dir) settle() error {
	ready := d.isDir(readyDir) // amkc makes no links
	if ready {
		switch what := d.damage(); {
		case what == "":
		case d.has(host.ManifestFile) && !d.has(earlierFile):
			ready = false // not a file of it is in its place yet, so it can be removed
		default:
			return diag.Errorf(CodeUnusable, filepath.Join(d.Path, Work),
				"was left by an earlier run, and %s, so that nothing says which files here are the build's; "+
					"name another directory, or move your own files out of this one and remove it", what)
		}
	}
	if !ready {
		left, err := d.list(Work)
		if err != nil {
			return err
		}
		if len(left) > 1 { // more than the lock
			d.Found.Add(diag.Warningf(CodeLeftover, d.Path,
				"an earlier run was interrupted; what it had not finished is removed"))
		}
		return d.clear()
	}
	d.Found.Add(diag.Warningf(CodeLeftover, d.Path,
		"an earlier run was interrupted while it put a build in place; that is done now"))
	kept, err := d.install()
	d.Found.Add(kept...)
	return err
}

// damage says what is wrong with the manifests in .amkc-partial, without which files cannot be put in place: the
// machine may have lost power. It is empty if nothing is.
func (d *Dir) damage() string {
	for _, name := range []string{path.Join(readyDir, host.ManifestFile), earlierFile} {
		if !d.has(name) {
			continue
		}
		if _, err := d.manifest(name); err != nil {
			return "is damaged: " + infile.Describe(err)
		}
	}
	return ""
}

// install does steps 5 and 6 of the protocol, as far as they have not been done.
func (d *Dir) install() (diag.List, error) {
	var kept diag.List
	err := d.putInPlace(&kept)
	if err == nil {
		return kept, d.clear()
	}
	var known *diag.Diagnostic
	if !errors.As(err, &known) {
		known = diag.Errorf(CodeWrite, d.Path, "cannot be written: %s", infile.Describe(err))
	}
	return kept, known.With("the build is complete, and not all of it is in its place; the same command once more " +
		"does the rest")
}

func (d *Dir) putInPlace(kept *diag.List) error {
	manifest := path.Join(readyDir, host.ManifestFile)
	if !d.has(manifest) {
		return nil // it was the last
	}
	if d.has(host.ManifestFile) && !d.has(earlierFile) {
		if err := d.tree.Rename(host.ManifestFile, earlierFile); err != nil {
			return err
		}
	}
	var earlier *codegen.Manifest
	if d.has(earlierFile) {
		var err error
		if earlier, err = d.manifest(earlierFile); err != nil {
			return err
		}
	}
	now, err := d.manifest(manifest)
	if err != nil {
		return err
	}
	names := files(now)
	if earlier != nil {
		old := append(files(earlier), products(earlier)...)
		slices.Sort(old)
		for _, name := range slices.Compact(old) {
			if err := d.retire(name, names, earlier, kept); err != nil {
				return err
			}
		}
	}
	for _, name := range append(names, host.ManifestFile) {
		if !d.has(path.Join(readyDir, name)) {
			continue // it is in its place
		}
		if err := d.makeRoom(name, earlier, kept); err != nil {
			return err
		}
		if err := d.tree.Rename(path.Join(readyDir, name), name); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) manifest(name string) (*codegen.Manifest, error) {
	m, err := readManifest(filepath.Join(d.Path, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// retire removes a file of the earlier build that the new one, whose names are sorted, lacks.
func (d *Dir) retire(name string, names []string, earlier *codegen.Manifest, kept *diag.List) error {
	if _, stays := slices.BinarySearch(names, name); stays || !d.below(name) {
		return nil
	}
	whose, err := d.owner(name, earlier)
	if err != nil {
		return err
	}
	switch whose {
	case builds:
		err = d.tree.Remove(name)
	case edited:
		err = d.keep(name, "was edited by hand after amkc wrote it", kept)
	}
	if err != nil || whose == users || whose == edited {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) { // also if a run that was killed has removed the file
		if err := d.tree.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // there is more in it
		}
	}
	return nil
}

// below reports whether everything that there is above a file is a directory, and not a link to one.
func (d *Dir) below(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := d.tree.Lstat(dir); err == nil && !info.IsDir() {
			return false
		}
	}
	return true
}

// makeRoom makes the directories above a file, and moves aside what stands in its place and is not the build's own.
func (d *Dir) makeRoom(name string, earlier *codegen.Manifest, kept *diag.List) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		info, err := d.tree.Lstat(name[:i])
		if err == nil && !info.IsDir() {
			err = d.keep(name[:i], "is yours, and the build has a directory of that name", kept)
		}
		if err == nil && info.IsDir() {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := d.tree.Mkdir(name[:i], 0o777); err != nil {
			return err
		}
	}
	whose, err := d.owner(name, earlier)
	switch {
	case err != nil:
		return err
	case whose == edited:
		return d.keep(name, "was edited by hand after amkc wrote it", kept)
	case whose == users:
		return d.keep(name, "is yours, and the new build has a file of that name", kept)
	}
	return nil
}

// keep renames a file of the user's to NAME.edited, or the first such name with a number that is free.
func (d *Dir) keep(name, why string, kept *diag.List) error {
	free := name + ".edited"
	for n := 2; d.has(free) || d.has(path.Join(readyDir, free)); n++ {
		free = fmt.Sprintf("%s.edited.%d", name, n)
	}
	if err := d.tree.Rename(name, free); err != nil {
		return err
	}
	kept.Add(diag.Warningf(CodeKept, filepath.Join(d.Path, filepath.FromSlash(name)), "%s; your version is kept as %s",
		why, path.Base(free)))
	return nil
}

// clear empties .amkc-partial up to the lock: ready/ first, without which the rest means nothing.
func (d *Dir) clear() error {
	for _, name := range []string{readyDir, newDir, earlierFile} {
		if err := d.removeAll(name); err != nil {
			return err
		}
	}
	left, err := d.list(Work)
	for _, e := range left {
		if name := path.Join(Work, e.Name()); err == nil && name != lockFile {
			err = d.removeAll(name)
		}
	}
	return err
}

// removeAll removes a file or a directory with all that is in it. Links are removed, not followed.
func (d *Dir) removeAll(name string) error {
	info, err := d.tree.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return d.cannot(name, err)
	}
	if info.IsDir() {
		entries, err := d.list(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := d.removeAll(path.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := d.tree.Remove(name); err != nil {
		return d.cannot(name, err)
	}
	return nil
}

func (d *Dir) list(name string) ([]fs.DirEntry, error) {
	f, err := d.tree.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, d.cannot(name, err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, d.cannot(name, err)
	}
	return entries, nil
}
