// Package draft guesses the continuation of a text. Guesses are verified by passes of several rows: each that equals
// the choice without it saves a step, and the others cost only the time of the pass. So guesses affect the speed of a
// continuation, and never its text.
//
// It is copied into every launcher. It imports only the standard library, and must not import any package of amkc.
package draft

import "slices"

// A Drafter guesses the continuation of a text.
type Drafter interface {
	// Draft returns up to n ids that may follow a text of at least one.
	Draft(text []int, n int) []int
}

// An EagerDrafter also has guesses that are right less often, for use if wrong guesses cost little.
type EagerDrafter interface {
	Drafter
	// DraftEagerly is Draft, and such a guess where that has none.
	DraftEagerly(text []int, n int) []int
}

// Stats count drafts, and those that were accepted.
type Stats struct {
	Passes   int `json:"passes"`   // that verified drafts
	Drafted  int `json:"drafted"`  // ids
	Accepted int `json:"accepted"` // of these
}

// NGram is the name of [NGrams] on command lines.
const NGram = "ngram"

// NGrams drafts from n-grams: if the last ids of a text occurred earlier in it, it guesses that the same ids follow
// again. It takes the longest match, and the latest of several.
type NGrams struct{}

// The ids that have to match. A single one matches too often to say much, unless passes cost next to nothing.
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

// DraftEagerly implements [EagerDrafter]: a match of a single id is enough if it has occurred once before.
func (g NGrams) DraftEagerly(text []int, n int) []int {
	if ids := g.Draft(text, n); ids != nil {
		return ids
	}
	end, last := len(text), text[len(text)-1]
	at := slices.Index(text, last) + 1
	if at == end || slices.Contains(text[at:end-1], last) {
		return nil
	}
	return text[at:min(end, at+n)]
}

// After returns a drafter of texts that follow other ids, such as those of a loaded prefix: it uses both.
func After(ids []int, d Drafter) Drafter { return after{ids[:len(ids):len(ids)], d} }

type after struct {
	ids []int
	d   Drafter
}

// Draft implements [Drafter].
func (b after) Draft(text []int, n int) []int { return b.d.Draft(append(b.ids, text...), n) }

// DraftEagerly implements [EagerDrafter] if the drafter does.
func (b after) DraftEagerly(text []int, n int) []int {
	if eager, can := b.d.(EagerDrafter); can {
		return eager.DraftEagerly(append(b.ids, text...), n)
	}
	return b.Draft(text, n)
}
