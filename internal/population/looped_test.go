package population

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// Programs of loops are well formed, read back, and are accepted in every form that there is.
func TestLooped(t *testing.T) {
	seeds := draws(3000)
	accepted, tasks, seen := 0, 0, map[string]int{}
	for seed := range uint64(seeds) {
		c := Looped(seed)
		require.NoError(t, ir.Check(c.Program).Err(), c.Name)
		if seed%50 == 0 {
			text := ir.Print(c.Program)
			again, err := ir.Parse(text, c.Name)
			require.NoError(t, err, c.Name)
			require.Equal(t, string(text), string(ir.Print(again)))
			require.Equal(t, string(text), string(ir.Print(Looped(seed).Program)))
		}
		rep := validate.Program(c.Program)
		tasks = max(tasks, rep.Stats.Tasks)
		if rep.OK {
			accepted++
			noteForms(c.Program, seen)
		}
	}
	t.Logf("%d of %d accepted, at most %d tasks; forms %v", accepted, seeds, tasks, seen)
	require.Greater(t, accepted, seeds*50/100)
	require.Less(t, accepted, seeds*75/100)
	require.Less(t, tasks, 80)
	for _, form := range []string{
		"loop by 2", "two loops", "first layer plain", "last layer plain", "family by 2", "group", "group by 2",
		"buffer in two groups", "buffer twice in a group",
		"two alternating pages", "one page", "vector in place", "stored in every iteration",
		"read from an earlier loop",
		"flagged", "words", "plain memory",
	} {
		require.Greater(t, seen[form], seeds/150, form)
	}
}

func noteForms(p *ir.Program, seen map[string]int) {
	note := func(form string, is bool) {
		if is {
			seen[form]++
		}
	}
	loops, groupsOf := []int{}, map[string]int{}
	body := p.Variants[0].Body
	for i, n := range body {
		if l, ok := n.(*ir.Loop); ok {
			loops = append(loops, i)
			note("loop by 2", l.Step == 2)
		}
	}
	note("two loops", len(loops) == 2)
	note("first layer plain", loops[0] > 1)
	last, ok := body[loops[len(loops)-1]+1].(*ir.Stage)
	note("last layer plain", ok && len(last.Name) > 3 && last.Name[1:3] == fmt.Sprintf("%02d", p.Model.Layers-1))
	for _, g := range p.Groups {
		note("group", true)
		note("group by 2", g.Step == 2)
		note("read from an earlier loop", strings.HasSuffix(g.Name, ".back{i}"))
		members := slices.Sorted(slices.Values(g.Members))
		once := slices.Compact(slices.Clone(members))
		note("buffer twice in a group", len(once) < len(members))
		for _, m := range once {
			groupsOf[m]++
		}
	}
	for _, n := range groupsOf {
		note("buffer in two groups", n > 1)
	}
	for _, b := range p.Buffers {
		note("family by 2", b.Step == 2)
		note("two alternating pages", len(b.Pages) == 2)
		note("one page", len(b.Pages) == 1 && b.Count > 1)
		note("vector in place", b.Name == "x")
		note("stored in every iteration", b.Count > 1 && strings.HasSuffix(b.Name, ".kept"))
		note("words", b.Layout.Words())
		note("plain memory", b.Name == "x" && !b.Layout.Words())
	}
	note("flagged", slices.ContainsFunc(p.Variants[0].Counters,
		func(c ir.Counter) bool { return c.Count > 0 && c.How == ir.Flagged }))
}

// What is accepted runs, defines all it reads, and comes out the same in other orders.
func TestLoopedRuns(t *testing.T) { requireRuns(t, Looped, draws(200), draws(80)) }

// What loops can newly get wrong is rejected, mostly, and for the reason that it is made for. The rest is harmless: a
// double buffer where a single one would do, other values of the same age.
func TestLoopOperatorsBreak(t *testing.T) {
	for _, c := range []struct {
		operator string
		codes    []string // each is the reason in some of them
		least    int      // percent that are rejected
	}{
		{"single-for-double-buffer", []string{validate.CodeOverwriteRace.ID, validate.CodeAlias.ID}, 60},
		{"family-stride", []string{ir.CodeName.ID}, 100},
		{"group-stride", []string{ir.CodeName.ID}, 100},
		{"group-offset", []string{validate.CodeReadRace.ID, validate.CodeUndefined.ID, validate.CodeAlias.ID}, 60},
		{"swap-in-a-group", []string{validate.CodeReadRace.ID, validate.CodeUndefined.ID, validate.CodeAlias.ID}, 60},
		{"repeat-in-a-group", []string{validate.CodeReadRace.ID, validate.CodeUndefined.ID, validate.CodeAlias.ID}, 50},
		{"operand-of-next-iteration", []string{validate.CodeReadRace.ID, validate.CodeUndefined.ID}, 90},
		{"operand-of-iteration-before", []string{ir.CodeName.ID, validate.CodeReadRace.ID, validate.CodeUndefined.ID},
			90},
		{"entry-dropped", []string{validate.CodeUndefined.ID, validate.CodeClobbered.ID}, 95},
		{"epoch-reused", []string{validate.CodePartialWait.ID}, 100},
		{"wait-of-iteration-before", []string{ir.CodeName.ID, validate.CodeReadRace.ID}, 95},
		{"wait-of-next-iteration", []string{validate.CodeDeadlock.ID}, 95},
		{"signal-of-next-iteration", []string{ir.CodeName.ID, validate.CodePartialWait.ID}, 100},
		{"stored-once", []string{validate.CodeUndefined.ID}, 100},
		{"trip-count", []string{ir.CodeName.ID, validate.CodeNoProducer.ID}, 100},
		{"first-iteration", []string{ir.CodeName.ID, validate.CodeNoProducer.ID}, 100},
		{"loop-step", []string{ir.CodeName.ID, validate.CodeNoProducer.ID}, 100},
	} {
		op := Operators[slices.IndexFunc(Operators, func(op Operator) bool { return op.Name == c.operator })]
		made, rejected, codes := 0, 0, map[string]int{}
		for seed := range uint64(draws(600)) {
			m := Case{Program: drawn(rand.New(rand.NewPCG(seed, 'l')), "looped", true)}
			if !op.Apply(rand.New(rand.NewPCG(seed, 'o')), &m) {
				continue
			}
			made++
			if rep := validate.Program(m.Program); !rep.OK {
				rejected++
				codes[rep.Diags.Errors()[0].Code]++
			}
		}
		t.Logf("%-28s %3d of %3d rejected, for %v", c.operator, rejected, made, codes)
		require.Greater(t, made, draws(600)/6, c.operator)
		require.GreaterOrEqual(t, 100*rejected, c.least*made, c.operator)
		for _, code := range c.codes {
			require.Positive(t, codes[code], "%s: %s", c.operator, code)
		}
	}
}
