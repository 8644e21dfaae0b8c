package loops

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/validate"
)

// kernels makes a flat program of calls of one stage, all on one SM. The letters of buffers are theirs; i is the
// caller's.
func kernels(t *testing.T, calls ...string) *ir.Program {
	var b strings.Builder
	b.WriteString("amk 2.0\nbuffer i IO_INPUT F32 [8] HBM rowmajor\nbuffer token IO_INPUT I32 [1] HBM " +
		"rowmajor\nbuffer next IO_OUTPUT I32 [1] HBM rowmajor\n")
	text := strings.Join(calls, " ")
	for _, name := range strings.Split("abcdefgh", "") {
		fmt.Fprintf(&b, "buffer %s ACTIVATION F32 [8] GLOBAL_SCRATCH rowmajor\n", name)
		if strings.Contains(text, "out"+name) {
			fmt.Fprintf(&b, "buffer out%s IO_OUTPUT F32 [8] HBM rowmajor\n", name)
		}
	}
	b.WriteString("variant all pos 0..0\ncounter step counter gpu\n")
	for k, call := range calls {
		fmt.Fprintf(&b, "stage call%d explicit\n  task sm=0 a=0 b=8\n  %s\n  signal step\n", k,
			strings.ReplaceAll(call, "; ", "\n  "))
	}
	b.WriteString("stage emit explicit\n  task sm=0 a=0 b=1\n  next[0] = COPY(token[0])\n  signal step\n")
	p, err := ir.Parse([]byte(b.String()), "kernels")
	require.NoError(t, err)
	require.NoError(t, ir.Check(p).Err())
	return p
}

// each fills in the buffers of calls: their letters for $0, $1 and so on.
func each(body string, calls ...string) []string {
	out := make([]string, len(calls))
	for k, c := range calls {
		out[k] = body
		for n, letter := range c {
			out[k] = strings.ReplaceAll(out[k], fmt.Sprint("$", n), string(letter))
		}
	}
	return out
}

// A contradictory usage is the top of the lattice: the calls are not a match, and stay what they are.
func TestContradictoryUsageIsNoMatch(t *testing.T) {
	for name, c := range map[string]struct {
		calls []string
		why   string
	}{
		"const and out": {each("d[a:b] = SOFTMAX($0[a:b])", "a", "b", "c"), "d is written by every call"},
		"const that another writes": {each("$2[a:b] = SOFTMAX($0[a:b])", "axb", "axa", "axc"),
			"a is the argument of every call, and one writes it under another name"},
		"read, and written by all": {each("a[a:b] = MUL(i[a:b], $0[a:b])", "b", "a"), "a is written by every call"},
		"two readers of one value": {each("$2[a:b] = MUL($0[a:b], $1[a:b])", "bac", "cbd", "dce"),
			"c is passed on, but not to one reader in whole"},
		"written in part": {each("$2[0:4] = COPY($0[0:4]); %t = SOFTMAX($0[a:b])", "axb", "bxc", "cxd"),
			"b is passed on, but not to one reader in whole"},
		"changed where it is read": {each("%t = SOFTMAX($0[a:b]); $2[a:b] = COPY(%t); $0[a:b] = COPY(%t)", "axb",
			"bxc", "cxd"), "a is handed from call to call and changed where it is read"},
		"read by the call itself": {each("%t = SOFTMAX($0[a:b]); $2[a:b] = COPY(%t); %u = GELU($2[a:b])", "axb",
			"bxc", "cxd"), "b is passed on, but not to one reader in whole"},
		"passed on to two readers": {each("%t = SOFTMAX($0[a:b]); $2[a:b] = MUL(%t, $1[a:b])", "afb", "bbc", "ccd"),
			"b is passed on, but not to one reader in whole"},
	} {
		t.Run(name, func(t *testing.T) {
			p := kernels(t, c.calls...)
			r, err := newRoller(p)
			require.NoError(t, err)
			run := newRun(r.variants[0].stages, window{0, 1, len(c.calls)})
			require.Equal(t, c.why, run.analyse(newContext(p, r.variants[0].stages)))

			flat := copyOf(t, p)
			rollAll(t, p)
			for _, n := range p.Variants[0].Body {
				if l, ok := n.(*ir.Loop); ok {
					require.Less(t, l.Count, len(c.calls), "a part of the calls may match on its own")
				}
			}
			requireUnrolls(t, flat, p)
		})
	}
}

// The usage of what does match, in the order in which the body names it.
func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		calls []string
		want  []string
	}{
		"independent": {each("$2[a:b] = SOFTMAX($0[a:b])", "axd", "bxe", "cxf"), []string{"Out", "In"}},
		"private": {each("$1[a:b] = SOFTMAX($0[a:b]); $2[a:b] = GELU($1[a:b])", "adf", "beg", "cih"),
			[]string{"In Out", "In", "Out"}},
		"chain": {each("$2[a:b] = SOFTMAX($0[a:b])", "axb", "bxc", "cxd"), []string{"Local Out", "In Local"}},
		"chain, one more": {each("$2[a:b] = MUL($0[a:b], i[a:b])", "axb", "bxc", "cxd"),
			[]string{"Local Out", "In Local", "Const In"}},
		"read twice": {each("%t = SOFTMAX($0[a:b]); $2[a:b] = MUL($0[a:b], %t)", "axb", "bxc", "cxd"),
			[]string{"In Local", "Local Out"}},
		"in halves": {each("%t = SOFTMAX($0[a:b]); $2[0:4] = COPY($0[0:4]); $2[4:8] = COPY($0[4:8])", "axb", "bxc",
			"cxd"), []string{"In Local", "Local Out"}},
		"by turns": {each("$2[a:b] = MUL($0[a:b], $1[a:b])", "abc", "cde", "feg"), []string{"Out", "In", "In"}},
	} {
		p := kernels(t, c.calls...)
		r, err := newRoller(p)
		require.NoError(t, err)
		run := newRun(r.variants[0].stages, window{0, 1, len(c.calls)})
		require.Empty(t, run.analyse(newContext(p, r.variants[0].stages)), name)
		var got []string
		for _, param := range run.params {
			got = append(got, param.usage.String())
		}
		require.Equal(t, c.want, got, name)
	}
	// Live: what is read later, but not the end of a chain.
	calls := each("$2[a:b] = SOFTMAX($0[a:b])", "axb", "bxc", "cxd")
	for after, want := range map[string]string{"h[a:b] = GELU(d[a:b])": "Local Out",
		"h[a:b] = GELU(c[a:b])": "Local Live Out"} {
		p := kernels(t, append(calls, after)...)
		r, err := newRoller(p)
		require.NoError(t, err)
		run := newRun(r.variants[0].stages, window{0, 1, 3})
		require.Empty(t, run.analyse(newContext(p, r.variants[0].stages)))
		require.Equal(t, want, run.params[0].usage.String())
	}
}

// A name that a group gives a buffer is that buffer: a chain through it is seen.
func TestRollingLooksThroughGroups(t *testing.T) {
	plain := kernels(t, each("%t = SOFTMAX($0[a:b]); $2[a:b] = COPY(%t)", "axb", "bxc", "cxd")...)
	p := copyOf(t, plain)
	p.Groups = []ir.Group{{Name: "other{i}", First: 3, Members: []string{"b", "c"}}}
	st := p.Variants[0].Body[1].(*ir.Stage)
	require.Equal(t, "b", st.Ops[0].In[0].Buf)
	st.Ops[0].In[0].Buf, st.Ops[1].Out[0].Buf = "other03", "other04"
	require.NoError(t, ir.Check(p).Err())
	rollAll(t, p)
	rollAll(t, plain)
	require.Equal(t, plain.Variants, p.Variants)
}

// Whatever buffers the calls of random kernels name, what comes out is proved if what went in is, and computes the
// same.
func TestRandomKernelsAreRolledExactly(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	bodies := []string{"$2[a:b] = MUL($0[a:b], $1[a:b])", "%t = SOFTMAX($0[a:b]); $2[a:b] = ADD($1[a:b], %t)",
		"%t = GELU($0[a:b]); $2[a:b] = COPY(%t); $1[a:b] = COPY(%t)",
		"$2[0:4] = COPY($0[4:8]); $2[4:8] = COPY($1[0:4])", "$2[a:b] = ADD($0[a:b], i[a:b])"}
	rolled, carries := 0, 0
	for seed := range uint64(15 * modeltest.Samples()) {
		rng := rand.New(rand.NewPCG(seed, 29))
		letters := "abcdefgh"[:3+rng.IntN(6)]
		var calls []string
		for _, letter := range letters {
			calls = append(calls, fmt.Sprintf("%c[a:b] = MUL(i[a:b]) scale=%d.5", letter, 1+letter-'a'))
		}
		for range 1 + rng.IntN(3) {
			body, first := bodies[rng.IntN(len(bodies))], rng.IntN(len(letters))
			steps := []int{rng.IntN(3), rng.IntN(3), rng.IntN(3)}
			at := []int{first, first + rng.IntN(3), first + rng.IntN(3)}
			for range 1 + rng.IntN(5) {
				args := ""
				for n := range at {
					args += letters[at[n]%len(letters) : at[n]%len(letters)+1]
					at[n] += steps[n]
				}
				calls = append(calls, each(body, args)...)
			}
		}
		for _, letter := range letters {
			if rng.IntN(2) == 0 {
				calls = append(calls, fmt.Sprintf("out%c[a:b] = COPY(%c[a:b])", letter, letter))
			}
		}
		flat := kernels(t, calls...)
		if !validate.Program(flat).OK {
			continue
		}
		p := copyOf(t, flat)
		rollAll(t, p)
		require.NoError(t, ir.Check(p).Err(), "%s\n%s", ir.Print(flat), ir.Print(p))
		report := validate.Program(p)
		require.True(t, report.OK, "%v\n%s\n%s", report.Diags, ir.Print(flat), ir.Print(p))
		requireUnrolls(t, flat, p)
		require.Equal(t, outputs(t, flat), outputs(t, p), "%s\n%s", ir.Print(flat), ir.Print(p))
		rolled += len(outline(&p.Variants[0]))
		carries += len(p.Pages)
	}
	require.Greater(t, rolled, 2*modeltest.Samples())
	require.Greater(t, carries, modeltest.Samples()/2)
}
