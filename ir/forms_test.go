package ir

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
	"amkc/ir/transform"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const goldenDir = "../testdata/ir"

// tiny is a complete program of two layers on four SMs, with a variant for short contexts and one that splits
// attention.
func tiny(t testing.TB) (*Program, []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(goldenDir, "tiny.amk"))
	require.NoError(t, err)
	p, diags := ParseText(text, "tiny.amk")
	require.NoError(t, diags.Err())
	return p, text
}

func TestGoldenText(t *testing.T) {
	p, text := tiny(t)
	require.Equal(t, string(text), string(Print(p)))
	require.Empty(t, Check(p))
	// A few fields by hand, so that a reader and a printer that are wrong in the same way do not pass.
	require.Equal(t, Model{Name: "tiny", Architecture: "LlamaForCausalLM", DTypes: Uniform(BF16), Layers: 2, Hidden: 64,
		Intermediate: 96,
		Heads:        4, KVHeads: 2, HeadDim: 16, Vocab: 96, MaxSeq: 64, Tied: true, Eps: 1e-5}, p.Model)
	require.Equal(t, Buffer{Name: "L{i}.x", First: 0, Count: 3, Kind: Activation, DType: BF16, Shape: []int{64},
		Space:  GlobalScratch,
		Layout: Layout{Kind: Word32, Copies: 2}, Pages: []string{"xchg0"}}, p.Buffers[18])
	loop := p.Variants[1].Body[1].(*Loop)
	require.Equal(t, []int{0, 2, 6}, []int{loop.First, loop.Count, len(loop.Body)})
	require.Equal(t, Dist{Kind: Spread, Extent: 128, Grain: 8, SMs: 4, Step: 3}, loop.Body[0].Dist)
	a := Symbol(SpanA)
	require.Equal(t, Operand{Buf: "L{i}.kv",
		Dims: []Range{Index(a.Div(2)), Share(Symbol(Pos), Symbol(Pos).Add(Int(1)), 16, a.Mod(2), 2),
			Index(Int(1)), Span(Int(0), Int(16))}}, loop.Body[1].Ops[2].Out[0])
	require.Equal(t, []Param{FloatParam("eps", 1e-5)}, loop.Body[0].Ops[0].Params)
}

func TestGoldenJSON(t *testing.T) {
	p, _ := tiny(t)
	got, err := p.MarshalJSON()
	require.NoError(t, err)
	require.True(t, json.Valid(got))
	path := filepath.Join(goldenDir, "tiny.json")
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	back, diags := ParseJSON(got, "tiny.json")
	require.NoError(t, diags.Err())
	require.Equal(t, p, back)
	// encoding/json takes the line breaks out and nothing else.
	compact, err := json.Marshal(p)
	require.NoError(t, err)
	back, diags = ParseJSON(compact, "tiny.json")
	require.NoError(t, diags.Err())
	require.Equal(t, p, back)
}

func TestParseSniffs(t *testing.T) {
	p, text := tiny(t)
	got, err := Parse(text, "tiny.amk")
	require.NoError(t, err)
	require.Equal(t, p, got)
	data, err := p.MarshalJSON()
	require.NoError(t, err)
	got, err = Parse(append([]byte(" \n"), data...), "tiny.json")
	require.NoError(t, err)
	require.Equal(t, p, got)
	_, err = Parse([]byte(`{"ir_version": "0.2.0", "meta": {"abi_version": 1}, "abi_version": "0.2", "tasks": [}`), "x")
	require.ErrorIs(t, err, ErrProfile)
	_, err = Parse([]byte(`{"ir_version": "2.0", "config": {"abi_version": 1}}`), "x")
	require.NotErrorIs(t, err, ErrProfile)
	require.ErrorContains(t, err, `unknown field "abi_version"`)
	_, err = Parse(nil, "x")
	require.ErrorContains(t, err, "x:0:1: error: the file is empty")
}

func TestOddProgramsRoundTrip(t *testing.T) {
	a, b := Symbol(SpanA), Symbol(SpanB)
	odd := &Program{
		Model: Model{Name: "a model (quoted) # ünï", Architecture: ""},
		Config: ScheduleConfig{Tiling: map[string]map[string]int{"z": {"b": -2, "a": 1}, "": {}},
			SMAssignment: Assignment{Rotations: map[string]int{"qkv": 3}}},
		Pages: []Page{{Name: "page", Space: SMEM, Layout: Layout{Kind: Tile8x32}, Bytes: -1}},
		Buffers: []Buffer{{Name: "", Shape: nil},
			{Name: "from", Pieces: []Piece{{Key: "page"}, {Key: "k)", Chain: transform.Of(transform.Pairs, 3)},
				{Key: "rows", Chain: transform.Of(transform.Rows, 1, 2).Then(transform.Transform{Kind: transform.Plus,
					By: -1.5e-7}, transform.Transform{Kind: transform.Even})}},
				Pages: []string{"page", "p 2"}}, {Name: "stage{i}", First: 7, Count: 1}},
		Variants: []Variant{{Name: "v", Lo: -3, Hi: -9,
			Counters: []Counter{{Name: "c", Init: 4, How: ByCounter, Scope: ScopeSystem}},
			Body: []Node{
				&Loop{Name: "end", First: 3, Count: 0},
				&Stage{Name: "end", Dist: Dist{Kind: Explicit, Extent: 5, Grain: 2, SMs: 1, Rot: 9, Step: -1,
					Empty: true, Spans: []TaskSpan{{-1, 2, 1}, {}}},
					Ops: []Op{{Code: NOP}, {Code: KVAppend,
						In: []Operand{{Buf: "wait"}, {Buf: "%t"}, {Buf: "%t", Dims: []Range{Index(a)}}},
						Out: []Operand{{Buf: "loop"}, {Buf: "end",
							Dims: []Range{{Lo: a, Hi: b, Block: 1, Parts: 1}, Span(a.Add(Int(1)), a)}}},
						Params: []Param{FloatParam("f", 3), FloatParam("n", -0.5), IntParam("e", b.Sub(a)),
							IntParam("big", Int(1<<57)), FloatParam("tiny", 5e-324),
							FloatParam("huge", -1.7976931348623157e308)}}}},
				&Stage{Name: "u", Dist: Dist{Kind: ByUnit, Extent: 2}},
				&Stage{Name: "w", Dist: Dist{Kind: Whole}, Signal: "a b"},
			}}},
	}
	text := Print(odd)
	p, diags := ParseText(text, "odd.amk")
	require.NoError(t, diags.Err(), string(text))
	require.Equal(t, norm(t, odd), norm(t, p))
	require.Equal(t, string(text), string(Print(p)))
	data, err := odd.MarshalJSON()
	require.NoError(t, err)
	p, diags = ParseJSON(data, "odd.json")
	require.NoError(t, diags.Err(), string(data))
	require.Equal(t, string(text), string(Print(p)))
	require.NotEmpty(t, Check(p))
}

// norm passes a program through the JSON form, which leaves nil where there was an empty slice.
func norm(t *testing.T, p *Program) *Program {
	data, err := p.MarshalJSON()
	require.NoError(t, err)
	out, diags := ParseJSON(data, "")
	require.NoError(t, diags.Err())
	return out
}

func TestNotFiniteHasNoJSON(t *testing.T) {
	p, _ := tiny(t)
	zero := 0.0
	p.Model.Eps = 1 / zero
	_, err := p.MarshalJSON()
	require.ErrorContains(t, err, "+Inf")
	require.ErrorContains(t, Check(p).Err(), "normal float32")
}

func TestTextErrors(t *testing.T) {
	head := "amk 2.0\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":      {"# nothing\n", "f:1:1: error: the file is empty, want `amk 2.0` [AMK3001]"},
		"no version": {"\nmodel x\n", "f:2:1: error: a program starts with `amk 2.0`, found \"model\" [AMK3001]"},
		"major": {"amk 1.0\nwhatever", "f:1:5: error: program version \"1.0\", this amkc reads version 2.x; want the " +
			"model compiled again with this amkc, or the amkc that wrote the file [AMK3003]"},
		"minor": {"amk 2.7\nbad", "f:2:1: error: unexpected \"bad\", want model"},
		"key": {head + "model m layrs=2",
			"f:2:9: error: unknown key \"layrs\", want one of [arch dtype activations"},
		"twice":  {head + "model m layers=2 layers=3", "f:2:18: error: layers is given twice"},
		"second": {head + "model m\nmodel m", "f:3:1: error: a second model line"},
		"enum": {head + "buffer x WIGHT F32 [1] HBM rowmajor",
			"f:2:10: error: unknown buffer kind \"WIGHT\", want one of [WEIGHT"},
		"shape": {head + "buffer x WEIGHT F32 [1 2] HBM rowmajor", "f:2:24: error: want \",\", found \"2]\""},
		"int": {head + "page p HBM rowmajor bytes=99999999999999999999",
			"f:2:27: error: want bytes, an integer of at most 2^53"},
		"family": {head + "buffer L{i} for 3..2 CONST F32 [1] HBM rowmajor",
			"f:2:17: error: indices run from 3 to 2"},
		"layout": {head + "page p HBM word32x1 bytes=1", "f:2:12: error: unknown layout"},
		"early":  {head + "stage s whole extent=1", "f:2:1: error: stage before the first variant"},
		"end":    {head + "variant v pos 0..1\nend", "f:3:1: error: end without loop"},
		"open":   {head + "variant v pos 0..1\nloop l for 0..1\n\n", "f:3:1: error: loop l has no end"},
		"nested": {head + "variant v pos 0..1\nloop l for 0..1\nloop m for 0..1\nend",
			"f:4:1: error: loop inside loop"},
		"op": {head + "variant v pos 0..1\nstage s whole extent=1\n  x[0 = ADD(%y)",
			"f:4:7: error: want \",\", found \"=\""},
		"opcode": {head + "variant v pos 0..1\nstage s whole extent=1\n  x[0] = AD(%y)",
			"f:4:10: error: unknown opcode \"AD\""},
		"expr": {head + "variant v pos 0..1\nstage s whole extent=1\n  x[0:a*b] = ADD(%y)",
			"f:4:10: error: the right side of * must be a constant"},
		"no dims": {head + "variant v pos 0..1\nstage s whole extent=1\n  x = ADD(%y)",
			"f:4:5: error: want [ and the ranges of a view of \"x\""},
		"float": {head + "variant v pos 0..1\nstage s whole extent=1\n  %x = ADD(%y) k=1e999",
			"f:4:18: error: want a finite number"},
		"param twice": {head + "variant v pos 0..1\nstage s whole extent=1\n  %x = ADD(%y) k=1 k=2",
			"f:4:20: error: parameter \"k\" is given twice"},
		"parts": {head + "variant v pos 0..1\nstage s whole extent=1\n  x[0:1 block 0 part 1 of 2] = ADD(%y)",
			"f:4:15: error: block 0 of 2 parts"},
		"task": {head + "variant v pos 0..1\nstage s whole extent=1\n  task sm=0 a=0 b=1",
			"f:4:1: error: task in a stage that is not explicit"},
		"config": {head + `config {"tilling":{}}`,
			"f:2:9: error: configuration: unknown field \"tilling\"; did you mean tiling? [AMK3002]"},
		"utf8": {head + "model \"\\xff\"", "f:2:7: error: the model's name \"\\xff\" holds \"\\xff\", want letters"},
		"long": {head + "model " + strings.Repeat("x", 256),
			"f:2:7: error: the model's name has 256 bytes, want at most 255"},
		"tail": {head + "target t !", "f:2:10: error: want a key, found \"!\""},
		"signals": {head + "variant v pos 0..1\nstage s whole extent=1\n  signal a\n  signal b",
			"f:5:1: error: a second signal"},
	} {
		t.Run(name, func(t *testing.T) {
			p, diags := ParseText([]byte(c.text), "f")
			require.Nil(t, p)
			require.Contains(t, diags.Error(), c.want)
		})
	}
}

func TestSeveralErrors(t *testing.T) {
	_, diags := ParseText([]byte("amk 2.0\nbuffer x\nvariant v pos 0\nstage s nonesuch\n  ops of it are "+
		"skipped\npage p\n"), "f")
	var lines []string
	for _, d := range diags {
		lines = append(lines, d.Pos)
	}
	require.Equal(t, []string{"f:2:9", "f:3:16", "f:4:9", "f:6:7"}, lines)
	_, diags = ParseText([]byte("amk 2.0\n"+strings.Repeat("nonsense\n", 1000)), "f")
	require.Len(t, diags, maxReadErrors+1)
	require.Contains(t, diags[maxReadErrors].Msg, "too many errors")
}

func TestJSONErrors(t *testing.T) {
	p, _ := tiny(t)
	good, err := p.MarshalJSON()
	require.NoError(t, err)
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown": {`"loop": "layers"`, `"loop": "layers", "unrol": [1, {"x": "]"}]`,
			`error: loop: unknown field "unrol" [AMK3002]`},
		"repeated": {`"kind": "IO_INPUT"`, `"kind": "IO_INPUT", "kind": "WEIGHT"`,
			`error: buffer: field "kind" is given twice`},
		"missing":      {`"kind": "IO_INPUT", `, ``, `error: buffer: field "kind" is missing`},
		"type":         {`"shape": [1]`, `"shape": ["1"]`, `a dimension: want an integer`},
		"fraction":     {`"shape": [1]`, `"shape": [1.5]`, `a dimension: want an integer`},
		"leading zero": {`"shape": [1]`, `"shape": [01]`, `a dimension: want an integer`},
		"null":         {`"config": {`, `"config": null, "x": {`, `configuration: want an object, found "null`},
		"enum":         {`"space": "HBM"`, `"space": "HBN"`, `space: unknown space "HBN", want one of`},
		"operand":      {`"token[0]"`, `"token[0"`, `operand: want ",", found the end of the line`},
		"major": {`"ir_version": "2.0"`, `"ir_version": "3.0"`,
			`tiny.json:2:16: error: program version "3.0", this amkc reads version 2.x; want the model compiled again`},
		"syntax":   {`"pages": [`, `"pages": [,`, `page: want an object, found ","`},
		"trailing": {"\n}\n", "\n} x", `unexpected "x" after the value`},
		"utf8":     {"tiny", "\xff", `not valid UTF-8`},
		"control":  {"tiny", "\x01", `control character in a string`},
		"escape":   {`"tiny"`, `"\q"`, `bad escape in the string`},
		"grain":    {`"grain": 8`, `"grain": true`, `grain: want an integer`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, string(good), c.from)
			p, diags := ParseJSON([]byte(strings.Replace(string(good), c.from, c.to, 1)), "tiny.json")
			require.Nil(t, p)
			require.Contains(t, diags.Error(), c.want)
		})
	}
	for cut := 0; cut < len(good)-2; cut += 7 {
		p, _ := ParseJSON(good[:cut], "f")
		require.Nil(t, p)
	}
}

func TestConfig(t *testing.T) {
	c, diags := ParseConfig([]byte(`{"tiling": {"ring": {"kib": 96}}, "sm_assignment": "round_robin", `+
		`"pipelining_depth": 3}`), "c.json")
	require.NoError(t, diags.Err())
	require.Equal(t, ScheduleConfig{Tiling: map[string]map[string]int{"ring": {"kib": 96}},
		SMAssignment: Assignment{Policy: "round_robin"}, PipeliningDepth: 3}, c)
	text, err := json.Marshal(&c)
	require.NoError(t, err)
	require.Equal(t, `{"tiling":{"ring":{"kib":96}},"sm_assignment":"round_robin",`+
		`"pipelining_depth":3,"page_allocation":"","smem_bytes_per_block":0}`, string(text))
	var back ScheduleConfig
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, c, back)
	for text, want := range map[string]string{
		`{"sm_assignment": {"L00.qkv": 3, "embed.s001": 0}}`: "",
		`{"sm_assignment": 3}`: "c.json:1:19: error: sm_assignment: want a policy's " +
			"name, or an object of rotations by stage",
		`{"tiling": {"ring": {"kib": "96"}}}`: "c.json:1:29: error: kib: want an integer",
		`{"tiling": {"ring": 96}}`:            "tiling.ring: want an object",
		`{"pipelining": 2}`:                   "unknown field \"pipelining\"",
		// 0 is a depth of the AMK IR, no prefetch, which no schedule here has: it is no other word for the default.
		`{"pipelining_depth": 0}`: "c.json:1:22: error: pipelining_depth: 0 would be no prefetch, which the kernel " +
			"does not have; want 1 or more, or leave the field out for the default",
		`{"pipelining_depth": -0}`:       "pipelining_depth: 0 would be no prefetch",
		`{"threads_per_block": 288}`:     "unknown field \"threads_per_block\"",
		`{"pipelining_depth": ""}`:       "c.json:1:22: error: pipelining_depth: want an integer",
		`{"pipelining_depth": 3}`:        "",
		"{\n \"pipelining_depth\": 1.5}": "c.json:2:22: error: pipelining_depth: want an integer",
		`[]`:                             "configuration: want an object",
		``:                               "configuration: want an object",
	} {
		_, diags := ParseConfig([]byte(text), "c.json")
		if want == "" {
			require.NoError(t, diags.Err())
		} else {
			require.ErrorContains(t, diags.Err(), want)
		}
	}
}

// TestHostile gives the readers files that would cost a careless one quadratic time, memory or its stack.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const size = 2 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	op := "amk 2.0\nvariant v pos 0..1\nstage s whole extent=1\n"
	for name, text := range map[string]string{
		"zeros":        fill("\x00"),
		"lines":        "amk 2.0\n" + fill("\n"),
		"blanks":       "amk 2.0\n" + fill(" \t"),
		"words":        "amk 2.0\n" + fill("model "),
		"name":         "amk 2.0\nmodel " + fill("x"),
		"quotes":       "amk 2.0\nmodel " + fill(`"`),
		"escapes":      "amk 2.0\nmodel \"" + fill(`\n`),
		"braces":       op + "  x{" + fill("{i}") + "[0] = NOP()",
		"sum":          op + "  x[" + fill("a+") + "a] = NOP()",
		"brackets":     op + "  x[" + fill("(") + "] = NOP()",
		"mins":         op + "  x[" + fill("min(") + "] = NOP()",
		"digits":       op + "  x[" + fill("9") + "] = NOP()",
		"dims":         op + "  x[0" + fill(",0") + "] = NOP()",
		"operands":     op + "  %x" + fill(", %x") + " = NOP()",
		"params":       op + "  NOP()" + fill(" k=1"),
		"sums":         op + fill("  x["+strings.Repeat("a+", 200)+"a] = NOP()\n"),
		"stages":       op + fill("stage s whole\n"),
		"json lists":   fill("["),
		"json objects": fill(`{"a":`),
		"json models":  fill(`{"model":`),
		"json keys":    `{"config":{"tiling":{"x":{` + fill(`"k":1,`),
		"json skip":    `{"x":[` + fill("0,"),
		"json shape":   `{"buffers":[{"shape":[` + fill("0,"),
		"json string":  `{"buffers":[{"name":"` + fill(`\u0041`),
		"json body":    `{"variants":[{"body":[` + fill(`{"stage":"s","dist":{"kind":"whole"},"ops":[]},`),
		"json out":     `{"variants":[{"body":[{"ops":[{"out":["` + fill("("),
	} {
		t.Run(name, func(t *testing.T) {
			took := watch.Thread(func() {
				if p, err := Parse([]byte(text), "f"); err == nil {
					_ = Check(p)
				}
			})
			t.Logf("%v", took)
			require.Less(t, took, 2*time.Second,
				"some ten times what it takes, and far below what a quadratic reader takes")
		})
	}
}
