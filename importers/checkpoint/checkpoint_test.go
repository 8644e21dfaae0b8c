package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
)

func TestOpenReferenceModels(t *testing.T) {
	zoo, err := filepath.Glob(models + "/zoo/*")
	require.NoError(t, err)
	require.NotEmpty(t, zoo)
	for _, dir := range append(zoo, models+"/pycoder-5m") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, err := Open(dir)
			require.NoError(t, err)
			require.NotNil(t, c.Config.Generation)
			require.IsIncreasing(t, names(c))
			for _, tensor := range c.Tensors() {
				raw, err := tensor.Raw()
				require.NoError(t, err)
				require.Len(t, raw, int(tensor.Size()))
				require.EqualValues(t, tensor.Size(), int64(tensor.Rows()*tensor.RowLen())*dtypeBits[tensor.DType]/8)
			}
			require.NoError(t, c.Close())
			require.NoError(t, c.Close(), "closing twice is harmless")
		})
	}
}

// The values are those that the reference implementation of the format reads.
func TestOpenSharded(t *testing.T) {
	c, err := Open(models + "/zoo/llama-sharded-fp16")
	require.NoError(t, err)
	defer c.Close()
	require.Len(t, c.Tensors(), 30)
	head, ok := c.Tensor("lm_head.weight")
	require.True(t, ok)
	require.Equal(t, F16, head.DType)
	require.Equal(t, []int{512, 64}, head.Shape)
	_, ok = c.Tensor("lm_head")
	require.False(t, ok)

	row := make([]float32, 64)
	require.NoError(t, head.ReadRowsF32(row, 511, 512))
	require.Equal(t, []float32{-0x1.4d4p-4, 0x1.7ccp-7, 0x1.7d4p-5, -0x1.35cp-6}, row[60:])
}

func TestConfigKeepsOrderAndSpelling(t *testing.T) {
	c, err := OpenConfig(models + "/pycoder-5m")
	require.NoError(t, err)
	require.Equal(t, []string{"architectures", "attention_bias", "attention_dropout"}, c.Model.Keys()[:3])
	eps, ok := c.Model.Get("rms_norm_eps")
	require.True(t, ok)
	require.Equal(t, json.Number("1e-05"), eps)
	pad, ok := c.Model.Get("pad_token_id")
	require.True(t, ok, "null is a value")
	require.Nil(t, pad)
	_, ok = c.Model.Get("no_such_field")
	require.False(t, ok)
	rope, _ := c.Model.Get("rope_parameters")
	require.Equal(t, []string{"rope_theta", "rope_type"}, rope.(*Object).Keys())
	raw, err := os.ReadFile(models + "/pycoder-5m/config.json")
	require.NoError(t, err)
	require.Equal(t, raw, c.Model.Raw)
}

func TestGenerationConfigIsOptional(t *testing.T) {
	c, err := OpenConfig(modelDir(t, nil))
	require.NoError(t, err)
	require.Nil(t, c.Generation)
	_, err = OpenConfig(modelDir(t, map[string]string{"generation_config.json": "{"}))
	requireCode(t, err, "AMK1007", "generation_config.json:1:")
}

func TestDirectoryRefusals(t *testing.T) {
	empty := t.TempDir()
	file := filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	gguf := filepath.Join(t.TempDir(), "model.Q4_0.gguf")
	require.NoError(t, os.WriteFile(gguf, nil, 0o644))
	bare := modelDir(t, map[string]string{"pytorch_model.bin": ""})
	require.NoError(t, os.Remove(filepath.Join(bare, "config.json")))
	dangling := modelDir(t, nil)
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dangling, "model.safetensors")))

	for _, c := range []struct {
		name, dir, code string
		says            []string
	}{
		{"missing", filepath.Join(empty, "none"), "AMK1001", []string{"no such directory", "config.json"}},
		{"empty path", "", "AMK1001", []string{"the path is empty"}},
		{"a file", file, "AMK1001", []string{"give the directory that holds it, " + filepath.Dir(file)}},
		{"an empty gguf file", gguf, "AMK1050", []string{"model.Q4_0.gguf: error: 0 bytes long"}},
		{"empty", empty, "AMK1003", []string{"empty"}},
		{"no config", bare, "AMK1003", []string{"no config.json", "pytorch_model.bin is pickled"}},
		{"no weights", modelDir(t, nil), "AMK1004", []string{"model.safetensors is needed", "index.json"}},
		{"shards without index", modelDir(t, map[string]string{"model-00001-of-00002.safetensors": ""}), "AMK1004",
			[]string{"model.safetensors.index.json", "not taken without an index: model-00001-of-00002.safetensors"}},
		{"only bin", modelDir(t, map[string]string{"pytorch_model.bin": ""}), "AMK1005",
			[]string{"pickled", "accepted are model.safetensors"}},
		{"only pth", modelDir(t, map[string]string{"consolidated.00.pth": ""}), "AMK1005", []string{"pickled"}},
		{"only gguf", modelDir(t, map[string]string{"m.gguf": ""}), "AMK1005", []string{"GGUF"}},
		{"dangling link", dangling, "AMK1006", []string{"model.safetensors", "cannot open"}},
		{"malformed config", modelDir(t, map[string]string{"config.json": "{\n  \"a\": 1,\n  \"b\": }"}), "AMK1007",
			[]string{"config.json:3:8"}},
		{"pointer for a config", modelDir(t, map[string]string{"config.json": pointer}), "AMK1037",
			[]string{"config.json: error: this is a git-lfs pointer"}},
		{"pointer for weights", modelDir(t, map[string]string{"model.safetensors": pointer}), "AMK1037",
			[]string{"model.safetensors: ", "git lfs pull"}},
		{"pointer for an index", modelDir(t, map[string]string{indexName: pointer}), "AMK1037", []string{indexName}},
		{"pointer for a shard", modelDir(t, map[string]string{indexName: `{"weight_map":{"a":"s1"}}`, "s1": pointer}),
			"AMK1037", []string{"s1: "}},
		{"adapter next to the model", modelDir(t,
			map[string]string{adapterConfig: "{}", "model.safetensors": string(container("{}", 0))}), "AMK1035",
			[]string{"an adapter next to the model", "merge_and_unload", "move the adapter's files"}},
		{"adapter's weights and a config", modelDir(t, map[string]string{"adapter_model.safetensors": ""}), "AMK1035",
			[]string{"adapter_model.safetensors is an adapter"}},
		{"adapter alone", bareDir(t, adapterConfig, "adapter_model.safetensors"), "AMK1035",
			[]string{"an adapter alone", "merge_and_unload"}},
		{"adapter's weights alone", bareDir(t, "adapter_model.bin"), "AMK1035",
			[]string{"adapter_model.bin is an adapter"}},
		{"damaged weights", modelDir(t, map[string]string{"model.safetensors": "123"}), "AMK1010",
			[]string{"model.safetensors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(c.dir)
			requireCode(t, err, c.code, c.says...)
		})
	}
}

func TestObjectRefusals(t *testing.T) {
	for _, c := range []struct{ name, text, code, says string }{
		{"empty", "", "AMK1007", "the text ends too early"},
		{"array", "[1]", "AMK1007", "an array; an object"},
		{"number", "1", "AMK1007", "a number"},
		{"not UTF-8", "{\"a\": \"\xff\"}", "AMK1007", "UTF-8"},
		{"NaN", `{"a": NaN}`, "AMK1007", "c.json:1:7"},
		{"comment", "{} // c", "AMK1007", "c.json:1:4"},
		{"trailing comma", `{"a": 1,}`, "AMK1007", "c.json:1:9"},
		{"two objects", "{}\n{}", "AMK1007", "c.json:2:1"},
		{"key twice", "{\"a\": 1,\n \"a\": 2}", "AMK1008", `c.json:2:4: error: key "a"`},
		{"key twice, escaped", `{"a": 1, "\u0061": 2}`, "AMK1008", `"a" appears twice`},
		{"key twice, nested", `{"x": [{"a": 1, "a": 2}]}`, "AMK1008", `"a" appears twice`},
		{"deep", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "AMK1009", "64 levels"},
		{"very deep", `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}", "AMK1007",
			"nested too deeply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseObject("c.json", []byte(c.text))
			require.NotNil(t, err)
			requireCode(t, err, c.code, c.says)
		})
	}
	_, err := parseObject("c.json", []byte(strings.Repeat(`{"a":`, 64)+"1"+strings.Repeat("}", 64)))
	require.Nil(t, err, "64 levels are accepted")
}

// Where two shards have a tensor, the index says which is read; what the other has is told.
func TestIndexChoosesAmongCopies(t *testing.T) {
	shard := func(names string, data int) string { // a float32 each, whose bytes count from data on
		header, at := "{", 0
		for i, name := range strings.Split(names, "") {
			if i > 0 {
				header += ","
			}
			header += fmt.Sprintf(`%q:{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}`, name, at, at+4)
			at += 4
		}
		b := container(header+"}", at)
		for i := range at {
			b[len(b)-at+i] = byte(i + data)
		}
		return string(b)
	}
	for _, c := range []struct{ index, s1, s2, names, a, b, warning, note string }{
		{`{"a":"s1","b":"s2"}`, shard("a", 0), shard("ab", 40), "ab", "\x00", "\x2c", "1 tensor",
			"a in s2, listed in s1: other values"},
		{`{"a":"s2","b":"s2","c":"s1"}`, shard("ac", 40), shard("ab", 40), "abc", "\x28", "\x2c", "1 tensor",
			"a in s1, listed in s2: the same bits"},
		{`{"a":"s2","b":"s1"}`, shard("ab", 0), shard("ba", 40), "ab", "\x2c", "\x04", "2 tensors",
			"b in s2, listed in s1: other values"},
		{`{"a":"s1","b":"s2"}`, shard("a", 0), shard("b", 40), "ab", "\x00", "\x28", "", ""},
	} {
		m, err := Open(modelDir(t, map[string]string{indexName: `{"weight_map":` + c.index + `}`, "s1": c.s1,
			"s2": c.s2}))
		require.NoError(t, err, c.index)
		t.Cleanup(func() { m.Close() })
		require.Equal(t, c.names, strings.Join(names(m), ""), "each once")
		for name, first := range map[string]string{"a": c.a, "b": c.b} {
			tensor, _ := m.Tensor(name)
			raw, err := tensor.Raw()
			require.NoError(t, err)
			require.Equal(t, first, string(raw[:1]), "%s of %s", name, c.index)
		}
		if c.warning == "" {
			require.Empty(t, m.Warnings)
			continue
		}
		require.Len(t, m.Warnings, 1)
		require.Equal(t, diag.Warning, m.Warnings[0].Severity)
		requireCode(t, m.Warnings[0], "AMK1013", c.warning, c.note)
	}
}

func TestIndexRefusals(t *testing.T) {
	shard := func(names ...string) string {
		var entries []string
		for i, name := range names {
			offsets, _ := json.Marshal([]int{4 * i, 4*i + 4})
			entries = append(entries, `"`+name+`":{"dtype":"F32","shape":[1],"data_offsets":`+string(offsets)+`}`)
		}
		return string(container("{"+strings.Join(entries, ",")+"}", 4*len(names)))
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		code  string
		says  []string
	}{
		{"malformed", map[string]string{indexName: "{"}, "AMK1007", []string{indexName + ":1:"}},
		{"no weight_map", map[string]string{indexName: `{"metadata":{}}`}, "AMK1020",
			[]string{"weight_map is missing"}},
		{"weight_map is a list", map[string]string{indexName: `{"weight_map":[]}`}, "AMK1020", []string{"an object"}},
		{"weight_map is empty", map[string]string{indexName: `{"weight_map":{}}`}, "AMK1020",
			[]string{"not an empty one"}},
		{"shard is a number", map[string]string{indexName: `{"weight_map":{"a":1}}`}, "AMK1020",
			[]string{"a number; a file name"}},
		{"shard above", map[string]string{indexName: `{"weight_map":{"a":"../s.safetensors"}}`}, "AMK1020",
			[]string{"not a plain file name"}},
		{"shard is absolute", map[string]string{indexName: `{"weight_map":{"a":"/etc/passwd"}}`}, "AMK1020",
			[]string{"not a plain file name"}},
		{"shard is the directory", map[string]string{indexName: `{"weight_map":{"a":"."}}`}, "AMK1020",
			[]string{"not a plain file name"}},
		{"shard has no name", map[string]string{indexName: `{"weight_map":{"a":""}}`}, "AMK1020",
			[]string{"not a plain file name"}},
		{"tensor listed twice", map[string]string{indexName: `{"weight_map":{"a":"s","a":"t"}}`}, "AMK1008",
			[]string{`"a" appears twice`}},
		{"missing shard", map[string]string{indexName: `{"weight_map":{"a":"s1","b":"s2"}}`, "s1": shard("a")},
			"AMK1021",
			[]string{"1 shard of 2 missing", "missing: s2"}},
		{"missing tensor", map[string]string{indexName: `{"weight_map":{"a":"s1","b":"s1"}}`, "s1": shard("a")},
			"AMK1022",
			[]string{"1 listed tensor", "b, listed in s1"}},
		{"extra tensor", map[string]string{indexName: `{"weight_map":{"a":"s1"}}`, "s1": shard("a", "b", "c")},
			"AMK1023",
			[]string{"2 tensors", "b in s1, not listed", "c in s1, not listed"}},
		{"tensor in another shard", map[string]string{indexName: `{"weight_map":{"a":"s1","b":"s1","c":"s2"}}`,
			"s1": shard("a"), "s2": shard("b", "c")},
			"AMK1023", []string{"b in s2, listed in s1"}},
		{"tensor in two shards of three", map[string]string{indexName: `{"weight_map":{"a":"s1","b":"s2","c":"s3"}}`,
			"s1": shard("b"), "s2": shard("a"), "s3": shard("a", "b", "c")},
			"AMK1023", []string{"a in s2, listed in s1", "b in s3, listed in s2"}},
		{"damaged shard", map[string]string{indexName: `{"weight_map":{"a":"s1","b":"s2"}}`, "s1": shard("a"),
			"s2": shard("b")[:20]},
			"AMK1010", []string{"s2"}},
		{"many missing", map[string]string{indexName: `{"weight_map":{"a":"s","b":"s","c":"s","d":"s","e":"s",` +
			`"f":"s","g":"s","h":"s","i":"s","j":"s","z":"s"}}`, "s": shard("z")},
			"AMK1022", []string{"10 listed tensors", "h, listed", "and 2 others"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(modelDir(t, c.files))
			requireCode(t, err, c.code, c.says...)
		})
	}
}
