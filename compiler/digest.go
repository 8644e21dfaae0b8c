package compiler

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"amkc/codegen"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
)

// mismatch says why a file of a build is not the one that its manifest names, or nothing. A negative size is not
// compared.
//
// The whole file is read. Its size and time would be cheaper to compare, and say nothing of a bit that a disk or a
// copy has lost; recompiling reads the whole checkpoint anyhow.
func mismatch(dir, name, want string, size int64, report progress.Func) string {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "is outside the build"
	}
	n, got, err := fileDigest(filepath.Join(dir, filepath.FromSlash(name)), report)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is missing"
	case err != nil:
		return fmt.Sprintf("cannot be read: %v", infile.Reason(err))
	case got != want || size >= 0 && n != size:
		return fmt.Sprintf("has SHA-256 %s; the manifest says %s", got, want)
	}
	return ""
}

// eachFile calls f with every file that a manifest has a digest of, in order, until f returns false.
func eachFile(m *codegen.Manifest, f func(name, digest string, size int64) bool) {
	for _, files := range []map[string]string{m.Files, m.Built} {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if !f(name, files[name], -1) {
				return
			}
		}
	}
	f(host.WeightsFile, m.Weights.SHA256, m.Weights.Bytes)
}
