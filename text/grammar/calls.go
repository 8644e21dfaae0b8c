package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Calls describe texts that may contain calls of tools. A text is arbitrary, including special tokens, except after a
// marker, which is followed by one of some options, and then again by any text.
type Calls struct {
	Mark    string
	Options []Option
	Never   []string // other marks that would begin a call
	Prose   string   // after the mark: what follows is not a call after all; empty: there is no such thing
	Within  bool     // the text begins after the mark

	Separators string // bytes that may stand after a call, besides spaces, and say nothing
	Again      bool   // a bracket after a call would begin another one without a mark

	// Open and Close surround a thought, with which a text may begin and in which markers have no effect. Empty: there
	// are no thoughts.
	Open, Close string
	Thinking    bool // the text begins inside of a thought

	Specials map[int]string // texts of special tokens, empty of those that are not shown

	// Answer is a schema: the text is either what it describes or calls, and nothing else. nil: it may be anything.
	Answer   []byte
	AnswerAt string   // what errors call it
	First    string   // what begins the first call, the mark included
	Closers  []string // marks that may stand after calls
}

// A special leads over a special token to another place.
type special struct{ id, to int32 }

// WithCalls returns the grammar of texts with calls. Errors are *Error.
func WithCalls(v *Vocabulary, of Calls) (*Grammar, error) {
	if len(of.Options) == 0 || len(of.Options) > maxAlternatives {
		return nil, &Error{"#", Invalid, fmt.Sprintf("is one of %d; want 1 to %d", len(of.Options), maxAlternatives)}
	}
	c := &callCompiler{compiler: newCompiler(), of: &of}
	root := c.rule()
	c.marked, c.afterCall = c.place(), c.textPlace()
	begin, err := int32(0), error(nil)
	if of.Answer == nil {
		begin = c.anything()
	} else if begin, err = c.answer(); err != nil {
		return nil, err
	}
	for _, o := range of.Options {
		if err := c.option(o); err != nil {
			return nil, err
		}
	}
	if of.Within {
		begin = c.marked
	}
	c.skip(c.begin(root), begin)
	if err := c.finish(root); err != nil {
		return nil, finished(of.Options[0].At, err)
	}
	if of.Answer != nil && len(c.p.places[c.answered].calls) == 0 {
		return nil, &Error{of.AnswerAt, Empty, errNone.Error()}
	}
	for i, at := range c.options {
		if !slices.Contains(c.p.places[c.marked].skips, at) { // which finish takes out if nothing goes through them
			return nil, &Error{of.Options[i].At, Empty, errNone.Error()}
		}
	}
	g := &Grammar{v: v, p: c.p, root: root, locals: map[point]*local{}, specials: of.Specials}
	g.leaving = c.leaving(v)
	for _, at := range append(c.texts, begin, c.afterCall) { // who asks for masks is in a hurry
		if at != nowhere && c.p.places[at].text {
			g.local(point{at: at})
		}
	}
	return g, nil
}

// A callCompiler makes the program of texts with calls.
type callCompiler struct {
	*compiler
	of        *Calls
	text      *scanner // outside calls; nil: nothing is
	texts     []int32  // places where the text may be anything
	marked    int32    // after the mark
	afterCall int32    // after a call
	options   []int32  // where each begins
	answered  int32    // where an answer begins
}

// textPlace is a place where a text may go on with any special token, and end unless it has to be an answer.
func (c *callCompiler) textPlace() int32 {
	at := c.place()
	c.p.places[at].text, c.p.places[at].end = true, c.of.Answer == nil
	return at
}

// anything leads over texts that may be anything but for calls. It returns where they begin.
func (c *callCompiler) anything() int32 {
	of := c.of
	c.text = c.scan(append([]string{of.Mark}, of.Never...), func(i int) int32 {
		if i == 0 {
			return c.marked
		}
		return nowhere
	})
	c.texts = c.text.places
	c.after()
	if of.Prose != "" {
		c.skip(c.literals(c.marked, of.Prose), c.text.root())
	}
	if of.Open == "" {
		return c.text.root()
	}
	thought := c.scan([]string{of.Close}, func(int) int32 { return c.text.root() }).root()
	if of.Thinking {
		return thought
	}
	return c.mayThink(thought)
}

// answer leads over an answer of a schema or calls alone, perhaps after a thought.
func (c *callCompiler) answer() (int32, error) {
	of := c.of
	gap := c.rule() // between what belongs to calls and thoughts
	for at, n := c.begin(gap), 0; ; n++ {
		c.end(at)
		if n == maxGap {
			break
		}
		next := c.place()
		for _, space := range []byte(spaces) {
			c.span(at, space, space, next)
		}
		at = next
	}
	after := c.place() // a call, and marks that close it
	c.p.places[c.afterCall] = place{}
	c.skip(c.afterCall, after)
	for range maxClosers {
		c.end(after)
		next, at := c.place(), c.call(after, gap)
		for _, closer := range of.Closers {
			c.skip(c.literals(at, closer), next)
		}
		if of.Mark != "" {
			c.skip(c.literals(at, of.Mark), c.marked)
		}
		after = next
	}
	c.end(after)
	o := Option{Schema: of.Answer, At: of.AnswerAt}
	d, err := o.document()
	if err != nil {
		return 0, err
	}
	c.refer(d)
	rule, err := c.schema(d, o.At)
	if err != nil {
		return 0, err
	}
	begin := c.place()
	at := c.call(begin, gap)
	c.skip(c.literals(at, of.First), c.marked)
	c.end(c.call(at, rule))
	c.answered = at
	if of.Open == "" {
		return begin, nil
	}
	thought := c.scan([]string{of.Close}, func(int) int32 { return begin })
	c.texts = thought.places
	if of.Thinking {
		return thought.root(), nil
	}
	first := c.place()
	c.skip(first, begin)
	c.skip(c.literals(c.call(first, gap), of.Open), thought.root())
	return first, nil
}

// Bounds of what may stand around calls and answers.
const (
	maxGap     = 4 // spaces
	maxClosers = 3 // marks after a call
)

// option adds what may follow the mark.
func (c *callCompiler) option(o Option) error {
	d, err := o.document()
	if err != nil {
		return err
	}
	c.refer(d)
	rule, err := c.schema(d, o.At)
	if err != nil {
		return err
	}
	first := c.place()
	c.options = append(c.options, first)
	c.skip(c.marked, first)
	at := c.call(c.literals(first, o.Before), rule)
	for _, closer := range []byte(o.After) {
		at = c.literal(c.call(at, ruleSpace), string(closer))
	}
	c.skip(at, c.afterCall)
	return nil
}

// literals leads over a text, in which special tokens are the only way to write theirs.
func (c *callCompiler) literals(at int32, text string) int32 {
	for text != "" {
		id, first := int32(-1), len(text)
		for special, shown := range c.of.Specials {
			i := strings.Index(text, shown)
			if shown != "" && i >= 0 && (i < first || i == first && len(shown) > len(c.of.Specials[int(id)])) {
				id, first = int32(special), i
			}
		}
		if first > 0 {
			at = c.literal(at, text[:first])
		}
		if text = text[first:]; id >= 0 {
			to := c.place()
			p := &c.p.places[at]
			p.specials = append(p.specials, special{id, to})
			at, text = to, text[len(c.of.Specials[int(id)]):]
		}
	}
	return at
}

// after leads on after a call.
func (c *callCompiler) after() {
	text := c.text.over[0]
	for b := range text {
		switch {
		case strings.IndexByte(spaces+c.of.Separators, byte(b)) >= 0:
			text[b] = c.afterCall
		case c.of.Again && (b == '{' || b == '['):
			text[b] = nowhere
		}
	}
	c.spans(c.afterCall, text)
}

// Spaces that may stand in front of a thought, and how many.
const (
	spaces    = " \t\r\n"
	maxSpaces = 64
)

// mayThink is the beginning of a text that may begin with a thought.
func (c *callCompiler) mayThink(thought int32) int32 {
	ways := make([]int32, len(c.of.Open)) // after n bytes of the mark
	for i := range ways[1:] {
		ways[i+1] = c.textPlace()
	}
	state := 0 // of the text, had this been no mark
	for i := range c.of.Open {
		over := c.text.over[state]
		b := c.of.Open[i]
		if state = c.text.next(state, b); state < 0 {
			state = 0 // the mark of calls is a part of this one, which is then the longer one
		}
		over[b] = thought
		if i+1 < len(ways) {
			over[b] = ways[i+1]
		}
		if i > 0 {
			c.spans(ways[i], over)
			continue
		}
		next := nowhere
		for n := maxSpaces; n >= 0; n-- {
			at, over := c.textPlace(), over
			for _, space := range []byte(spaces) {
				if n < maxSpaces {
					over[space] = next
				}
			}
			c.spans(at, over)
			next = at
		}
		ways[0] = next
	}
	return ways[0]
}

// nowhere is a place that nothing leads to.
const nowhere int32 = -1

// leaving are the tokens that may lead out of what may be anything, by the last byte of a mark, or by a bracket. Most
// have none of these.
func (c *callCompiler) leaving(v *Vocabulary) (all []int32) {
	var with [256]bool
	for _, mark := range append([]string{c.of.Mark}, c.of.Never...) {
		if mark != "" {
			with[mark[len(mark)-1]] = true
		}
	}
	if c.of.Answer != nil && c.of.Close != "" { // after which no text may be anything
		with[c.of.Close[len(c.of.Close)-1]] = true
	}
	if c.of.Again {
		with['{'], with['['] = true, true
	}
	for _, id := range v.ids {
		if slices.ContainsFunc(v.texts[id], func(b byte) bool { return with[b] }) {
			all = append(all, id)
		}
	}
	return all
}

// exploreText finds what follows from a place in what may be anything: all tokens but some of those that lead out of
// it. Of these, what begins as from another place is known.
func (g *Grammar) exploreText(at int32) *local {
	p, m := &g.p.places[at], newMachine(g.p)
	l := &local{mask: g.v.newMask()}
	var differs [256]bool
	if p.like != 0 {
		copy(l.mask, g.local(point{at: p.like}).mask)
		for b := range differs {
			differs[b] = !slices.Equal(p.over(byte(b)), g.p.places[p.like].over(byte(b)))
		}
	} else {
		l.mask.allow(g.v.ids)
	}
	for _, id := range g.leaving {
		text := g.v.texts[id]
		if p.like != 0 && !differs[text[0]] {
			continue
		}
		l.mask.allow([]int32{id})
		if !m.goesOver(at, text) {
			l.mask[id/64] &^= 1 << (id % 64)
		}
	}
	g.allowSpecials(at, l.mask)
	return l
}

// over are the spots that a text leads to, and whether it may end there.
func (m *machine) over(from []spot, text []byte) (_ []spot, ended bool) {
	m.reach(1)
	for i, b := range text {
		m.spots[i&1], ended, _ = m.step(m.spots[i&1][:0], from, b)
		from = m.spots[i&1]
	}
	return from, ended
}

// goesOver reports whether a text can follow at a place that no rule calls.
func (m *machine) goesOver(at int32, text []byte) bool {
	to, ended := m.over([]spot{{at: at}}, text)
	return len(to) > 0 || ended
}

// allowSpecials adds the special tokens that may stand at a place.
func (g *Grammar) allowSpecials(at int32, mask Mask) {
	p := &g.p.places[at]
	for _, s := range p.specials {
		mask.allow([]int32{s.id})
	}
	if !p.text {
		return
	}
	m := newMachine(g.p)
	for id, shown := range g.specials {
		if id >= g.v.size {
			continue
		}
		mask.allow([]int32{int32(id)})
		if !m.goesOver(at, []byte(shown)) { // which another place may have allowed
			mask[id/64] &^= 1 << (id % 64)
		}
	}
}

var errSpecial = errors.New("a special token stands where none may")

// takeSpecial goes on with a special token.
func (s *State) takeSpecial(id int, shown string) error {
	var over []spot
	ended := false
	for _, from := range s.spots {
		p := &s.m.places[from.at]
		if p.text {
			to, here := s.m.over([]spot{from}, []byte(shown))
			over, ended = append(over, to...), ended || here
		}
		for _, way := range p.specials {
			if way.id == int32(id) {
				over = append(over, spot{way.to, 0, from.up})
			}
		}
	}
	s.m.set.list = nil
	for _, to := range over {
		here := s.m.settle(to)
		ended = ended || here
	}
	now := s.m.set.list
	if len(now) == 0 && !ended {
		return errSpecial
	}
	s.spots, s.ended = now, ended
	return nil
}
