package host

import (
	"context"
	"slices"

	"amkc/text/draft"
)

// SetDrafter makes [Session.Complete] verify drafts by passes of several rows, several tokens at a time; nil makes it
// stop that. It reports whether the build has such passes. Without them drafts are not asked for.
func (s *Session) SetDrafter(d draft.Drafter) bool {
	s.drafter = d
	return len(s.passes) > 0
}

// Drafts returns statistics of drafts since the session was opened.
func (s *Session) Drafts() draft.Stats { return s.drafts }

// SetScript makes the session continue as if the kernel had chosen the tokens of a text: each token that it chooses for
// a position of the text is replaced by the text's. The launches and their cost are the same, so that the gain of
// drafts can be measured on a text that the weights would not write. Within a launch of several steps the kernel
// decodes its own choices. nil ends the script, and so do [Session.Check] and [Session.NewBatch].
func (s *Session) SetScript(text []int) { s.script = text }

// chosen is the token of a position, of which the kernel has chosen id.
func (s *Session) chosen(position, id int, several bool) int {
	if several || position >= len(s.script) || id == noToken {
		return id
	}
	return s.script[position]
}

// PassRows is the number of rows of the largest passes of the build, at least 1.
func (s *Session) PassRows() int {
	if len(s.passes) == 0 {
		return 1
	}
	return s.passes[len(s.passes)-1].info.NumRows()
}

// A drafting continues a text with drafts. It verifies them as long as that pays, and decodes token by token otherwise,
// as its pace says.
type drafting struct {
	s    *Session
	text []int // prompt and what was chosen
	pace draft.Pace
}

// generate is [Session.Generate] of the last token of the text.
func (d *drafting) generate(ctx context.Context, token, n int, stops []int, emit func(id int) error) ([]int, error) {
	if err := d.s.canGenerate(token, n, stops); err != nil {
		return nil, err
	}
	var all []int
	for len(all) < n {
		tokens, err := d.next(ctx, n-len(all), stops, emit)
		all = append(all, tokens...)
		d.text = append(d.text, tokens...)
		if err != nil || slices.Contains(stops, d.text[len(d.text)-1]) {
			return all, err
		}
	}
	return all, nil
}

// next chooses at least one token and up to n.
func (d *drafting) next(ctx context.Context, n int, stops []int, emit func(id int) error) ([]int, error) {
	s, token := d.s, d.text[len(d.text)-1]
	if n > 1 {
		k := s.passes[len(s.passes)-1]
		drafts := d.pace.Draft(s.drafter, d.text, min(n, k.info.NumRows())-1)
		if len(drafts) > 0 && s.valid(drafts...) == nil && k.limit(s.position, 1+len(drafts), false) == 1+len(drafts) {
			return d.verify(ctx, k, append([]int{token}, drafts...), stops, emit)
		}
	}
	steps := s.one.limit(s.position, min(n, d.pace.Steps()), false)
	tokens, err := s.decodeOn(ctx, steps, token, stops, emit)
	d.pace.Decoded(len(tokens), s.took)
	return tokens, err
}

// verify decodes a token and drafts in one pass, and keeps what would have been chosen without them.
func (d *drafting) verify(ctx context.Context, k *megakernel, ids, stops []int, emit func(id int) error) ([]int,
	error) {
	s, first := d.s, d.s.position
	chooser := s.after(first + 1)
	tokens, err := s.run(ctx, burst{kernel: k, tokens: len(ids), forced: ids, choose: only(chooser), counts: true}, nil)
	if err != nil {
		s.position = first
		return nil, err
	}
	right := accepted(ids[1:], tokens, stops)
	s.position = first + right + 1 // rows beyond are rewritten before they are read
	s.drafts.Passes++
	s.drafts.Drafted += len(ids) - 1
	s.drafts.Accepted += right
	d.pace.Verified(right, s.took)
	tokens, err = tokens[:right+1], nil
	if tokens[right] == noToken { // what is after that nobody draws from
		s.position--
		tokens, err = tokens[:right], nothingAt(first+right+1)
	}
	chooser.chose(tokens...)
	for i, id := range tokens {
		if emit == nil {
			break
		}
		if err := emit(id); err != nil {
			s.position = first + i + 1
			return tokens[:i+1], err
		}
	}
	return tokens, err
}
