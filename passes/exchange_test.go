package passes

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// What a stage reads under a name of a group is a buffer that somebody writes: a counter that announces plain memory
// counts, whatever the memory is called.
func TestExchangeLooksThroughGroups(t *testing.T) {
	const text = `amk 2.0
model m max_seq=4
buffer a ACTIVATION F32 [8] %[1]s
buffer f ACTIVATION F32 [8] %[1]s
buffer out IO_OUTPUT F32 [8] HBM rowmajor
group in{i} for 0..2 by 2 of f a
variant v pos 0..3
counter ready undecided gpu
counter done undecided gpu
stage make explicit
  task sm=0 a=0 b=8
  a[a:b] = COPY(out[a:b])
  f[a:b] = COPY(out[a:b])
  signal ready
loop take for 0..2 by 2
stage L{i}.take explicit
  task sm=1 a=0 b=8
  wait ready >= 1
  %%x = COPY(in{i}[a:b])
  signal done
end
`
	for memory, want := range map[string]ir.Realisation{"GLOBAL_SCRATCH rowmajor": ir.ByCounter,
		"GLOBAL_SCRATCH word64": ir.Flagged} {
		p, diags := ir.ParseText(fmt.Appendf(nil, text, memory), "f")
		require.NoError(t, diags.Err())
		require.NoError(t, ir.Check(p).Err())
		p.Config.Tiling = map[string]map[string]int{"exchange": {"flagged": 1}}
		require.NoError(t, runExchange(&State{Program: p}))
		require.Equal(t, []ir.Realisation{want, ir.ByCounter},
			[]ir.Realisation{p.Variants[0].Counters[0].How, p.Variants[0].Counters[1].How}, memory)
	}
}
