package passes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/passes/rewrite"
)

// balanced searches for the rotations of a model of n layers on the given number of SMs, and returns the balancer and
// how many tasks the stages have.
func balanced(t *testing.T, layers, sms int) (*balancer, int) {
	t.Helper()
	config := strings.Replace(modeltest.TinyConfig, `"num_hidden_layers": 2`, fmt.Sprintf(`"num_hidden_layers": %d`,
		layers), 1)
	s := &State{Source: importers.Source{Name: "tiny", Config: modeltest.OpenConfig(t, config)},
		Target: modeltest.ToyTarget(sms)}
	p := lowered(t, s, "assign").Program
	v := &p.Variants[0]
	tasks := 0
	rewrite.EachStage(v, func(st *ir.Stage, loop *ir.Loop) {
		st.Dist.Rot, st.Dist.Step = 0, 0
		tasks += st.Dist.NumTasks() * len(rewrite.Indices(st, loop))
	})
	b := newBalancer(p, v)
	b.turns(v)
	return &b, tasks
}

// The search for rotations is linear in the tasks, whatever the number of layers and SMs.
func TestBalanceIsLinear(t *testing.T) {
	for _, layers := range []int{2, 8, 32} {
		for _, sms := range []int{300, 600, ir.MaxTargetSMs} {
			b, tasks := balanced(t, layers, sms)
			require.Positive(t, b.work)
			require.LessOrEqual(t, b.work, 4*maxTurns*tasks, "%d layers on %d SMs", layers, sms)
		}
	}
}
