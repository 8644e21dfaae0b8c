package codegen

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// Stages share a place in shared memory where each for itself has no room, and nowhere else.
func TestCompactScratch(t *testing.T) {
	for _, c := range []struct {
		program string
		shared  int
		compact bool
		want    []string
	}{
		{"llama-gqa_t4_fp16_split", 0, false, []string{"kUnitScratch = 16;", "kVectorScratch = 192;"}},
		{"llama-gqa_t4_fp16_split", 40960, true, []string{"kUnitScratch = 256;", "kVectorScratch = 192;"}},
		{"pycoder-5m_h200_bf16", 0, false, []string{"kUnitScratch = AMK_TENSOR_CORES ? 4416 : 16;"}},
		{"pycoder-5m_h200_bf16", 49152, true, []string{"kUnitScratch = AMK_TENSOR_CORES ? 4416 : 1024;"}},
	} {
		p := goldenPrograms(t)[c.program]
		if c.shared > 0 {
			p.Config.SMemBytesPerBlock = c.shared
			setKnob(p, "ring", "stock", 0)
		}
		files, err := CUDA(p)
		require.NoError(t, err)
		text := string(files["schedule.h"])
		require.Equal(t, c.compact, strings.Contains(text, "#define AMK_COMPACT_SCRATCH 1"), "%s in %d bytes",
			c.program, c.shared)
		for _, want := range c.want {
			require.True(t, strings.Contains(text, want), "%s in %d bytes: no %s", c.program, c.shared, want)
		}
	}
}

// What has no room is refused with what takes how much of it, and with what has more.
func TestNoRoom(t *testing.T) {
	wide := func(dtype ir.DType, columns int) func(p *ir.Program) {
		return func(p *ir.Program) {
			p.Model.DTypes, p.Model.Intermediate = ir.Uniform(dtype), columns
			stages(p, func(s *ir.Stage) bool {
				if g := op(s, ir.GEMV); s.Name == "L{i}.down" {
					g.In[1].Dims[1].Hi = ir.Int(columns)
				}
				return false
			})
		}
	}
	heads := func(n int) func(p *ir.Program) {
		return func(p *ir.Program) { p.Model.Heads, p.Model.KVHeads = n, n }
	}
	const t4, h200, whole = "llama-gqa_t4_fp16_split", "pycoder-5m_h200_bf16", "olmo2-plain_h200_bf16"
	for _, c := range []struct {
		program string
		edit    func(p *ir.Program)
		want    string
	}{
		{t4, wide(ir.F16, 30016), "a block of t4 has 65536 bytes of shared memory, and needs 97280: 60032 for the " +
			"30016 values (intermediate_size) that stage L{i}.down reads, " +
			"32768 for a ring of 2 chunks, and 4480 for the rest; want any other target [AMK4005]"},
		{h200, wide(ir.BF16, 32772), "it reads 32772 values (intermediate_size), and the warps of a block keep at " +
			"most 32768 in registers; want --dtype fp32"},
		{h200, wide(ir.BF16, 65536), "want a narrower model: no target has room for this one"},
		{whole, heads(1366), "norms of all queries and all keys take 32784 elements; with tensor cores at most 32768"},
		{t4, wide(ir.F32, 20000), "want --dtype fp16 or bf16; or any other target"},
	} {
		p := goldenPrograms(t)[c.program]
		c.edit(p)
		_, err := CUDA(p)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "[AMK4005]")
	}
}
