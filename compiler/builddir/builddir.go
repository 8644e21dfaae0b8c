package builddir

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"amkc/codegen"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

const (
	Work = host.WorkDir // in an output directory

	newDir      = Work + "/new"
	readyDir    = Work + "/ready"
	earlierFile = Work + "/earlier.json"
	lockFile    = Work + "/lock"
)

// maxPath is the longest path of a file in a build, in bytes: what every file system takes.
const maxPath = 255

// Dir is an output directory that this process writes to. Paths of its files are slash-separated and relative to it.
type Dir struct {
	Path    string
	Found   diag.List         // what was found of a run that was killed: warnings
	Earlier *codegen.Manifest // of the build that is there, or nil

	tree tree
	lock *outfile.Claim
	made []string // directories that were made for it, outermost first

	staged   map[string]bool                // directories that were made for files of the new build
	products map[*codegen.Manifest][]string // of the builds that were asked about
}

// tree is what is done to an output directory, each a step that the process may be killed before or after. An
// *os.Root is one, and keeps all of it below the directory.
type tree interface {
	Lstat(name string) (fs.FileInfo, error)
	Mkdir(name string, mode fs.FileMode) error
	OpenFile(name string, flag int, mode fs.FileMode) (*os.File, error)
	Rename(from, to string) error
	Remove(name string) error
	Close() error
}

// Check reports whether a build may be written to a directory: it must be new, empty, an earlier build, or the remains
// of a run that was killed. Nothing is written. Error: CodeUnusable.
func Check(dir string) error {
	_, err := look(dir)
	return err
}

// look returns the manifest of the build in a directory, or nil.
func look(dir string) (*codegen.Manifest, error) {
	const want = "want a new directory, an empty one, or an earlier build"
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, diag.Errorf(CodeUnusable, dir, "is %s; %s", infile.What(info.Mode()), want)
	}
	entries, err := infile.List(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info, err := os.Lstat(dir)
		switch {
		case err != nil:
			return nil, nil
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, diag.Errorf(CodeUnusable, dir, "is a link to nothing; %s", want)
		}
		return nil, diag.Errorf(CodeUnusable, dir, "has been removed; %s",
			want) // the working directory, of another process
	case err != nil:
		return nil, diag.Errorf(CodeUnusable, dir, "cannot be used: %s; %s", infile.Reason(err), want)
	}
	m, err := readManifest(filepath.Join(dir, host.ManifestFile))
	switch {
	case err == nil:
		return m, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, diag.Errorf(CodeUnusable, filepath.Join(dir, host.ManifestFile),
			"is not a manifest of amkc: %s; %s", infile.Reason(err), want)
	case len(entries) == 0 || len(entries) == 1 && entries[0].Name() == Work || exists(filepath.Join(dir, readyDir)):
		return nil, nil
	}
	return nil, diag.Errorf(CodeUnusable, dir, "holds files and no %s, so it is not a build of amkc; %s",
		host.ManifestFile, want)
}

// readManifest reads a manifest whose names are all below its directory.
func readManifest(path string) (*codegen.Manifest, error) {
	text, err := infile.Read(path, infile.Manifest)
	if err != nil {
		return nil, err
	}
	var m codegen.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, errors.New("it is not a JSON object of that form")
	}
	if m.Files == nil {
		return nil, errors.New("it lists no files")
	}
	for _, name := range append(files(&m), products(&m)...) {
		if !fs.ValidPath(name) || len(name) > maxPath || name == "." || name == Work ||
			strings.HasPrefix(name, Work+"/") {
			return nil, errors.New("it lists a file that no build has")
		}
	}
	return &m, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Begin creates the directory if necessary, takes its lock, and finishes or removes the remains of a run that was
// killed. If another process writes to the directory, Begin calls wait once and waits, or fails if wait is nil. Errors:
// CodeUnusable, CodeWrite, CodeBusy, and the context's.
//
// Callers must call Close. Unless Commit has succeeded, it removes everything that was written.
func Begin(ctx context.Context, dir string, wait func()) (*Dir, error) {
	return begin(ctx, dir, wait, func(root *os.Root) tree { return root })
}

// errGone says that another process, which had made the directory and failed, has removed it again.
var errGone = errors.New("the directory is gone")

func begin(ctx context.Context, dir string, wait func(), wrap func(*os.Root) tree) (*Dir, error) {
	for {
		d, err := attempt(ctx, dir, wait, wrap)
		if !errors.Is(err, errGone) {
			return d, err
		}
	}
}

func attempt(ctx context.Context, dir string, wait func(), wrap func(*os.Root) tree) (_ *Dir, err error) {
	if err := Check(dir); err != nil {
		return nil, err
	}
	d := &Dir{Path: dir, staged: map[string]bool{}, products: map[*codegen.Manifest][]string{}}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.made, err = makeAll(dir); err != nil {
		return nil, diag.Errorf(CodeWrite, dir, "cannot make the directory: %s", infile.Reason(err))
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errGone
	}
	if err != nil {
		return nil, diag.Errorf(CodeUnusable, dir, "cannot be used: %s", infile.Reason(err))
	}
	d.tree = wrap(root)
	if err := d.take(ctx, wait); err != nil {
		return nil, err
	}
	if d.Earlier, err = look(dir); err != nil { // again: it is ours only now
		return nil, err
	}
	if err := d.settle(); err != nil {
		return nil, err
	}
	d.Earlier, err = look(dir)
	return d, err
}

// take takes the lock.
func (d *Dir) take(ctx context.Context, wait func()) error {
	for told := false; ; {
		err := d.tree.Mkdir(Work, 0o777)
		if errors.Is(err, fs.ErrNotExist) {
			return errGone
		}
		if info, bad := d.tree.Lstat(Work); bad == nil && !info.IsDir() {
			return diag.Errorf(CodeUnusable, filepath.Join(d.Path, Work),
				"it is %s, where amkc has its temporary directory; move it away", infile.What(info.Mode()))
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			d.lock, _, err = outfile.Hold(filepath.Join(d.Path, filepath.FromSlash(lockFile)))
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist):
			continue // the one that had it is removing .amkc-partial
		case !errors.Is(err, outfile.ErrBusy):
			return d.cannot(Work, err)
		case wait == nil || err != outfile.ErrBusy: // without locks there is nothing to wait for
			return diag.Errorf(CodeBusy, d.Path, "%v; wait until it has ended, or name another directory",
				infile.Reason(err))
		}
		if !told {
			wait()
			told = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close releases the lock, and removes everything that was written unless Commit has begun to move files into place.
// Closing twice is harmless.
func (d *Dir) Close() error {
	if d.tree == nil {
		return d.unmake()
	}
	var err error
	if d.lock != nil {
		if !d.isDir(readyDir) {
			err = d.clear()
		}
		err = errors.Join(err, d.lock.Release())
		d.lock = nil
		d.tree.Remove(Work) // not if another process has it by now, or if ready/ is there
	}
	err = errors.Join(err, d.unmake(), d.tree.Close())
	d.tree = nil
	return err
}

// unmake removes the directories that were made, if nothing is in them.
func (d *Dir) unmake() error {
	for i := len(d.made) - 1; i >= 0; i-- {
		if os.Remove(d.made[i]) != nil {
			break
		}
	}
	d.made = nil
	return nil
}

// makeAll makes a directory and those above it, and returns the ones that were not there, outermost first.
func makeAll(dir string) (made []string, err error) {
	for range 10 { // another process may remove the one above in between
		err = os.Mkdir(dir, 0o777)
		switch {
		case err == nil:
			return append(made, dir), nil
		case errors.Is(err, fs.ErrExist):
			return made, nil
		case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir:
			return made, err
		}
		above, failed := makeAll(filepath.Dir(dir))
		if made = append(made, above...); failed != nil {
			return made, failed
		}
	}
	return made, err // what is above is there, and takes no directories: /proc, or a working directory that was removed
}

// cannot reports what could not be done to a file.
func (d *Dir) cannot(name string, err error) error {
	return diag.Errorf(CodeWrite, filepath.Join(d.Path, filepath.FromSlash(path.Clean(name))), "cannot be written: %s",
		infile.Reason(err))
}

func (d *Dir) isDir(name string) bool {
	info, err := d.tree.Lstat(name)
	return err == nil && info.IsDir()
}

func (d *Dir) has(name string) bool {
	_, err := d.tree.Lstat(name)
	return err == nil
}
