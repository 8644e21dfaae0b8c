package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"amkc/runtime/driver"
)

// A PartsReport is the time of a token whose step is no loop: a kernel is launched for every layer, or for every stage.
// Their bodies are those of decode, and the launches are queued ahead, so that the GPU does not wait for the host.
type PartsReport struct {
	Of       string    `json:"of"`       // "layer" or "stage"
	Launches int       `json:"launches"` // a step
	Latency  Quantiles `json:"latency_us"`
}

// A StageReport is the time of a stage by itself, in all layers together: microseconds per token. Each of its launches
// comes in its place among those of the step's other stages, and is followed by one that does nothing, whose time is
// taken off. Of lm_head it has the end of the step in it, which is the same launch.
type StageReport struct {
	Stage     string    `json:"stage"`
	Launches  int       `json:"launches"` // a step
	Latency   Quantiles `json:"latency_us"`
	Launching Quantiles `json:"launching_us"` // what as many launches take that do nothing
}

// Ways of cutting a step.
const (
	ofLayers = "layer"
	ofStages = "stage"
)

const (
	partName  = "amk_part" // in measure.fatbin, if it is compiled with -DAMK_PARTS=1
	partSteps = 4          // of a launch at most: a step is some hundred launches
)

// PartStages is how many stages a part has at most, as amk/part.cuh has it.
const PartStages = 16

const noStage = math.MaxUint32 // the number of a stage that is none

// A part is a stretch of a step that is launched by itself: stages that follow one another, of one layer at most.
type part struct {
	stages []uint32 // their numbers
	layer  int
	ended  int    // exchanges of the step before it
	before uint32 // number of the stage that handed the last of them over
	stage  string // of parts that are one, as knobs name them; of the last one lm_head
}

// A cutting is a step in parts.
type cutting struct {
	of    string
	parts []part
}

// cuttings are those of the step at a position: none where layers are no single loop over all of them, which begins
// with the same stage at all positions.
func (s *Session) cuttings(position int) []cutting {
	inLoop := func(label string) bool { return strings.HasPrefix(label, "L{i}.") }
	stages := s.facts.Stages
	first := slices.IndexFunc(stages, inLoop)
	last := len(stages) - 1
	for last >= 0 && !inLoop(stages[last]) {
		last--
	}
	if first < 1 || slices.ContainsFunc(stages[first:last], func(label string) bool { return !inLoop(label) }) {
		return nil
	}
	var numbers []uint32 // of the stages of a layer at the position
	outside := 0         // exchanges before the layers
	at := -1             // labels of several variants may be the same: numbers go up in the order of a step
	for _, e := range s.facts.Variants[s.info.variant(position)].Exchanges {
		k := slices.Index(stages[at+1:], e.Stage)
		if k < 0 {
			return nil
		}
		switch at += k + 1; {
		case at < first:
			outside++
		case at <= last && e.Layers != s.info.Layers:
			return nil
		case at <= last:
			numbers = append(numbers, uint32(at))
		}
	}
	if len(numbers) == 0 || numbers[0] != uint32(first) {
		return nil
	}
	all := make([]uint32, len(stages))
	for n := range all {
		all[n] = uint32(n)
	}
	head := all[:first:first]
	out := []cutting{{of: ofLayers}, {of: ofStages}}
	for i := range out {
		c := &out[i]
		c.parts = append(c.parts, part{stages: head, before: noStage, stage: "embed"})
		p := part{ended: outside, before: head[first-1]}
		for p.layer = range s.info.Layers {
			for k, n := range numbers {
				p.stages, p.stage = []uint32{n}, stageNamed(stages[n])
				if c.of == ofStages || k == 0 && p.layer > 0 {
					c.parts = append(c.parts, p)
				} else {
					own := &c.parts[len(c.parts)-1]
					own.stages = append(own.stages, n)
				}
				p.ended, p.before = p.ended+1, n
			}
		}
		p.stages, p.layer, p.stage = all[last+1:], s.info.Layers, "lm_head"
		c.parts = append(c.parts, p)
		if slices.ContainsFunc(c.parts, func(p part) bool { return len(p.stages) > PartStages }) {
			return nil
		}
	}
	return out
}

// timedParts are steps in parts that a bench measures. They have memory of their own.
type timedParts struct {
	s      *Session
	kernel *driver.Function
	memory driver.Ptr // the residual of all SMs, and behind it the token
	token  driver.Ptr
	steps  int
	cuts   []cutting
	timed  []*timedKernel
	stage  *timedStage // nil: not asked for
}

// newTimedParts prepares them, if the build has their kernel. They must be closed, also after an error.
func (s *Session) newTimedParts(m *measures, o BenchOptions) (*timedParts, error) {
	t := &timedParts{s: s, kernel: m.part, steps: min(o.StepsPerLaunch, partSteps)}
	switch {
	case t.kernel == nil && o.Stage != "":
		return t, &BuildError{Path: filepath.Join(s.dir, MeasureFile), What: "it has no step in parts, of which " +
			o.Stage + " would be one", Remedy: "compile measure.cu with -DAMK_PARTS=1; docs/bench.md names the models"}
	case t.kernel == nil:
		return t, nil
	}
	size := s.info.SMs * s.info.SharedBytes // in which an SM has its part of the residual
	var err error
	if t.memory, err = s.dev.Alloc(size + 256); err != nil {
		return t, err
	}
	t.token = t.memory + driver.Ptr(size)
	t.cuts = s.cuttings(o.Position)
	if o.Stage != "" {
		t.cuts = slices.DeleteFunc(t.cuts, func(c cutting) bool { return c.of != ofStages })
	}
	for i := range t.cuts {
		c := &t.cuts[i]
		if err := t.verify(c); err != nil {
			return t, err
		}
		if o.Stage == "" {
			t.timed = append(t.timed, &timedKernel{per: float64(t.steps),
				queue: func(int) error { return t.queue(c, t.launch) }})
		}
	}
	if o.Stage != "" {
		err = t.alone(o.Stage)
	}
	return t, err
}

// launch puts a part of a step on the stream.
func (t *timedParts) launch(_ int, p part, with func(part) []byte) error {
	s := t.s
	return s.stream.Launch(t.kernel, driver.Dim{X: s.info.SMs}, driver.Dim{X: s.info.Threads}, s.info.SharedBytes,
		with(p))
}

// queue puts the steps of a cutting on the stream, from the session's position on, each part as launch does, which is
// told the number of the part and what makes an argument of one.
func (t *timedParts) queue(c *cutting, launch func(k int, p part, with func(part) []byte) error) error {
	s := t.s
	for step := range t.steps {
		p := s.params(1)
		p.Position += step
		if err := s.one.enter(s.stream, &p); err != nil {
			return err
		}
		s.one.epoch++
		params := p.encode()
		for k, p := range c.parts {
			err := launch(step*len(c.parts)+k, p, func(p part) []byte { return t.encode(params, p, step > 0) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// encode lays amk::PartLaunch out.
func (t *timedParts) encode(launch []byte, p part, follows bool) []byte {
	words := make([]uint32, 6+PartStages)
	copy(words, []uint32{uint32(p.layer), uint32(p.ended), p.before, 0, uint32(len(p.stages))})
	if copy(words[5:], p.stages); follows {
		words[3] = 1
	}
	b := binary.LittleEndian.AppendUint64(slices.Clone(launch), uint64(t.memory))
	b = binary.LittleEndian.AppendUint64(b, uint64(t.token))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// verify compares the last of some tokens, each of which follows from the one before, with that of the decode kernel.
func (t *timedParts) verify(c *cutting) error {
	s, got := t.s, make([]byte, 4)
	last := s.mem.tokens + 4*(t.steps-1)
	err := s.dev.Do(func() error {
		p := s.params(t.steps)
		p.HostTokens = s.mem.pinned.Ptr + driver.Ptr(s.mem.tokens)
		s.mem.pinned.Store32(last, 0)
		if err := s.one.enter(s.stream, &p); err != nil {
			return err
		}
		s.one.epoch += uint64(t.steps)
		if err := s.one.enqueue(s.stream, s.one.decode, &p); err != nil {
			return err
		}
		if err := s.stream.Synchronize(); err != nil {
			return err
		}
		if err := t.queue(c, t.launch); err != nil {
			return err
		}
		return s.stream.Synchronize()
	})
	if err == nil {
		err = s.dev.CopyDtoH(got, t.token, nil)
	}
	if err != nil {
		return err
	}
	if stalls := s.stalls(s.one); len(stalls) > 0 {
		return &StallError{Position: s.position, Stalls: stalls}
	}
	want, is := int(s.mem.pinned.Load32(last))-1, int(binary.LittleEndian.Uint32(got))
	if want != is {
		return fmt.Errorf("a launch for each %s decodes token %d after %d steps, and one loop %d", c.of, is, t.steps,
			want)
	}
	return nil
}

func (t *timedParts) reports() []PartsReport {
	if t.stage != nil {
		return nil
	}
	var out []PartsReport
	for i, k := range t.timed {
		out = append(out, PartsReport{Of: t.cuts[i].of, Launches: len(t.cuts[i].parts), Latency: quantiles(k.times)})
	}
	return out
}

func (t *timedParts) close() error {
	errs := []error{t.s.dev.Free(t.memory)}
	if t.stage != nil {
		errs = append(errs, t.stage.close())
	}
	return errors.Join(errs...)
}

// A timedStage is a stage by itself: of every run of its launches in a step, when it began, when it ended, and when as
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
		return fmt.Errorf("stage %s cannot be launched by itself: the layers of this model are no single loop", stage)
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
