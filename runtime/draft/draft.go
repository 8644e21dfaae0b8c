// Package draft guesses how a text goes on. Guesses are verified by passes of several rows: each that is what would
// have been chosen without it saves a step, and the others cost nothing but the time of the pass. So what is guessed
// decides how fast a text is continued, and never how.
//
// It is copied into every launcher. It imports nothing, and must not import any package of amkc.
package draft

// A Drafter guesses how a text goes on.
type Drafter interface {
	// Draft returns up to n ids that may follow a text of at least one.
	Draft(text []int, n int) []int
}

// Stats count what drafts were good for.
type Stats struct {
	Passes   int `json:"passes"`   // that verified drafts
	Drafted  int `json:"drafted"`  // ids
	Accepted int `json:"accepted"` // of these
}

// NGram is what command lines call [NGrams].
const NGram = "ngram"

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

// Behind returns a drafter of texts that stand behind other ids, as of a prefix that was loaded: it looks at both.
func Behind(ids []int, d Drafter) Drafter { return behind{ids[:len(ids):len(ids)], d} }

type behind struct {
	ids []int
	d   Drafter
}

func (b behind) Draft(text []int, n int) []int { return b.d.Draft(append(b.ids, text...), n) }

// A Pace says when drafts are worth a pass: always, until one comes to nothing; then not before some tokens were
// decoded one by one, for longer the more passes in a row came to nothing. The zero value is ready.
type Pace struct {
	pause  int // tokens to be decoded before the next drafts are verified
	misses int // passes in a row without an accepted draft
}

// longestPause is the longest pause, as a power of 2 tokens. A pass that verifies drafts costs somewhat less than two
// tokens, so that a text without any accepted draft takes some 3 % longer.
const longestPause = 5

// Due reports whether drafts may be verified now.
func (p *Pace) Due() bool { return p.pause <= 0 }

// Pause is how many tokens are to be decoded before they may, at least 0.
func (p *Pace) Pause() int { return max(0, p.pause) }

// Decoded notes tokens that were decoded without drafts.
func (p *Pace) Decoded(n int) { p.pause -= n }

// Verified notes a pass of which so many drafts were accepted.
func (p *Pace) Verified(accepted int) {
	if accepted > 0 {
		p.misses = 0
		return
	}
	p.misses = min(p.misses+1, longestPause)
	p.pause = 1 << p.misses
}
