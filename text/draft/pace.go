package draft

import "time"

// A Pace decides when drafts are worth a pass: always, until a pass has none accepted. Then only after some tokens were
// decoded one by one: more tokens the more consecutive passes had no accepted draft, and the more a pass costs than a
// step. It also limits the steps of a launch without drafts. So times determine when drafts are verified, and never the
// text. The zero value is ready to use.
type Pace struct {
	pause      int           // tokens to be decoded before the next drafts are verified
	misses     int           // passes in a row without an accepted draft
	launches   int           // in a row without drafts
	step, pass time.Duration // the shortest that there were; 0: none
}

const (
	// longestPause is the longest pause, as a power of 2 tokens, after passes that cost as much as two steps. Then a
	// text without any accepted draft takes some 3 % longer. It does so too where passes cost less, and pauses are
	// shorter.
	longestPause = 5
	// longestLaunch is how many steps a launch without drafts has at most, as a power of 2, and longestLook how long
	// one of several takes before its last step. What drafts would have saved meanwhile is lost; but a launch alone
	// costs some 50 µs.
	longestLaunch = 4
	longestLook   = 8 * time.Millisecond
	// littleCost is how much longer than a step a pass takes at most, in steps, where guesses that are right less often
	// are worth it too: half of it after one without accepted drafts, and so on.
	littleCost = 0.25
)

// Due reports whether drafts may be verified now.
func (p *Pace) Due() bool { return p.pause <= 0 }

// Draft asks a drafter for up to n ids that may follow a text, if drafts are due: eagerly if passes cost little, and
// less so the more consecutive passes had no accepted draft.
func (p *Pace) Draft(d Drafter, text []int, n int) []int {
	if !p.Due() {
		return nil
	}
	if eager, can := d.(EagerDrafter); can && p.cost()*float64(int(1)<<p.misses) <= littleCost {
		return eager.DraftEagerly(text, n)
	}
	return d.Draft(text, n)
}

// Steps returns the number of steps of the next launch without drafts: it grows, and is at least the pause.
func (p *Pace) Steps() int {
	n := 1 << min(p.launches, longestLaunch)
	if p.step > 0 {
		n = min(n, 1+int(longestLook/p.step))
	}
	return max(n, p.pause)
}

// Decoded records tokens that were decoded one by one in a launch, and how long that took; 0 if unknown.
func (p *Pace) Decoded(n int, took time.Duration) {
	p.pause -= n
	p.launches++
	if n > 0 {
		p.step = shorter(p.step, took/time.Duration(n))
	}
}

// Verified records a pass in which n drafts were accepted, and how long it took.
func (p *Pace) Verified(accepted int, took time.Duration) {
	p.launches = 0
	p.pass = shorter(p.pass, took)
	if accepted > 0 {
		p.misses = 0
		return
	}
	p.misses = min(p.misses+1, longestPause)
	p.pause = int(p.cost() * float64(int(1)<<p.misses))
}

// cost is how much longer than a step a pass takes, in steps, from 0 to 1; 1 as long as nobody knows.
func (p *Pace) cost() float64 {
	if p.step == 0 || p.pass == 0 {
		return 1
	}
	return min(1, max(0, float64(p.pass-p.step)/float64(p.step)))
}

// shorter is the shorter of two times; 0 means that there is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
