package ir

import (
	"fmt"
	"strconv"
)

// maxExprDepth bounds nesting, so that hostile input cannot exhaust the stack.
const maxExprDepth = 64

// ParseExpr reads the form that Expr.String prints: integers, pos, a, b, sm, + - * / %, min(,), max(,) and brackets.
// The right side of *, / and % must be an integer constant, positive for / and %.
func ParseExpr(s string) (Expr, error) {
	p := exprParser{s: s}
	e, err := p.sum(0)
	if err != nil {
		return Expr{}, err
	}
	if p.i != len(s) {
		return Expr{}, fmt.Errorf("expression %q: unexpected %q at offset %d", s, s[p.i:], p.i)
	}
	return e, nil
}

type exprParser struct {
	s string
	i int
}

func (p *exprParser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *exprParser) sum(depth int) (Expr, error) {
	e, err := p.product(depth)
	for err == nil && (p.peek() == '+' || p.peek() == '-') {
		op := p.peek()
		p.i++
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

func (p *exprParser) product(depth int) (Expr, error) {
	e, err := p.atom(depth)
	for err == nil && (p.peek() == '*' || p.peek() == '/' || p.peek() == '%') {
		op := p.peek()
		p.i++
		var f Expr
		if f, err = p.atom(depth); err != nil {
			break
		}
		k, ok := f.IsConst()
		if !ok || op != '*' && k <= 0 {
			return e, fmt.Errorf("expression %q: the right side of %c must be a constant, positive for / and %%", p.s, op)
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

func (p *exprParser) atom(depth int) (Expr, error) {
	if depth > maxExprDepth {
		return Expr{}, fmt.Errorf("expression nested deeper than %d", maxExprDepth)
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
		if err != nil || abs(n) > satMax {
			return Expr{}, fmt.Errorf("expression %q: bad integer %q", p.s, p.s[start:p.i])
		}
		return Int(n), nil
	}
	for c := p.peek(); c >= 'a' && c <= 'z'; c = p.peek() {
		p.i++
	}
	word := p.s[start:p.i]
	for i, name := range symNames {
		if word == name {
			return Symbol(Sym(i)), nil
		}
	}
	if word != "min" && word != "max" {
		return Expr{}, fmt.Errorf("expression %q: unexpected %q at offset %d, want a number, pos, a, b, sm, min or max", p.s, p.s[start:], start)
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

func (p *exprParser) expect(c byte) error {
	if p.peek() != c {
		return fmt.Errorf("expression %q: want %q at offset %d", p.s, c, p.i)
	}
	p.i++
	return nil
}
