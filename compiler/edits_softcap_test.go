package compiler

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/readback"
	"amkc/refvm"
	"amkc/validate"
	"amkc/validate/kernel"
)

const softCap = "logits[a:b] = SOFTCAP(%y) cap=2.5"

var (
	logitsOf  = regexp.MustCompile(`(?m)^  logits\[a:b\] = (GEMV_TILE.*)$`)
	headStage = regexp.MustCompile(`(?s)stage lm_head .*?\nstage sample`)
)

// capLogits puts a soft cap between the product of lm_head and the choice of the token.
func capLogits(t *testing.T, program []byte) string {
	t.Helper()
	require.NotEmpty(t, logitsOf.FindAll(program, -1))
	return string(logitsOf.ReplaceAll(program, []byte("  %y = $1\n  "+softCap)))
}

// parseProved parses a program that is proved for the kernel.
func parseProved(t *testing.T, text string) *ir.Program {
	t.Helper()
	p, err := ir.Parse([]byte(text), "capped.amk")
	require.NoError(t, err)
	proof := validate.ProgramFor(kernel.Backend, p)
	require.True(t, proof.OK, "%v", proof.Diags)
	return p
}

// A program with capped logits computes them from those of the program without, and chooses the same token.
func TestCappedLogits(t *testing.T) {
	l := lowerModel(t, "pycoder-5m", "h200", ir.BF16, 64, ir.ScheduleConfig{})
	plain, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	capped, err := refvm.NewSession(parseProved(t, capLogits(t, ir.Print(l.Program))), l.Weights,
		refvm.Options{Round: refvm.Device})
	require.NoError(t, err)
	for token := range 3 {
		want, next, err := plain.Step(token)
		require.NoError(t, err)
		got, cappedNext, err := capped.Step(token)
		require.NoError(t, err)
		require.Equal(t, next, cappedNext)
		for i := range want {
			require.InDelta(t, 2.5*math.Tanh(float64(want[i])/2.5), float64(got[i]), 1e-6)
		}
	}
}

// Code that caps otherwise than the program says is told from it.
func TestForgedSoftCaps(t *testing.T) {
	l := lowerModel(t, "pycoder-5m", "h200", ir.BF16, 64, ir.ScheduleConfig{})
	p := parseProved(t, capLogits(t, ir.Print(l.Program)))
	for _, forged := range []string{"soft_cap(y, 0x1.8p+01f)", "soft_cap(y)", "soft_cap(r, y, 0x1.4p+01f)",
		"soft_cap(y, y)", "soft_cap<2>(y, 0x1.4p+01f)", "soft_cap(y, 0x1.4p+01f) + y", "silu_mul(r, y)"} {
		files, err := codegen.CUDA(p)
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(files["stages.h"], []byte("soft_cap(y, 0x1.4p+01f)")))
		files["stages.h"] = bytes.Replace(files["stages.h"], []byte("soft_cap(y, 0x1.4p+01f)"), []byte(forged), 1)
		read, diags := readback.Program(files)
		require.True(t, len(diags) > 0 || len(readback.Compare(read, p)) > 0, forged)
	}
}

// What a program says of its soft cap is what the emitted code does, or it is refused.
func TestEditsOfTheSoftCap(t *testing.T) {
	l := lowerModel(t, "pycoder-5m", "h200", ir.BF16, 64, ir.ScheduleConfig{})
	text := capLogits(t, ir.Print(l.Program))
	before, err := sourcesOf(parseProved(t, text), l.Graph)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		edit    []string // old and new text
		emitted string
	}{
		"another cap": {[]string{"cap=2.5", "cap=30.0"}, "soft_cap(y, 0x1.ep+04f)"},
		"no cap":      {[]string{"%y = GEMV", "logits[a:b] = GEMV", "  " + softCap + "\n", ""}, "store_logit(c, r, y)"},
		"two caps": {[]string{softCap, "%z = SOFTCAP(%y) cap=3.0\n  " + strings.Replace(softCap, "%y", "%z", 1)},
			"soft_cap(z, 0x1.4p+01f)"},
		"a name for the product": {[]string{"%y", "%score"}, "soft_cap(score, 0x1.4p+01f)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parseProved(t, headStage.ReplaceAllStringFunc(text, strings.NewReplacer(c.edit...).Replace))
			files, err := sourcesOf(p, l.Graph)
			require.NoError(t, err)
			require.NotEqual(t, string(before["stages.h"]), string(files["stages.h"]))
			require.Contains(t, string(files["stages.h"]), c.emitted)
			readBackOf(t, p)
		})
	}
	for name, c := range map[string]struct{ new, want string }{
		"no bound":         {"logits[a:b] = SOFTCAP(%y)", "cap"},
		"a negative bound": {"logits[a:b] = SOFTCAP(%y) cap=-2.5", "a positive number"},
		"a bound of zero":  {"logits[a:b] = SOFTCAP(%y) cap=0", "a positive number"},
		"too small":        {"logits[a:b] = SOFTCAP(%y) cap=1e-60", "cap"},
		"of other rows":    {"logits[a:b] = SOFTCAP(%n) cap=2.5", "SOFTCAP"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ir.Parse([]byte(strings.ReplaceAll(text, softCap, c.new)), "edited.amk")
			if err == nil {
				err = validate.ProgramFor(kernel.Backend, p).Diags.Err()
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// What a token is drawn among is what is stored, so that a choice among anything else is refused: by codegen, and in
// code that is read back.
func TestChoicesAmongOtherRowsAreRefused(t *testing.T) {
	l := lowerModel(t, "pycoder-5m", "h200", ir.BF16, 64, ir.ScheduleConfig{})
	text := capLogits(t, ir.Print(l.Program))
	p := parseProved(t, headStage.ReplaceAllStringFunc(text, strings.NewReplacer("SAMPLE(logits[a:b], ",
		"SAMPLE(%y, ").Replace))
	_, err := codegen.CUDA(p)
	require.ErrorContains(t, err, "chooses by SAMPLE among %y; the kernel chooses among the logits that it has stored")

	p = parseProved(t, text)
	files, err := codegen.CUDA(p)
	require.NoError(t, err)
	for old, forged := range map[string]string{"best.offer_row(r, capped)": "best.offer_row(r, y)",
		"publish_best<LmHead>(": "publish_best<Down>("} {
		edited := maps.Clone(files)
		for name, source := range files {
			edited[name] = bytes.Replace(source, []byte(old), []byte(forged), 1)
		}
		read, diags := readback.Program(edited)
		require.True(t, len(diags) > 0 || len(readback.Compare(read, p)) > 0, forged)
	}
}

// The plain kernels cap the logits that the graph caps, where the stage that makes them is compared.
func TestReferenceCapsLogits(t *testing.T) {
	l := lowerModel(t, "pycoder-5m", "h200", ir.BF16, 64, ir.ScheduleConfig{})
	g, vocab := *l.Graph, l.Graph.Model.Vocab
	head := len(g.After) - 2
	require.Equal(t, "lm_head", g.After[head].Name)
	g.After = slices.Insert(slices.Clone(g.After), head+1, ir.GraphNode{Name: "logits_cap", Op: "soft_cap",
		Inputs: []string{"lm_head"}, Shape: []int{vocab}, Params: []ir.Param{ir.FloatParam("cap", 2.5)}})
	g.After[head+2].Inputs = []string{"logits_cap"}
	text, err := codegen.Reference(parseProved(t, capLogits(t, ir.Print(l.Program))), &g)
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("  soft_cap(v.lm_head, kCap, %d);\n", vocab))
	require.Regexp(t, `\{"amk_ref_lm_head", [^\n]*, kOnce, 0\},\n`, string(text))
	require.Regexp(t, `\{"amk_ref_logits_cap", [^\n]*, kOnce, 0,\n +\{"lm_head", offsetof\(Values, lm_head\), `+
		fmt.Sprint(vocab)+`, 4\}\}`, string(text))
}

// What a program says of the bounds of its queries, keys and values is what the kernel computes, or it is refused.
func TestEditsOfClippedRows(t *testing.T) {
	l := lowerModel(t, "zoo/olmo-clipped", "h200", ir.BF16, 64, ir.ScheduleConfig{})
	const clip = "%clipped = CLIP(%z) cap=1.25\n"
	testEditsOf(t, ir.Print(l.Program), l.Graph, map[string]edited{
		"another bound": {clip, "%clipped = CLIP(%z) cap=1.5\n", ""},
		"a soft bound":  {clip, "%clipped = SOFTCAP(%z) cap=1.25\n", ""},
		"two bounds":    {clip, "%once = CLIP(%z) cap=2.0\n  %clipped = CLIP(%once) cap=1.25\n", ""},
		"before the bias": {"ADD(%y, L{i}.qkv.bias[a:b])\n  " + clip,
			"CLIP(%y) cap=1.25\n  %clipped = ADD(%z, L{i}.qkv.bias[a:b])\n", ""},
		"read by nothing": {"ROPE(%clipped,", "ROPE(%z,", ""},
		"no bound":        {clip, "%clipped = CLIP(%z)\n", "cap"},
		"a bound of zero": {clip, "%clipped = CLIP(%z) cap=0\n", "a positive number"},
		"of the norm":     {clip, "%clipped = CLIP(%n) cap=1.25\n", "output 1 has 8 elements, want 72"},
	})
}
