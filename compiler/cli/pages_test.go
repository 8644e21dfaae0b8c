package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	examples = regexp.MustCompile("(?ms)^```\n(\\$ .*?)^```")
	commands = regexp.MustCompile(`(?ms)^\$ ([^\n]*)\n(.*?)(?:^\$ |\z)`)
	quote    = regexp.MustCompile(`"([^"]*)"|'([^']*)'|(\S+)`)
)

// The commands that pages show with their output print that, and -update rewrites it. Where a page has ... stands
// something else; such an output is edited by hand.
func TestPages(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	t.Setenv("CUDA_VISIBLE_DEVICES", "") // the same on a machine with a GPU
	for _, page := range []struct {
		name   string
		before [][]string // commands that the page takes for granted
		blocks int
		codes  []int
	}{
		{"getting-started.md", nil, 4, []int{0, 0, 0, 0}},
		{"life-of-a-compile.md", [][]string{{"testdata/models/pycoder-5m", "-o", "build", "--target", "h200",
			"--no-build"}}, 4, []int{0, 0, 0, 0, 1}},
	} {
		t.Run(page.name, func(t *testing.T) {
			path := filepath.Join(root, "docs", page.name)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			t.Chdir(t.TempDir())
			for _, args := range page.before {
				code, out := ran(t, root, args, "")
				require.Zero(t, code, out)
			}
			blocks := examples.FindAllSubmatch(text, -1)
			require.Len(t, blocks, page.blocks)
			for _, block := range blocks {
				for rest := string(block[1]); rest != ""; {
					m := commands.FindStringSubmatchIndex(rest)
					command, shown := rest[m[2]:m[3]], rest[m[4]:m[5]]
					rest = rest[m[5]:]
					require.NotEmpty(t, page.codes, command)
					now := held(t, root, command, shown, page.codes[0])
					page.codes = page.codes[1:]
					text = bytes.Replace(text, []byte("$ "+command+"\n"+shown), []byte("$ "+command+"\n"+now), 1)
				}
			}
			require.Empty(t, page.codes)
			if *update {
				require.NoError(t, os.WriteFile(path, text, 0o644))
			}
			if page.name == "getting-started.md" {
				holdTable(t, string(text))
			}
		})
	}
}

// held runs a command of a page, holds what it prints to what is shown, and returns what is to be shown.
func held(t *testing.T, root, command, shown string, code int) string {
	t.Helper()
	var args []string
	for _, word := range quote.FindAllStringSubmatch(command, -1) {
		args = append(args, word[1]+word[2]+word[3])
	}
	if args[0] != "./amkc" {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, shown, string(out), command)
		return shown
	}
	var stdin, plain strings.Builder // of a conversation a terminal shows what is typed too, after a prompt
	for line := range strings.Lines(shown) {
		if message, typed := strings.CutPrefix(line, "> "); typed {
			stdin.WriteString(message)
		} else {
			plain.WriteString(line)
		}
	}
	require.Equal(t, args[1] == "chat", stdin.Len() > 0)
	got, out := ran(t, root, args[1:], stdin.String())
	require.Equal(t, code, got, out)
	if *update && stdin.Len() == 0 && !strings.Contains(shown, "...") {
		return out
	}
	var want strings.Builder
	for i, part := range strings.Split(plain.String(), "...") {
		if i > 0 {
			want.WriteString(`(?s:.*)`)
		}
		want.WriteString(regexp.QuoteMeta(part))
	}
	require.Regexp(t, "^"+want.String()+`\s*$`, out, command)
	return shown
}

// ran runs amkc as a page does, and returns its exit code and what it prints: its result, or its errors.
func ran(t *testing.T, root string, args []string, stdin string) (int, string) {
	for i := range args {
		args[i] = strings.Replace(args[i], "testdata/", root+"/testdata/", 1)
	}
	var stdout, stderr bytes.Buffer
	code := Main(args, strings.NewReader(stdin), &stdout, &stderr)
	require.NotContains(t, stderr.String(), "warning: ")
	if code != 0 {
		stdout.Write(stderr.Bytes())
	}
	return code, stdout.String()
}

// holdTable holds a table of the files of a build to the build of the page.
func holdTable(t *testing.T, page string) {
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
			require.Contains(t, page, fmt.Sprintf("`%s`", name))
		}
		return nil
	}))
}
