package cli

import (
	"os"
	"path/filepath"

	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/outfile"
)

// mayWrite refuses a path that a flag names for a file to be written, before anything is measured for it. A file that
// the build is made of is not written over.
func (c *command) mayWrite(flag, path, example string) error {
	if path == "" {
		return usagef("%s: no file is named; want one, as %s", flag, example)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usagef("%s: %s is a directory; want a file, as %s", flag, path, filepath.Join(path, example))
	}
	if own := host.FileAt(c.dir, path); own != "" {
		return usagef("%s: %s is %s of the build; want another file, as %s", flag, path, own, example)
	}
	if _, err := outfile.Clean(path); err != nil {
		return usagef("%s: %s: %s", flag, path, infile.Reason(err))
	}
	f, err := outfile.Create(path)
	if err != nil {
		return usagef("%s: %s: %s", flag, path, infile.Reason(err))
	}
	return f.Release()
}
