package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
	"amkc/ir"
)

// filled is a program with one of everything that holds a string.
func filled() *ir.Program {
	p := &ir.Program{}
	injection.Fill(p, &ir.Stage{}, &ir.Loop{})
	p.Target.Arch = "sm_90a"
	p.Variants[0].Body[0].(*ir.Stage).Dist.Spans = nil
	p.Variants[0].Body[1].(*ir.Loop).Body[0].Dist.Spans = nil
	return p
}

// No string of a program is anything but a name, and no form of a program lets another one in. The walk is by
// reflection: a field that is added to Program and that CheckNames forgets fails here.
func TestHostileTextIsNoName(t *testing.T) {
	require.NoError(t, ir.CheckNames(filled()).Err())
	read := func(p *ir.Program) (text, json error) {
		_, diags := ir.ParseText(ir.Print(p), "p.amk")
		data, err := p.MarshalJSON()
		require.NoError(t, err)
		_, inJSON := ir.ParseJSON(data, "p.json")
		return diags.Err(), inJSON.Err()
	}
	text, json := read(filled())
	require.NoError(t, text)
	require.NoError(t, json)
	places := 0
	for _, place := range injection.Places(filled()) {
		places++
		for _, hostile := range injection.Texts {
			p := filled()
			for _, same := range injection.Places(p) {
				if same.Path == place.Path {
					same.Set(hostile)
				}
			}
			if place.Path == "Program.Config.SMAssignment.Policy" {
				p.Config.SMAssignment.Rotations = nil // which is printed instead
			}
			require.Error(t, ir.CheckNames(p).Err(), "%s: %q", place.Path, hostile)
			require.Error(t, ir.Check(p).Err(), "%s: %q", place.Path, hostile)
			text, json := read(p)
			if place.Path == "Program.Target.Arch" && ir.CheckName(hostile) == nil {
				continue // a name, and no architecture: CheckNames says so
			}
			require.Error(t, text, "%s: %q", place.Path, hostile)
			require.Error(t, json, "%s: %q", place.Path, hostile)
		}
	}
	require.Greater(t, places, 25)
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"x", "L{i+1}.qkv", "model.layers.{i}.mlp.down_proj.weight", "@inv_freq", "%t",
		"L0.q_proj[t0]",
		"lm_head (6 tiles, M=4)", "a/b:c#1", "größe", "模型"} {
		require.NoError(t, ir.CheckName(name), name)
	}
	for _, name := range append([]string{"", " x", "x ", "a*b", "a;b", "a|b", "a&b", "a<b", "a!", "a~", "a^b", "\ta",
		"a\u200bb", "🙂"}, injection.Texts...) {
		require.Error(t, ir.CheckName(name), "%q", name)
	}
	for _, arch := range []string{"sm_75", "sm_90a", "sm_100", "sm_103f", "sm_120"} {
		require.NoError(t, ir.CheckArch(arch), arch)
	}
	for _, arch := range append([]string{"", "sm_", "sm_9", "sm_1000", "sm_90b", "sm_90aa", "SM_90", "90", "compute_90",
		"sm_90 ", "sm_90,x"}, injection.Texts...) {
		require.Error(t, ir.CheckArch(arch), "%q", arch)
	}
}
