package regex

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"amkc/text/tokenizer/chars"
)

// An op is what an instruction does.
type op uint8

const (
	opMatch          op = iota
	opOne               // a character of a set
	opSplit             // goes on at next, and if that fails at other
	opJump              // goes on at next
	opStar              // any number of characters of a set, as many as possible
	opStarLazy          // as few as possible
	opStarPossessive    // as many as there are
	opMaybe             // one character of a set if there is one
	opLook              // the next character is of a set
	opLookBehind        // the character before is
	opBeginLine
	opEndLine
	opBeginText
	opEndText
	opEndTextLine // before a line break at the end of the text, or at its end
)

// An inst is an instruction. What follows it is the next one, where nothing else is said.
type inst struct {
	op          op
	negative    bool // of opLook and opLookBehind: there is no such character
	next, other int  // of opSplit and opJump
	memo        int  // of opSplit and the stars: which one of them this is, counted from 0
	set         *class
}

// A class is a set with its table: of the first 128 characters, and of all if it has others.
type class struct {
	ascii [2]uint64
	wide  *chars.Table
}

func (c *class) has(r rune) bool {
	if r < utf8.RuneSelf {
		return c.ascii[r>>6]>>(r&63)&1 != 0
	}
	return c.wide != nil && c.wide.Has(r)
}

func (c *class) addASCII(s chars.Set) {
	for r := range rune(utf8.RuneSelf) {
		if s.Has(r) {
			c.ascii[r>>6] |= 1 << (r & 63)
		}
	}
}

func beyondASCII(s chars.Set) bool { return len(s) > 0 && s[len(s)-1].Hi >= utf8.RuneSelf }

// A Regexp is a compiled pattern. It is immutable.
type Regexp struct {
	prog     []inst
	branches []int // where each alternative of the whole pattern starts
	memos    int
	// first says which branches a match may take that begins with an ASCII character, with another character, or at the
	// end of the text: bit i stands for branch i, the last bit for all from there on.
	first [utf8.RuneSelf + 2]uint64
}

const (
	firstWide = utf8.RuneSelf
	firstEnd  = utf8.RuneSelf + 1
)

// Bounds of a compiled pattern, which keep its memory and the record of failures small.
const (
	maxProg    = 2048
	maxClasses = 64
)

// Compile compiles a pattern. Its errors are *SyntaxError.
func Compile(pattern string) (*Regexp, error) {
	n, err := parse(pattern)
	if err != nil {
		return nil, err
	}
	re := compile(n)
	if re == nil {
		return nil, &SyntaxError{pattern, 0, "a pattern of too many parts"}
	}
	return re, nil
}

// Literal matches a text as it is.
func Literal(text string) *Regexp {
	var n seq
	for _, r := range text {
		n = append(n, one{chars.Of(r)})
	}
	return compile(n)
}

// Any matches each character of a set.
func Any(set chars.Set) *Regexp { return compile(one{set}) }

// Runs matches runs of characters of each of the sets, as long as possible.
func Runs(sets ...chars.Set) *Regexp {
	var n alt
	for _, set := range sets {
		n = append(n, repeat{body: one{set}, min: 1, max: -1})
	}
	return compile(n)
}

// Nullable reports whether the pattern may match the empty text.
func (re *Regexp) Nullable() bool { return re.first[firstEnd] != 0 }

// compile returns nil if the pattern exceeds the bounds.
func compile(n node) *Regexp {
	c := compiler{re: &Regexp{}, classes: map[string]*class{}}
	branches, ok := n.(alt)
	if !ok {
		branches = alt{n}
	}
	for i, b := range branches {
		var begin class
		var wide bool
		empty := begin.starts(b, &wide)
		bit := uint64(1) << min(i, 63)
		for r := range rune(utf8.RuneSelf) {
			if empty || begin.has(r) {
				c.re.first[r] |= bit
			}
		}
		if empty || wide {
			c.re.first[firstWide] |= bit
		}
		if empty {
			c.re.first[firstEnd] |= bit
		}
		c.re.branches = append(c.re.branches, len(c.re.prog))
		c.emit(b)
		c.add(inst{op: opMatch})
	}
	if c.tooLarge {
		return nil
	}
	return c.re
}

type compiler struct {
	re       *Regexp
	classes  map[string]*class
	tooLarge bool
}

func (c *compiler) add(i inst) int {
	if len(c.re.prog) >= maxProg {
		c.tooLarge = true
		return len(c.re.prog) - 1
	}
	switch i.op {
	case opSplit, opStar, opStarLazy, opStarPossessive:
		i.memo = c.re.memos
		c.re.memos++
	}
	c.re.prog = append(c.re.prog, i)
	return len(c.re.prog) - 1
}

// class returns the class of a set, which equal sets share.
func (c *compiler) class(s chars.Set) *class {
	key := make([]byte, 0, 8*len(s))
	for _, r := range s {
		key = binary.LittleEndian.AppendUint32(key, uint32(r.Lo))
		key = binary.LittleEndian.AppendUint32(key, uint32(r.Hi))
	}
	if k, ok := c.classes[string(key)]; ok {
		return k
	}
	k := &class{}
	k.addASCII(s)
	if beyondASCII(s) {
		k.wide = s.Table()
	}
	c.tooLarge = c.tooLarge || len(c.classes) == maxClasses
	c.classes[string(key)] = k
	return k
}

func (c *compiler) emit(n node) {
	if c.tooLarge {
		return
	}
	switch n := n.(type) {
	case seq:
		for _, part := range n {
			c.emit(part)
		}
	case alt:
		var ends []int
		for _, b := range n[:len(n)-1] {
			split := c.add(inst{op: opSplit})
			c.re.prog[split].next = len(c.re.prog)
			c.emit(b)
			ends = append(ends, c.add(inst{op: opJump}))
			c.re.prog[split].other = len(c.re.prog)
		}
		c.emit(n[len(n)-1])
		for _, jump := range ends {
			c.re.prog[jump].next = len(c.re.prog)
		}
	case one:
		c.add(inst{op: opOne, set: c.class(n.set)})
	case repeat:
		c.repeat(n)
	case look:
		o := opLook
		if n.behind {
			o = opLookBehind
		}
		c.add(inst{op: o, negative: n.negative, set: c.class(n.set)})
	case anchor:
		c.add(inst{op: op(n)})
	}
}

// repeat emits body min times, and then the rest: x* or (x(x)?)?.
func (c *compiler) repeat(r repeat) {
	for range r.min {
		c.emit(r.body)
	}
	set, isOne := single(r.body)
	switch {
	case r.max < 0 && isOne:
		o := opStar
		if r.lazy {
			o = opStarLazy
		} else if r.possessive {
			o = opStarPossessive
		}
		c.add(inst{op: o, set: c.class(set)})
	case r.max < 0:
		split := c.add(inst{op: opSplit})
		c.emit(r.body)
		c.add(inst{op: opJump, next: split})
		c.choose(split, r.lazy)
	case r.possessive:
		c.add(inst{op: opMaybe, set: c.class(set)})
	default:
		var splits []int
		for range r.max - r.min {
			splits = append(splits, c.add(inst{op: opSplit}))
			c.emit(r.body)
		}
		for _, split := range splits {
			c.choose(split, r.lazy)
		}
	}
}

// choose makes the split before a body prefer the body, or what follows if lazy.
func (c *compiler) choose(split int, lazy bool) {
	in, after := split+1, len(c.re.prog)
	if lazy {
		in, after = after, in
	}
	c.re.prog[split].next, c.re.prog[split].other = in, after
}

// nullable reports whether n may match the empty text.
func nullable(n node) bool {
	switch n := n.(type) {
	case seq:
		return !slices.ContainsFunc(n, func(part node) bool { return !nullable(part) })
	case alt:
		return slices.ContainsFunc(n, nullable)
	case one:
		return false
	case repeat:
		return n.min == 0 || nullable(n.body)
	}
	return true // look, anchor
}

// starts adds the characters that a match of n may begin with. It returns whether the match may be empty, with
// conditions taken to hold.
func (c *class) starts(n node, wide *bool) (empty bool) {
	switch n := n.(type) {
	case seq:
		for _, part := range n {
			if !c.starts(part, wide) {
				return false
			}
		}
		return true
	case alt:
		for _, b := range n {
			empty = c.starts(b, wide) || empty
		}
		return empty
	case one:
		c.addASCII(n.set)
		*wide = *wide || beyondASCII(n.set)
		return false
	case repeat:
		return c.starts(n.body, wide) || n.min == 0
	}
	return true // look, anchor
}
