package passes

import (
	"amkc/ir/diag"
	"amkc/passes/loops"
)

// Loop is the pass that rolls runs of equal stages into loops, with package loops.
var Loop = Pass{
	Name:  "loop",
	Doc:   "roll runs of equal stages into loops; buffers that iterations use in turn become families and groups",
	After: []string{"assign", "barrier"},
	Run:   runLoop,
}

func runLoop(s *State) error {
	report, err := loops.Roll(s.Program)
	if err != nil {
		return diag.Errorf(codeOrder, "pass loop", "%v", err)
	}
	s.Loops = report
	return nil
}
