package layering

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var stated = regexp.MustCompile("`([\\w/.]+)`, some ([\\d,]+) lines")

// linesOf counts the lines of a file, or of what a directory has of Go without its tests.
func linesOf(t *testing.T, path string) int {
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		files, err = filepath.Glob(filepath.Join(path, "*.go"))
		require.NoError(t, err)
	}
	n := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		n += bytes.Count(text, []byte("\n"))
	}
	return n
}

// Where docs/dependencies.md says how many lines something has, it has about that many.
func TestStatedLines(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs/dependencies.md"))
	require.NoError(t, err)
	words := strings.Join(strings.Fields(string(text)), " ")
	found := stated.FindAllStringSubmatch(words, -1)
	require.Len(t, found, len(regexp.MustCompile(`some [\d,]+ lines`).FindAllString(words, -1)),
		"a number of lines that is not said as `PATH`, some N lines")
	require.GreaterOrEqual(t, len(found), 6)
	for _, m := range found {
		n, err := strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
		require.NoError(t, err)
		require.InEpsilon(t, linesOf(t, filepath.Join(root, m[1])), n, 0.1, "%s: it has other lines", m[0])
	}
}
