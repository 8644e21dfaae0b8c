package validate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// grouped is the toy program with names of groups for the weights of qkv and the vector that qkv reads.
func grouped(t *testing.T, vectors string) *ir.Program {
	t.Helper()
	text := strings.NewReplacer(
		"variant short", "group w{i} for 0..1 of L00.qkv.weight L01.qkv.weight\ngroup in{i} for 0..1 of "+vectors+
			"\nvariant short",
		"L{i}.qkv.weight[", "w{i}[", "L{i}.x[", "in{i}[",
	).Replace(toy.text())
	require.Contains(t, text, "RMSNORM(in{i}[")
	require.Contains(t, text, "w{i}[a:b")
	p, diags := ir.ParseText([]byte(text), "grouped")
	require.NoError(t, diags.Err())
	return p
}

// A name of a group is a name of a buffer: what a task reads under it is proved like any other read, and findings
// name the buffer.
func TestGroupsAreProved(t *testing.T) {
	rep := validate.Program(grouped(t, "L00.x L01.x"))
	require.Empty(t, rep.Diags)
	require.True(t, rep.OK)

	rep = validate.Program(grouped(t, "L00.x L00.x")) // the second layer reads again what the first one has read
	require.False(t, rep.OK)
	require.Contains(t, rep.Diags.Error(), "task L01.qkv.s")
	require.Contains(t, rep.Diags.Error(), "L00.x")
	require.NotContains(t, rep.Diags.Error(), "in01")
}
