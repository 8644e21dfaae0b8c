package host

import (
	"errors"
	"slices"

	"amkc/runtime/driver"
	"amkc/runtime/shape"
)

// A ChosenReport is the time of steps that draw tokens with a temperature, after top-k, top-p, penalties or another
// kind of choice has excluded tokens or changed logits.
type ChosenReport struct {
	How     string    `json:"how"`
	Latency Quantiles `json:"latency_us"` // of a token
}

// A drawnChoice is one that a bench measures.
type drawnChoice struct {
	how    string
	choice deviceChoice
	tables func(s *Session, d *deviceChoice, tables driver.Ptr) // that it reads; nil: none
}

// drawnChoices has each kind of choice on its own. What a penalty costs does not depend on how large it is, nor a bias
// or a mask on which ids it is for.
var drawnChoices = []drawnChoice{
	{how: "top-k 50 and top-p 0.95", choice: deviceChoice{TopK: 50, Rest: 0.05}},
	{how: "min-p 0.05", choice: deviceChoice{MinP: 0.05}},
	{how: "penalties of repetition, presence and frequency",
		choice: deviceChoice{Repetition: 1.1, Presence: 0.5, Frequency: 0.5, Counts: 1},
		tables: func(s *Session, d *deviceChoice, tables driver.Ptr) { d.Uses = tables + s.usesAt() }},
	{how: "a bias", tables: func(_ *Session, d *deviceChoice, tables driver.Ptr) { d.Bias = tables }},
	{how: "a mask",
		tables: func(s *Session, d *deviceChoice, tables driver.Ptr) { d.Allowed = tables + s.allowedAt() }},
}

// timedDrawn are steps that draw their tokens, for a bench. They have memory of their own.
type timedDrawn struct {
	s           *Session
	memory      driver.Ptr   // tables, and after them the choices of all sequences, for each of drawnChoices
	temperature *timedKernel // no choice besides
	choices     []*timedKernel
}

// newTimedDrawn prepares them. They must be closed, also after an error.
func (s *Session) newTimedDrawn(steps int) (*timedDrawn, error) {
	d := &timedDrawn{s: s, temperature: s.timedSteps(s.one, s.one.decode, steps, true, s.drawn)}
	if err := errors.Join(s.clearRounds(),
		s.copySettings(slices.Repeat([]deviceSampling{{Temperature: 1}}, shape.MaxTokens))); err != nil {
		return d, err
	}
	var err error
	if d.memory, err = s.alloc(s.tableBytes() + len(drawnChoices)*shape.MaxTokens*choiceSize); err != nil {
		return d, err
	}
	bias, uses := make([]float64, s.info.Vocab), make([]int32, s.info.Vocab)
	allowed := slices.Repeat([]uint64{^uint64(0)}, (s.info.Vocab+63)/64)
	for id := range bias {
		if uses[id] = -1; id%256 == 0 {
			bias[id], uses[id] = 1, 1
		}
	}
	if err := errors.Join(s.put(d.memory, encoded(bias)),
		s.put(d.memory+s.usesAt(), encoded(uses)),
		s.put(d.memory+s.allowedAt(), encoded(allowed))); err != nil {
		return d, err
	}
	at := d.memory + driver.Ptr(s.tableBytes())
	for _, c := range drawnChoices {
		choice := c.choice
		choice.Repetition, choice.Set = max(1, choice.Repetition), 1
		if c.tables != nil {
			c.tables(s, &choice, d.memory)
		}
		if err := s.put(at, encoded(slices.Repeat([]deviceChoice{choice}, shape.MaxTokens))); err != nil {
			return d, err
		}
		leavesOut := choice.TopK > 0 || choice.Rest > 0 || choice.MinP > 0
		d.choices = append(d.choices, s.timedSteps(s.one, s.one.decode, steps, true, s.chosenBy(at, leavesOut)))
		at += shape.MaxTokens * choiceSize
	}
	return d, nil
}

// chosenBy makes a launch draw its tokens by choices, which may leave tokens out by their probability. Rounds of one
// launch leave nothing behind that those of the next one mind.
func (s *Session) chosenBy(choices driver.Ptr, leavesOut bool) func(*launchParams) {
	return func(p *launchParams) {
		s.drawn(p)
		p.Choices, p.Tokens = choices, s.mem.scratch+driver.Ptr(s.mem.chosen)
		if leavesOut {
			p.Rounds = s.rounds
		}
	}
}

// drawn makes a launch draw its tokens with the temperatures that are there.
func (s *Session) drawn(p *launchParams) {
	p.Logits = s.mem.scratch + driver.Ptr(s.mem.logits)
	p.Sampling = s.mem.scratch + driver.Ptr(s.mem.sampling)
}

// timed lists them; none of nil.
func (d *timedDrawn) timed() []*timedKernel {
	if d == nil {
		return nil
	}
	return append([]*timedKernel{d.temperature}, d.choices...)
}

// report adds what they took to a report.
func (d *timedDrawn) report(r *BenchReport) {
	if d == nil {
		return
	}
	r.Drawn = new(quantiles(d.temperature.times))
	for i, k := range d.choices {
		r.Chosen = append(r.Chosen, ChosenReport{drawnChoices[i].how, quantiles(k.times)})
	}
}

func (d *timedDrawn) close() error {
	if d == nil || d.memory == 0 {
		return nil
	}
	if err := d.s.free(d.memory); !driver.IsSticky(err) {
		return err
	}
	return nil
}
