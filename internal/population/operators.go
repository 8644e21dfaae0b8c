package population

import (
	"math/rand/v2"
	"slices"
)

// An Operator makes one change to a program, of a kind that a schedule can get wrong. Not every result is unsafe: a
// wait may be one too many, a task at home on another SM as well. That is for the judges to say.
type Operator struct {
	Name string
	Rule string // which rule it is meant to break
	// Apply changes the case, which has an unrolled or a native program, and leaves what it was made of as it was. It
	// reports false, and the case as it was, if there is nothing to change.
	Apply func(r *rand.Rand, c *Case) bool
}

// What a validator must prove, and operators break.
const (
	ruleDeadlock   = "deadlock freedom"
	ruleRace       = "race freedom"
	ruleProvenance = "provenance"
	ruleMemory     = "memory"
	ruleStructure  = "structure"
	ruleEdges      = "only the edges of the memory model"
	ruleStep       = "what one step leaves to the next"
	ruleOperands   = "what an opcode takes"
)

// Operators are all of them, by name in a fixed order: a seed means the same operator as long as the list stays.
var Operators = slices.Concat(waitOperators, counterOperators, queueOperators, viewOperators, targetOperators,
	pageOperators,
	bufferOperators, opOperators, operandOperators, cacheOperators, structureOperators, loopOperators, carryOperators,
	tokenOperators)

func operator(name, rule string, change func(*draft) bool) Operator {
	return Operator{name, rule, func(r *rand.Rand, c *Case) bool {
		if c.Flat == nil && c.Program == nil {
			return false
		}
		d := newDraft(r, c)
		if !change(d) {
			return false
		}
		d.into(c)
		return true
	}}
}
