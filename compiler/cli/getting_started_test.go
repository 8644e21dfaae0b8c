package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	shown = regexp.MustCompile("(?ms)^```\n\\$ \\./amkc (.*?)\n(.*?)^```")
	quote = regexp.MustCompile(`"([^"]*)"|(\S+)`)
)

// The commands that docs/getting-started.md shows with their output print that. Where the page has ... stands something
// else.
func TestGettingStarted(t *testing.T) {
	page, err := os.ReadFile("../../docs/getting-started.md")
	require.NoError(t, err)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	t.Setenv("CUDA_VISIBLE_DEVICES", "") // the same on a machine with a GPU
	t.Chdir(t.TempDir())
	blocks := shown.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 3)
	for _, block := range blocks {
		var args []string
		for _, word := range quote.FindAllStringSubmatch(block[1], -1) {
			args = append(args, strings.Replace(word[1]+word[2], "testdata/", root+"/testdata/", 1))
		}
		code, out, errs := amkc(args...)
		require.Zero(t, code, errs)
		var want strings.Builder
		for i, part := range strings.Split(block[2], "...") {
			if i > 0 {
				want.WriteString(`(?s:.*)`)
			}
			want.WriteString(regexp.QuoteMeta(part))
		}
		require.Equal(t, args[0] != "run" && args[0] != "verify", strings.Contains(errs, "[AMK1207]"), errs)
		require.Regexp(t, "^"+want.String()+`\s*$`, out, block[1])
	}
	// The table names all that the build has now.
	require.NoError(t, filepath.WalkDir("build", func(path string, d fs.DirEntry, err error) error {
		name, _, below := strings.Cut(strings.TrimPrefix(path, "build/"), "/")
		if err != nil || below || path == "build" {
			return err
		}
		if d.IsDir() {
			name += "/"
		}
		if name != "amk/" && name != "generation_config.json" && name != "tokenizer_config.json" { // in other words
			require.Contains(t, string(page), fmt.Sprintf("`%s`", name))
		}
		return nil
	}))
}
