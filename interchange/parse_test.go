package interchange_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/interchange"
	"amkc/ir"
)

const minimal = `{"buffers": [{"id": 0, "name": "x", "kind": "WEIGHT", "dtype": "F16", "shape": [2, 3], "space": ` +
	`"HBM"}],
 "counters": [{"id": 0}],
 "tasks": [{"id": 0, "op": "NOP", "inputs": [], "outputs": [], "out_counter": 0}],
 "pages": {"buffer_to_page": {"007": 0, "-3": 1}, "pages": [{"id": 0, "space": "SMEM", "nbytes": 64}]},
 "config": {"pipelining_depth": 0}}`

func TestParseFillsInDefaults(t *testing.T) {
	p, diags := interchange.Parse([]byte(minimal), "p.json")
	require.Empty(t, diags)
	want := &interchange.Program{
		IRVersion:  interchange.IRVersion,
		ABIVersion: interchange.ABIVersion,
		Meta:       json.RawMessage("{}"),
		Buffers:    []interchange.Buffer{{Name: "x", Kind: ir.Weight, DType: ir.F16, Shape: []int{2, 3}}},
		Counters:   []interchange.Counter{{}},
		Tasks: []interchange.Task{{
			Op: ir.NOP, Inputs: []int{}, Outputs: []int{}, Waits: []interchange.Wait{}, Params: json.RawMessage("{}"),
			EstBytes: "0", EstFLOPs: "0",
		}},
		Pages: &interchange.Pages{BufferToPage: map[int]int{7: 0, -3: 1},
			Pages: []interchange.Page{{Space: ir.SMEM, NBytes: 64, LiveStart: -1, LiveEnd: -1}}},
		Config: json.RawMessage(`{"pipelining_depth": 0}`), // no prefetch, and not the default
	}
	require.Equal(t, want, p)
	require.Contains(t, string(p.Marshal()), `"pipelining_depth": 0`)
}

func TestParseTargetDefaults(t *testing.T) {
	p, diags := interchange.Parse([]byte(`{"target": {"name": "x", "sm_arch": 90, "num_sms": 1, "smem_bytes_per_sm": 2,
		"smem_bytes_per_block_optin": 3, "regs_per_sm": 4, "max_threads_per_sm": 5, "max_regs_per_thread": 6, `+
		`"l2_bytes": 7,
		"hbm_bytes": 8, "hbm_bandwidth_gbs": 9, "fp16_tflops": 10.0}}`), "p.json")
	require.Empty(t, diags)
	require.Equal(t, interchange.Target{
		Name: "x", SMArch: 90, NumSMs: 1, SmemBytesPerSM: 2, SmemBytesPerBlockOptin: 3, RegsPerSM: 4,
		MaxThreadsPerSM:  5,
		MaxRegsPerThread: 6, L2Bytes: 7, HBMBytes: 8, HBMBandwidthGBs: "9", FP16TFLOPS: "10.0",
		ClockGHz: "0.0", SupportsCooperative: true, MeasuredBWGBs: "0.0",
	}, *p.Target)
}

// meta.gpu is a note: where it names another GPU than the target, the file is read by its target, with a warning.
func TestParseWarnsOfAnotherGPU(t *testing.T) {
	const target = `"target": {"name": "t4", "sm_arch": 75, "num_sms": 40, "smem_bytes_per_sm": 2,
		"smem_bytes_per_block_optin": 3, "regs_per_sm": 4, "max_threads_per_sm": 5, "max_regs_per_thread": 6,
		"l2_bytes": 7, "hbm_bytes": 8, "hbm_bandwidth_gbs": 9, "fp16_tflops": 10.0}`
	for text, want := range map[string]string{
		`{"meta": {"gpu": "h100"}, ` + target + `}`: `p.json: meta.gpu: warning: is "h100", and target.name "t4", ` +
			`which counts; want the same name, or none [AMK3914]`,
		`{` + target + `, "meta": {"gpu": "a\u001b[31m"}}`: `is "a\x1b[31m", and target.name "t4"`,
		`{` + target + `, "meta": {"gpu": 3}}`:             `is 3, and target.name "t4"`,
		`{` + target + `, "meta": {"gpu": "?"}}`:           `is "?", and target.name "t4"`,
		`{` + target + `, "meta": {"gpu": "t4"}}`:          "",
		`{` + target + `, "meta": {"gpu": null}}`:          "",
		`{` + target + `, "meta": {}}`:                     "",
		`{` + target + `}`:                                 "",
		`{"target": null, "meta": {"gpu": "h100"}}`:        "",
	} {
		p, diags := interchange.Parse([]byte(text), "p.json")
		require.NotNil(t, p, text)
		require.NoError(t, diags.Err(), text)
		if want == "" {
			require.Empty(t, diags, text)
			continue
		}
		require.Len(t, diags, 1, text)
		require.Contains(t, diags[0].Error(), want)
	}
}

func TestParseEmptyAsNull(t *testing.T) {
	for _, empty := range []string{"null", "{}"} {
		p, diags := interchange.Parse([]byte(`{"target":`+empty+`,"pages":`+empty+`}`), "p.json")
		require.Empty(t, diags, empty)
		require.Nil(t, p.Target, empty)
		require.Nil(t, p.Pages, empty)
	}
}

// Meta, params and config come back with the order, the numbers and the escapes that they have, in ASCII.
func TestMetaKeepsOrderAndTypes(t *testing.T) {
	p, diags := interchange.Parse([]byte(`{"ir_version":"0.9-x","meta":{"z":10000,"a":10000.0,`+
		`"big":123456789012345678901234567890,"neg":-0,"e":1E2,"small":1e-05,`+
		`"s":"\u00e9\ud83d\ude00\/<>&\"\\\b\f\n\r\t~é😀\u007f",
		"empty":[{},[]],"t":true,"n":null},"config":{"b":[["ADD"],[]],"a":{"10":1,"2":0}}}`), "p.json")
	require.Empty(t, diags)
	require.Equal(t, `{
  "ir_version": "0.9-x",
  "abi_version": "0.2",
  "meta": {
    "z": 10000,
    "a": 10000.0,
    "big": 123456789012345678901234567890,
    "neg": -0,
    "e": 1E2,
    "small": 1e-05,
    "s": "\u00e9\ud83d\ude00\/<>&\"\\\b\f\n\r\t~\u00e9\ud83d\ude00\u007f",
    "empty": [
      {},
      []
    ],
    "t": true,
    "n": null
  },
  "target": null,
  "buffers": [],
  "counters": [],
  "tasks": [],
  "pages": null,
  "config": {
    "b": [
      [
        "ADD"
      ],
      []
    ],
    "a": {
      "10": 1,
      "2": 0
    }
  }
}`, string(p.Marshal()))
}

// Text that AutoMegaKernel holds, whatever it is, is printed as it prints it.
func TestMarshalIsASCII(t *testing.T) {
	p := &interchange.Program{Counters: []interchange.Counter{{Note: "\u007f≈😀<&>\"\\\b\f\n\r\t\x1f\u2028"}}}
	require.Contains(t, string(p.Marshal()),
		`"note": "\u007f\u2248\ud83d\ude00<&>\"\\\b\f\n\r\t\u001f\u2028"`)
}

func TestParseWarns(t *testing.T) {
	p, diags := interchange.Parse([]byte(`{
  "note": 1,
  "meta": {"anything": {"goes": 1}},
  "counters": [{"id": 1, "colour": "red", "ID": 7, "id": 2}],
  "tasks": [{"id": 0, "op": "ADD", "inputs": [], "outputs": [], "out_counter": 0, "params": {"x": 1}, "waits": `+
		`[{"counter": 0, "threshold": 1, "why": 0}]}],
  "pages": {"buffer_to_page": {"1": 0, "01": 5}, "pages": []}
}`), "p.json")
	require.Equal(t, strings.TrimSpace(`
p.json: counters[0]: warning: unknown key "ID" is dropped; known are id, init, note [AMK3906]
p.json: counters[0]: warning: unknown key "colour" is dropped; known are id, init, note [AMK3906]
p.json: tasks[0].waits[0]: warning: unknown key "why" is dropped; known are counter, threshold [AMK3906]
p.json: warning: unknown key "note" is dropped; known are ir_version, abi_version, meta, target, `+
		`buffers, counters, tasks, pages, config [AMK3906]`), diags.Error())
	require.Equal(t, 2, p.Counters[0].ID, "the last value of a key counts, as in Python")
	require.Equal(t, map[int]int{1: 5}, p.Pages.BufferToPage)
	require.JSONEq(t, `{"anything": {"goes": 1}}`, string(p.Meta))
}

func TestParseRefuses(t *testing.T) {
	counter := func(fields string) string { return "{\"counters\": [\n  {" + fields + "}]}" }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "p.json:1:1: error: the text ends too early [AMK3900]"},
		{"cut", "{\"meta\": {\n\"a\": [1, ", "p.json:2:10: error: the text ends too early [AMK3900]"},
		{"word", "{\n \"a\": nul}", `p.json:2:10: error: found "}"; want null [AMK3900]`},
		{"comma", `{"a": 1,}`, `p.json:1:9: error: found "}"; want a key in double quotes [AMK3900]`},
		{"trailing", "{} {}", `p.json:1:4: error: found "{"; want the end of the text [AMK3900]`},
		{"leading zero", `{"meta": {"a": 01}}`, `p.json:1:17: error: found "1"; want a comma or } [AMK3900]`},
		{"NaN", `{"meta": {"a": NaN}}`,
			"p.json:1:16: error: found NaN or Infinity, which JSON does not have; want a number [AMK3900]"},
		{"BOM", "\ufeff{}", "p.json:1:1: error: found a byte order mark; want UTF-8 text without one [AMK3900]"},
		{"not UTF-8", "{\"meta\": {\"\xff\": 1}}",
			"p.json: error: holds bytes that are not UTF-8; UTF-8 text is accepted [AMK3900]"},
		{"control character", "{\"a\nb\": 1}",
			`p.json:1:4: error: found "\n"; want an escape such as \n [AMK3900]`},
		{"open string", `{"abc`, "p.json:1:6: error: the text ends too early [AMK3900]"},
		{"escape", `{"a\x": 1}`, `p.json:1:5: error: found "x"; want one of the escapes of JSON [AMK3900]`},
		{"deep", `{"meta": {"a": ` + strings.Repeat("[", 127) + strings.Repeat("]", 127) + `}}`,
			"p.json: error: is nested 129 levels deep; up to 128 are accepted [AMK3901]"},
		{"too deep for any JSON", `{"meta": {"a": ` + strings.Repeat("[", 1e6),
			"error: values are nested too deeply [AMK3900]"},
		{"no object", "[]", "p.json: error: is an array; want an object [AMK3902]"},
		{"type", counter(`"id": "7"`), `p.json: counters[0].id: error: is or holds a string; want an integer of ` +
			`64 bits [AMK3902]`},
		{"float id", counter(`"id": 7.0`),
			`p.json: counters[0].id: error: is or holds 7.0; want an integer of 64 bits [AMK3902]`},
		{"boolean id", counter(`"id": true`),
			`p.json: counters[0].id: error: is or holds a boolean; want an integer of 64 bits [AMK3902]`},
		{"big id", counter(`"id": 9223372036854775808`),
			`p.json: counters[0].id: error: is or holds 9223372036854775808; want an integer of 64 bits [AMK3902]`},
		{"missing", counter(`"init": 0`), `p.json: counters[0]: error: required field "id" is missing [AMK3903]`},
		{"null note", counter(`"id": 0, "note": null`),
			`p.json: counters[0].note: error: is or holds null; want a value [AMK3902]`},
		{"null tasks", `{"tasks": null}`, `p.json: tasks: error: is null; want an array of objects [AMK3902]`},
		{"item", `{"tasks": [1]}`, "p.json: tasks[0]: error: is 1; want an object [AMK3902]"},
		{"null meta", `{"meta": null}`, `p.json: meta: error: is null; want an object [AMK3902]`},
		{"config", `{"config": []}`, `p.json: config: error: is an array; want an object [AMK3902]`},
		{"target", `{"target": "h100"}`, `p.json: target: error: is "h100"; want an object [AMK3902]`},
		{"null id of a buffer", `{"buffers": [{"shape": [1, null]}]}`,
			"p.json: buffers[0].shape: error: is or holds null; want a value [AMK3902]"},
		{"number in quotes", `{"tasks": [{"est_bytes": "1"}]}`,
			`p.json: tasks[0].est_bytes: error: is "1"; want a number [AMK3902]`},
		{"IR version", "{\"ir_version\": \"1.0.0\",\n \"tasks\": 5}",
			`p.json: ir_version: error: "1.0.0" has a foreign major version; 0.x is accepted [AMK3905]`},
		{"ABI version", `{"abi_version": ""}`,
			`p.json: abi_version: error: "" has a foreign major version; 0.x is accepted [AMK3905]`},
		{"version type", `{"ir_version": 0.2}`,
			`p.json: ir_version: error: is or holds a number; want a string [AMK3902]`},
		{"space", `{"pages": {"buffer_to_page": {}, "pages": [{"id": 0, "space": "L2", "nbytes": 0}]}}`,
			`p.json: pages.pages[0].space: error: unknown space "L2", want one of [HBM GLOBAL_SCRATCH SMEM REGISTER] ` +
				`[AMK3904]`},
		{"enum type", `{"pages": {"buffer_to_page": {}, "pages": [{"id": 0, "space": 2, "nbytes": 0}]}}`,
			`p.json: pages.pages[0].space: error: is 2; want a name [AMK3902]`},
		{"page key", `{"pages": {"buffer_to_page": {"x": 0}, "pages": []}}`,
			`p.json: pages.buffer_to_page: error: is or holds x; want an integer of 64 bits [AMK3902]`},
		{"page map", `{"pages": {"buffer_to_page": [], "pages": []}}`,
			`p.json: pages.buffer_to_page: error: is or holds an array; want an object [AMK3902]`},
		{"flag", `{"target": {"wddm_tdr": 0}}`,
			`p.json: target.wddm_tdr: error: is or holds a number; want true or false [AMK3902]`},
		{"every op name", `{"tasks": [{"op": "GEMV"}]}`,
			`p.json: tasks[0].op: error: unknown opcode "GEMV", want one of [NOP COPY EMBED RMSNORM LAYERNORM ` +
				`GEMV_TILE GEMM_TILE ATTENTION_TILE ROPE SILU_MUL GELU ADD MUL DEQUANT SOFTMAX ALLREDUCE_SHARD ` +
				`KV_APPEND SAMPLE_ARGMAX ATTENTION_COMBINE FUSED`},
		{"an op of ours", `{"tasks": [{"op": "STOP"}]}`,
			`p.json: tasks[0].op: error: "STOP" is not an opcode of the profile; its opcodes end with FUSED [AMK3904]`},
		{"name", `{"tasks": [{"label": "a$b"}]}`, `p.json: tasks[0].label: error: "a$b" holds "$"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, diags := interchange.Parse([]byte(c.text), "p.json")
			require.Nil(t, p)
			require.Contains(t, diags.Error(), c.want)
			require.Error(t, diags.Err())
		})
	}
}

// Everything that is wrong is reported at once.
func TestParseReportsAll(t *testing.T) {
	_, diags := interchange.Parse([]byte(`{"tasks": [{"id": 0, "op": "ADD"}], "buffers": [{"id": -1}]}`), "p.json")
	require.Len(t, diags.Errors(), 3+5)
}

func TestParseMemoryIsLinear(t *testing.T) {
	for name, unit := range map[string]string{
		"numbers": "0,", "arrays": "[],", "objects": "{},", "strings": `"",`, "objects of one": `{"":0},`,
		"deep": strings.Repeat("[", 100) + strings.Repeat("]", 100) + ",",
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(`{"meta":{"a":[` + strings.Repeat(unit, 400_000/len(unit)) + `0]}}`)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, diags := interchange.Parse(text, "p.json")
			runtime.ReadMemStats(&after)
			require.Empty(t, diags)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(400*len(text)))
		})
	}
}
