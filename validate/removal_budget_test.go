package validate_test

import (
	"strconv"

	"amkc/ir"
	"amkc/simulate"
	"amkc/validate"
)

// Budgets: what is wrong lies beyond what they let a proof look at. What comes after a budget is not looked at
// either, so the task that writes the output comes first.
var budgetRemovals = []removal{
	// All positions but the first and the last 300,000 are outside.
	{validate.CodeBudget, "the proof needs more than 262144 evaluations of a bound", simulate.Refused,
		emit(1) + stage("t", 0,
			"%t = ATTENTION_TILE(in[0:2], wk[0:min(max(0,pos-300000),max(0,33000000-pos)),0:1,0:2], "+
				"wk[0:min(max(0,pos-300000),max(0,33000000-pos)),0:1,0:2]) head_dim=2 n_heads=1 n_kv_heads=1 "+
				"scale=1.0"),
		func(m mutant) { m.Hi = 1<<25 - 1 }, flatly, nil},
	{validate.CodeBudget, "393217 tasks", simulate.Malformed, emit(0), func(m mutant) {
		for len(m.Tasks) <= ir.MaxTasks {
			m.Tasks = append(m.Tasks, ir.Task{Name: strconv.Itoa(len(m.Tasks) / 2), SM: -1,
				Signal: -1}) // every name twice
		}
	}, flatly, nil},
}
