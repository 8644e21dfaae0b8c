package explore

import (
	"context"
	"errors"
	"slices"

	"amkc/compiler/objects"
	"amkc/runtime/progress"
)

// script makes the script of something that was found: its schedule as a list of deviations, as few as still show it
// within the runs and the time there are.
func (e *explorer) script(found *Found, j *Job, o *order, outcome *Outcome) error {
	found.Script = &Script{Format: scriptFormat, Build: e.build, Machine: e.objects.Machine, Job: j.Name,
		Schedule: o.Schedule, Finding: found.Finding}
	key := found.key()
	repeated := func(outcome *Outcome, o *order) bool {
		return slices.ContainsFunc(e.judge(j, o, outcome, false), func(f Finding) bool { return f.key() == key })
	}
	step := progress.Step{Activity: "cutting a schedule down", Total: int64(e.o.Shrink), Unit: "runs"}
	var failed error
	try := func(candidates [][]deviation) []bool {
		fails := make([]bool, len(candidates))
		if failed != nil {
			return fails
		}
		orders := make([]order, len(candidates))
		for i, deviations := range candidates {
			orders[i] = order{Job: j.Name, Schedule: o.Schedule.replayOf(deviations)}
		}
		outcomes, err := e.several(orders)
		failed = err
		for i, outcome := range outcomes {
			fails[i] = outcome != nil && outcome.Problem == "" && repeated(outcome, &orders[i])
		}
		step.Done += int64(len(candidates))
		e.o.Report.Report(step)
		return fails
	}
	deviations := outcome.Deviations
	if found.Choice != nil {
		// What was chosen after it does not matter.
		deviations = slices.DeleteFunc(slices.Clone(deviations), func(d deviation) bool { return d[0] > *found.Choice })
	}
	if o.Schedule.Strategy == Replay && len(deviations) == 0 {
		return nil // there is nothing to take out of the default schedule
	}
	if len(outcome.Deviations) == 0 || !try([][]deviation{deviations})[0] {
		// Of a process that crashed nobody knows the deviations, and its seed repeats it.
		again, err := e.several([]order{*o})
		found.Repeats = err == nil && again[0] != nil && repeated(again[0], o)
		return errors.Join(failed, err)
	}
	found.Repeats = true
	found.Script.Schedule = o.Schedule.replayOf(shrink(deviations, e.o.Shrink, e.o.Workers, try))
	if errors.Is(failed, errTime) || errors.Is(failed, context.Canceled) {
		return nil // what is left is a script all the same
	}
	return failed
}

// several runs orders concurrently and returns their outcomes.
func (e *explorer) several(orders []order) ([]*Outcome, error) {
	outcomes := make([]*Outcome, len(orders))
	err := objects.SideBySide(len(orders), e.o.Workers, func(i int) (err error) {
		outcomes[i], err = e.pool.run(&orders[i])
		return err
	})
	return outcomes, err
}

// repeat runs the schedule of a script. What its results are compared with is run before it.
func (e *explorer) repeat(file string, s *Script) error {
	if err := s.fits(file, e); err != nil {
		return err
	}
	e.repeats = true
	var orders []order
	for _, name := range slices.Compact([]string{e.jobs[0].Name, s.Job}) {
		orders = append(orders, order{Job: name, Schedule: Schedule{Strategy: Replay, Assume: s.Schedule.Assume}})
	}
	if s.Finding.Kind == "difference" {
		if err := e.round(orders, nil); err != nil {
			return err
		}
	}
	return e.round([]order{{Job: s.Job, Schedule: s.Schedule}}, nil)
}
