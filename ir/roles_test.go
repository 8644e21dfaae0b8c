package ir_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

func TestInLayer(t *testing.T) {
	for name, want := range map[string]struct {
		layer ir.Layer
		rest  string
	}{
		"L{i}.qkv":       {ir.Layer{Known: true, Index: true}, "qkv"},
		"L{i+1}.x":       {ir.Layer{Known: true, Index: true, N: 1}, "x"},
		"L{i-2}.x":       {ir.Layer{Known: true, Index: true, N: -2}, "x"},
		"L03.qkv.weight": {ir.Layer{Known: true, N: 3}, "qkv.weight"},
		"L120.x":         {ir.Layer{Known: true, N: 120}, "x"},
	} {
		layer, rest := ir.InLayer(name)
		require.Equal(t, want.layer, layer, name)
		require.Equal(t, want.rest, rest, name)
		require.Equal(t, name, ir.NameIn(layer, rest))
	}
	for _, name := range []string{"", "x", "Lx.o", "L.o", "L3.o", "L003.o", "L03.", "L{j}.o", "L{i.o", "L{i}",
		"lm_head.weight", "L99999999999999999999.x"} {
		layer, rest := ir.InLayer(name)
		require.Equal(t, ir.Layer{}, layer, name)
		require.Equal(t, name, rest)
	}
	for _, s := range []string{"", "i", "-1", "03", "{i+0}", "{3}", "3.5", "{i", "None"} {
		_, err := ir.ParseLayer(s)
		require.Error(t, err, s)
	}
}

func tinyText(t *testing.T) string {
	text, err := os.ReadFile("../testdata/ir/tiny.amk")
	require.NoError(t, err)
	return string(text)
}

// What names say is left out of both forms, and what they do not say is in them.
func TestRolesInTheForms(t *testing.T) {
	const dist = " spread extent=128 grain=8 sms=4 rot=0 step=3"
	each, second := ir.Layer{Known: true, Index: true}, ir.Layer{Known: true, N: 1}
	for _, c := range []struct {
		name, fields string
		role         string
		layer        ir.Layer
	}{
		{"L{i}.qkv", "", "qkv", each},
		{"L{i}.qkv", " role=none layer=none", "", ir.Layer{}},
		{"L{i}.qkv", " role=other layer=1", "other", second},
		{"L{i}.qkv7", "", "", each},
		{"a{i}", "", "", ir.Layer{}},
		{"a{i}", " role=qkv layer={i}", "qkv", each},
		{`"L{i}.q k"`, " role=qkv", "qkv", each},
	} {
		text := strings.ReplaceAll(tinyText(t), "stage L{i}.qkv"+dist, "stage "+c.name+dist+c.fields)
		p, err := ir.Parse([]byte(text), "edited.amk")
		require.NoError(t, err, c.name)
		require.NoError(t, ir.Check(p).Err(), c.name)
		require.Equal(t, text, string(ir.Print(p)), "nothing more and nothing less is printed")
		json, err := p.MarshalJSON()
		require.NoError(t, err)
		back, err := ir.Parse(json, "edited.json")
		require.NoError(t, err)
		require.Equal(t, p, back)
		stage := p.Variants[0].Body[1].(*ir.Loop).Body[0]
		require.Equal(t, c.role, stage.Role, c.name)
		require.Equal(t, c.layer, stage.Layer, c.name)
		require.NoError(t, ir.Expand(p))
		require.NoError(t, ir.Check(p).Err())
		first, of := p.Variants[0].Body[1].(*ir.Stage), c.layer
		of.Index = false // of the first iteration
		require.Equal(t, c.role, first.Role)
		require.Equal(t, of, first.Layer)
	}
}

// Buffers and counters have roles whatever they are called.
func TestRolesOfBuffersAndCounters(t *testing.T) {
	text := strings.NewReplacer(
		"buffer token IO_INPUT I32 [1] HBM rowmajor", "buffer t IO_INPUT I32 [1] HBM rowmajor role token",
		"token[0]", "t[0]", "counter step counter gpu", "counter done counter gpu role=step",
		"signal step", "signal done").Replace(tinyText(t))
	p, err := ir.Parse([]byte(text), "edited.amk")
	require.NoError(t, err)
	require.NoError(t, ir.Check(p).Err())
	require.Equal(t, text, string(ir.Print(p)))
	json, err := p.MarshalJSON()
	require.NoError(t, err)
	back, err := ir.Parse(json, "edited.json")
	require.NoError(t, err)
	require.Equal(t, p, back)
	ir.NameRoles(p)
	require.Contains(t, string(ir.Print(p)), "counter done counter gpu\n", "a name that says nothing is of no role")
}

func TestRolesAreChecked(t *testing.T) {
	for _, c := range [][3]string{
		{"buffer token IO_INPUT I32 [1] HBM rowmajor", "buffer token IO_INPUT I32 [1] HBM rowmajor role next",
			"has the role next, want an I32 output that is not a family"},
		{"buffer token IO_INPUT I32 [1] HBM rowmajor", "buffer token IO_INPUT I32 [1] HBM rowmajor role word",
			`has the role "word", want one of token, position, next, logits, stop_ids, stop_last, sampling, ` +
				`embeddings, hidden or none`},
		{"buffer residual ACTIVATION", "buffer t2 IO_INPUT I32 [1] HBM rowmajor role token\nbuffer residual ACTIVATION",
			"buffer t2: error: has the role token, and so has token; want one"},
		{"counter step counter gpu", "counter step counter gpu role=stop", `has the role "stop", want step`},
		{"counter step counter gpu", "counter step counter gpu\ncounter end counter gpu role=step",
			"counter end: error: has the role step in variant short, and so has step; want one"},
		{"stage L{i}.qkv spread", "stage L{i+1}.qkv spread",
			"stage L{i+1}.qkv: error: is of layer 2, and the model has 2"},
		{"stage L{i}.qkv spread", "stage L{i}.qkv spread layer={i-1}", "is of layer -1, and the model has 2"},
		{"stage emit explicit", "stage emit explicit layer={i}", "stands in no loop, want a number"},
	} {
		text := strings.ReplaceAll(tinyText(t), c[0], c[1])
		require.NotEqual(t, tinyText(t), text, c[0])
		p, err := ir.Parse([]byte(text), "edited.amk")
		require.NoError(t, err, c[1])
		require.ErrorContains(t, ir.Check(p).Err(), c[2])
		require.ErrorContains(t, ir.Check(p).Err(), "AMK3024")
	}
	for _, role := range []string{"", "none", "4", "_x", "a b", "a-b", "a.b", "größe", "{i}"} {
		require.Error(t, ir.CheckRole(role), role)
	}
	for _, role := range []string{"x", "gate_up", "Q4"} {
		require.NoError(t, ir.CheckRole(role))
	}
	for _, layer := range []string{"x", "-1", "{i+0}", "03"} {
		text := strings.Replace(tinyText(t), "stage emit explicit", "stage emit explicit layer="+layer, 1)
		_, err := ir.Parse([]byte(text), "edited.amk")
		require.ErrorContains(t, err, "layer "+strconv.Quote(layer)+", want a number, {i}, {i+N}, {i-N} or none")
	}
}
