package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/simulate"
	"amkc/validate"
)

// A removal shows what a rule is for: a program that validate rejects for that rule alone, accepts when the rule is
// taken away, and that goes wrong. The exception is a rule that later ones rely on, of which the index in range is
// the typical case: without it the proof itself breaks down.
type removal struct {
	code *diag.Code
	says string        // part of the message
	kind simulate.Kind // of what goes wrong; relied: later rules crash
	text string        // added to the declarations of small
	edit func(m mutant)
	as   judged
	prog func(p *ir.Program)
}

const relied simulate.Kind = "relied on"

// judged says in which form a program is judged.
type judged int

const (
	flatly   judged = iota // unrolled, one step
	stepwise               // native, one step after another
)

// small declares what the programs of removals use. They run on two SMs, at positions 0 to 3.
const small = `amk 2.0
target two arch=sm_90a sms=2 smem_optin=64 l2_bytes=1 hbm_bytes=1 hbm_gbs=1 bulk_copy=false async_copy=false ` +
	`mma16816=false
page p GLOBAL_SCRATCH word32 bytes=8
page plain GLOBAL_SCRATCH rowmajor bytes=16
page chip SMEM rowmajor bytes=16
buffer token IO_INPUT I32 [1] HBM rowmajor
buffer in IO_INPUT F16 [4] HBM rowmajor
buffer w WEIGHT F16 [2,2] HBM rowmajor
buffer v WEIGHT F16 [8] HBM rowmajor
buffer q WEIGHT I8 [2,2] HBM rowmajor
buffer wk WEIGHT F16 [4,2,2] HBM rowmajor
buffer wk4 WEIGHT F16 [2,4,1,2] HBM rowmajor
buffer table WEIGHT F16 [4,4] HBM rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
buffer index ACTIVATION I32 [4] HBM rowmajor
buffer a ACTIVATION F16 [4] HBM rowmajor
buffer b ACTIVATION F16 [4] HBM rowmajor
buffer c ACTIVATION F16 [8] HBM rowmajor
buffer x ACTIVATION F16 [2] GLOBAL_SCRATCH word32 page p
buffer y ACTIVATION F16 [2] GLOBAL_SCRATCH word32 page p
buffer z ACTIVATION F16 [2] GLOBAL_SCRATCH word32
buffer f ACTIVATION F32 [4] GLOBAL_SCRATCH rowmajor page plain
buffer g ACTIVATION F32 [4] GLOBAL_SCRATCH rowmajor page plain
buffer s ACTIVATION F16 [4] SMEM rowmajor
buffer t ACTIVATION F16 [2] SMEM rowmajor page chip
buffer r ACTIVATION F16 [2] REGISTER rowmajor
buffer wide ACTIVATION F32 [32] SMEM rowmajor
buffer kv KV_CACHE F16 [1,4,2,2] HBM rowmajor
variant only pos 0..3
counter c counter gpu
counter d counter gpu
counter e flagged gpu
counter f flagged gpu
counter g flagged gpu
counter own counter sm
counter step counter gpu
`

// stage is one of a single task, named NAME.s00N.
func stage(name string, sm int, lines ...string) string {
	return fmt.Sprintf("stage %s explicit\n task sm=%d a=0 b=1\n %s\n", name, sm, strings.Join(lines, "\n "))
}

// emit ends a step.
func emit(sm int, lines ...string) string {
	return stage("emit", sm, append(lines, "next[0] = COPY(token[0])", "signal step")...)
}

// subject is a program in the form in which it is judged.
type subject struct {
	flat    *ir.Flat
	prog    *ir.Program
	backend validate.Backend
}

func (r *removal) subject(t *testing.T) subject {
	p := parse(t, small+r.text)
	if r.prog != nil {
		r.prog(p)
	}
	if r.as == stepwise {
		return subject{prog: p, backend: validate.Reference}
	}
	f := flat(t, p, 0)
	if r.edit != nil {
		r.edit(mutant{f, t})
	}
	return subject{flat: f, backend: validate.Reference}
}

func (s subject) proveWithout(codes ...*diag.Code) (rep validate.Report, crash any) {
	if s.prog != nil {
		return validate.ProgramWithout(s.backend, s.prog, codes...), nil
	}
	defer func() { crash = recover() }()
	return validate.FlatWithout(s.backend, s.flat, codes...), nil
}

func (s subject) judge() simulate.Verdict {
	effort := simulate.Effort{States: 5000, Orders: 50, ExploreWork: 1 << 20, SampleWork: 1 << 20, Positions: 4,
		Seed: 1}
	if s.prog != nil {
		return simulate.Program(s.prog, simulate.NewFootprints(), effort)
	}
	return simulate.Flat(s.flat, s.flat.Target, simulate.NewFootprints(), effort)
}

// Every rule is needed: without it validate accepts what an oracle, which shares nothing with it but package ir, sees
// go wrong.
func TestEveryRuleIsNeeded(t *testing.T) {
	for _, r := range removals() {
		t.Run(r.code.ID+" "+r.says, func(t *testing.T) {
			s := r.subject(t)
			rep, crash := s.proveWithout()
			require.Nil(t, crash)
			requireCode(t, rep, r.code, r.says)
			for _, d := range rep.Diags.Errors() {
				require.Equal(t, r.code.ID, d.Code, "no other rule would reject it: %v", d)
			}
			rep, crash = s.proveWithout(r.code)
			if r.kind == relied {
				require.NotNil(t, crash, "later rules do without it: %v", rep.Diags.Err())
				return
			}
			require.Nil(t, crash)
			require.NoError(t, rep.Diags.Err(), "without the rule it is accepted")
			v := s.judge()
			require.True(t, v.Unsafe(), "the oracle finds nothing wrong")
			require.Equal(t, r.kind, v.Hazard.Kind, v.Hazard)
		})
	}
}

func removals() []removal {
	var all []removal
	for _, list := range [][]removal{structureRemovals, counterRemovals, memoryRemovals, orderRemovals, shapeRemovals,
		budgetRemovals, indexRemovals} {
		all = append(all, list...)
	}
	return all
}
