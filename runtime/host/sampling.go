package host

import (
	"bytes"
	"encoding/binary"
	"maps"
	"reflect"
	"slices"

	"amkc/runtime/driver"
	"amkc/runtime/shape"
	"amkc/text/sampling"
)

// A choosing is how the kernel chooses the tokens of a text, and what of the text that depends on. nil: it chooses the
// largest logit.
type choosing struct {
	o    sampling.Options
	text sampling.Text
	slot int // which tables on the GPU are for it
}

// choosingOf returns how a text is chosen by options that the kernel chooses by; masked: perhaps among some tokens.
func choosingOf(o *sampling.Options, text sampling.Text, slot int, masked bool) *choosing {
	if !o.NeedLogits() && !masked {
		return nil
	}
	of := *o
	of.Bias = maps.Clone(o.Bias)
	text.Prompt, text.Output = slices.Clone(text.Prompt), slices.Clone(text.Output)
	return &choosing{of, text, slot}
}

// position is that of the token to be chosen next.
func (c *choosing) position() int { return len(c.text.Prompt) + len(c.text.Output) }

// chose adds tokens to the text.
func (c *choosing) chose(ids ...int) {
	if c != nil && len(ids) > 0 {
		c.text.Output = append(c.text.Output, ids...)
		c.text.Allowed = nil
	}
}

// plain reports whether a temperature and a seed are all.
func (c *choosing) plain() bool { return c == nil || c.o.Plain() && c.text.Allowed == nil }

// penalises reports whether it matters which ids are in the text.
func (c *choosing) penalises() bool {
	return c.o.RepetitionPenalty != 1 || c.o.FrequencyPenalty != 0 || c.o.PresencePenalty != 0
}

// leavesOut reports whether top-k, top-p or min-p excludes some tokens, which all SMs have to find together.
func (c *choosing) leavesOut() bool {
	return c.o.Temperature != 0 && (c.o.TopK > 0 || c.o.TopP < 1 || c.o.MinP > 0)
}

// Chooses implements [sampling.Chooser].
func (s *Session) Chooses(o *sampling.Options, _ bool) bool { return o.ByKernel() }

// Choose implements [sampling.Chooser]: for the token after a text, and for later ones as long as [Session.Complete] or
// [Session.Generate] continue the text.
func (s *Session) Choose(o *sampling.Options, text sampling.Text) bool {
	if !o.ByKernel() {
		return false
	}
	if c := s.chooser; c != nil && c.text.Begins(&text) && reflect.DeepEqual(c.o, *o) {
		c.text.Output = append(c.text.Output, text.Output[len(c.text.Output):]...)
		c.text.Allowed = text.Allowed
		return true
	}
	s.chooser = choosingOf(o, text, 0, text.Allowed != nil)
	return true
}

// after returns how the token at a position is chosen, if that is the token being chosen after the text.
func (s *Session) after(position int) *choosing {
	if c := s.chooser; c != nil && c.position() == position {
		return c
	}
	return nil
}

// only is what a launch of one sequence has for its settings.
func only(c *choosing) []*choosing {
	if c == nil {
		return nil
	}
	return []*choosing{c}
}

// ---- device memory ----

// deviceSampling is amk::Sampling (amk/launch.cuh): the temperature and the seed of a sequence.
type deviceSampling struct {
	Temperature float64
	Seed        uint64
}

// deviceChoice is amk::Choice (amk/launch.cuh). A zero pointer switches its feature off.
type deviceChoice struct {
	Bias, Uses, Allowed, Recent                 driver.Ptr
	Repetition, Frequency, Presence, Rest, MinP float64
	TopK, NRecent, Counts, Set                  int32
}

// Sizes of amk::Sampling, amk::Choice and amk::Rounds, and how many ids a list of recent ones has room for.
const (
	samplingSize = 16
	choiceSize   = 88
	roundsSize   = 64 + 3*8*3088
	maxRecent    = 64
)

// tables are those on the GPU that the choice of one sequence needs, each element of the vocabulary having its place.
type tables struct {
	at      driver.Ptr
	of      *choosing     // whose bias is there
	prompt  int           // of its prompt, in the table of uses
	counted int           // of its output, the same
	uses    []int32       // what that table has; nil: nothing
	allowed sampling.Mask // what is there
}

// Places of tables, one after another.
func (s *Session) usesAt() driver.Ptr    { return driver.Ptr(8 * s.info.Vocab) }
func (s *Session) allowedAt() driver.Ptr { return driver.Ptr(roundUp(12*s.info.Vocab, 8)) }
func (s *Session) tableBytes() int       { return int(s.allowedAt()) + (s.info.Vocab+63)/64*8 }

// tablesOf are those of a sequence. They take no memory before something needs them.
func (s *Session) tablesOf(slot int) (*tables, error) {
	if s.tables == nil {
		s.tables = make([]tables, s.Sequences())
	}
	t := &s.tables[slot]
	if t.at == 0 {
		var err error
		if t.at, err = s.alloc(s.tableBytes()); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// setSettings puts what a launch chooses by where the kernel looks for it. With counts, what its steps decode after
// the first token is of the output.
func (s *Session) setSettings(p *launchParams, of []*choosing, counts bool) error {
	samplings, choices := make([]deviceSampling, shape.MaxTokens), make([]deviceChoice, shape.MaxTokens)
	recent := make([]int32, shape.MaxTokens*maxRecent)
	plain, leavesOut := true, false
	for i, c := range of {
		if c == nil {
			continue
		}
		samplings[i] = deviceSampling{c.o.Temperature, c.o.Seed}
		if c.plain() {
			continue
		}
		plain, leavesOut = false, leavesOut || c.leavesOut()
		list := recent[i*maxRecent:][:maxRecent]
		choice, err := s.choiceOf(c, list)
		if err != nil {
			return err
		}
		if choice.Recent = s.mem.scratch + driver.Ptr(s.mem.recent+4*maxRecent*i); counts {
			choice.Counts = 1
		}
		choices[i] = choice
	}
	p.Sampling = s.mem.scratch + driver.Ptr(s.mem.sampling)
	block := []any{samplings}
	if !plain {
		p.Choices = s.mem.scratch + driver.Ptr(s.mem.choices)
		p.Tokens = s.mem.scratch + driver.Ptr(s.mem.chosen)
		block = append(block, choices, recent)
	}
	if leavesOut {
		if err := s.onlyOne("leaving tokens out by their probability (top-k, top-p, min-p)"); err != nil {
			return err
		}
		if err := s.clearRounds(); err != nil {
			return err
		}
		p.Rounds = s.rounds
	}
	return s.copySettings(block...)
}

// clearRounds makes the place where SMs find which tokens are left ready for a launch.
func (s *Session) clearRounds() (err error) {
	if s.rounds == 0 {
		if s.rounds, err = s.alloc(roundsSize); err != nil {
			return err
		}
	}
	return s.set(s.rounds, 0, roundsSize)
}

// copySettings writes the settings' block, unless it is there.
func (s *Session) copySettings(block ...any) error {
	var b bytes.Buffer
	for _, part := range block {
		_ = binary.Write(&b, binary.LittleEndian, part) // it does not fail
	}
	if bytes.HasPrefix(s.mem.set, b.Bytes()) {
		return nil
	}
	s.mem.set = nil
	if err := s.put(s.mem.scratch+driver.Ptr(s.mem.sampling), b.Bytes()); err != nil {
		return err
	}
	s.mem.set = b.Bytes()
	return nil
}

// choiceOf brings the tables of a choice up to date, and makes the list of recent ids.
func (s *Session) choiceOf(c *choosing, recent []int32) (d deviceChoice, err error) {
	t, err := s.tablesOf(c.slot)
	if err != nil {
		return d, err
	}
	o := &c.o
	d = deviceChoice{Repetition: o.RepetitionPenalty, Frequency: o.FrequencyPenalty, Presence: o.PresencePenalty,
		MinP: o.MinP, TopK: int32(o.TopK), Set: 1}
	if o.TopP < 1 {
		d.Rest = 1 - o.TopP
	}
	if t.of != c {
		*t = tables{at: t.at, of: c, allowed: t.allowed}
		if len(o.Bias) > 0 {
			bias := make([]float64, s.info.Vocab)
			for id, b := range o.Bias {
				bias[id] = b
			}
			if err := s.put(t.at, encoded(bias)); err != nil {
				t.of = nil
				return d, err
			}
		}
	}
	if len(o.Bias) > 0 {
		d.Bias = t.at
	}
	if c.penalises() {
		d.Uses = t.at + s.usesAt()
		if err := s.count(t, c); err != nil {
			return d, err
		}
		for i, id := range c.text.Output[t.counted:] {
			recent[i] = int32(id)
			d.NRecent++
		}
	}
	if mask := c.text.Allowed; mask != nil {
		d.Allowed = t.at + s.allowedAt()
		if !slices.Equal(mask, t.allowed) {
			t.allowed = nil
			words := make(sampling.Mask, (s.info.Vocab+63)/64) // what a short mask does not say is not allowed
			copy(words, mask)
			if err := s.put(d.Allowed, encoded([]uint64(words))); err != nil {
				return d, err
			}
			t.allowed = slices.Clone(mask)
		}
	}
	return d, nil
}

// count writes how often ids were used, unless what is there can be completed by a list of recent ones.
func (s *Session) count(t *tables, c *choosing) error {
	if t.uses != nil && t.counted <= len(c.text.Output) && len(c.text.Output)-t.counted <= maxRecent {
		return nil
	}
	if t.uses == nil {
		t.uses, t.counted = make([]int32, s.info.Vocab), 0
		for i := range t.uses {
			t.uses[i] = -1
		}
		for _, id := range c.text.Prompt {
			if id >= 0 && id < len(t.uses) {
				t.uses[id] = 0
			}
		}
	}
	for _, id := range c.text.Output[t.counted:] {
		t.uses[id] = max(t.uses[id], 0) + 1
	}
	t.counted = len(c.text.Output)
	if err := s.put(t.at+s.usesAt(), encoded(t.uses)); err != nil {
		t.uses = nil
		return err
	}
	return nil
}

// encoded lays numbers out as the kernel has them.
func encoded(v any) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, v) // it does not fail
	return b.Bytes()
}
