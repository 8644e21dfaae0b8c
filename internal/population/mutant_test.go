package population

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// fingerprint prints all of a case that a judge can see.
func fingerprint(c *Case) string {
	if c.Program != nil {
		return string(ir.Print(c.Program))
	}
	var b bytes.Buffer
	f := c.Flat
	fmt.Fprintln(&b, f.Name, f.Lo, f.Hi, f.Pass, f.SMs, f.Buffers, f.Pages, f.Counters)
	for i := range f.Tasks {
		t := &f.Tasks[i]
		fmt.Fprintln(&b, t.Name, t.SM, t.Waits, t.Signal)
		for k := range t.Ops {
			fmt.Fprintln(&b, ir.PrintOp(&t.Ops[k].Op), t.Ops[k].InBuf, t.Ops[k].OutBuf)
		}
	}
	return b.String()
}

// Every operator finds something to change, in native programs, in unrolled ones, or both; what it makes differs from
// its base, and the base is as it was.
func TestOperatorsChange(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	require.GreaterOrEqual(t, len(Operators), 25)
	names, rules := map[string]bool{}, map[string]bool{}
	var bases []Case
	var before []string
	const kinds = 5
	for seed := range uint64(12) {
		pass := Case{Name: "tokens", Program: drawn(rand.New(rand.NewPCG(seed, 4)), "tokens", true)}
		for _, base := range []Case{Native(seed), {Name: "listed", Program: listed(Native(seed).Program)}, Looped(seed),
			pass, {Name: "listed", Program: listed(pass.Program)}} {
			bases, before = append(bases, base), append(before, fingerprint(&base))
		}
	}
	for _, op := range Operators {
		require.False(t, names[op.Name], op.Name)
		names[op.Name] = true
		rules[op.Rule] = true
		applied := 0
		for i, base := range bases {
			c := base
			ok := op.Apply(rand.New(rand.NewPCG(uint64(i/kinds), 1)), &c)
			require.Equal(t, before[i], fingerprint(&base), op.Name)
			if ok {
				applied++
				require.NotEqual(t, before[i], fingerprint(&c), "%s on %s", op.Name, base.Name)
			} else {
				require.Equal(t, base, c, op.Name)
			}
		}
		require.Positive(t, applied, op.Name)
		require.False(t, op.Apply(rand.New(rand.NewPCG(1, 1)), &Case{}), "a case of the profile")
	}
	for _, rule := range []string{ruleDeadlock, ruleRace, ruleProvenance, ruleMemory, ruleStructure, ruleEdges,
		ruleStep, ruleOperands} {
		require.True(t, rules[rule], "nothing breaks %s", rule)
	}
}

func TestMutantsAreReproducible(t *testing.T) {
	names := map[string]bool{}
	for seed := range uint64(draws(3000)) {
		for _, c := range []Case{Native(seed), NativeFlat(seed), Mutant(seed)} {
			require.False(t, names[c.Name], c.Name)
			names[c.Name] = true
		}
		if seed%40 == 0 {
			a, b := Mutant(seed), Mutant(seed)
			require.Equal(t, a.Name, b.Name)
			require.Equal(t, fingerprint(&a), fingerprint(&b))
			a, b = Native(seed), Native(seed)
			require.Equal(t, fingerprint(&a), fingerprint(&b))
		}
	}
}

// The committed programs are sound, and the operators leave them alone.
func TestCommitted(t *testing.T) {
	cases, err := Committed()
	require.NoError(t, err)
	before := make([]string, len(cases))
	for i := range cases {
		before[i] = fingerprint(&cases[i])
		if cases[i].Program != nil {
			require.NoError(t, validate.Program(cases[i].Program).Diags.Err(), cases[i].Name)
		} else {
			require.NoError(t, validate.Flat(cases[i].Flat).Diags.Err(), cases[i].Name)
		}
	}
	for i := range cases {
		for k := range Operators {
			c := cases[i]
			if Operators[k].Apply(rand.New(rand.NewPCG(uint64(k), 2)), &c) {
				require.True(t, (c.Flat == nil) != (c.Program == nil))
			}
		}
		require.Equal(t, before[i], fingerprint(&cases[i]), cases[i].Name)
	}
}

// Counting orders all that a flag orders, and more: what is safe stays safe.
func TestCountingIsNeverWorse(t *testing.T) {
	i := slices.IndexFunc(Operators, func(op Operator) bool { return op.Name == "count-a-flag" })
	tried := 0
	for seed := range uint64(draws(400)) {
		c := Native(seed)
		if !validate.Program(c.Program).OK || !Operators[i].Apply(rand.New(rand.NewPCG(seed, 3)), &c) {
			continue
		}
		tried++
		require.NoError(t, validate.Program(c.Program).Diags.Err(), c.Name)
	}
	require.Greater(t, tried, draws(80))
}

// What validate says of mutants: the operators break things, and not all of them, so that the judges have both to
// agree on.
func TestMutantsAreMixed(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	type tally struct{ made, accepted int }
	byOperator := map[string]*tally{}
	all := tally{}
	for seed := range uint64(16 * len(Operators)) {
		c := Mutant(seed)
		n := byOperator[c.Class]
		if n == nil {
			n = &tally{}
			byOperator[c.Class] = n
		}
		ok := false
		if c.Program != nil {
			ok = validate.Program(c.Program).OK
		} else {
			ok = validate.Flat(c.Flat).OK
		}
		n.made++
		all.made++
		if ok {
			n.accepted++
			all.accepted++
		}
	}
	mixed := 0
	for _, op := range Operators {
		n := byOperator[op.Name]
		require.NotNil(t, n, op.Name)
		t.Logf("%-28s %3d of %3d accepted   (%s)", op.Name, n.accepted, n.made, op.Rule)
		if op.Name != "count-a-flag" {
			require.Less(t, n.accepted, n.made, "%s breaks nothing", op.Name)
		}
		if n.accepted > 0 {
			mixed++
		}
	}
	t.Logf("%d operators, %d of %d accepted, %d operators with both verdicts", len(Operators), all.accepted, all.made,
		mixed)
	require.Greater(t, all.accepted, all.made/10)
	require.Less(t, all.accepted, all.made/2)
	require.Greater(t, mixed, len(Operators)/3)
}

func BenchmarkMutant(b *testing.B) {
	Mutant(0) // reads the committed programs
	for i := 0; b.Loop(); i++ {
		Mutant(uint64(i))
	}
}

// Operators on passes of several tokens leave programs of one token alone, and each of them makes a right program of
// several sequences, or of several rows, one that validate rejects.
func TestTokenOperators(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, op := range tokenOperators {
		one := Native(1)
		require.False(t, op.Apply(rand.New(rand.NewPCG(1, 1)), &one), op.Name)
		made, rejected := 0, 0
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, 5))
			c := Case{Name: op.Name, Program: drawn(r, "tokens", true)}
			require.NoError(t, validate.Program(c.Program).Diags.Err(), "seed %d\n%s", seed, ir.Print(c.Program))
			if !op.Apply(r, &c) {
				continue
			}
			made++
			if !validate.Program(c.Program).OK {
				rejected++
			}
		}
		t.Logf("%-28s changes %2d of 60 programs, %2d are rejected", op.Name, made, rejected)
		require.Greater(t, made, 5, op.Name)
		require.NotZero(t, rejected, op.Name)
	}
}
