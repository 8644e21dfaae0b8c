package cli

import (
	"bytes"
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
	examples = regexp.MustCompile("(?ms)^```\n\\$ \\./amkc (.*?)\n(.*?)^```")
	quote    = regexp.MustCompile(`"([^"]*)"|(\S+)`)
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
	blocks := examples.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 4)
	for _, block := range blocks {
		var args []string
		for _, word := range quote.FindAllStringSubmatch(block[1], -1) {
			args = append(args, strings.Replace(word[1]+word[2], "testdata/", root+"/testdata/", 1))
		}
		var stdin, shown strings.Builder // of a conversation a terminal shows what is typed too, after a prompt
		for line := range strings.Lines(block[2]) {
			if message, typed := strings.CutPrefix(line, "> "); typed {
				stdin.WriteString(message)
			} else {
				shown.WriteString(line)
			}
		}
		require.Equal(t, args[0] == "chat", stdin.Len() > 0)
		var stdout, stderr bytes.Buffer
		code := Main(args, strings.NewReader(stdin.String()), &stdout, &stderr)
		out, errs := stdout.String(), stderr.String()
		require.Zero(t, code, errs)
		var want strings.Builder
		for i, part := range strings.Split(shown.String(), "...") {
			if i > 0 {
				want.WriteString(`(?s:.*)`)
			}
			want.WriteString(regexp.QuoteMeta(part))
		}
		require.NotContains(t, errs, "warning: ")
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
		if name != "amk/" && name != "generation_config.json" && name != "tokenizer_config.json" &&
			name != "chat_template.jinja" { // in other words
			require.Contains(t, string(page), fmt.Sprintf("`%s`", name))
		}
		return nil
	}))
}
