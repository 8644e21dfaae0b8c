package ir

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that is renamed and named back is what it was; one that is not all families, or has groups, is refused.
func TestRename(t *testing.T) {
	text, err := os.ReadFile("../testdata/golden/llama-gqa_t4_fp16_split/schedule.amk")
	require.NoError(t, err)
	p, diags := ParseText(text, "schedule.amk")
	require.NoError(t, diags.Err())
	names := NamesOf(p)
	for k, name := range names.Buffers {
		names.Buffers[k] = "b." + name
	}
	for k, name := range names.Variants[1].Stages {
		names.Variants[1].Stages[k] = "s." + name
	}
	for k, name := range names.Variants[0].Counters {
		names.Variants[0].Counters[k] = "c." + name
	}
	q, err := Rename(p, names)
	require.NoError(t, err)
	require.Equal(t, names, NamesOf(q))
	require.NoError(t, Check(q).Err())
	require.Equal(t, string(text), string(Print(p)), "the program itself is as it was")
	back, err := Rename(q, NamesOf(p))
	require.NoError(t, err)
	require.Equal(t, string(text), string(Print(back)))

	names.Buffers[0] += "{i}"
	_, err = Rename(p, names)
	require.ErrorContains(t, err, "want a family for a family")
	p.Groups = []Group{{Name: "g{i}"}}
	_, err = Rename(p, NamesOf(p))
	require.ErrorContains(t, err, `has the group "g{i}"`)
}
