package ir

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The strings below are shared by the text and the JSON form: operands, parameter values, layouts.

// String prints the operand as programs have it: L{i}.x[0:256], L{i}.kv[a,0:pos,0,0:64] or %y.
func (o Operand) String() string { return string(o.append(nil)) }

func (o Operand) append(dst []byte) []byte {
	dst = appendName(dst, o.Buf)
	if o.IsTemp() && len(o.Dims) == 0 {
		return dst
	}
	dst = append(dst, '[')
	for i, r := range o.Dims {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.append(dst)
	}
	return append(dst, ']')
}

// String prints the range: an expression when it is an Index, else LO:HI, with its share of blocks if it has one.
func (r Range) String() string { return string(r.append(nil)) }

// dealt reports whether the range says anything of blocks, be it only that one part has them all.
func (r Range) dealt() bool { return r.Block != 0 || r.Parts != 0 || !r.Part.Equal(Expr{}) }

func (r Range) append(dst []byte) []byte {
	dst = r.Lo.append(dst)
	if !r.dealt() && r.Hi.Equal(r.Lo.Add(Int(1))) {
		return dst
	}
	dst = r.Hi.append(append(dst, ':'))
	if r.dealt() {
		dst = strconv.AppendInt(append(dst, " block "...), int64(r.Block), 10)
		dst = r.Part.append(append(dst, " part "...))
		dst = strconv.AppendInt(append(dst, " of "...), int64(r.Parts), 10)
	}
	return dst
}

// ParseOperand reads the form that Operand.String prints.
func ParseOperand(s string) (Operand, error) {
	c := cursor{s: s}
	o := c.operand()
	c.end()
	if c.err != nil {
		return Operand{}, c.err
	}
	return o, nil
}

// MaxRank is the largest number of dimensions of a buffer: that of a cache for several sequences.
const MaxRank = 5

func (c *cursor) operand() Operand {
	o := Operand{Buf: c.name("a buffer or a temporary")}
	if c.peek() != '[' {
		if !o.IsTemp() {
			c.fail(c.i, "want [ and the ranges of a view of %s, found %s", clip(o.Buf), c.found())
		}
		return o
	}
	c.expect("[")
	for c.peek() != ']' && c.err == nil {
		if len(o.Dims) > 0 {
			c.expect(",")
		}
		c.atMost(len(o.Dims), MaxRank, "ranges in a view")
		o.Dims = append(o.Dims, c.rng())
	}
	c.expect("]")
	return o
}

func (c *cursor) rng() Range {
	lo := c.expr()
	if !c.accept(":") {
		return Index(lo)
	}
	r := Span(lo, c.expr())
	if c.word("block") {
		c.peek()
		start := c.i
		r.Block = c.int("the block")
		if !c.word("part") {
			c.fail(c.i, "want part, found %s", c.found())
		}
		r.Part = c.expr()
		if !c.word("of") {
			c.fail(c.i, "want of, found %s", c.found())
		}
		if r.Parts = c.int("the number of parts"); r.Block < 1 || r.Parts < 1 {
			c.fail(start, "block %d of %d parts, want both positive", r.Block, r.Parts)
		}
	}
	return r
}

// value prints the parameter's value: floats always have a point or an exponent, integers and expressions never do.
func (p Param) value() string {
	if p.IsFloat {
		s := formatFloat(p.Float)
		if strings.ContainsAny(s, ".eEIN") {
			return s
		}
		return s + ".0"
	}
	return p.Int.String()
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// param reads what value prints.
func (c *cursor) param(key string) Param {
	b := c.peek()
	if b == '-' || b >= '0' && b <= '9' {
		end := c.i + 1
		for end < len(c.s) && strings.IndexByte("0123456789.eE", c.s[end]) >= 0 ||
			end < len(c.s) && (c.s[end] == '-' || c.s[end] == '+') && (c.s[end-1]|0x20) == 'e' {
			end++
		}
		if strings.ContainsAny(c.s[c.i:end], ".eE") {
			return FloatParam(key, c.float(end))
		}
	}
	return IntParam(key, c.expr())
}

// float reads the token that ends at end as a finite number.
func (c *cursor) float(end int) float64 {
	if c.err != nil {
		return 0
	}
	v, err := strconv.ParseFloat(c.s[c.i:end], 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		c.fail(c.i, "want a finite number, found %s", c.found())
		return 0
	}
	c.i = end
	return v
}

// ParseLayout reads the form that Layout.String prints: a kind, and x and the number of copies if there are several, or
// a dot and the scales of a quantised one.
func ParseLayout(s string) (Layout, error) {
	if scales, ok := strings.CutPrefix(s, Tile8x128.String()+"."); ok {
		return parseScales(scales)
	}
	kind, err := ParseLayoutKind(s)
	switch {
	case err == nil && kind == Tile8x128:
		return parseScales("")
	case err == nil:
		return Layout{Kind: kind}, nil
	}
	if cut := strings.LastIndexByte(s, 'x'); cut > 0 {
		copies, cerr := strconv.Atoi(s[cut+1:])
		kind, kerr := ParseLayoutKind(s[:cut])
		if kerr == nil && kind != Tile8x128 && cerr == nil && copies > 1 && copies <= MaxCopies {
			return Layout{Kind: kind, Copies: copies}, nil
		}
	}
	return Layout{}, err
}

// parseScales reads what follows the kind of a quantised layout: g64.BF16, and what else groups have.
func parseScales(s string) (Layout, error) {
	words := strings.Split(s, ".")
	has := func(word string) bool { return slices.Contains(words, word) }
	group, dtype := words[0], words[min(1, len(words)-1)]
	l := Layout{Kind: Tile8x128, Scales: Scales{Zeros: has("zeros"), Mins: has("mins"), Steps: has("steps")}}
	n, err := strconv.Atoi(strings.TrimPrefix(group, "g"))
	if err == nil {
		l.Scales.Group = n
		l.Scales.DType, err = ParseDType(dtype)
	}
	if err != nil || n < 1 || l.String() != Tile8x128.String()+"."+s {
		return Layout{}, fmt.Errorf("scales %s; want them as in %s", strconv.Quote(clip(s)),
			Scales{Group: 64, DType: BF16, Zeros: true}.blocks().Layout())
	}
	return l, nil
}

// MaxCopies bounds the copies of a layout.
const MaxCopies = 1024
