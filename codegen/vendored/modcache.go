package vendored

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"amkc/ir/diag"
)

// moduleDir finds the unpacked module in the Go module cache. The go command is asked only when the usual places do not
// have it: emitting a project needs no Go.
func moduleDir() (string, error) {
	roots := []string{os.Getenv("GOMODCACHE")}
	for _, gopath := range filepath.SplitList(os.Getenv("GOPATH")) {
		roots = append(roots, filepath.Join(gopath, "pkg", "mod"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, "go", "pkg", "mod"))
	}
	for _, root := range roots {
		if dir := inCache(root); dir != "" {
			return dir, nil
		}
	}
	if out, err := exec.Command("go", "env", "GOMODCACHE").Output(); err == nil {
		if dir := inCache(strings.TrimSpace(string(out))); dir != "" {
			return dir, nil
		}
	}
	return "", diag.Errorf(CodeMissing, Module,
		"%s is neither embedded in this amkc nor in the Go module cache, and the "+
			"launcher needs it to build with no network; run `go mod download %s@%s`", Require(), Module, Version)
}

// inCache returns the module's folder under a module cache, or "" when it is not there. The cache writes capital
// letters specially; the module's path has none.
func inCache(root string) string {
	if root == "" {
		return ""
	}
	dir := filepath.Join(root, filepath.FromSlash(Module)+"@"+Version)
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return ""
	}
	return dir
}
