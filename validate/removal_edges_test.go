package validate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

// Every edge of docs/memory-model.md is there for something: of a program in the shape that amkc gives to models,
// with all its edges of one kind taken away, there is no proof. The program is what loses them: a task keeps its
// place in the order of the list, but has no queue, or does not wait. (That the ring is filled ahead of every wait is
// TestRulesNeededElsewhere's.)
func TestEveryEdgeIsNeeded(t *testing.T) {
	plain := func(m mutant) { // shared memory has an owner, which is another matter
		for i := range m.Buffers {
			if b := &m.Buffers[i]; b.Space == ir.SMEM {
				b.Space = ir.HBM
			}
		}
	}
	noWaits := func(m mutant) {
		for i := range m.Tasks {
			m.Tasks[i].Waits = nil
		}
	}
	for _, c := range []struct {
		name, how string
		before    func(m mutant)
		remove    func(m mutant)
		code      *diag.Code
	}{
		{"queue order of one SM", "counter", plain, func(m mutant) {
			m.SMs, m.Target = len(m.Tasks), nil
			for i := range m.Tasks {
				m.Tasks[i].SM = i
			}
		}, validate.CodeReadRace},
		{"counter", "counter", plain, noWaits, validate.CodeReadRace},
		{"flagged word, to its reader", "flagged", plain, noWaits, validate.CodeReadRace},
		// L00.h lies where L00.x was. What o polls was published after qkv had read that; a task of o that takes a
		// constant in its place needs nothing of it, and does not know that the page is free.
		{"flagged word, of what was read before it", "flagged", plain, func(m mutant) {
			t := m.task("L00.o.s000")
			t.Waits, t.Ops[0].In[0].Buf, t.Ops[0].InBuf[0] = nil, "norm.weight", m.buffer("norm.weight")
		}, validate.CodeOverwriteRace},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mutant{flat(t, program(t, toy.with(c.how)), 0), t}
			c.before(m)
			require.NoError(t, validate.Flat(m.Flat).Diags.Err())
			c.remove(m)
			requireCode(t, validate.Flat(m.Flat), c.code, "")
		})
	}
	t.Run("step end", func(t *testing.T) {
		require.True(t, validate.Program(program(t, toy)).OK)
		rep := validate.Program(program(t, toy, "best.index[0:4], sampling[0:4]) pos=pos\n  signal step",
			"best.index[0:4], sampling[0:4]) pos=pos"))
		requireCode(t, rep, validate.CodeStepJoin, "so the step can end while it runs")
	})
}
