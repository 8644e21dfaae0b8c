package compiler

import (
	"os"
	"path/filepath"

	"amkc/ir/diag"
	"amkc/runtime/host"
)

// freeSpace is how many bytes a user may still write to the file system of a directory, and whether that is known. A
// test replaces it.
var freeSpace = fileSystemSpace

// checkSpace refuses to write n bytes to a file, whose directory need not exist yet, where there is no room for
// them.
func checkSpace(path string, bytes uint64) error {
	free, known := freeSpace(existing(filepath.Dir(path)))
	if !known || bytes <= free {
		return nil
	}
	return diag.Errorf(codeSpace, filepath.Base(path),
		"the packed weights need %s, and %s are available on the file system of the output; want another "+
			"directory, or more room",
		host.FormatBytes(bytes), host.FormatBytes(free))
}

// existing is the directory, or the nearest above it that is there.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
