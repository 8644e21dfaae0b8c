package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"amkc/runtime/driver"
)

// A PartsReport is the time of a token with one kernel launch per layer, or per stage, instead of a loop. The bodies
// are those of decode, and the launches are queued ahead, so the GPU does not wait for the host.
type PartsReport struct {
	Of       string    `json:"of"`       // "layer" or "stage"
	Launches int       `json:"launches"` // a step
	Latency  Quantiles `json:"latency_us"`
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

// PartStages is the maximum number of stages of a part, as in amk/part.cuh.
const PartStages = 16

const noStage = math.MaxUint32 // a number that no stage has

// A part is a stretch of a step that is launched on its own: stages that follow one another, of one layer at most.
type part struct {
	stages []uint32 // their numbers
	layer  int
	ended  int    // exchanges of the step before it
	before uint32 // number of the stage that published the last of them
}

// A cutting is a step in parts.
type cutting struct {
	of    string
	parts []part
}

// cuttings are those of the step at a position: none where layers are not a single loop over all of them, which begins
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
	for _, e := range s.facts.Variants[s.info.variant(position)].Exchanges {
		switch {
		case e.Number < 0 || e.Number >= len(stages) || stages[e.Number] != e.Stage:
			return nil
		case e.Number < first:
			outside++
		case e.Number <= last && e.Layers != s.info.Layers:
			return nil
		case e.Number <= last:
			numbers = append(numbers, uint32(e.Number))
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
		c.parts = append(c.parts, part{stages: head, before: noStage})
		p := part{ended: outside, before: head[first-1]}
		for p.layer = range s.info.Layers {
			for k, n := range numbers {
				p.stages = []uint32{n}
				if c.of == ofStages || k == 0 && p.layer > 0 {
					c.parts = append(c.parts, p)
				} else {
					own := &c.parts[len(c.parts)-1]
					own.stages = append(own.stages, n)
				}
				p.ended, p.before = p.ended+1, n
			}
		}
		p.stages, p.layer = all[last+1:], s.info.Layers
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
	kernel functions
	memory driver.Ptr // the residual of all SMs, and after it the token
	token  driver.Ptr
	steps  int
	cuts   []cutting
	timed  []*timedKernel
}

// newTimedParts prepares them, if the build has their kernel. They must be closed, also after an error.
func (s *Session) newTimedParts(m *measures, o BenchOptions) (*timedParts, error) {
	t := &timedParts{s: s, kernel: m.part, steps: min(o.StepsPerLaunch, partSteps)}
	if len(t.kernel) != 1 || s.facts.Recurrent() { // of states a step leaves others than it began with
		return t, nil
	}
	size := s.info.SMs * s.info.SharedBytes // in which an SM has its part of the residual
	var err error
	if t.memory, err = s.alloc(size + 256); err != nil {
		return t, err
	}
	t.token = t.memory + driver.Ptr(size)
	t.cuts = s.cuttings(o.Position)
	for i := range t.cuts {
		c := &t.cuts[i]
		if err := t.verify(c); err != nil {
			return t, err
		}
		t.timed = append(t.timed, &timedKernel{per: float64(t.steps),
			queue: func() error { return t.queue(c) }})
	}
	return t, nil
}

// queue puts the steps of a cutting on the stream, from the session's position on.
func (t *timedParts) queue(c *cutting) error {
	s := t.s
	for step := range t.steps {
		p := s.params(1)
		p.Position += step
		if err := s.one.enter(s, &p); err != nil {
			return err
		}
		s.one.epoch++
		params := p.encode()
		for _, p := range c.parts {
			if err := s.stream.Launch(t.kernel[0], driver.Dim{X: s.info.SMs}, driver.Dim{X: s.info.Threads},
				s.info.SharedBytes, t.encode(params, p, step > 0)); err != nil {
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

// verify compares the last of some tokens, each of which follows from the one before, with that of the decode kernel,
// and all bits of the last layer's cache, whose new rows follow from all layers before. Between the two the decode
// kernel writes other rows, so that the parts must have written what is found.
func (t *timedParts) verify(c *cutting) error {
	s := t.s
	last := s.mem.tokens + 4*(t.steps-1)
	decode := func(token int) error {
		p := s.params(t.steps)
		p.HostTokens, p.Token = s.mem.pinned.Ptr+driver.Ptr(s.mem.tokens), token
		s.mem.pinned.Store32(last, 0)
		if err := s.one.enter(s, &p); err != nil {
			return err
		}
		s.one.epoch += uint64(t.steps)
		if err := s.one.enqueue(s, s.one.decode, &p); err != nil {
			return err
		}
		return s.stream.Synchronize()
	}
	total, at := int(s.info.CacheBytes), s.facts.CacheAt(s.info.Layers-1)
	if len(s.facts.Layers) == 0 {
		at = total - total/s.info.Layers
	}
	cache := func() ([]byte, error) { // of the last layer, to which its attention appends
		rows := make([]byte, total-at)
		return rows, s.dev.CopyDtoH(rows, s.cache()+driver.Ptr(at), nil)
	}
	if err := s.dev.Do(func() error { return decode(0) }); err != nil {
		return err
	}
	want := int(s.mem.pinned.Load32(last)) - 1
	wanted, err := cache()
	if err != nil {
		return err
	}
	err = s.dev.Do(func() error {
		if err := decode(1); err != nil {
			return err
		}
		if err := t.queue(c); err != nil {
			return err
		}
		return s.stream.Synchronize()
	})
	if err != nil {
		return err
	}
	token := make([]byte, 4)
	if err := s.dev.CopyDtoH(token, t.token, nil); err != nil {
		return err
	}
	if stalls := s.stalls(s.one); len(stalls) > 0 {
		return &StallError{Position: s.position, Stalls: stalls}
	}
	if is := int(binary.LittleEndian.Uint32(token)); want != is {
		return fmt.Errorf("a launch for each %s decodes token %d after %d steps, and one loop %d", c.of, is, t.steps,
			want)
	}
	rows, err := cache()
	if err == nil && !bytes.Equal(rows, wanted) {
		err = fmt.Errorf("a launch for each %s leaves other rows in the cache of the last layer after %d steps than "+
			"one loop", c.of, t.steps)
	}
	return err
}

func (t *timedParts) reports() []PartsReport {
	var out []PartsReport
	for i, k := range t.timed {
		out = append(out, PartsReport{Of: t.cuts[i].of, Launches: len(t.cuts[i].parts), Latency: quantiles(k.times)})
	}
	return out
}

func (t *timedParts) close() error { return t.s.free(t.memory) }
