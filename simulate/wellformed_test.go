package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// What has no meaning is told with what would have one, each part on its own.
func TestWellFormedSaysWhatItWants(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(f *ir.Flat)
	}{
		{"task t.s000: malformed: runs on SM 500; want one of 2, from 0 on, or none",
			func(f *ir.Flat) { f.Tasks[0].SM = 500 }},
		{"task t.s000: malformed: signals counter 99; want one of 6, from 0 on, or none",
			func(f *ir.Flat) { f.Tasks[0].Signal = 99 }},
		{"counter c: malformed: is undecided; want counter or flagged",
			func(f *ir.Flat) { f.Counters[0].How = ir.Undecided }},
		{"counter c: malformed: starts at -1; want 0 to 393216", func(f *ir.Flat) { f.Counters[0].Init = -1 }},
		{"counter c: malformed: starts at 4294967296; want 0 to 393216", // which 32 bits take for 0
			func(f *ir.Flat) { f.Counters[0].Init = 1 << 32 }},
		{"counter e: malformed: is flagged and starts at 1; want 0", func(f *ir.Flat) { f.Counters[2].Init = 1 }},
		{"counter 1: malformed: has no name; want one that no other has",
			func(f *ir.Flat) { f.Counters[1].Name = "" }},
		{"counter c: malformed: is defined twice; want a name that no other has",
			func(f *ir.Flat) { f.Counters[1].Name = "c" }},
		{": malformed: has positions 4 to 3; want 0 or more, the first no later than the last",
			func(f *ir.Flat) { f.Lo = 4 }},
	} {
		f := unrolled(t, program(t, on("0", "t", whole)))
		require.Nil(t, wellFormed(f))
		c.change(f)
		require.Equal(t, c.want, wellFormed(f).String())
	}
}
