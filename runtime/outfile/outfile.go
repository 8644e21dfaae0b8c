// Package outfile writes files atomically: a file appears complete or not at all. Its bytes are written to a hidden
// file in the same directory, which is then renamed to the target. Until then, and after any error, an existing file at
// the target is unchanged.
//
// The process that writes a hidden file holds a lock on it, which ends with the process. This distinguishes a file that
// a killed process has left from one in use: the next run that writes to the same target removes the former.
//
// It is copied into every launcher. It imports the standard library and runtime/infile, and must not import any other
// package of amkc.
package outfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"amkc/runtime/infile"
)

// A File is a file being written. Its bytes are at the target after Commit.
type File struct {
	*Claim
	target string
}

// Create begins a file at path. An existing file keeps its permissions; a new one has those that the umask allows. A
// symbolic link is kept, and the file that it leads to is replaced. Errors are those of [Target] and [Hold].
func Create(path string) (*File, error) {
	target, mode, err := locate(path)
	if err != nil {
		return nil, err
	}
	c, _, err := Hold(partial(target))
	if err != nil {
		return nil, err
	}
	if mode != 0 {
		if err := c.Chmod(mode); err != nil {
			return nil, errors.Join(failed(path, err), c.Release())
		}
	}
	return &File{c, target}, nil
}

// Commit renames the file to its target.
func (f *File) Commit() error {
	err := f.Sync()
	if err == nil {
		err = os.Rename(f.path, f.target)
	}
	if err != nil {
		return errors.Join(failed(f.target, err), f.Release())
	}
	f.path = "" // there is nothing to remove any more
	syncDirectory(filepath.Dir(f.target))
	return f.Release()
}

// Write replaces the file at path by what write writes. Errors of write are returned unchanged.
func Write(path string, write func(io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Release()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// Clean removes leftovers of a killed run for the file at path, and reports whether there were any. It does not touch
// files that another process is writing.
func Clean(path string) (bool, error) {
	target, _, err := locate(path)
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(partial(target)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	c, found, err := Hold(partial(target))
	if err != nil {
		return false, err
	}
	return found, c.Release()
}

// Target refuses a path that no file can be written to: it is something other than a regular file, a link to nothing,
// or in no directory.
func Target(path string) error {
	_, _, err := locate(path)
	return err
}

// locate follows links, and returns the permissions of the file that is there, 0 if there is none.
func locate(path string) (target string, mode fs.FileMode, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return "", 0, &infile.Error{Path: path,
			Reason: "it is " + infile.What(info.Mode()) + "; want a file, or a name that is free"}
	case err == nil:
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", 0, failed(path, err)
		}
		return target, info.Mode().Perm(), nil
	case path == "" || !errors.Is(err, fs.ErrNotExist):
		return "", 0, failed(path, err)
	}
	if _, err := os.Lstat(path); err == nil {
		return "", 0, &infile.Error{Path: path, Reason: "it is a link to nothing; want a file, or a name that is free"}
	}
	if dir, err := os.Stat(filepath.Dir(path)); err != nil || !dir.IsDir() {
		return "", 0, &infile.Error{Path: path,
			Reason: "there is no directory " + filepath.Dir(path) + "; want one that is there", Err: err}
	}
	return path, 0, nil
}

const (
	maxName = 255 // of a file, in bytes, on nearly every file system
	suffix  = ".amkc-partial"
)

// partial is the hidden file next to a target. It has the target's name, or if that would be too long the digest of it.
func partial(target string) string {
	name := filepath.Base(target)
	if len("."+name+suffix) > maxName {
		name = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
	}
	return filepath.Join(filepath.Dir(target), "."+name+suffix)
}

// syncDirectory makes a rename last through a crash of the machine. Some systems cannot sync a directory, and the
// file is complete either way, so that an error is no reason to fail.
func syncDirectory(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}

func failed(path string, err error) error {
	var known *infile.Error
	if errors.As(err, &known) {
		return known
	}
	return &infile.Error{Path: path, Reason: infile.Reason(err), Err: err}
}
