package amk_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/amk"
)

const minimal = `{"buffers": [{"id": 0, "name": "x", "kind": "WEIGHT", "dtype": "F16", "shape": [2, 3], "space": ` +
	`"HBM"}],
 "counters": [{"id": 0}],
 "tasks": [{"id": 0, "op": "NOP", "inputs": [], "outputs": [], "out_counter": 0}],
 "pages": {"buffer_to_page": {"007": 0, "-3": 1}, "pages": [{"id": 0, "space": "SMEM", "nbytes": 64}]},
 "config": {"pipelining_depth": 0}}`

func TestParseFillsInDefaults(t *testing.T) {
	p, diags := amk.Parse([]byte(minimal), "p.json")
	require.Empty(t, diags)
	want := &amk.Program{
		IRVersion:  amk.IRVersion,
		ABIVersion: amk.ABIVersion,
		Buffers:    []amk.Buffer{{Name: "x", Kind: amk.Weight, DType: amk.F16, Shape: []int{2, 3}, Space: amk.HBM}},
		Counters:   []amk.Counter{{}},
		Tasks: []amk.Task{{
			Op: amk.Nop, Inputs: []int{}, Outputs: []int{}, Waits: []amk.Wait{}, EstBytes: amk.Int(0),
			EstFLOPs: amk.Int(0),
		}},
		Pages:  &amk.Pages{Pages: []amk.Page{{Space: amk.SMEM, NBytes: 64, LiveStart: -1, LiveEnd: -1}}},
		Config: amk.DefaultConfig(),
	}
	want.Pages.BufferToPage.Set(7, 0)
	want.Pages.BufferToPage.Set(-3, 1)
	want.Config.PipeliningDepth = 0 // no prefetch, and not the default
	require.Equal(t, want, p)
	require.Contains(t, string(p.Marshal()), `"pipelining_depth": 0`)
}

func TestParseTargetDefaults(t *testing.T) {
	p, diags := amk.Parse([]byte(`{"target": {"name": "x", "sm_arch": 90, "num_sms": 1, "smem_bytes_per_sm": 2,
		"smem_bytes_per_block_optin": 3, "regs_per_sm": 4, "max_threads_per_sm": 5, "max_regs_per_thread": 6, `+
		`"l2_bytes": 7,
		"hbm_bytes": 8, "hbm_bandwidth_gbs": 9, "fp16_tflops": 10.0}}`), "p.json")
	require.Empty(t, diags)
	require.Equal(t, amk.Target{
		Name: "x", SMArch: 90, NumSMs: 1, SmemBytesPerSM: 2, SmemBytesPerBlockOptin: 3, RegsPerSM: 4,
		MaxThreadsPerSM:  5,
		MaxRegsPerThread: 6, L2Bytes: 7, HBMBytes: 8, HBMBandwidthGBs: amk.Int(9), FP16TFLOPS: amk.Float(10),
		ClockGHz: amk.Float(0), SupportsCooperative: true, MeasuredBWGBs: amk.Float(0),
	}, *p.Target)
}

// meta.gpu is a note: where it names another GPU than the target, the file is read by its target, with a warning.
func TestParseWarnsOfAnotherGPU(t *testing.T) {
	const target = `"target": {"name": "t4", "sm_arch": 75, "num_sms": 40, "smem_bytes_per_sm": 2,
		"smem_bytes_per_block_optin": 3, "regs_per_sm": 4, "max_threads_per_sm": 5, "max_regs_per_thread": 6,
		"l2_bytes": 7, "hbm_bytes": 8, "hbm_bandwidth_gbs": 9, "fp16_tflops": 10.0}`
	for text, want := range map[string]string{
		`{"meta": {"gpu": "h100"}, ` + target + `}`: `p.json:1:18: warning: meta: "gpu" is "h100", and target.name ` +
			`"t4", which counts; want the same name, or none [AMK3914]`,
		`{` + target + `, "meta": {"gpu": "a\u001b[31m"}}`: `"gpu" is "a\x1b[31m", and target.name "t4"`,
		`{` + target + `, "meta": {"gpu": 3}}`:             `"gpu" is an integer, and target.name "t4"`,
		`{` + target + `, "meta": {"gpu": "?"}}`:           `"gpu" is "?", and target.name "t4"`,
		`{` + target + `, "meta": {"gpu": "t4"}}`:          "",
		`{` + target + `, "meta": {"gpu": null}}`:          "",
		`{` + target + `, "meta": {}}`:                     "",
		`{` + target + `}`:                                 "",
		`{"target": null, "meta": {"gpu": "h100"}}`:        "",
	} {
		p, diags := amk.Parse([]byte(text), "p.json")
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
	for _, falsy := range []string{"null", "{}", "[]", `""`, "0", "0.0", "-0.0", "false"} {
		p, diags := amk.Parse([]byte(`{"target":`+falsy+`,"pages":`+falsy+`,"config":`+falsy+`}`), "p.json")
		require.Empty(t, diags, falsy)
		require.Nil(t, p.Target, falsy)
		require.Nil(t, p.Pages, falsy)
		require.Nil(t, p.Config, falsy)
	}
}

// What Python's json module prints for the same meta.
func TestMetaKeepsOrderAndTypes(t *testing.T) {
	p, diags := amk.Parse([]byte(`{"ir_version":"0.9-x","meta":{"z":10000,"a":10000.0,`+
		`"big":123456789012345678901234567890,
		"neg":-0,"negf":-0.0,"e":1E2,"small":0.00001,"nan":[NaN,-Infinity,1e999],`+
		`"s":"\u00e9\ud83d\ude00\/<>&\"\\\b\f\n\r\t\u007f~é",
		"empty":[{},[]],"t":true,"n":null}}`), "p.json")
	require.Empty(t, diags)
	require.Equal(t, `{
  "ir_version": "0.9-x",
  "abi_version": "0.2",
  "meta": {
    "z": 10000,
    "a": 10000.0,
    "big": 123456789012345678901234567890,
    "neg": 0,
    "negf": -0.0,
    "e": 100.0,
    "small": 1e-05,
    "nan": [
      NaN,
      -Infinity,
      Infinity
    ],
    "s": "\u00e9\ud83d\ude00/<>&\"\\\b\f\n\r\t\u007f~\u00e9",
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
  "config": null
}`, string(p.Marshal()))
}

func TestParseExplicitAssignment(t *testing.T) {
	p, diags := amk.Parse([]byte(`{"config":{"sm_assignment":{"10":1,"2":0},"fusion_grouping":[["ADD"],[]]}}`),
		"p.json")
	require.Empty(t, diags)
	require.Contains(t, string(p.Marshal()), `"sm_assignment": {
      "10": 1,
      "2": 0
    }`)
	require.Contains(t, string(p.Marshal()), `"fusion_grouping": [
      [
        "ADD"
      ],
      []
    ]`)
}

func TestParseWarns(t *testing.T) {
	p, diags := amk.Parse([]byte(`{
  "note": 1,
  "meta": {"anything": {"goes": 1}},
  "counters": [{"id": 1, "colour": "red", "id": 2}],
  "tasks": [{"id": 0, "op": "ADD", "inputs": [], "outputs": [], "out_counter": 0, "params": {"x": 1}, "waits": `+
		`[{"counter": 0, "threshold": 1, "why": 0}]}],
  "pages": {"buffer_to_page": {"1": 0, "01": 5}, "pages": []}
}`), "p.json")
	require.Equal(t, strings.TrimSpace(`
p.json:4:43: warning: key "id" again; its last value counts [AMK3907]
    first at p.json:4:17
p.json:2:3: warning: program: unknown key "note" is dropped; known are ir_version, abi_version, meta, target, `+
		`buffers, counters, tasks, pages, config [AMK3906]
p.json:4:26: warning: counter: unknown key "colour" is dropped; known are id, init, note [AMK3906]
p.json:5:144: warning: wait: unknown key "why" is dropped; known are counter, threshold [AMK3906]
p.json:6:40: warning: pages: key 1 of "buffer_to_page" again; its last value counts [AMK3907]`), diags.Error())
	require.Equal(t, 2, p.Counters[0].ID)
	page, _ := p.Pages.BufferToPage.Get(1)
	require.Equal(t, 5, page)
	require.Equal(t, 1, p.Meta.Len())
}

func TestParseRefuses(t *testing.T) {
	counter := func(fields string) string { return "{\"counters\": [\n  {" + fields + "}]}" }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "p.json:1:1: error: the file ends where a JSON value is expected [AMK3900]"},
		{"cut", "{\"meta\": {\n\"a\": [1, ",
			"p.json:2:10: error: the file ends where a JSON value is expected [AMK3900]"},
		{"word", "{\n \"a\": nul}", "p.json:2:7: error: unexpected 'n'; a JSON value is expected [AMK3900]"},
		{"comma", `{"a": 1,}`, "p.json:1:9: error: unexpected '}'; a key in double quotes is expected [AMK3900]"},
		{"trailing", "{} {}", "p.json:1:4: error: text after the end of the program; a file holds one JSON " +
			"object [AMK3900]"},
		{"leading zero", `{"meta": {"a": 01}}`, "p.json:1:17: error: unexpected '1'; ',' or '}' is expected [AMK3900]"},
		{"point", `{"meta": {"a": 1.}}`, "p.json:1:18: error: unexpected '}'; a digit is expected [AMK3900]"},
		{"minus", `{"meta": {"a": -}}`, "p.json:1:17: error: unexpected '}'; a digit is expected [AMK3900]"},
		{"BOM", "\ufeff{}", `p.json:1:1: error: unexpected '\ufeff'; a JSON value is expected [AMK3900]`},
		{"not UTF-8", "{\"meta\": {\"\xff\": 1}}",
			"p.json:1:12: error: byte 0xff is not UTF-8; UTF-8 text is expected [AMK3900]"},
		{"control character", "{\"a\nb\": 1}",
			`p.json:1:4: error: control character 0x0a in a string; write it as \u000a [AMK3900]`},
		{"open string", `{"abc`, "p.json:1:6: error: the file ends where the closing quote of a string is " +
			"expected [AMK3900]"},
		{"escape", `{"a\x": 1}`, `p.json:1:4: error: unknown escape; \" \\ \/ \b \f \n \r \t and \uXXXX are accepted ` +
			`[AMK3900]`},
		{"surrogate", `{"a\ud83dx": 1}`, `p.json:1:4: error: half a surrogate pair; \uD800 to \uDBFF must be ` +
			`followed by \uDC00 to \uDFFF [AMK3900]`},
		{"deep", `{"meta": {"a": ` + strings.Repeat("[", 1e6),
			"p.json:1:142: error: nested more than 128 levels deep [AMK3901]"},
		{"no object", "[]", "p.json:1:1: error: program must be an object, found an array [AMK3902]"},
		{"long integer", `{"meta": {"a": ` + strings.Repeat("1", 4301) + "}}",
			"p.json:1:16: error: an integer of 4301 digits; up to 4300 are accepted [AMK3908]"},
		{"type", counter(`"id": "7"`), `p.json:2:10: error: counter: "id" must be an integer, found a string ` +
			`[AMK3902]`},
		{"float id", counter(`"id": 7.0`), `p.json:2:10: error: counter: "id" must be an integer, found a float ` +
			`[AMK3902]`},
		{"boolean id", counter(`"id": true`),
			`p.json:2:10: error: counter: "id" must be an integer, found a boolean [AMK3902]`},
		{"big id", counter(`"id": 9223372036854775808`),
			`p.json:2:10: error: counter: "id" must fit in 64 bits [AMK3908]`},
		{"missing", counter(`"init": 0`), `p.json:2:3: error: counter: required field "id" is missing [AMK3903]`},
		{"null note", counter(`"id": 0, "note": null`),
			`p.json:2:21: error: counter: "note" must be a string, found null [AMK3902]`},
		{"null tasks", `{"tasks": null}`, `p.json:1:11: error: program: "tasks" must be an array of objects, found ` +
			`null [AMK3902]`},
		{"item", `{"tasks": [1]}`, "p.json:1:12: error: task must be an object, found an integer [AMK3902]"},
		{"null meta", `{"meta": null}`, `p.json:1:10: error: program: "meta" must be an object, found null [AMK3902]`},
		{"target", `{"target": "h100"}`, "p.json:1:12: error: target must be an object, found a string [AMK3902]"},
		{"IR version", "{\"ir_version\": \"1.0.0\",\n \"tasks\": 5}",
			`p.json:1:16: error: ir_version "1.0.0" has a foreign major version; 0.x is accepted [AMK3905]`},
		{"ABI version", `{"abi_version": ""}`,
			`p.json:1:17: error: abi_version "" has a foreign major version; 0.x is accepted [AMK3905]`},
		{"version type", `{"ir_version": 0.2}`,
			`p.json:1:16: error: program: "ir_version" must be a string, found a float [AMK3902]`},
		{"space", `{"pages": {"buffer_to_page": {}, "pages": [{"id": 0, "space": "L2", "nbytes": 0}]}}`,
			`p.json:1:63: error: page: unknown space "L2"; accepted are HBM, GLOBAL_SCRATCH, SMEM, REGISTER [AMK3904]`},
		{"enum type", `{"pages": {"buffer_to_page": {}, "pages": [{"id": 0, "space": 2, "nbytes": 0}]}}`,
			`p.json:1:63: error: page: "space" must be one of HBM, GLOBAL_SCRATCH, SMEM, REGISTER, found an integer ` +
				`[AMK3902]`},
		{"page key", `{"pages": {"buffer_to_page": {"x": 0}, "pages": []}}`,
			`p.json:1:31: error: pages: key "x" of "buffer_to_page" must be a decimal integer [AMK3909]`},
		{"page map", `{"pages": {"buffer_to_page": [], "pages": []}}`,
			`p.json:1:30: error: pages: "buffer_to_page" must be an object, found an array [AMK3902]`},
		{"assignment", `{"config": {"sm_assignment": 3}}`,
			`p.json:1:30: error: config: "sm_assignment" must be the name of a policy, or an object from task id to ` +
				`SM, found an integer [AMK3902]`},
		{"flag", `{"target": {"wddm_tdr": 0}}`,
			`p.json:1:25: error: target: "wddm_tdr" must be true or false, found an integer [AMK3902]`},
		{"every op name", `{"tasks": [{"op": "GEMV"}]}`,
			`error: task: unknown op "GEMV"; accepted are NOP, COPY, EMBED, RMSNORM, LAYERNORM, GEMV_TILE, ` +
				`GEMM_TILE, ATTENTION_TILE, ROPE, SILU_MUL, GELU, ADD, MUL, DEQUANT, SOFTMAX, ALLREDUCE_SHARD, ` +
				`KV_APPEND, SAMPLE_ARGMAX, ATTENTION_COMBINE, FUSED [AMK3904]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, diags := amk.Parse([]byte(c.text), "p.json")
			require.Nil(t, p)
			require.Contains(t, diags.Error(), c.want)
			require.Error(t, diags.Err())
		})
	}
}

// Everything that is wrong is reported at once.
func TestParseReportsAll(t *testing.T) {
	_, diags := amk.Parse([]byte(`{"tasks": [{"id": 0, "op": "ADD"}], "buffers": [{"id": -1}]}`), "p.json")
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
			_, diags := amk.Parse(text, "p.json")
			runtime.ReadMemStats(&after)
			require.Empty(t, diags)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(400*len(text)))
		})
	}
}
