package host

import (
	"encoding/binary"
	"fmt"
	"math"
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

// Ways of cutting a step.
const (
	ofLayers = "layer"
	ofStages = "stage"
)

const (
	partName  = "amk_part" // in measure.fatbin, if it is compiled with -DAMK_PARTS=1
	partSteps = 4          // of a launch at most: a step is some hundred launches
)

// As amk/part.cuh has them.
const (
	placeOfLayers = 1 << 10
	placeBehind   = 1 << 24
	partSize      = launchSize + 2*8 + 6*4
)

// A part is a stretch of a step that is launched by itself: the stages from one place to another.
type part struct {
	first, end uint32
	rotates    bool // it needs the angles
}

// A cutting is a step in parts.
type cutting struct {
	of                  string
	loopFirst, loopLast int // numbers of the first and the last stage of a layer
	parts               []part
}

// cuttings are those of the step at a position: none where layers are no single loop over all of them, whose first
// stage is the one that rotates.
func (s *Session) cuttings(position int) []cutting {
	inLoop := func(label string) bool { return strings.HasPrefix(label, "L{i}.") }
	stages := s.facts.Stages
	first := slices.IndexFunc(stages, inLoop)
	last := len(stages) - 1
	for last >= 0 && !inLoop(stages[last]) {
		last--
	}
	if first < 0 || slices.ContainsFunc(stages[first:last], func(label string) bool { return !inLoop(label) }) {
		return nil
	}
	var numbers []int // of the stages of a layer at the position
	at := -1          // labels of several variants may be the same: numbers go up in the order of a step
	for _, e := range s.facts.Variants[s.info.variant(position)].Exchanges {
		k := slices.Index(stages[at+1:], e.Stage)
		if k < 0 {
			return nil
		}
		if at += k + 1; first <= at && at <= last {
			if e.Layers != s.info.Layers {
				return nil
			}
			numbers = append(numbers, at)
		}
	}
	if len(numbers) == 0 || numbers[0] != first {
		return nil
	}
	out := []cutting{{of: ofLayers}, {of: ofStages}}
	for i := range out {
		c := &out[i]
		c.loopFirst, c.loopLast = first, last
		begins := []uint32{0} // where the parts begin
		for layer := range s.info.Layers {
			for _, n := range numbers {
				if c.of == ofStages || layer > 0 && n == first {
					begins = append(begins, uint32((layer+1)*placeOfLayers+n))
				}
			}
		}
		begins = append(begins, uint32(placeBehind+last+1))
		for k, place := range begins {
			p := part{first: place, end: math.MaxUint32, rotates: place%placeOfLayers == uint32(first) || place == 0}
			if k+1 < len(begins) {
				p.end = begins[k+1]
			}
			c.parts = append(c.parts, p)
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
}

// newTimedParts prepares them, if the build has their kernel. They must be closed, also after an error.
func (s *Session) newTimedParts(m *measures, o BenchOptions) (*timedParts, error) {
	t := &timedParts{s: s, kernel: m.part, steps: min(o.StepsPerLaunch, partSteps)}
	if t.kernel == nil {
		return t, nil
	}
	size := s.info.SMs * s.info.SharedBytes // in which an SM has its part of the residual
	var err error
	if t.memory, err = s.dev.Alloc(size + 256); err != nil {
		return t, err
	}
	t.token = t.memory + driver.Ptr(size)
	t.cuts = s.cuttings(o.Position)
	for i := range t.cuts {
		c := &t.cuts[i]
		if err := t.verify(c); err != nil {
			return t, err
		}
		t.timed = append(t.timed, &timedKernel{per: float64(t.steps), queue: func() error { return t.queue(c) }})
	}
	return t, nil
}

// queue puts the steps of a cutting on the stream, from the session's position on.
func (t *timedParts) queue(c *cutting) error {
	s := t.s
	for step := range t.steps {
		p := s.params(1)
		p.Position += step
		if err := s.one.enter(s.stream, &p); err != nil {
			return err
		}
		s.one.epoch++
		launch := p.encode()
		for _, part := range c.parts {
			if err := s.stream.Launch(t.kernel, driver.Dim{X: s.info.SMs}, driver.Dim{X: s.info.Threads},
				s.info.SharedBytes, t.encode(launch, c, part, step > 0)); err != nil {
				return err
			}
		}
	}
	return nil
}

// encode lays amk::PartLaunch out.
func (t *timedParts) encode(launch []byte, c *cutting, p part, follows bool) []byte {
	word := map[bool]uint32{true: 1}
	le := binary.LittleEndian
	b := slices.Grow(slices.Clone(launch), partSize-launchSize)
	b = le.AppendUint64(b, uint64(t.memory))
	b = le.AppendUint64(b, uint64(t.token))
	for _, v := range []uint32{p.first, p.end, uint32(c.loopFirst), uint32(c.loopLast), word[follows],
		word[p.rotates]} {
		b = le.AppendUint32(b, v)
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
		if err := t.queue(c); err != nil {
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
	var out []PartsReport
	for i, k := range t.timed {
		out = append(out, PartsReport{Of: t.cuts[i].of, Launches: len(t.cuts[i].parts), Latency: quantiles(k.times)})
	}
	return out
}

func (t *timedParts) close() error { return t.s.dev.Free(t.memory) }
