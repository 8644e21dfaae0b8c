package population

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// draws is how many programs a test of a class draws: with AMKC_LONG as many as it is written for, and else a quarter.
func draws(whole int) int {
	if os.Getenv("AMKC_LONG") != "" {
		return whole
	}
	return whole / 4
}

// Small programs are well formed, their text form reads back, and validate accepts about half of them.
func TestNative(t *testing.T) {
	seeds := draws(3000)
	accepted, small, tasks := 0, 0, 0
	opcodes, codes := map[ir.Opcode]bool{}, map[string]int{}
	for seed := range uint64(seeds) {
		c := Native(seed)
		require.NoError(t, ir.Check(c.Program).Err(), c.Name)
		f := NativeFlat(seed)
		require.NotNil(t, f.Flat)
		require.Nil(t, f.Program)
		if seed%50 == 0 {
			text := ir.Print(c.Program)
			again, err := ir.Parse(text, c.Name)
			require.NoError(t, err, c.Name)
			require.Equal(t, string(text), string(ir.Print(again)))
		}
		for i := range f.Flat.Tasks {
			for k := range f.Flat.Tasks[i].Ops {
				opcodes[f.Flat.Tasks[i].Ops[k].Code] = true
			}
		}
		tasks = max(tasks, len(f.Flat.Tasks))
		if len(f.Flat.Tasks) <= 16 {
			small++
		}
		rep := validate.Program(c.Program)
		if rep.OK {
			accepted++
			continue
		}
		for _, d := range rep.Diags {
			codes[d.Code]++
		}
	}
	t.Logf("%d of %d accepted, %d of at most 16 tasks, at most %d tasks; rejected for %v", accepted, seeds, small,
		tasks, codes)
	require.Greater(t, accepted, seeds*40/100)
	require.Less(t, accepted, seeds*65/100)
	require.Greater(t, small, seeds*40/100)
	require.Less(t, tasks, 50)
	for _, code := range []ir.Opcode{ir.COPY, ir.EMBED, ir.RMSNORM, ir.GEMV, ir.ATTENTION, ir.SiluMul, ir.ADD, ir.MUL,
		ir.KVAppend, ir.ArgMax, ir.AttentionCombine} {
		require.True(t, opcodes[code], code)
	}
	// Each is a way of being subtly unsafe that must not fall out of the population.
	for _, code := range []string{
		validate.CodeReadRace.ID, validate.CodeOverwriteRace.ID, validate.CodeWriteRace.ID,
		validate.CodeFlaggedPlain.ID, validate.CodeUnread.ID,
		validate.CodePollOrder.ID, validate.CodeUndefined.ID, validate.CodeOwner.ID, validate.CodeStepJoin.ID,
	} {
		require.Positive(t, codes[code], code)
	}
}

// What is made with care is accepted: a template that makes unsafe programs tests little.
func TestTemplatesWithCare(t *testing.T) {
	for _, name := range []string{"native", "looped", "tokens"} {
		for seed := range uint64(draws(1000)) {
			p := drawn(rand.New(rand.NewPCG(seed, 'n')), name, true)
			require.NoError(t, validate.Program(p).Diags.Err(), "%s, seed %d:\n%s", name, seed, ir.Print(p))
		}
	}
}

func BenchmarkNative(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		Native(uint64(i))
	}
}
