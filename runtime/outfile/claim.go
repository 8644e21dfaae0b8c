package outfile

import (
	"errors"
	"io/fs"
	"os"

	"amkc/runtime/infile"
)

// ErrBusy says that another process is writing the same file.
var ErrBusy = errors.New("another amkc is writing it")

// A Claim is a file that exists for as long as a process works on something. The process holds a lock on it, which
// excludes others. A file without a lock was left by a process that was killed.
type Claim struct {
	*os.File
	path string // "" once there is no file to remove
}

// Hold creates the file at path and locks it. A file that a killed process has left there is replaced, and found is
// true. The error is ErrBusy if another process holds it, and otherwise an *infile.Error.
//
// Two processes cannot hold the same path: after taking the lock, a process checks that the path still names the locked
// file, and starts over if not. Only the holder of the lock of a file removes or renames it.
func Hold(path string) (c *Claim, found bool, err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		fresh := err == nil
		if errors.Is(err, fs.ErrExist) {
			f, err = openLeft(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was removed in between
			}
		}
		if err != nil {
			return nil, false, failed(path, err)
		}
		switch state := lock(f); {
		case state == lockedElsewhere:
			f.Close()
			return nil, false, ErrBusy
		case state == lockUnknown && !fresh:
			f.Close()
			return nil, false, &infile.Error{Path: path, Err: ErrBusy,
				Reason: "another amkc is writing here, or was killed; this file system has no locks to tell, so " +
					"remove " + path + " if none is"}
		}
		if !names(path, f) {
			f.Close()
			continue
		}
		if fresh {
			return &Claim{f, path}, found, nil
		}
		found = true
		err = os.Remove(path)
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, false, failed(path, err)
		}
	}
}

// Release removes the file, unless it was renamed, and releases the lock. Releasing twice is harmless.
func (c *Claim) Release() error {
	if c.File == nil {
		return nil
	}
	var err error
	if c.path != "" {
		err = os.Remove(c.path)
	}
	c.File.Close() // what was written is synced, or of no use
	c.File = nil
	return err
}

// openLeft opens a file that is there already. It does not follow a link: nobody but amkc makes files of these names,
// and amkc makes no links.
func openLeft(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &infile.Error{Path: path,
			Reason: path + " is " + infile.What(info.Mode()) + ", where amkc has its temporary file; move it away"}
	}
	return os.OpenFile(path, os.O_RDWR|openLeftFlags, 0)
}

// names reports whether path is the name of the open file.
func names(path string, f *os.File) bool {
	at, err := os.Lstat(path)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && os.SameFile(at, info)
}

// lockState is what came of an attempt to lock a file.
type lockState int

const (
	locked lockState = iota
	lockedElsewhere
	lockUnknown // there are no locks here
)
