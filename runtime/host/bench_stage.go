package host

import (
	"errors"
	"fmt"

	"amkc/runtime/driver"
)

// A StageReport is the time of a stage on its own, in all layers together: microseconds per token. Each launch of the
// stage runs in its place among those of the step's other stages, and is followed by an empty launch, whose time is
// subtracted. The time of lm_head includes the end of the step, which is the same launch.
type StageReport struct {
	Stage     string    `json:"stage"`
	Launches  int       `json:"launches"` // a step
	Latency   Quantiles `json:"latency_us"`
	Launching Quantiles `json:"launching_us"` // what as many launches take that do nothing
}

// A timedStage is a stage on its own: of every run of its launches in a step, when it began, when it ended, and when as
// many launches that do nothing had ended too.
type timedStage struct {
	name      string
	launches  int                            // a step
	marks     [timedBatch][][3]*driver.Event // by run
	launching []float64                      // microseconds per token, one a launch
}

// alone makes the time of a stage the one that is measured.
func (t *timedParts) alone(stage string) error {
	if len(t.cuts) == 0 {
		return fmt.Errorf("stage %s cannot be launched on its own: the layers of this model are no single loop", stage)
	}
	c, runs := &t.cuts[0], 0
	t.stage = &timedStage{name: stage}
	for k, p := range c.parts {
		if p.stage == stage {
			t.stage.launches++
			if k == 0 || c.parts[k-1].stage != stage {
				runs++
			}
		}
	}
	if runs == 0 {
		return fmt.Errorf("the step at this position has no stage %s", stage)
	}
	for slot := range t.stage.marks {
		t.stage.marks[slot] = make([][3]*driver.Event, runs*t.steps)
		for i := range t.stage.marks[slot] {
			for j := range t.stage.marks[slot][i] {
				var err error
				if t.stage.marks[slot][i][j], err = t.s.dev.NewEvent(); err != nil {
					return err
				}
			}
		}
	}
	t.timed = []*timedKernel{{per: float64(t.steps), took: t.took,
		queue: func(slot int) error { return t.queueAlone(c, slot) }}}
	return nil
}

// queueAlone puts the steps on the stream, with marks at the runs of the stage.
func (t *timedParts) queueAlone(c *cutting, slot int) error {
	run := 0
	record := func(mark int) error { return t.s.stream.Record(t.stage.marks[slot][run][mark]) }
	return t.queue(c, func(k int, p part, with func(part) []byte) error {
		at := k % len(c.parts)
		is := func(k int) bool { return 0 <= k && k < len(c.parts) && c.parts[k].stage == t.stage.name }
		if is(at) && !is(at-1) {
			if err := record(0); err != nil {
				return err
			}
		}
		if err := t.launch(k, p, with); err != nil || !is(at) || is(at+1) {
			return err
		}
		if err := record(1); err != nil {
			return err
		}
		for first := at; is(first); first-- { // a part without stages
			if err := t.launch(k, part{before: noStage}, with); err != nil {
				return err
			}
		}
		err := record(2)
		run++
		return err
	})
}

// took is the time of the stage in the launch of a slot.
func (t *timedParts) took(slot int) (ms float64, err error) {
	nothing := 0.0
	for _, m := range t.stage.marks[slot] {
		is, err := driver.ElapsedMS(m[0], m[1])
		if err != nil {
			return 0, err
		}
		without, err := driver.ElapsedMS(m[1], m[2])
		if err != nil {
			return 0, err
		}
		ms, nothing = ms+is-without, nothing+without
	}
	t.stage.launching = append(t.stage.launching, nothing*1000/float64(t.steps))
	return ms, nil
}

// stageReport is what was found of the stage, or nil where none was asked for.
func (t *timedParts) stageReport() (*StageReport, error) {
	if t.stage == nil {
		return nil, nil
	}
	times := t.timed[0].times
	r := &StageReport{Stage: t.stage.name, Launches: t.stage.launches, Latency: quantiles(times),
		Launching: quantiles(t.stage.launching[len(t.stage.launching)-len(times):])} // without those to warm up
	if r.Latency.Median <= 0 {
		return nil, fmt.Errorf("stage %s takes no longer than launches that do nothing, %.2f µs, so that nothing can "+
			"be said of it", r.Stage, r.Launching.Median)
	}
	return r, nil
}

func (t *timedStage) close() error {
	var errs []error
	for _, slot := range t.marks {
		for _, run := range slot {
			for _, e := range run {
				if e != nil {
					errs = append(errs, e.Close())
				}
			}
		}
	}
	if err := errors.Join(errs...); !driver.IsSticky(err) {
		return err
	}
	return nil
}
