package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// mayWrite refuses a path that a flag names for a file to be written, before anything is measured for it.
func mayWrite(flag, path, example string) error {
	info, err := os.Stat(path)
	switch {
	case path == "":
		return usagef("%s: no file is named; want one, as %s", flag, example)
	case err == nil && info.IsDir():
		return usagef("%s: %s is a directory; want a file, as %s", flag, path, filepath.Join(path, example))
	case err == nil && !info.Mode().IsRegular():
		return usagef("%s: %s is no ordinary file; want one to be written or replaced, as %s", flag, path, example)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usagef("%s: %v; want a file in a directory that exists", flag, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return usagef("%s: there is no directory %s; want a file in one that exists", flag, filepath.Dir(path))
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return usagef("%s: %v; want a file in a directory that can be written to", flag, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// writeFile writes a file that appears complete or not at all.
func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
