package compiler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplainNVCC(t *testing.T) {
	notes := explainNVCC(strings.Join([]string{
		"",
		"In file included from megakernel.cu:8:",
		"amk/ring.cuh(12): error: identifier \"slots\" is undefined",
		"amk/ring.cuh(13): error: expected a \";\"",
		"schedule.h(40): error #20014: too few",
		"/opt/cuda/include/cuda_bf16.h(7): error: this declaration has no storage class",
		"/opt/cuda/include/cub/block.cuh(9): warning #1: extra",
		"remark: nothing to see",
		"4 errors detected in the compilation of \"megakernel.cu\".",
	}, "\n"))
	require.Equal(t, []string{
		"amk/ring.cuh(12): error: identifier \"slots\" is undefined",
		"amk/ring.cuh comes from runtime/cuda/amk/ring.cuh",
		"amk/ring.cuh(13): error: expected a \";\"",
		"schedule.h(40): error #20014: too few",
		"schedule.h comes from templates/schedule.h.tmpl",
		"/opt/cuda/include/cuda_bf16.h(7): error: this declaration has no storage class",
		"/opt/cuda/include/cub/block.cuh(9): warning #1: extra",
		"4 errors detected in the compilation of \"megakernel.cu\".",
	}, notes)
	require.LessOrEqual(t, len(explainNVCC(strings.Repeat("megakernel.cu(1): error: again\n", 100))), 13)
	require.Empty(t, explainNVCC("remark: fine\n"))
}

func TestCUDAVersion(t *testing.T) {
	for release, want := range map[string]int{"13.0": 13000, "12.8": 12080, "": 0} {
		require.Equal(t, want, cudaVersion(release), release)
	}
}
