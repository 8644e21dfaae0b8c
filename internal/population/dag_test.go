package population

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

func TestDAGs(t *testing.T) {
	names := map[string]bool{}
	for c := range DAGs() {
		distinct(t, names, c)
		require.Equal(t, "dag", c.Class)
		require.NotNil(t, c.Flat)
		require.Nil(t, c.Profile)
		require.Nil(t, c.Program)
		require.GreaterOrEqual(t, len(c.Flat.Tasks), 3)
		require.LessOrEqual(t, len(c.Flat.Tasks), 40)
	}
	require.Len(t, names, 4000)
}

func TestDAGIsDeterministic(t *testing.T) {
	for seed := range uint64(draws(200)) {
		require.Equal(t, DAG(seed), DAG(seed))
	}
	require.NotEqual(t, DAG(1).Flat, DAG(2).Flat)
}

// structural are the codes of what is wrong with a program whatever the order of its tasks.
var structural = map[string]bool{
	ir.CodeOperands.ID: true, ir.CodeShape.ID: true, ir.CodePage.ID: true, validate.CodeStructure.ID: true,
	validate.CodeBounds.ID: true,
	validate.CodeShapes.ID: true, validate.CodeDType.ID: true, validate.CodeLayout.ID: true,
	validate.CodeReadOnly.ID: true,
	validate.CodeSymbolic.ID: true, validate.CodeAlias.ID: true,
}

// Order is what decides: few DAGs are malformed, neither verdict is rare, and every hazard of order comes up.
func TestDAGsAreMostlyWellFormed(t *testing.T) {
	const n = 4000
	accepted, malformed, codes := 0, 0, map[string]int{}
	for c := range DAGs() {
		rep := validate.Flat(c.Flat)
		switch {
		case rep.OK:
			accepted++
		case structural[rep.Diags.Errors()[0].Code]:
			malformed++
		default:
			codes[rep.Diags.Errors()[0].Code]++
		}
	}
	t.Logf("%d accepted, %d malformed, others %v", accepted, malformed, codes)
	require.Less(t, malformed, n/20)
	require.Greater(t, accepted, n*30/100)
	require.Less(t, accepted, n*55/100)
	for _, code := range []string{
		validate.CodePartialWait.ID, validate.CodeUnreachable.ID, validate.CodeNoProducer.ID, validate.CodeDeadlock.ID,
		validate.CodeReadRace.ID, validate.CodeWriteRace.ID, validate.CodeOverwriteRace.ID, validate.CodeUndefined.ID,
	} {
		require.Greater(t, codes[code], 10, code)
	}
}

// What is planned to be in the programs is there, in those that are accepted too: validate must not be over-strict
// with it.
func TestAcceptedDAGsVary(t *testing.T) {
	seen := map[string]int{}
	note := func(what string, is bool) {
		if is {
			seen[what]++
		}
	}
	for c := range DAGs() {
		if !validate.Flat(c.Flat).OK {
			continue
		}
		f := c.Flat
		note("several positions", f.Lo != f.Hi)
		note("more than 12 tasks", len(f.Tasks) > 12)
		producers, onSM, onNone := make([]int, len(f.Counters)), false, false
		rows := map[[2]int]bool{}
		for i := range f.Tasks {
			task := &f.Tasks[i]
			onSM, onNone = onSM || task.SM >= 0, onNone || task.SM < 0
			if task.Signal >= 0 {
				producers[task.Signal]++
			}
			for k := range task.Ops {
				op := &task.Ops[k]
				note(op.Code.String(), true)
				if op.Code == ir.KVAppend {
					rows[[2]int{op.OutBuf[0], op.Out[0].Dims[0].Lo.At(f.Lo)}] = true
				}
				note("in place", len(op.OutBuf) > 0 && len(op.InBuf) > 0 && op.OutBuf[0] == op.InBuf[0] &&
					op.OutBuf[0] >= 0)
			}
		}
		note("several rows", len(rows) > 2)
		note("SMs and none", onSM && onNone)
		for i := range f.Tasks {
			for _, w := range f.Tasks[i].Waits {
				note("join", producers[w.Counter] > 1)
				note("initial value", f.Counters[w.Counter].Init > 0)
			}
		}
		on := map[string]int{}
		for i := range f.Buffers {
			for _, page := range f.Buffers[i].Pages {
				on[page]++
				note("shared page", on[page] > 1)
			}
			note("shared memory", f.Buffers[i].Space == ir.SMEM)
		}
	}
	for _, what := range []string{
		"several positions", "more than 12 tasks", "several rows", "SMs and none", "join", "initial value",
		"shared page", "shared memory", "in place",
		"NOP", "COPY", "ADD", "MUL", "GEMV_TILE", "RMSNORM", "SILU_MUL", "KV_APPEND", "ATTENTION_TILE", "SAMPLE_ARGMAX",
	} {
		require.Greater(t, seen[what], 20, what)
	}
}

func BenchmarkDAG(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		DAG(uint64(i))
	}
}
