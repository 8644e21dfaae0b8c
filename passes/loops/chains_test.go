package loops

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/passes/rewrite"
	"amkc/validate"
)

// A chain is a small program whose calls hand a vector of 8 on: t0 to t1, t1 to t2 and so on.
type chain struct {
	calls     int
	body      string // of call K: reads tK, writes tL
	dist      string
	bodies    []string // instead, one for each call
	fromInput bool     // t0 is the caller's, and not the result of a stage
	toOutput  bool     // the last vector is the caller's, and not read by a stage
	live      []bool   // the caller wants the result of a call that is not the last
}

// chainBodies are kernels: matrices in tiles on one SM, directly and through a temporary; with a second reader of the
// operand; slices on SMs of their own; sums in place.
var chainBodies = map[string]string{
	"tiles":     "tL[a:b] = GEMV_TILE(tK[0:8], wK[a:b,0:8])",
	"temporary": "%t = GEMV_TILE(tK[0:8], wK[a:b,0:8])\n  tL[a:b] = COPY(%t)",
	"two reads": "%t = GEMV_TILE(tK[0:8], wK[a:b,0:8])\n  tL[a:b] = ADD(tK[a:b], %t)",
	"slices":    "%t = SOFTMAX(tK[a:b])\n  tL[a:b] = COPY(%t)",
	"pointwise": "tL[a:b] = ADD(tK[a:b], vK[a:b])",
}

var chainDists = map[string][]string{
	"tiles":     {"explicit\n  task sm=0 a=0 b=8", "explicit\n  task sm=1 a=0 b=4\n  task sm=1 a=4 b=8"},
	"temporary": {"explicit\n  task sm=1 a=0 b=8", "explicit\n  task sm=0 a=0 b=2\n  task sm=0 a=2 b=8"},
	"two reads": {"explicit\n  task sm=0 a=0 b=8", "explicit\n  task sm=1 a=0 b=4\n  task sm=1 a=4 b=8"},
	"slices":    {"spread extent=8 grain=2 sms=2 rot=0 step=0", "explicit\n  task sm=0 a=0 b=8"},
	"pointwise": {"spread extent=8 grain=4 sms=2 rot=1 step=0", "explicit\n  task sm=1 a=0 b=8"},
}

func (c *chain) text() string {
	var buffers, stages strings.Builder
	stage := func(name, body string) {
		fmt.Fprintf(&stages, "stage %s %s\n  %s\n  signal step\n", name, c.dist, body)
	}
	kind := func(k int) string {
		switch {
		case k == 0 && c.fromInput:
			return "IO_INPUT F32 [8] HBM"
		case k == c.calls && c.toOutput, k > 0 && k < c.calls && c.live[k]:
			return "IO_OUTPUT F32 [8] HBM"
		}
		return "ACTIVATION F32 [8] GLOBAL_SCRATCH"
	}
	for k := range c.calls + 1 {
		fmt.Fprintf(&buffers, "buffer t%d %s rowmajor\n", k, kind(k))
	}
	if !c.fromInput {
		buffers.WriteString("buffer given IO_INPUT F32 [8] HBM rowmajor\n")
		stage("begin", "t0[a:b] = MUL(given[a:b]) scale=0.5")
	}
	for k := range c.calls {
		fmt.Fprintf(&buffers, "buffer w%d WEIGHT F32 [8,8] HBM rowmajor from rows(calls.%d.w)\nbuffer v%d WEIGHT "+
			"F32 [8] HBM rowmajor from rows(calls.%d.v)\n", k, k, k, k)
		body := c.body
		if c.bodies != nil {
			body = c.bodies[k]
		}
		stage(fmt.Sprintf("call%d", k), strings.NewReplacer("tK", fmt.Sprintf("t%d", k), "tL", fmt.Sprintf("t%d", k+1),
			"wK", fmt.Sprintf("w%d", k), "vK", fmt.Sprintf("v%d", k)).Replace(body))
	}
	if !c.toOutput {
		buffers.WriteString("buffer result IO_OUTPUT F32 [8] HBM rowmajor\n")
		stage("end", fmt.Sprintf("result[a:b] = GELU(t%d[a:b])", c.calls))
	}
	return "amk 2.0\nbuffer token IO_INPUT I32 [1] HBM rowmajor\nbuffer next IO_OUTPUT I32 [1] HBM rowmajor\n" +
		buffers.String() +
		"variant all pos 0..0\ncounter step counter gpu\n" + stages.String() +
		"stage emit explicit\n  task sm=0 a=0 b=1\n  next[0] = COPY(token[0])\n  signal step\n"
}

func (c *chain) program(t testing.TB) *ir.Program {
	p, err := ir.Parse([]byte(c.text()), "chain")
	require.NoError(t, err, c.text())
	rewrite.Prune(p)
	require.NoError(t, ir.Check(p).Err(), c.text())
	return p
}

// Chains of all kinds become loops that are proved, that unroll to what they were, and that compute the same bits.
func TestChainsAreCarriedExactly(t *testing.T) {
	seen := map[string]int{}
	for name, body := range chainBodies {
		for _, dist := range chainDists[name] {
			for seed := range uint64(modeltest.Samples() / 2) {
				rng := rand.New(rand.NewPCG(seed, 11))
				c := &chain{calls: 2 + rng.IntN(4), body: body, dist: dist, fromInput: rng.IntN(2) == 0,
					toOutput: rng.IntN(2) == 0}
				alive := rng.IntN(3)
				for range c.calls {
					c.live = append(c.live, alive == 1 || alive == 2 && rng.IntN(2) == 0)
				}
				flat, p := c.program(t), c.program(t)
				rollAll(t, p)
				require.NoError(t, ir.Check(p).Err(), "%s", ir.Print(p))
				require.Len(t, outline(&p.Variants[0]), 1, "%s\n%s", ir.Print(flat), ir.Print(p))
				for _, p := range []*ir.Program{flat, p} {
					report := validate.Program(p)
					require.True(t, report.OK, "%v\n%s", report.Diags, ir.Print(p))
				}
				requireUnrolls(t, flat, p)
				require.Equal(t, outputs(t, flat), outputs(t, p), "%s", ir.Print(p))
				how := name + " in place"
				for i := range p.Buffers {
					if b := &p.Buffers[i]; carried(b.Name) {
						how = fmt.Sprint(name, " ", len(b.Pages), " pages")
					}
				}
				seen[how]++
			}
		}
	}
	for _, kind := range []string{"tiles 2 pages", "temporary 1 pages", "temporary 2 pages", "two reads 2 pages",
		"slices 1 pages", "pointwise 2 pages", "pointwise in place"} {
		require.Positive(t, seen[kind], "%s: %v", kind, seen)
	}
	for _, never := range []string{"tiles 1 pages", "two reads 1 pages", "slices 2 pages", "pointwise 1 pages",
		"tiles in place", "slices in place"} {
		require.Zero(t, seen[never], "%s of %v", never, seen)
	}
}

// A chain may go through several loops, of calls that are alike, and through calls that are in none.
func TestChainsThroughSeveralLoops(t *testing.T) {
	kinds := []string{chainBodies["tiles"], chainBodies["temporary"], chainBodies["two reads"],
		chainBodies["pointwise"]}
	loops := map[int]int{}
	for seed := range uint64(5 * modeltest.Samples()) {
		rng := rand.New(rand.NewPCG(seed, 23))
		c := &chain{dist: "explicit\n  task sm=0 a=0 b=8", fromInput: rng.IntN(2) == 0, toOutput: rng.IntN(2) == 0}
		if rng.IntN(2) == 0 {
			c.dist = "explicit\n  task sm=0 a=0 b=4\n  task sm=0 a=4 b=8"
		}
		for len(c.bodies) < 5 {
			kind := kinds[rng.IntN(len(kinds))]
			for range 1 + rng.IntN(4) {
				c.bodies = append(c.bodies, kind)
			}
		}
		c.calls = len(c.bodies)
		c.live = make([]bool, c.calls)
		for k := range c.live {
			c.live[k] = rng.IntN(6) == 0
		}
		flat, p := c.program(t), c.program(t)
		rollAll(t, p)
		require.NoError(t, ir.Check(p).Err(), "%s\n%s", ir.Print(flat), ir.Print(p))
		for _, p := range []*ir.Program{flat, p} {
			report := validate.Program(p)
			require.True(t, report.OK, "%v\n%s", report.Diags, ir.Print(p))
		}
		requireUnrolls(t, flat, p)
		require.Equal(t, outputs(t, flat), outputs(t, p), "%s", ir.Print(p))
		loops[len(outline(&p.Variants[0]))]++
	}
	require.Positive(t, loops[1], "%v", loops)
	require.Positive(t, loops[2], "%v", loops)
}
