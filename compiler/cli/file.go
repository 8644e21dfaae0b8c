package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"amkc/ir/diag"
)

// cause is the reason in an error of package os, without the call and the path, which the position says already.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// isDir reports whether path is a directory.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// replaceFile writes a file through a temporary one beside it, which takes its place when it is complete. Errors of write
// that are not the file's come back as they are.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err == nil {
		defer os.Remove(f.Name()) // harmless once it has been renamed
		err = errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	var refused *fs.PathError
	var rename *os.LinkError
	if errors.As(err, &refused) || errors.As(err, &rename) {
		return diag.Errorf(codeOutput, path, "cannot write: %v", cause(err))
	}
	return err
}
