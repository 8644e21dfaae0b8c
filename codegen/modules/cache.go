package modules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"amkc/ir/diag"
	"amkc/runtime/infile"
)

// Cached is [Files] from the Go module cache alone. It runs the go command to find the cache only if the usual places
// do not have the modules: emitting a project does not need Go.
func Cached() (map[string][]byte, error) {
	roots := []string{os.Getenv("GOMODCACHE")}
	for _, gopath := range filepath.SplitList(os.Getenv("GOPATH")) {
		roots = append(roots, filepath.Join(gopath, "pkg", "mod"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, "go", "pkg", "mod"))
	}
	for _, root := range roots {
		if files, err := cachedIn(root); files != nil || err != nil {
			return files, err
		}
	}
	if out, err := exec.Command("go", "env", "GOMODCACHE").Output(); err == nil {
		if files, err := cachedIn(strings.TrimSpace(string(out))); files != nil || err != nil {
			return files, err
		}
	}
	var names []string
	for _, m := range All {
		names = append(names, m.Path+"@"+m.Version)
	}
	return nil, diag.Errorf(CodeMissing, "launcher",
		"its modules are neither embedded in this amkc nor in the Go module cache, and it needs them to build with no "+
			"network; run `go mod download %s`", strings.Join(names, " "))
}

// cachedIn returns what a module cache has, or nil where it lacks a module.
func cachedIn(root string) (map[string][]byte, error) {
	if root == "" {
		return nil, nil
	}
	downloads := filepath.Join(root, "cache", "download")
	return collect(downloads, "delete that file and download it again, from a module proxy",
		func(name string) ([]byte, error) {
			return infile.Read(filepath.Join(downloads, filepath.FromSlash(name)), infile.GoModule)
		})
}
