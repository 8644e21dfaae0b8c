package validate_test

import (
	"amkc/ir"
	"amkc/simulate"
	"amkc/validate"
)

// Counters, deadlock, and what ends a step.

const (
	makes = "a[0:2] = COPY(in[0:2])"
	takes = "%t = COPY(a[0:2])"
)

var counterRemovals = []removal{
	{validate.CodeRealisation, "its realisation is undecided", simulate.Malformed, one,
		func(m mutant) { m.Counters[0].How = ir.Undecided }, flatly, nil},
	{validate.CodeRealisation, "is flagged and starts at 1", simulate.Malformed, one,
		func(m mutant) { m.Counters[2].Init = 1 }, flatly, nil},
	{validate.CodeScope, "want gpu, sm or system", simulate.Malformed, one, func(m mutant) { m.Counters[0].Scope = 9 },
		flatly, nil},
	{validate.CodeScope, "from SM 1, others from SM 0", simulate.Stuck,
		stage("t", 0, makes, "signal own") + stage("u", 1, "wait own >= 1", takes) + emit(0), nil, flatly, nil},
	{validate.CodeUnreachable, "the threshold is 1", simulate.Stuck,
		stage("t", 0, makes, "signal c") + stage("u", 1, "wait c >= 2", takes) + emit(0), nil, flatly, nil},
	{validate.CodePartialWait, "the threshold is 2", simulate.Race,
		stage("t", 0, makes, "signal c") + stage("v", 1, "b[0:2] = COPY(in[0:2])", "signal c") +
			stage("u", 1, "wait c >= 1", takes) + emit(0), nil, flatly, nil},
	{validate.CodePartialWait, "init 1 + 1 producers", simulate.Race,
		stage("t", 0, makes, "signal c") + stage("u", 1, "wait c >= 1", takes) + emit(0),
		func(m mutant) { m.Counters[0].Init = 1 }, flatly, nil},
	{validate.CodeNoProducer, "which no task signals", relied,
		stage("u", 1, "wait c >= 1", "%t = COPY(in[0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeDeadlock, "it needs itself, over 3 edges", simulate.Stuck,
		emit(1) + stage("t", 0, "wait c >= 1", "signal d") + stage("t2", 0, "signal e") +
			stage("u", 1, "wait e >= 1", "signal c"), func(m mutant) { m.Counters[m.counter("e")].How = ir.ByCounter },
		flatly, nil},
	{validate.CodeDeadlock, "it needs itself, over 1 edges", simulate.Stuck,
		stage("t", 0, "wait c >= 1", makes, "signal c") + emit(1), nil, flatly, nil},

	{validate.CodeStepJoin, "no task signals a counter of role step", simulate.Race,
		stage("t", 0, makes, "signal c") + stage("u", 1, "wait c >= 1", takes, "next[0] = COPY(token[0])"), nil,
		stepwise, nil},
	{validate.CodeStepJoin, "is flagged, and polled words order nothing", simulate.Race,
		stage("t", 0, makes, "signal c") + stage("u", 1, "wait c >= 1", takes, "signal step") + emit(0), nil, stepwise,
		flaggedStep},
	{validate.CodeStepJoin, "has scope sm and is seen inside one SM", simulate.Race,
		stage("t", 1, makes, "signal c") + stage("u", 0, "wait c >= 1", takes) + emit(0), nil, stepwise, scopedStep},
	{validate.CodeStepJoin, "so the step can end while it runs", simulate.Race,
		stage("t", 0, makes, "signal c") + stage("u", 1, "wait c >= 1", takes) + emit(0), nil, stepwise, nil},
}

func flaggedStep(p *ir.Program) { editStep(p, func(c *ir.Counter) { c.How = ir.Flagged }) }

func scopedStep(p *ir.Program) { editStep(p, func(c *ir.Counter) { c.Scope = ir.ScopeSM }) }

func editStep(p *ir.Program, edit func(c *ir.Counter)) {
	for i := range p.Variants[0].Counters {
		if c := &p.Variants[0].Counters[i]; c.Name == "step" {
			edit(c)
		}
	}
}
