package cli

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
)

// shows runs amkc, and demands that it prints nothing raw: not as text, and not as JSON.
func shows(t *testing.T, what string, args ...string) {
	t.Helper()
	for _, form := range [][]string{nil, {"--json", "-v"}} {
		_, out, errs := amkc(append(slices.Clone(args), form...)...)
		require.Empty(t, injection.Raw(out), "%s: stdout of %q", what, args)
		require.Empty(t, injection.Raw(errs), "%s: stderr of %q", what, args)
	}
}

// variants calls f with documents that have hostile text in one place: all places, or with a step the first ones and
// every step-th after them. AMKC_LONG tries all.
func variants(t *testing.T, document []byte, step int, f func(where string, text []byte)) {
	t.Helper()
	tried := 0
	for _, hostile := range []string{injection.All(), "\xff\x9b31m", strings.Repeat("long", 20000)} {
		n := 0
		require.NoError(t, injection.JSON(document, hostile, func(where string, text func() []byte) {
			if n++; n <= 4 || hostile == injection.All() && (step == 1 || n <= 20 || n%step == 0) ||
				os.Getenv("AMKC_LONG") != "" {
				f(where, text())
				tried++
			}
		}))
	}
	require.Greater(t, tried, 10)
}

func readTest(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"../../testdata"}, path...)...))
	require.NoError(t, err)
	return text
}

func TestHostileModelFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dump := []string{"dump", "", "--target", "t4", "--after", "import"}
	for _, c := range []struct {
		model, file string
		verb        []string
	}{
		{"llama-gqa", "config.json", dump}, {"llama-rope-llama3", "config.json", dump},
		{"llama-gqa", "generation_config.json",
			[]string{"run", "", "--device", "ref", "--ids", "1", "--max-tokens", "1"}},
		{"llama-sharded-fp16", "model.safetensors.index.json",
			[]string{"pack", "", "-o", filepath.Join(t.TempDir(), "packed.safetensors")}},
	} {
		dir := copyModel(t, "zoo/"+c.model)
		c.verb[1] = dir
		good := readTest(t, "models/zoo", c.model, c.file)
		variants(t, good, 1, func(where string, text []byte) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, c.file), text, 0o644))
			what := c.file + " " + where
			shows(t, what, c.verb...)
		})
	}
}

// The header of a safetensors file names tensors, types and whatever its metadata says.
func TestHostileTensorNames(t *testing.T) {
	dir := copyModel(t, "zoo/llama-gqa")
	path := filepath.Join(dir, "model.safetensors")
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	size := binary.LittleEndian.Uint64(file)
	header, data := file[8:8+size], file[8+size:]
	variants(t, header, 29, func(where string, text []byte) {
		changed := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
		require.NoError(t, os.WriteFile(path, slices.Concat(changed, text, data), 0o644))
		shows(t, where, "dump", dir, "--target", "t4", "--after", "import")
		shows(t, where, "pack", dir, "-o", filepath.Join(t.TempDir(), "packed.safetensors"))
	})
}

func TestHostileConfiguration(t *testing.T) {
	good := []byte(`{"tiling":{"gemv":{"rows":8}},"sm_assignment":"load_balance",
		"pipelining_depth":3,"page_allocation":"graph_color","smem_bytes_per_block":0}`)
	rotations := []byte(`{"sm_assignment":{"qkv":1}}`)
	path := filepath.Join(t.TempDir(), "knobs.json")
	for _, document := range [][]byte{good, rotations} {
		variants(t, document, 1, func(where string, text []byte) {
			require.NoError(t, os.WriteFile(path, text, 0o644))
			shows(t, where, "dump", "../../testdata/models/zoo/llama-gqa", "--target", "t4", "--config", path,
				"--format", "loops")
		})
	}
}

// Programs in all their forms, for the verbs that take a file.
func TestHostilePrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	profile := readTest(t, "amk_ir/toy_f16_int8_g64/program.json")
	path := filepath.Join(t.TempDir(), "program.json")
	for _, document := range [][]byte{readTest(t, "ir/tiny.json"), profile} {
		variants(t, document, 199, func(where string, text []byte) {
			require.NoError(t, os.WriteFile(path, text, 0o644))
			shows(t, where, "validate", path, "--for", "vm")
			shows(t, where, "dump", path)
			shows(t, where, "cost", path)
		})
	}
	tiny := string(readTest(t, "ir/tiny.amk"))
	path = filepath.Join(t.TempDir(), "program.amk")
	words := 0
	for i, line := range strings.Split(tiny, "\n") {
		for _, word := range strings.Fields(line) {
			if words++; words > 30 && words%23 != 0 && os.Getenv("AMKC_LONG") == "" {
				continue
			}
			changed := strings.Split(tiny, "\n")
			changed[i] = strings.Replace(line, word, `"`+word+`\x1b[2J\u009b31m\u202e`+"\u202e\x1b[2J\"", 1)
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(changed, "\n")), 0o644))
			shows(t, line, "validate", path)
			changed[i] = strings.Replace(line, word, word+injection.All(), 1)
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(changed, "\n")), 0o644))
			shows(t, line, "dump", path)
		}
	}
}

// Words of the command line: they are the user's own, and still data where they are printed.
func TestHostileArguments(t *testing.T) {
	model := "../../testdata/models/zoo/llama-gqa"
	texts := []string{injection.All(), "\xff\x9b31m", strings.Repeat("long", 20000)}
	if os.Getenv("AMKC_LONG") != "" {
		texts = append(texts, injection.Texts...)
	}
	for _, hostile := range texts {
		shows(t, "name", model, "-o", filepath.Join(t.TempDir(), "out"), "--target", "t4", "--no-build", "--name",
			hostile)
		shows(t, "target", "dump", model, "--target", hostile)
		shows(t, "out", "pack", model, "-o", filepath.Join(t.TempDir(), "none", hostile))
		for _, v := range verbs() {
			for _, word := range []string{hostile, "--" + hostile} {
				shows(t, v.name, append(strings.Fields(v.name), word)...)
			}
		}
	}
}
