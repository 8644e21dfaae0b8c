package amk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/amk"
)

// Every parameter that an opcode requires reaches the device, but for FUSED's recipe.
func TestRegistry(t *testing.T) {
	fields := map[string]bool{"recipe": true}
	for _, f := range amk.ParamFields() {
		require.False(t, fields[f.Name], f.Name)
		fields[f.Name] = true
	}
	require.Len(t, fields, 23)
	for op := amk.Nop; op <= amk.Fused; op++ {
		spec := op.Spec()
		require.LessOrEqual(t, spec.MaxInputs, amk.MaxInputs, op)
		require.True(t, spec.MaxInputs == -1 || spec.MinInputs <= spec.MaxInputs, op)
		for _, p := range spec.Params {
			require.True(t, fields[p], "%s: %s", op, p)
		}
	}
	require.Equal(t, "FUSED", amk.Fused.String())
	require.EqualValues(t, 19, amk.Fused)
	require.Equal(t, "20", (amk.Fused + 1).String())
}

func TestDTypes(t *testing.T) {
	require.EqualValues(t, 9, amk.BOOL)
	require.Equal(t, 2, amk.I4.Bytes(3), "packed, rounded up")
	require.Equal(t, 6, amk.BF16.Bytes(3))
	require.Equal(t, "F8E4M3", amk.F8E4M3.String())
	for kind, readOnly := range map[amk.BufferKind]bool{
		amk.Weight: true, amk.Const: true, amk.IOInput: true, amk.Activation: false, amk.KVCache: false,
		amk.IOOutput: false,
	} {
		require.Equal(t, readOnly, kind.ReadOnly(), kind)
	}
}

func TestTargets(t *testing.T) {
	all := amk.Targets()
	require.Len(t, all, 8)
	for _, want := range all {
		got, ok := amk.LookupTarget(want.Name)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.NotEmpty(t, got.Note)
	}
	_, ok := amk.LookupTarget("h200")
	require.False(t, ok, "the profile has no such record")
}
