package layering

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// `make fuzz` runs every fuzz target there is, and every target bounds the time and the memory of an execution.
func TestEveryFuzzerRuns(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	_, list, found := strings.Cut(strings.ReplaceAll(string(makefile), "\\\n", " "), "FUZZERS := ")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n")
	listed := strings.Fields(list)
	var there []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (d.Name() == "testdata" || d.Name() == "build" || d.Name() == "dist" ||
			strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		names := fuzzFunc.FindAllStringSubmatch(string(text), -1)
		require.Len(t, regexp.MustCompile(`(?m)^\t\tdefer watch\.Execution\(\)\(\)$`).FindAll(text, -1), len(names),
			"%s: a fuzz target begins with defer watch.Execution()()", path)
		rel, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range names {
			there = append(there, filepath.ToSlash(rel)+":"+m[1])
		}
		return err
	}))
	slices.Sort(there)
	slices.Sort(listed)
	require.NotEmpty(t, there)
	require.Equal(t, there, listed, "FUZZERS of the Makefile")
}
