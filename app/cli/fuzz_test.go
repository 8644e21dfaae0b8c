package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/app/cli"
	"amkc/internal/watch"
	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
	"amkc/text/chat"
)

// damaged are the files of a build that a launcher reads, but for the kernels, each with the commands that read it.
var damaged = []struct {
	name     string
	commands [][]string
}{
	{host.ManifestFile, [][]string{{"info"}, {"info", "--json"}, runIDs, {"check", "--bisect"},
		{"bench", "--launches", "5", "--steps-per-launch", "2"}}},
	{host.TokenizerFile, [][]string{{"run", "--prompt", "a 12\n", "--max-tokens", "2", "--json"}}},
	{chat.TemplateFile, [][]string{{"run", "--messages", "-", "--max-tokens", "2"}}},
	{host.ConfigFile, [][]string{runIDs}},
	{host.GenConfigFile, [][]string{runIDs, append(runIDs, "--sample")}},
	{host.WeightsFile, [][]string{runIDs}},
}

var runIDs = []string{"run", "--ids", "1,2", "--max-tokens", "2"}

// A launcher starts whatever one file of its build holds: it works, or says what is wrong with the build.
func FuzzLauncher(f *testing.F) {
	hosttest.NeedDriver(f)
	dir := hosttest.Build(f, "", nil)
	tok, err := os.ReadFile("../../testdata/models/pycoder-5m/tokenizer.json")
	require.NoError(f, err)
	hosttest.Write(f, dir, host.TokenizerFile, tok)
	hosttest.Write(f, dir, chat.TemplateFile,
		[]byte("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"))
	hosttest.Write(f, dir, host.GenConfigFile, []byte(`{"eos_token_id": [1, 2]}`))
	good := map[string][]byte{}
	for i, file := range damaged {
		name := file.name
		good[name], err = os.ReadFile(filepath.Join(dir, name))
		require.NoError(f, err)
		for _, size := range []int{len(good[name]), len(good[name]) / 2, 0} {
			f.Add(uint8(i), good[name][:min(size, 1<<14)])
		}
	}
	f.Add(uint8(1), []byte(`{"version":"1.0","added_tokens":[{"id":4000000000,"content":"x"}],"model":{"type":"BPE",`+
		`"vocab":{"a":0},"merges":[]}}`))
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		defer watch.Execution()()
		file := damaged[int(which)%len(damaged)]
		name := file.name
		if name == host.WeightsFile && len(data) < len(good[name]) {
			data = append(bytes.Clone(data), good[name][len(data):]...) // its header is what matters
		}
		hosttest.Write(t, dir, name, data)
		defer hosttest.Write(t, dir, name, good[name])
		for _, args := range file.commands {
			var out, errs bytes.Buffer
			l := cli.Launcher{Model: modelIn(dir), Dir: dir,
				Check: func(r host.Resident) (host.Reference, error) { return &hosttest.Twin{Resident: r}, nil }}
			code := l.Main(args, strings.NewReader(`[{"role": "user", "content": "a 12"}]`), &out, &errs)
			require.Contains(t, []int{0, 1, 2}, code)
			require.Equal(t, code == 0, errs.Len() == 0, "%v: exit code %d and %q", args, code, errs.String())
		}
	})
}

// modelIn is the model that the manifest of a build describes: a launcher refuses any other than its own, and what
// comes after that is to be tried too.
func modelIn(dir string) host.Model {
	var m struct{ Facts host.Facts }
	if data, err := os.ReadFile(filepath.Join(dir, host.ManifestFile)); err == nil {
		_ = json.Unmarshal(data, &m)
	}
	return m.Facts.Model
}
