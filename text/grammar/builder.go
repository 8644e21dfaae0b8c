package grammar

import (
	"errors"
	"fmt"
	"slices"
)

// A builder makes a program.
type builder struct {
	p    *program
	full bool // it would have too many places, and the result is invalid
}

// maxPlaces bounds a grammar, whose schema may come from anybody.
const maxPlaces = 50_000

// errFull says so.
var errFull = fmt.Errorf("makes the schema too large: it would take more than %d places of an automaton", maxPlaces)

func (b *builder) place() int32 {
	if b.full = b.full || len(b.p.places) >= maxPlaces; b.full {
		return int32(len(b.p.places) - 1)
	}
	b.p.places = append(b.p.places, place{})
	return int32(len(b.p.places) - 1)
}

// rule adds a rule with a place that it begins at.
func (b *builder) rule() int32 {
	b.p.rules = append(b.p.rules, b.place())
	return int32(len(b.p.rules) - 1)
}

func (b *builder) begin(rule int32) int32 { return b.p.rules[rule] }

func (b *builder) end(at int32) { b.p.places[at].end = true }

func (b *builder) span(from int32, lo, hi byte, to int32) {
	p := &b.p.places[from]
	p.spans = append(p.spans, span{lo: lo, hi: hi, to: to})
}

func (b *builder) skip(from, to int32) {
	p := &b.p.places[from]
	p.skips = append(p.skips, to)
}

// join leads over a text from one place to another.
func (b *builder) join(from int32, text string, to int32) {
	for i := range len(text) - 1 {
		next := b.place()
		b.span(from, text[i], text[i], next)
		from = next
	}
	last := text[len(text)-1]
	b.span(from, last, last, to)
}

// literal leads over a text to a new place.
func (b *builder) literal(from int32, text string) int32 {
	to := b.place()
	b.join(from, text, to)
	return to
}

// call leads over a text of a rule to a new place.
func (b *builder) call(from, rule int32) int32 {
	to := b.place()
	b.callTo(from, rule, to)
	return to
}

func (b *builder) callTo(from, rule, to int32) {
	p := &b.p.places[from]
	p.calls = append(p.calls, call{rule, to})
}

// oneOf leads over one of several texts to a place. Equal beginnings are one way.
func (b *builder) oneOf(from int32, texts []string, to int32) {
	type way struct {
		at   int32
		over byte
	}
	ways := map[way]int32{}
	for _, text := range texts {
		at := from
		for i := range len(text) - 1 {
			next, there := ways[way{at, text[i]}]
			if !there {
				next = b.literal(at, text[i:i+1])
				ways[way{at, text[i]}] = next
			}
			at = next
		}
		b.join(at, text[len(text)-1:], to)
	}
}

var (
	errNone   = errors.New("describes no value of finite length")
	errItself = errors.New("refers to itself without anything between")
)

// finish takes out of a program what no text goes through, so that none is begun that cannot end, and checks that there
// is one that a rule describes.
func (b *builder) finish(rule int32) error {
	if b.full {
		return errFull
	}
	if err := b.checkCalls(); err != nil {
		return err
	}
	leads := make([]bool, len(b.p.places)) // to an end
	for changed := true; changed; {
		changed = false
		for i := len(leads) - 1; i >= 0; i-- {
			p := &b.p.places[i]
			if leads[i] {
				continue
			}
			leads[i] = p.end || slices.ContainsFunc(p.spans, func(s span) bool { return leads[s.to] }) ||
				slices.ContainsFunc(p.skips, func(to int32) bool { return leads[to] }) ||
				slices.ContainsFunc(p.specials, func(s special) bool { return leads[s.to] }) ||
				slices.ContainsFunc(p.calls, func(c call) bool { return leads[b.begin(c.rule)] && leads[c.back] })
			changed = changed || leads[i]
		}
	}
	if !leads[b.begin(rule)] {
		return errNone
	}
	for i := numCommon; i < int32(len(leads)); i++ {
		p := &b.p.places[i]
		p.spans = slices.DeleteFunc(p.spans, func(s span) bool { return !leads[s.to] })
		p.specials = slices.DeleteFunc(p.specials, func(s special) bool { return !leads[s.to] })
		p.skips = slices.DeleteFunc(p.skips, func(to int32) bool { return !leads[to] })
		p.calls = slices.DeleteFunc(p.calls, func(c call) bool { return !leads[b.begin(c.rule)] || !leads[c.back] })
	}
	return nil
}

// checkCalls refuses rules that call themselves before a byte is due: the stack would have no end.
func (b *builder) checkCalls() error {
	empty := make([]bool, len(b.p.places)) // an end is reached without a byte
	for changed := true; changed; {
		changed = false
		for i := range empty {
			p := &b.p.places[i]
			if empty[i] {
				continue
			}
			empty[i] = p.end || slices.ContainsFunc(p.skips, func(to int32) bool { return empty[to] }) ||
				slices.ContainsFunc(p.calls, func(c call) bool { return empty[b.begin(c.rule)] && empty[c.back] })
			changed = changed || empty[i]
		}
	}
	const ( // how far a place has been looked at
		never = iota
		now
		done
	)
	looked := make([]int8, len(b.p.places))
	var look func(at int32) bool
	look = func(at int32) bool {
		switch looked[at] {
		case now:
			return false
		case done:
			return true
		}
		looked[at] = now
		p := &b.p.places[at]
		for _, to := range p.skips {
			if !look(to) {
				return false
			}
		}
		for _, c := range p.calls {
			if !look(b.begin(c.rule)) || empty[b.begin(c.rule)] && !look(c.back) {
				return false
			}
		}
		looked[at] = done
		return true
	}
	for at := range b.p.places {
		if !look(int32(at)) {
			return errItself
		}
	}
	return nil
}
