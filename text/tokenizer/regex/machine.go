package regex

import "unicode/utf8"

// A Matcher finds the matches of a pattern in one text after another. It backtracks.
//
// A hostile text can make that take quadratic time or worse, so the steps are counted. After stepsPerByte of them for
// each byte of the text, the Matcher records the choices that failed, one bit for each place in the pattern and in the
// text, and does not try them again.
type Matcher struct {
	re      *Regexp
	text    string
	at      int // where the next search begins
	lastEnd int // of the last match, or -1
	stack   []frame
	steps   int      // left before the record is kept
	failed  []uint64 // the record, nil before it is kept
	trail   []int    // the choices of the record that have not failed so far
}

// A frame is where to go on when what is tried fails: at pc and pos; if a star pushed it, then after giving back one
// character, unless pos is low.
type frame struct {
	pc, pos, low int
	trail        int // how much of the trail was there before
	kind         frameKind
}

type frameKind uint8

const (
	resume   frameKind = iota
	giveBack           // one character of a greedy star
	takeOne            // one more for a lazy star
)

const stepsPerByte = 64

// What match returns instead of an end.
const (
	noMatch   = -1
	exhausted = -2 // too many steps without a record
)

// Matcher returns a Matcher on no text.
func (re *Regexp) Matcher() *Matcher { return &Matcher{re: re} }

// Reset starts another text, which must be valid UTF-8.
func (m *Matcher) Reset(text string) {
	m.text, m.at, m.lastEnd = text, 0, -1
	m.steps = stepsPerByte*len(text) + 4096
	m.failed, m.trail = nil, m.trail[:0]
}

// Next returns the next match that does not overlap the one before. An empty match right after a match does not count.
func (m *Matcher) Next() (start, end int, ok bool) {
	for m.at <= len(m.text) {
		start, end = m.search(m.at)
		if end == noMatch {
			m.at = len(m.text) + 1
			break
		}
		if start == end && end == m.lastEnd {
			m.at = m.after(m.at)
			continue
		}
		m.at, m.lastEnd = end, end
		return start, end, true
	}
	return 0, 0, false
}

// after is the position after the character at pos, or beyond the text.
func (m *Matcher) after(pos int) int {
	if pos >= len(m.text) || m.text[pos] < utf8.RuneSelf {
		return pos + 1
	}
	_, size := utf8.DecodeRuneInString(m.text[pos:])
	return pos + size
}

// search returns the first match that begins at pos or later.
func (m *Matcher) search(pos int) (start, end int) {
	for pos <= len(m.text) {
		kind := firstEnd
		if pos < len(m.text) {
			kind = min(int(m.text[pos]), firstWide)
		}
		if mask := m.re.first[kind]; mask != 0 {
			for i, pc := range m.re.branches {
				if mask>>min(i, 63)&1 == 0 {
					continue
				}
				end := m.match(pc, pos)
				if end == exhausted {
					m.record()
					end = m.match(pc, pos)
				}
				if end >= 0 {
					return pos, end
				}
			}
		}
		pos = m.after(pos)
	}
	return 0, noMatch
}

// record begins to record what fails.
func (m *Matcher) record() {
	m.failed = make([]uint64, (m.re.memos*(len(m.text)+1)+63)/64)
}

// enter notes that the choice of pc at pos is being made, and reports false if it has failed before.
func (m *Matcher) enter(memo, pos int) bool {
	i := memo*(len(m.text)+1) + pos
	if m.failed[i>>6]>>(i&63)&1 != 0 {
		return false
	}
	m.failed[i>>6] |= 1 << (i & 63)
	m.trail = append(m.trail, i)
	return true
}

// succeed takes the choices that led to a match out of the record again.
func (m *Matcher) succeed() {
	for _, i := range m.trail {
		m.failed[i>>6] &^= 1 << (i & 63)
	}
	m.trail = m.trail[:0]
}

// match returns where a match of the instructions from pc on ends that begins at pos.
func (m *Matcher) match(pc, pos int) int {
	text, prog := m.text, m.re.prog
	m.stack = m.stack[:0]
	recording := m.failed != nil
	steps := m.steps
	for {
		i := &prog[pc]
		ok := true
		if steps--; steps < 0 && !recording {
			return exhausted
		}
		switch i.op {
		case opMatch:
			m.steps = steps
			m.succeed()
			return pos
		case opOne:
			if n := i.set.match(text, pos); n > 0 {
				pos += n
				pc++
			} else {
				ok = false
			}
		case opMaybe:
			pos += i.set.match(text, pos)
			pc++
		case opJump:
			pc = i.next
		case opSplit:
			if ok = !recording || m.enter(i.memo, pos); ok {
				m.push(frame{pc: i.other, pos: pos})
				pc = i.next
			}
		case opStar:
			if recording {
				if ok = m.enter(i.memo, pos); ok {
					if n := i.set.match(text, pos); n > 0 {
						m.push(frame{pc: pc + 1, pos: pos})
						pos += n
					} else {
						pc++
					}
				}
				break
			}
			low := pos
			pos = i.set.span(text, pos)
			steps -= pos - low
			pc++
			if pos > low && prog[pc].op != opMatch {
				m.push(frame{pc: pc, pos: pos, low: low, kind: giveBack})
			}
		case opStarLazy:
			if ok = !recording || m.enter(i.memo, pos); ok {
				m.push(frame{pc: pc, pos: pos, kind: takeOne})
				pc++
			}
		case opStarPossessive:
			if recording { // a character at a time: runs that begin in one run share the record of its rest
				if ok = m.enter(i.memo, pos); ok {
					if n := i.set.match(text, pos); n > 0 {
						pos += n
					} else {
						pc++
					}
				}
				break
			}
			low := pos
			pos = i.set.span(text, pos)
			steps -= pos - low
			pc++
		default:
			ok = i.holds(text, pos)
			pc++
		}
		if ok {
			continue
		}
		if pc, pos, ok = m.stepBack(); !ok {
			m.steps = steps
			return noMatch
		}
	}
}

func (m *Matcher) push(f frame) {
	f.trail = len(m.trail)
	m.stack = append(m.stack, f)
}

// stepBack returns where the last choice goes on that is not used up.
func (m *Matcher) stepBack() (pc, pos int, ok bool) {
	for len(m.stack) > 0 {
		f := &m.stack[len(m.stack)-1]
		m.trail = m.trail[:f.trail]
		switch f.kind {
		case giveBack:
			f.pos--
			for m.text[f.pos]&0xC0 == 0x80 {
				f.pos--
			}
			pc, pos = f.pc, f.pos
			if pos == f.low {
				m.stack = m.stack[:len(m.stack)-1]
			}
			return pc, pos, true
		case takeOne:
			pc, pos = f.pc, f.pos
			m.stack = m.stack[:len(m.stack)-1]
			if n := m.re.prog[pc].set.match(m.text, pos); n > 0 {
				return pc, pos + n, true
			}
		case resume:
			pc, pos = f.pc, f.pos
			m.stack = m.stack[:len(m.stack)-1]
			return pc, pos, true
		}
	}
	m.trail = m.trail[:0]
	return 0, 0, false
}

// match returns the length of the character at pos if it is in the class, or else 0.
func (c *class) match(text string, pos int) int {
	if pos >= len(text) {
		return 0
	}
	if b := text[pos]; b < utf8.RuneSelf {
		return int(c.ascii[b>>6] >> (b & 63) & 1)
	}
	if c.wide == nil {
		return 0
	}
	if r, size := utf8.DecodeRuneInString(text[pos:]); c.wide.Has(r) {
		return size
	}
	return 0
}

// span returns the end of the run of characters of the class at pos.
func (c *class) span(text string, pos int) int {
	for pos < len(text) {
		b := text[pos]
		if b < utf8.RuneSelf {
			if c.ascii[b>>6]>>(b&63)&1 == 0 {
				break
			}
			pos++
			continue
		}
		n := c.match(text, pos)
		if n == 0 {
			break
		}
		pos += n
	}
	return pos
}

// holds reports whether a condition holds at pos.
func (i *inst) holds(text string, pos int) bool {
	switch i.op {
	case opLook:
		return (i.set.match(text, pos) > 0) != i.negative
	case opLookBehind:
		r, size := utf8.DecodeLastRuneInString(text[:pos])
		return (size > 0 && i.set.has(r)) != i.negative
	case opBeginLine:
		return pos == 0 || text[pos-1] == '\n' && pos < len(text)
	case opEndLine:
		return pos == len(text) || text[pos] == '\n'
	case opBeginText:
		return pos == 0
	case opEndText:
		return pos == len(text)
	default: // opEndTextLine
		return pos == len(text) || text[pos:] == "\n"
	}
}
