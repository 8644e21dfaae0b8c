package ir

import (
	"fmt"
	"strconv"
)

// Limits of one expression. They keep hostile input from exhausting the stack, here or in a walk over the result, and
// leave two orders of magnitude above what a compiled program holds.
const (
	maxExprDepth = 64
	maxExprOps   = 32
)

// ParseExpr reads the form that Expr.String prints: integers, pos, pos[e], a, b, sm, t, rank, + - * / %, min(,),
// max(,) and brackets. The right side of *, / and % must be an integer constant, positive for / and %.
func ParseExpr(s string) (Expr, error) {
	p := exprParser{s: s}
	e, err := p.sum(0)
	if err == nil && p.i != len(s) {
		err = p.fail("unexpected %s", clip(s[p.i:]))
	}
	if err != nil {
		return Expr{}, fmt.Errorf("expression %s, at offset %d: %w", clip(s), err.off, err)
	}
	return e, nil
}

// A syntaxError is a complaint about a string at a byte offset.
type syntaxError struct {
	off int
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

// clip quotes s for a message and shortens it when it is long.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

type exprParser struct {
	s   string
	i   int
	ops int // operators read so far
}

func (p *exprParser) fail(format string, args ...any) *syntaxError {
	return &syntaxError{p.i, fmt.Sprintf(format, args...)}
}

func (p *exprParser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// operator consumes an operator and counts it against the limit.
func (p *exprParser) operator() *syntaxError {
	if p.ops++; p.ops > maxExprOps {
		return p.fail("more than %d operators in one expression", maxExprOps)
	}
	p.i++
	return nil
}

func (p *exprParser) sum(depth int) (Expr, *syntaxError) {
	e, err := p.product(depth)
	for err == nil && (p.peek() == '+' || p.peek() == '-') {
		op := p.peek()
		if err = p.operator(); err != nil {
			break
		}
		var f Expr
		if f, err = p.product(depth); err == nil {
			if op == '+' {
				e = e.Add(f)
			} else {
				e = e.Sub(f)
			}
		}
	}
	return e, err
}

func (p *exprParser) product(depth int) (Expr, *syntaxError) {
	e, err := p.atom(depth)
	for err == nil && (p.peek() == '*' || p.peek() == '/' || p.peek() == '%') {
		op := p.peek()
		if err = p.operator(); err != nil {
			break
		}
		var f Expr
		if f, err = p.atom(depth); err != nil {
			break
		}
		k, ok := f.IsConst()
		if !ok || op != '*' && k <= 0 {
			return e, p.fail("the right side of %c must be a constant, positive for / and %%", op)
		}
		switch op {
		case '*':
			e = e.Mul(k)
		case '/':
			e = e.Div(k)
		default:
			e = e.Mod(k)
		}
	}
	return e, err
}

func (p *exprParser) atom(depth int) (Expr, *syntaxError) {
	if depth > maxExprDepth {
		return Expr{}, p.fail("expression nested deeper than %d", maxExprDepth)
	}
	start := p.i
	switch c := p.peek(); {
	case c == '(':
		p.i++
		e, err := p.sum(depth + 1)
		if err != nil {
			return e, err
		}
		return e, p.expect(')')
	case c == '-' || c >= '0' && c <= '9':
		p.i++
		for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
			p.i++
		}
		n, err := strconv.Atoi(p.s[start:p.i])
		if err != nil || n > satMax || n < -satMax {
			return Expr{}, &syntaxError{start, "bad integer " + clip(p.s[start:p.i])}
		}
		return Int(n), nil
	}
	for c := p.peek(); c >= 'a' && c <= 'z'; c = p.peek() {
		p.i++
	}
	word := p.s[start:p.i]
	if word == symNames[Pos] && p.peek() == '[' {
		return p.posOf(depth)
	}
	for i, name := range symNames {
		if word == name {
			return Symbol(Sym(i)), nil
		}
	}
	if word != "min" && word != "max" {
		return Expr{}, &syntaxError{start, fmt.Sprintf("unexpected %s, want a number, pos, a, b, sm, t, rank, min or "+
			"max",
			clip(p.s[start:]))}
	}
	return p.choice(word, depth)
}

// posOf reads the brackets after pos.
func (p *exprParser) posOf(depth int) (Expr, *syntaxError) {
	start := p.i
	p.i++
	e, err := p.sum(depth + 1)
	if err == nil && e.Uses(Pos) {
		err = &syntaxError{start, "the number of a sequence depends on a position, want an expression of a, b, sm " +
			"and t"}
	}
	if err != nil {
		return e, err
	}
	return PosOf(e), p.expect(']')
}

// choice reads the brackets of min or max.
func (p *exprParser) choice(word string, depth int) (Expr, *syntaxError) {
	if p.ops++; p.ops > maxExprOps {
		return Expr{}, p.fail("more than %d operators in one expression", maxExprOps)
	}
	if err := p.expect('('); err != nil {
		return Expr{}, err
	}
	e, err := p.sum(depth + 1)
	if err == nil {
		err = p.expect(',')
	}
	if err != nil {
		return e, err
	}
	f, err := p.sum(depth + 1)
	if err == nil {
		err = p.expect(')')
	}
	if word == "min" {
		return e.Min(f), err
	}
	return e.Max(f), err
}

func (p *exprParser) expect(c byte) *syntaxError {
	if p.peek() != c {
		return p.fail("want %q, found %s", c, clip(p.s[p.i:]))
	}
	p.i++
	return nil
}
