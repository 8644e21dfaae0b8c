package quantised

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/internal/watch"
	"amkc/ir/diag"
)

// A stored tensor of a test.
type stored struct {
	dtype checkpoint.DType
	shape []int
	data  []byte
}

// words are little-endian words.
func words(values ...uint32) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}

// floats are n numbers of type F32.
func floats(n int, v float32) []byte {
	return words(slices.Repeat([]uint32{math.Float32bits(v)}, n)...)
}

// write writes the tensors of module m, and a config with the settings.
func write(t *testing.T, settings string, tensors map[string]stored) string {
	t.Helper()
	return writeFiles(t, []byte(`{"model_type": "m", "quantization_config": `+settings+`}`), container(t, tensors))
}

func writeFiles(t testing.TB, config, weights []byte) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), weights, 0o644))
	return dir
}

// container is a safetensors file of the tensors of module m: m.weight by weight, and m_blocks by _blocks.
func container(t testing.TB, tensors map[string]stored) []byte {
	header, data := map[string]any{}, []byte(nil)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		s, full := tensors[name], "m."+name
		if name[0] == '_' {
			full = "m" + name
		}
		header[full] = map[string]any{"dtype": s.dtype, "shape": s.shape,
			"data_offsets": []int{len(data), len(data) + len(s.data)}}
		data = append(data, s.data...)
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(file, text...), data...)
}

// readAll opens module m and reads it, and returns what is wrong.
func readAll(t *testing.T, dir string) *diag.Diagnostic {
	t.Helper()
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	scheme, d := Read(c.Config.Model, nil)
	if d != nil {
		return d
	}
	m, d := scheme.Open(c, "m")
	if d != nil {
		return d
	}
	require.NotNil(t, m)
	if _, err = m.ReadRows(0, m.rows); err == nil {
		return nil
	}
	return asDiagnostic(err)
}

const (
	packed = `{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": {"targets":
		["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}}}`
	uneven = `{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": {"targets":
		["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32,
		"symmetric": false}}}}`
	bytewise = `{"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"g": {"targets":
		["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}}`
	first   = `{"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": false}`
	second  = `{"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": true, "checkpoint_format": "gptq_v2"}`
	gemm    = `{"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": true, "version": "gemm"}`
	level   = `{"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": false, "version": "gemm"}`
	blocks  = `{"quant_method": "fp8", "weight_block_size": [128, 128]}`
	floats4 = `{"quant_method": "mxfp4"}`
	micro   = `{"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "config_groups": {"g":
		{"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}}}}`
)

// forms are all of them.
var forms = []string{packed, uneven, bytewise, first, second, gemm, level, blocks, floats4, micro}

// sound are the tensors of a matrix of 8 rows and 64 columns in each form.
func sound(form string) map[string]stored {
	middle := slices.Repeat([]uint32{0x88888888}, 64)
	var order []uint32
	for k := range uint32(64) {
		order = append(order, k/32)
	}
	switch form {
	case packed:
		return map[string]stored{"weight_packed": {i32, []int{8, 8}, words(middle...)},
			"weight_scale": {checkpoint.F32, []int{8, 2}, floats(16, 1)},
			"weight_shape": {i64, []int{2}, words(8, 0, 64, 0)}}
	case uneven:
		parts := sound(packed)
		parts["weight_zero_point"] = stored{i8, []int{8, 2}, slices.Repeat([]byte{8, 0xf8}, 8)}
		return parts
	case bytewise:
		return map[string]stored{"weight": {e4m3, []int{8, 64}, make([]byte, 512)},
			"weight_scale": {checkpoint.F32, []int{8, 1}, floats(8, 1)}}
	case first, second:
		return map[string]stored{"qweight": {i32, []int{8, 8}, words(middle...)}, "qzeros": {i32, []int{2, 1},
			words(middle[:2]...)}, "scales": {checkpoint.F32, []int{2, 8}, floats(16, 1)},
			"g_idx": {i32, []int{64}, words(order...)}}
	case gemm, level:
		return map[string]stored{"qweight": {i32, []int{64, 1}, words(middle...)}, "qzeros": {i32, []int{2, 1},
			words(middle[:2]...)}, "scales": {checkpoint.F32, []int{2, 8}, floats(16, 1)}}
	}
	if form == micro {
		return map[string]stored{"weight_packed": {u8, []int{8, 32}, make([]byte, 256)},
			"weight_scale": {u8, []int{8, 2}, make([]byte, 16)}}
	}
	if form == floats4 {
		return map[string]stored{"_blocks": {u8, []int{2, 4, 2, 16}, make([]byte, 256)},
			"_scales": {u8, []int{2, 4, 2}, make([]byte, 16)}}
	}
	return map[string]stored{"weight": {e4m3, []int{8, 64}, make([]byte, 512)},
		"weight_scale_inv": {checkpoint.F32, []int{1, 1}, floats(1, 1)}}
}

func TestSound(t *testing.T) {
	for _, form := range forms {
		if d := readAll(t, write(t, form, sound(form))); d != nil {
			require.NoError(t, d)
		}
	}
}

// What is wrong with the tensors of a matrix is an error.
func TestDamaged(t *testing.T) {
	zero, nan := floats(16, 0), floats(16, 1)
	copy(nan[60:], floats(1, float32(math.NaN())))
	order := func(k int, group uint32) stored {
		s := sound(first)["g_idx"]
		binary.LittleEndian.PutUint32(s.data[4*k:], group)
		return s
	}
	for _, c := range []struct {
		form, part string
		with       stored // none: the part is missing
		code, says string
	}{
		{packed, "weight_scale", stored{}, "AMK1122", "weight_scale is missing"},
		{packed, "weight_shape", stored{}, "AMK1122", "weight_shape is missing"},
		{packed, "weight_shape", stored{i64, []int{2}, words(8, 0, 63, 1)}, "AMK1122", "weight_shape has 4294967359"},
		{packed, "weight_shape", stored{i64, []int{2}, words(8, 0, 72, 0)}, "AMK1122", "want I32 [8 9]"},
		{packed, "weight_shape", stored{i32, []int{2}, words(8, 0xffffffff)}, "AMK1122", "weight_shape has"},
		{packed, "weight_shape", stored{i32, []int{1}, words(8)}, "AMK1122", "want two integers"},
		{packed, "weight_packed", stored{i32, []int{8, 7}, make([]byte, 224)}, "AMK1122", "want I32 [8 8]"},
		{packed, "weight_packed", stored{"U8", []int{8, 8}, make([]byte, 64)}, "AMK1122", "want I32 [8 8]"},
		{packed, "weight_scale", stored{checkpoint.F32, []int{8, 3}, floats(24, 1)}, "AMK1122", "want [8 2]"},
		{packed, "weight_scale", stored{e4m3, []int{8, 2}, make([]byte, 16)}, "AMK1108", "scales of type F8_E4M3"},
		{packed, "weight_scale", stored{checkpoint.F32, []int{8, 2}, zero}, "AMK1123", "row 0, group 0 is 0"},
		{packed, "weight_scale", stored{checkpoint.F32, []int{8, 2}, nan}, "AMK1123", "row 7, group 1 is NaN"},
		{packed, "weight_zero_point", stored{i8, []int{8, 2}, slices.Repeat([]byte{1}, 16)}, "AMK1123", "is symmetric"},
		{packed, "weight_zero_point", stored{i8, []int{8, 1}, make([]byte, 8)}, "AMK1122", "in the shape of"},
		{packed, "weight_zero_point", stored{i32, []int{2, 2}, make([]byte, 16)}, "AMK1122", "want I32 [1 2]"},
		{packed, "weight_g_idx", order(5, 1), "AMK1124", "column 5 belongs to group 1"},
		{uneven, "weight_zero_point", stored{i8, []int{8, 2}, slices.Repeat([]byte{9}, 16)}, "AMK1123",
			"is 9; want one"},
		{uneven, "weight_zero_point", stored{i8, []int{8, 2}, slices.Repeat([]byte{0xf7}, 16)}, "AMK1123",
			"is -9; want"},
		{bytewise, "weight_scale", stored{checkpoint.F32, []int{2}, floats(2, 1)}, "AMK1122", "want [8 1]"},
		{bytewise, "weight", stored{i8, []int{8, 64}, make([]byte, 512)}, "AMK1122", "want F8_E4M3 [8 64]"},
		{bytewise, "weight", stored{e4m3, []int{8, 64}, append(make([]byte, 511), 0xff)}, "AMK1123",
			"row 7, column 63 is 0xff"},
		{blocks, "weight", stored{e4m3, []int{8, 64}, append(slices.Repeat([]byte{0x7e, 0xfe}, 255), 0x7f, 0)},
			"AMK1123", "row 7, column 62 is 0x7f"},
		{bytewise, "weight", stored{e4m3, []int{512}, make([]byte, 512)}, "AMK1122", "want two dimensions"},
		{bytewise, "weight", stored{e4m3, []int{0, 64}, nil}, "AMK1122", "rows and columns"},
		{first, "scales", stored{}, "AMK1122", "scales is missing"},
		{first, "qzeros", stored{}, "AMK1122", "qzeros is missing"},
		{first, "qzeros", stored{i32, []int{2, 1}, words(0x88888888, 0x88888f88)}, "AMK1123", "row 2, group 1"},
		{first, "qzeros", stored{i32, []int{1, 2}, words(0x88888888, 0x88888888)}, "AMK1122", "want I32 [2 1]"},
		{first, "g_idx", order(40, 0), "AMK1124", "column 40 belongs to group 0"},
		{first, "g_idx", order(40, 2), "AMK1123", "want a group from 0 to 1"},
		{first, "g_idx", order(0, 0x80000000), "AMK1123", "want a group from 0 to 1"},
		{first, "g_idx", stored{i32, []int{65}, make([]byte, 260)}, "AMK1122", "want I32 [64]"},
		{first, "qweight", stored{i32, []int{64}, make([]byte, 256)}, "AMK1122", "two dimensions"},
		{first, "qweight", stored{i32, []int{1 << 40, 0}, nil}, "AMK1122", "rows and columns"},
		{second, "qzeros", stored{i32, []int{2, 1}, words(0x88888888, 0x88888788)}, "AMK1123", "is -1 off the middle"},
		{second, "scales", stored{checkpoint.F32, []int{8, 2}, floats(16, 1)}, "AMK1122", "want [2 8]"},
		{gemm, "qzeros", stored{i32, []int{2, 2}, make([]byte, 16)}, "AMK1122", "want I32 [2 1]"},
		{level, "qzeros", stored{i32, []int{2, 1}, words(0x88888888, 0x88888878)}, "AMK1123",
			"row 2, group 1 is -1 off"},
		{gemm, "scales", stored{checkpoint.F32, []int{2, 4}, floats(8, 1)}, "AMK1122", "want [2 8]"},
		{gemm, "qweight", stored{"U8", []int{64, 1}, make([]byte, 64)}, "AMK1122", "want I32 of two dimensions"},
		{blocks, "weight_scale_inv", stored{}, "AMK1122", "weight_scale_inv is missing"},
		{blocks, "weight_scale_inv", stored{checkpoint.F32, []int{2, 1}, floats(2, 1)}, "AMK1122", "want [1 1]"},
		{micro, "weight_scale", stored{}, "AMK1122", "weight_scale is missing"},
		{micro, "weight_scale", stored{u8, []int{8, 4}, make([]byte, 32)}, "AMK1122", "want U8 [8 2]"},
		{micro, "weight_scale", stored{u8, []int{8, 2}, slices.Repeat([]byte{255}, 16)}, "AMK1123", "group 0 is NaN"},
		{micro, "weight_packed", stored{u8, []int{8, 24}, make([]byte, 192)}, "AMK1122", "rows of groups of 32"},
		{floats4, "_scales", stored{}, "AMK1122", "m_scales is missing"},
		{floats4, "_scales", stored{u8, []int{2, 4, 2}, slices.Repeat([]byte{255}, 16)}, "AMK1123", "group 0 is NaN"},
		{floats4, "_scales", stored{u8, []int{8, 2}, make([]byte, 16)}, "AMK1122", "want U8 [2 4 2]"},
		{floats4, "_scales", stored{i8, []int{2, 4, 2}, make([]byte, 16)}, "AMK1122", "want U8 [2 4 2]"},
		{floats4, "_blocks", stored{u8, []int{2, 4, 32}, make([]byte, 256)}, "AMK1122", "of rows of groups of 16"},
		{floats4, "_blocks", stored{u8, []int{16, 16}, make([]byte, 256)}, "AMK1122", "of rows of groups of 16"},
		{floats4, "_blocks", stored{i8, []int{2, 4, 2, 16}, make([]byte, 256)}, "AMK1122", "want U8 of rows"},
		{floats4, "_blocks", stored{u8, []int{0, 4, 1 << 40, 16}, nil}, "AMK1122", "want U8 [0 4 1099511627776]"},
		{blocks, "weight_scale_inv", stored{"F8_E8M0", []int{1, 1}, []byte{127}}, "AMK1108", "F8_E8M0"},
	} {
		tensors := sound(c.form)
		if tensors[c.part] = c.with; c.with.dtype == "" {
			delete(tensors, c.part)
		}
		requireDiagnostic(t, readAll(t, write(t, c.form, tensors)), c.code, c.says)
	}
}

func requireDiagnostic(t *testing.T, d *diag.Diagnostic, code, says string) {
	t.Helper()
	require.NotNil(t, d, "want %s: %s", code, says)
	require.Equal(t, code, d.Code, "%v", d)
	require.Contains(t, d.Error(), says)
	require.NotEmpty(t, diag.Lookup(code).Doc)
}

// What a config says that is not read is refused by its name.
func TestRefused(t *testing.T) {
	group := func(weights string) string {
		return `{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": {"targets":
			["Linear"], "weights": {` + weights + `}}}}`
	}
	for _, c := range []struct{ settings, code, says string }{
		{`{"quant_method": "bitsandbytes", "load_in_4bit": true}`, "AMK1108", "bitsandbytes keeps NF4 or int8"},
		{`{"quant_method": "mxfp4", "twist": 1}`, "AMK1121", "twist"},
		{`{"quant_method": "modelopt", "quant_algo": "FP8"}`, "AMK1108", `accepted: "NVFP4"`},
		{`{"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}`, "AMK1108", "kv_cache"},
		{`{"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 32}`, "AMK1108", "accepted: 16"},
		{`{"quant_method": "modelopt", "quant_algo": "NVFP4", "config_groups": {"g": {"weights": {"group_size": 32}}}}`,
			"AMK1108", "config_groups.g.weights.group_size"},
		{`{"quant_method": "modelopt", "quant_algo": "NVFP4", "twist": 1}`, "AMK1121", "twist"},
		{`{"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["` + strings.Repeat("a*", mostExpression) +
			`"]}`, "AMK1120", "ignore"},
		{`{"quant_method": "gguf"}`, "AMK1108", "GGUF"},
		{`{"quant_method": "hqq"}`, "AMK1108", `"hqq", which is not read`},
		{`{"bits": 4, "group_size": 64}`, "AMK1108", "MLX"},
		{`{}`, "AMK1108", "unnamed"},
		{`{"quant_method": 4}`, "AMK1120", "want a string"},
		{`"gptq"`, "AMK1120", "want an object"},
		{`{"quant_method": "gptq", "bits": 3, "group_size": 128}`, "AMK1108", "accepted: 4, 8"},
		{`{"quant_method": "gptq", "bits": 4, "group_size": -2}`, "AMK1120", "group_size"},
		{`{"quant_method": "gptq", "bits": 4, "group_size": "128"}`, "AMK1120", "group_size"},
		{`{"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}`, "AMK1108", `"marlin"`},
		{`{"quant_method": "gptq", "bits": 4, "is_marlin_format": true}`, "AMK1108", "is_marlin_format"},
		{`{"quant_method": "gptq", "bits": 4, "twist": 1}`, "AMK1121", "twist"},
		{`{"quant_method": "gptq", "bits": 4, "dynamic": {"(?!m)": {}}}`, "AMK1120", "without look-ahead"},
		{`{"quant_method": "gptq", "bits": 4, "dynamic": {"m": {"bits": 2}}}`, "AMK1108", "accepted: 4, 8"},
		{`{"quant_method": "awq", "version": "gemv"}`, "AMK1108", `"gemv"`},
		{`{"quant_method": "awq", "bits": 8}`, "AMK1108", "accepted: 4"},
		{`{"quant_method": "fp8", "fmt": "e5m2"}`, "AMK1108", `"e5m2"`},
		{`{"quant_method": "fp8", "expert_dtype": "fp4"}`, "AMK1108", `expert_dtype: error: is "fp4"`},
		{`{"quant_method": "fp8", "weight_block_size": [128]}`, "AMK1120", "want 2 positive integers"},
		{`{"quant_method": "compressed-tensors"}`, "AMK1120", "config_groups"},
		{group(`"num_bits": 3, "strategy": "channel"`), "AMK1108", "3 bits"},
		{group(`"num_bits": 4, "type": "float", "strategy": "channel"`), "AMK1108", "4 bits of type \"float\""},
		{group(`"num_bits": 4, "strategy": "token"`), "AMK1108", `"token"`},
		{group(`"num_bits": 4, "strategy": "group"`), "AMK1120", "group_size"},
		{group(`"num_bits": 4, "strategy": "block"`), "AMK1120", "block_structure"},
		{group(`"num_bits": 4, "strategy": "channel", "twist": {}`), "AMK1121", "twist"},
		{nvfp4Settings(`"num_bits": 4`), "AMK1108", `type`},
		{nvfp4Settings(`"num_bits": 4, "type": "float", "strategy": "channel"`), "AMK1108", `"channel"`},
		{nvfp4Settings(`"num_bits": 4, "type": "float", "group_size": 32`), "AMK1108", "in groups of 32"},
		{nvfp4Settings(`"num_bits": 4, "type": "float", "symmetric": false`), "AMK1108", "symmetric false"},
		{nvfp4Settings(`"num_bits": 4, "type": "float", "twist": 1`), "AMK1121", "twist"},
		{fourBitSettings("mxfp4-pack-quantized", `"num_bits": 4, "type": "float", "group_size": 16`), "AMK1108",
			"in groups of 16"},
		{fourBitSettings("mxfp4-pack-quantized", `"num_bits": 4, "type": "float", "strategy": "tensor_group"`),
			"AMK1108", `"tensor_group"`},
		{fourBitSettings("mxfp6-pack-quantized", `"num_bits": 6, "type": "float"`), "AMK1108",
			`"mxfp4-pack-quantized"`},
		{`{"quant_method": "compressed-tensors", "kv_cache_scheme": {}, "config_groups": {}}`, "AMK1108",
			"kv_cache_scheme"},
		{`{"quant_method": "compressed-tensors", "ignore": ["re:("], "config_groups": {}}`, "AMK1120", "RE2"},
		{`{"quant_method": "compressed-tensors", "ignore": ["re:a"` + strings.Repeat(`, "re:a"`, mostExpressions) +
			`], "config_groups": {}}`, "AMK1120", "at most 256"},
		{`{"quant_method": "compressed-tensors", "ignore": ["re:` + strings.Repeat("a", mostExpression+1) +
			`"], "config_groups": {}}`, "AMK1120", "of up to 1000 bytes"},
	} {
		requireDiagnostic(t, readAll(t, write(t, c.settings, sound(packed))), c.code, c.says)
	}
}

// Groups that are not streamed are refused by their size.
func TestGroups(t *testing.T) {
	for group, says := range map[string]string{"48": "groups of 48 columns", "16": "groups of 16 columns"} {
		tensors := sound(first)
		delete(tensors, "g_idx")
		groups := map[string]int{"48": 2, "16": 4}[group]
		tensors["scales"] = stored{checkpoint.F32, []int{groups, 8}, floats(8*groups, 1)}
		settings := `{"quant_method": "gptq", "bits": 4, "group_size": ` + group + `}`
		requireDiagnostic(t, readAll(t, write(t, settings, tensors)), "AMK1108", says)
	}
}

// Modules that are named as not quantised are not, and a name comes before an expression, and that before a class.
func TestModules(t *testing.T) {
	read := func(settings string) *Scheme {
		c, err := checkpoint.Open(write(t, settings, sound(packed)))
		require.NoError(t, err)
		scheme, d := Read(c.Config.Model, nil)
		require.Nil(t, d)
		return scheme
	}
	weights := func(bits string) string {
		return `"weights": {"num_bits": ` + bits + `, "strategy": "channel", "type": "int"}`
	}
	s := read(`{"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head", "re:.*\\.down"],
		"config_groups": {"a": {"targets": ["Linear"], ` + weights("4") + `}, "b": {"targets": ["re:.*q_proj$"], ` +
		weights("8") + `}, "c": {"targets": ["model.1.q_proj"], ` + weights("4") + `}}}`)
	require.Nil(t, s.of("lm_head"))
	require.Nil(t, s.of("model.3.down_proj"))
	require.Equal(t, 4, s.of("model.0.k_proj").bits)
	require.Equal(t, 8, s.of("model.0.q_proj").bits)
	require.Equal(t, 4, s.of("model.1.q_proj").bits)
	s = read(`{"quant_method": "gptq", "bits": 4, "dynamic": {"-:lm_head": {},
		"+:.*\\.up": {"bits": 8, "group_size": 64}}}`)
	require.Nil(t, s.of("lm_head"))
	require.Equal(t, []int{8, 64}, []int{s.of("model.0.up").bits, s.of("model.0.up").group})
	require.Equal(t, []int{4, 128}, []int{s.of("model.0.down").bits, s.of("model.0.down").group})
	s = read(`{"quant_method": "awq", "modules_to_not_convert": ["k_proj"]}`)
	require.Nil(t, s.Expected("model.0.k_proj", 256, InLayer, checkpoint.F16))
	require.NotNil(t, s.Expected("model.0.q_proj", 256, InLayer, checkpoint.F16))
	require.NotNil(t, s.of("model.0.k_proj"), "the tensors decide")
}

// Any config and any file are a matrix that can be read whole, or a diagnostic.
func FuzzMatrix(f *testing.F) {
	for _, form := range forms {
		f.Add([]byte(`{"quantization_config": `+form+`}`), container(f, sound(form)))
	}
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		defer watch.Execution()()
		c, err := checkpoint.Open(writeFiles(t, config, weights))
		if err != nil {
			return
		}
		defer c.Close()
		scheme, d := Read(c.Config.Model, c.Config.Model)
		if d != nil || scheme == nil {
			requireSound(t, d)
			return
		}
		for _, tensor := range c.Tensors() {
			module, ofExperts := strings.CutSuffix(tensor.Name, "_blocks")
			if !ofExperts {
				module = tensor.Name[:max(0, strings.LastIndexByte(tensor.Name, '.'))]
			}
			m, d := scheme.Open(c, module)
			if d != nil || m == nil {
				requireSound(t, d)
				continue
			}
			values := make([]float32, m.rows*m.cols)
			if err := m.NewReader().ReadF32(values, 0); err != nil {
				requireSound(t, asDiagnostic(err))
			}
		}
	})
}

// requireSound demands that a diagnostic, if there is one, has a documented code.
func requireSound(t *testing.T, d *diag.Diagnostic) {
	if d != nil {
		require.NotNil(t, diag.Lookup(d.Code), "%v", d)
	}
}
