package host

import (
	"context"
	"slices"
)

// A Drafter guesses how a text goes on. What it guesses decides how fast a text is continued, and never how: a draft is
// accepted where it is what would have been chosen without it.
type Drafter interface {
	// Draft returns up to n ids that may follow a text of at least one.
	Draft(text []int, n int) []int
}

// DraftStats count what drafts were good for.
type DraftStats struct {
	Passes   int `json:"passes"`   // that verified drafts
	Drafted  int `json:"drafted"`  // ids
	Accepted int `json:"accepted"` // of these
}

// SetDrafter makes [Session.Complete] verify drafts by passes of several rows, several tokens at a time; nil makes it
// stop that. It reports whether the build has such passes. Without them drafts are not asked for.
func (s *Session) SetDrafter(d Drafter) bool {
	s.drafter = d
	return len(s.passes) > 0
}

// Drafts returns what drafts were good for since the session was opened.
func (s *Session) Drafts() DraftStats { return s.drafts }

// DraftNGram is what command lines call [NGrams].
const DraftNGram = "ngram"

// NGrams drafts by look-up: where the last ids of a text have occurred in it before, it guesses that what followed them
// then follows again. The longest match counts, and of several the last.
type NGrams struct{}

// The ids that have to match. A single one matches too often to say much.
const (
	longestGram  = 6
	shortestGram = 2
)

// Draft implements [Drafter].
func (NGrams) Draft(text []int, n int) []int {
	end, best, at := len(text), shortestGram-1, 0
	for i := end - 1; i > best && best < longestGram; i-- { // a match ends before i
		k := 0
		for k < min(i, longestGram) && text[i-1-k] == text[end-1-k] {
			k++
		}
		if k > best {
			best, at = k, i
		}
	}
	if best < shortestGram {
		return nil
	}
	return text[at:min(end, at+n)]
}

// A drafting continues a text with drafts. It verifies them as long as that pays, and decodes token by token otherwise:
// for longer and longer after drafts that came to little, and in longer and longer launches while there are none.
type drafting struct {
	s        *Session
	text     []int // prompt and what was chosen
	pause    int   // tokens to be decoded before the next drafts are verified
	misses   int   // passes in a row that came to less than they cost
	launches int   // in a row without drafts
}

// A pass that verifies drafts costs somewhat less than two tokens, so that one with no draft accepted does not pay.
const (
	longestPause = 5 // as a power of 2, tokens
	longestPlain = 4 // steps of a launch, likewise
)

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
	if d.pause <= 0 && n > 1 {
		k := s.passes[len(s.passes)-1]
		drafts := s.drafter.Draft(d.text, min(n, k.info.Rows)-1)
		if len(drafts) > 0 && s.valid(drafts...) == nil && k.limit(s.position, 1+len(drafts), false) == 1+len(drafts) {
			return d.verify(ctx, k, append([]int{token}, drafts...), stops, emit)
		}
	}
	steps := min(n, 1<<min(d.launches, longestPlain))
	if d.pause > 0 {
		steps = min(n, max(steps, d.pause))
	}
	steps = s.one.limit(s.position, steps, false)
	d.launches++
	tokens, err := s.run(ctx, burst{tokens: steps, token: token, stops: stops}, emit)
	d.pause -= len(tokens)
	return tokens, err
}

// verify decodes a token and drafts in one pass, and keeps what would have been chosen without them.
func (d *drafting) verify(ctx context.Context, k *megakernel, ids, stops []int, emit func(id int) error) ([]int,
	error) {
	s, first := d.s, d.s.position
	tokens, err := s.run(ctx, burst{kernel: k, tokens: len(ids), forced: ids}, nil)
	if err != nil {
		s.position = first
		return nil, err
	}
	accepted := 0
	for accepted+1 < len(ids) && ids[accepted+1] == tokens[accepted] && !slices.Contains(stops, tokens[accepted]) {
		accepted++
	}
	s.position = first + accepted + 1 // rows beyond are written anew before they are read
	s.drafts.Passes++
	s.drafts.Drafted += len(ids) - 1
	s.drafts.Accepted += accepted
	d.launches = 0
	if accepted > 0 {
		d.misses = 0
	} else {
		d.misses = min(d.misses+1, longestPause)
		d.pause = 1 << d.misses
	}
	tokens = tokens[:accepted+1]
	for i, id := range tokens {
		if emit == nil {
			break
		}
		if err := emit(id); err != nil {
			s.position = first + i + 1
			return tokens[:i+1], err
		}
	}
	return tokens, nil
}
