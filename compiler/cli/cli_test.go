package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sbinet/npyio"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

// amkc runs Main and returns the exit code and what it printed.
func amkc(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// TestTable compares the verbs with help, completion and documentation.
func TestTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	for _, v := range verbs() {
		require.NotEmpty(t, v.summary, v.name)
		require.Equal(t, strings.TrimSuffix(v.summary, "."), v.summary, "%s: a summary is not a sentence", v.name)
		require.Contains(t, string(doc), "amkc "+strings.TrimPrefix(v.name, compileName), "docs/cli.md lacks verb %s",
			v.name)
		c := &call{verb: v}
		c.defineFlags()
		c.flags.VisitAll(func(f *pflag.Flag) {
			require.NotEmpty(t, f.Usage, "%s --%s", v.name, f.Name)
			require.Contains(t, string(doc), "`--"+f.Name, "docs/cli.md lacks --%s of %s", f.Name, v.name)
		})
	}
}

// The list of verbs fits a screen, and has each of them once.
func TestOverviewFitsAScreen(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(overview()), "\n")
	require.LessOrEqual(t, len(lines), 40)
	for _, line := range lines {
		require.LessOrEqual(t, len(line), 80, line)
	}
	var grouped []string
	for _, g := range groups {
		grouped = append(grouped, g.verbs...)
	}
	require.ElementsMatch(t, verbNames(), grouped)
}

// So does the help of each verb.
func TestHelpOfVerbsFitsAScreen(t *testing.T) {
	for _, v := range verbs() {
		code, out, _ := amkc(append([]string{"help"}, strings.Fields(v.name)...)...)
		require.Zero(t, code, v.name)
		require.NotContains(t, out, "?.")
		require.True(t, v.name == "help" || strings.HasPrefix(out, "usage: amkc "), out)
		for _, line := range strings.Split(out, "\n") {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
		}
	}
}

// TestDocumentedFlags holds docs/cli.md to flags that exist.
func TestDocumentedFlags(t *testing.T) {
	doc, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	known := map[string]bool{"help": true, "version": true} // no verb's: Main reads them
	for _, v := range flagTable() {
		for _, f := range v.flags {
			known[f.long] = true
		}
	}
	for _, m := range regexp.MustCompile("--([a-z][a-z-]*)").FindAllStringSubmatch(string(doc), -1) {
		require.True(t, known[m[1]], "docs/cli.md mentions --%s, which no verb has", m[1])
	}
}

// TestCodes demands that every code is explained well enough to act on.
func TestCodes(t *testing.T) {
	for _, c := range diag.Codes() {
		require.NotEmpty(t, c.Title, c.ID)
		require.False(t, strings.HasSuffix(c.Title, "."), "%s: a title is not a sentence", c.ID)
		require.Greater(t, len(strings.Fields(c.Doc)), 12, "%s: the text says too little", c.ID)
		code, out, _ := amkc("explain", c.ID)
		require.Equal(t, 0, code)
		require.Equal(t, c.ID+": "+c.Title+"\n\n"+c.Doc+"\n", out)
	}
}

// TestCodesInTests demands that the codes which tests, goldens and documents speak of exist: a code that was renamed
// leaves an explanation behind that nobody can look up.
func TestCodesInTests(t *testing.T) {
	code := regexp.MustCompile(`\bAMK[0-9]{4}\b`)
	absent := []string{"AMK9999"} // scripts ask for it because it does not exist
	root := "../.."
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && strings.HasPrefix(name, ".") || name == "models" || name == "build" {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".go", ".md", ".txtar", ".golden", ".txt", ".amk":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, id := range code.FindAllString(string(text), -1) {
			if diag.Lookup(id) == nil && !slices.Contains(absent, id) && !strings.HasPrefix(path, "../../ir/diag/") {
				t.Errorf("%s mentions %s, which is not registered", path, id)
			}
		}
		return nil
	}))
}

func TestExitCodes(t *testing.T) {
	require.Equal(t, 0, exitCode(nil))
	require.Equal(t, 1, exitCode(errDifferent))
	require.Equal(t, 1, exitCode(diag.Errorf(codePrompt, "", "")))
	require.Equal(t, 2, exitCode(diag.Errorf(codeUsage, "", "")))
	require.Equal(t, 2, exitCode(diag.List{diag.Errorf(codePrompt, "", ""), diag.Errorf(codeOutput, "", "")}))
	require.Equal(t, 2, exitCode(errors.New("nobody foresaw this")))
	require.Equal(t, 130, exitCode(context.Canceled))
	for id, broken := range exitsWith2 {
		code := diag.Lookup(id)
		require.NotNil(t, code, id)
		require.Equal(t, broken, exitCode(fmt.Errorf("wrapped: %w", diag.Errorf(code, "", ""))) == 2, id)
	}
}

func TestAsList(t *testing.T) {
	inner := diag.List{diag.Errorf(codePrompt, "a", "one"), diag.Errorf(codePrompt, "b", "two")}
	require.Equal(t, inner, asList("x", inner))
	wrapped := asList("x", fmt.Errorf("after pass tile: %w", inner))
	require.Equal(t, "a: error: one [AMK1202]\n    after pass tile", wrapped[0].Error())
	require.Empty(t, inner[0].Related, "the original must not change")
	require.Equal(t, "x: error: boom [AMK5904]", asList("x", errors.New("boom")).Error())
}

func TestComparePos(t *testing.T) {
	sorted := []string{"", "a.amk:2:1", "a.amk:2:10", "a.amk:10:1", "a.amk:10:1: more", "config.json: x",
		"task L02.qkv.s009", "task L02.qkv.s10"}
	shuffled := slices.Clone(sorted)
	slices.Reverse(shuffled)
	slices.SortFunc(shuffled, comparePos)
	require.Equal(t, sorted, shuffled)
}

// A closed pipe must not look like success.
func TestOutputRefused(t *testing.T) {
	for _, args := range [][]string{{"targets"}, {"targets", "--json"}, {"help"}, {"completion", "bash"}} {
		var errs bytes.Buffer
		require.Equal(t, 2, Main(args, strings.NewReader(""), refusing{}, &errs), args)
		require.Contains(t, errs.String(), "AMK5902", args)
	}
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errors.New("the pipe is closed") }

func TestNPY(t *testing.T) {
	var b bytes.Buffer
	w, err := newNPY(&b, 2, 3)
	require.NoError(t, err)
	require.NoError(t, w.append([]float32{1, 2, 3}))
	require.ErrorContains(t, w.append([]float32{1}), "want 1 rows more of 3")
	require.ErrorContains(t, w.close(), "1 rows are missing")
	require.NoError(t, w.append([]float32{4, 5, -0.5}))
	require.NoError(t, w.close())
	require.Error(t, w.append([]float32{1, 2, 3}))

	r, err := npyio.NewReader(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, r.Header.Descr.Shape)
	require.Equal(t, "<f4", r.Header.Descr.Type)
	var got []float32
	require.NoError(t, r.Read(&got))
	require.Equal(t, []float32{1, 2, 3, 4, 5, -0.5}, got)
	require.Zero(t, (b.Len()-4*6)%64, "NumPy aligns the data to 64 bytes")
}

func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.npy")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o666))
	boom := errors.New("boom")
	err := (&call{}).replaceFile(path, func(w io.Writer) error { w.Write([]byte("half")); return boom })
	require.ErrorContains(t, err, "boom")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(text), "a failure must leave the old file")
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "a failure must leave nothing else")
}
