package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

// What the files of a build say, and words of the command line, reach no output raw. The places are all those that
// the files have.
func TestHostileBuilds(t *testing.T) {
	hosttest.NeedDriver(t)
	dir := hosttest.Build(t, "", nil)
	shows := func(what string, args ...string) {
		for _, form := range [][]string{nil, {"--json"}} {
			_, out, errs := run(t, dir, "", append(slices.Clone(args), form...)...)
			require.Empty(t, injection.Raw(out), "%s: stdout of %q", what, args)
			require.Empty(t, injection.Raw(errs), "%s: stderr of %q", what, args)
		}
	}
	tokenizer := []byte(`{"version":"1.0","added_tokens":[{"id":0,"content":"<s>","special":true}],
		"normalizer":{"type":"NFC"},
		"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\s"},
		"behavior":"Isolated"}]},
		"post_processor":{"type":"X"},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0,"b":1},
		"merges":["a b"]}}`)
	for name, good := range map[string][]byte{
		host.ManifestFile: nil, host.ConfigFile: []byte(`{"eos_token_id":1,"model_type":"llama"}`),
		host.GenConfigFile: []byte(`{"eos_token_id":"x"}`), host.TokenizerFile: tokenizer,
		host.ProgramFile: []byte(`{"config":{"tiling":{"gemv":{"rows":8}},"page_allocation":"none",` +
			`"fusion_grouping":[["a"]]}}`),
	} {
		path := filepath.Join(dir, name)
		before, missing := os.ReadFile(path)
		if good == nil {
			good = before
		}
		for _, hostile := range []string{injection.All(), "\xff\x9b31m", strings.Repeat("long", 20000)} {
			n := 0
			require.NoError(t, injection.JSON(good, hostile, func(where string, text func() []byte) {
				if n++; n > 2 && hostile != injection.All() {
					return
				}
				require.NoError(t, os.WriteFile(path, text(), 0o644))
				switch where = name + " " + where; name {
				case host.ManifestFile:
					shows(where, "info")
				case host.ProgramFile:
					if n%5 == 1 {
						page := filepath.Join(t.TempDir(), "report.html")
						shows(where, "bench", "--launches", "1", "--warm-up", "1", "--report", page)
						html, err := os.ReadFile(page)
						require.NoError(t, err)
						require.Empty(t, injection.Raw(string(html)), where)
						require.NotContains(t, string(html), "<script>evil", where)
					}
				default:
					shows(where, "run", "--prompt", "a", "--max-tokens", "2")
				}
			}))
		}
		if require.NoError(t, os.Remove(path)); missing == nil {
			require.NoError(t, os.WriteFile(path, before, 0o644))
		}
	}
	for _, hostile := range injection.Texts {
		shows("word", hostile)
		shows("argument", "info", hostile)
		shows("flag", "run", "--"+hostile)
		shows("ids", "run", "--ids", hostile)
		shows("file", "bench", "--report", filepath.Join(dir, "none", hostile))
	}
}
