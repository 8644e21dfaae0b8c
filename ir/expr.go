package ir

import "strconv"

// Expr is an integer expression over the symbols of its context: `pos` (the position being decoded) and, inside a
// stage, `a` and `b` (the span [a, b) of the stage's axis that a task covers), `sm` (the SM that runs it, of its rank)
// and `rank` (its rank). In a pass of several tokens, `pos` is the position of the first row of sequence 0 and `pos[e]`
// that of sequence e; `t`, in parameters with a value per row, is the number of the row. Operations are +, -,
// multiplication, floor division and modulus by positive constants, min and max. The zero Expr is the constant 0.
type Expr struct {
	op   exprOp
	k    int // constant operand, or symbol index
	x, y *Expr
}

type exprOp uint8

const (
	exprConst exprOp = iota
	exprSym
	exprAdd
	exprSub
	exprMul // x * k
	exprDiv // floor(x / k), k > 0
	exprMod // x - k*floor(x/k), k > 0
	exprMin
	exprMax
	exprPosOf // of sequence k, or of sequence x while that depends on a task or a row
)

// Sym is a symbol of an expression.
type Sym int

const (
	Pos    Sym = iota // the position being decoded, counted from 0
	SpanA             // first element of the task's span
	SpanB             // one past the last element of the task's span
	OnSM              // the task's SM
	Row               // the row of an op's operands that a parameter is for
	OnRank            // the task's rank
)

var symNames = [...]string{"pos", "a", "b", "sm", "t", "rank"}

// Int returns the constant n.
func Int(n int) Expr { return Expr{k: n} }

// Symbol returns the expression that is just s.
func Symbol(s Sym) Expr { return Expr{op: exprSym, k: int(s)} }

// IsConst reports whether e is a constant, and returns its value.
func (e Expr) IsConst() (int, bool) { return e.k, e.op == exprConst }

// Add returns e + f.
func (e Expr) Add(f Expr) Expr {
	if m, ok := e.IsConst(); ok && m == 0 {
		return f
	}
	if n, ok := f.IsConst(); ok {
		if m, ok := e.IsConst(); ok {
			return Int(satAdd(m, n))
		}
		if n == 0 {
			return e
		}
	}
	return Expr{op: exprAdd, x: &e, y: &f}
}

// Sub returns e - f.
func (e Expr) Sub(f Expr) Expr {
	if n, ok := f.IsConst(); ok {
		if m, ok := e.IsConst(); ok {
			return Int(satAdd(m, -n))
		}
		if n == 0 {
			return e
		}
	}
	return Expr{op: exprSub, x: &e, y: &f}
}

// Mul returns e * n.
func (e Expr) Mul(n int) Expr {
	if m, ok := e.IsConst(); ok {
		return Int(satMul(m, n))
	}
	if n == 1 {
		return e
	}
	return Expr{op: exprMul, k: n, x: &e}
}

// Div returns floor(e / n); n must be positive.
func (e Expr) Div(n int) Expr {
	if m, ok := e.IsConst(); ok && n > 0 {
		return Int(floorDiv(m, n))
	}
	if n == 1 {
		return e
	}
	return Expr{op: exprDiv, k: n, x: &e}
}

// Mod returns e - n*floor(e/n); n must be positive.
func (e Expr) Mod(n int) Expr {
	if m, ok := e.IsConst(); ok && n > 0 {
		return Int(m - n*floorDiv(m, n))
	}
	return Expr{op: exprMod, k: n, x: &e}
}

// Min returns min(e, f).
func (e Expr) Min(f Expr) Expr { return fold2(exprMin, e, f) }

// Max returns max(e, f).
func (e Expr) Max(f Expr) Expr { return fold2(exprMax, e, f) }

func fold2(op exprOp, e, f Expr) Expr {
	m, ok1 := e.IsConst()
	n, ok2 := f.IsConst()
	if ok1 && ok2 {
		if op == exprMin {
			return Int(min(m, n))
		}
		return Int(max(m, n))
	}
	return Expr{op: op, x: &e, y: &f}
}

// Env gives the symbols their values, indexed by Sym.
type Env [6]int

// Eval returns the value of e if every sequence has the position of the environment. Arithmetic saturates instead of
// overflowing.
func (e Expr) Eval(env Env) int {
	switch e.op {
	case exprConst:
		return e.k
	case exprSym:
		return env[e.k]
	case exprAdd:
		return satAdd(e.x.Eval(env), e.y.Eval(env))
	case exprSub:
		return satAdd(e.x.Eval(env), -e.y.Eval(env))
	case exprMul:
		return satMul(e.x.Eval(env), e.k)
	case exprDiv:
		return floorDiv(e.x.Eval(env), e.k)
	case exprMod:
		v := e.x.Eval(env)
		return v - e.k*floorDiv(v, e.k)
	case exprMin:
		return min(e.x.Eval(env), e.y.Eval(env))
	case exprPosOf:
		return env[Pos]
	default:
		return max(e.x.Eval(env), e.y.Eval(env))
	}
}

// At returns the value of e, which may mention only the position of one sequence, at a position of that sequence, in
// row 0.
func (e Expr) At(pos int) int { return e.Eval(Env{pos}) }

// Bind replaces a, b and sm by those of the task and folds, leaving an expression of positions and of a row.
func (e Expr) Bind(t TaskSpan) Expr {
	switch e.op {
	case exprConst:
		return e
	case exprSym:
		switch Sym(e.k) {
		case SpanA:
			return Int(t.A)
		case SpanB:
			return Int(t.B)
		case OnSM:
			return Int(t.SM)
		}
		return e
	case exprMul:
		return e.x.Bind(t).Mul(e.k)
	case exprDiv:
		return e.x.Bind(t).Div(e.k)
	case exprMod:
		return e.x.Bind(t).Mod(e.k)
	case exprAdd:
		return e.x.Bind(t).Add(e.y.Bind(t))
	case exprSub:
		return e.x.Bind(t).Sub(e.y.Bind(t))
	case exprPosOf:
		if e.x == nil {
			return e
		}
		return PosOf(e.x.Bind(t))
	default:
		return fold2(e.op, e.x.Bind(t), e.y.Bind(t))
	}
}

// With replaces a symbol by an expression, and folds.
func (e Expr) With(s Sym, f Expr) Expr {
	switch e.op {
	case exprConst:
		return e
	case exprSym:
		if Sym(e.k) == s {
			return f
		}
		return e
	case exprMul:
		return e.x.With(s, f).Mul(e.k)
	case exprDiv:
		return e.x.With(s, f).Div(e.k)
	case exprMod:
		return e.x.With(s, f).Mod(e.k)
	case exprAdd:
		return e.x.With(s, f).Add(e.y.With(s, f))
	case exprSub:
		return e.x.With(s, f).Sub(e.y.With(s, f))
	case exprPosOf:
		if e.x == nil {
			return e
		}
		return PosOf(e.x.With(s, f))
	default:
		return fold2(e.op, e.x.With(s, f), e.y.With(s, f))
	}
}

// Uses reports whether e mentions s. It mentions Pos if it mentions the position of any sequence.
func (e Expr) Uses(s Sym) bool {
	switch {
	case e.op == exprPosOf:
		return s == Pos || e.x != nil && e.x.Uses(s)
	case e.op == exprConst:
		return false
	case e.op == exprSym:
		return e.k == int(s)
	case e.y != nil:
		return e.x.Uses(s) || e.y.Uses(s)
	default:
		return e.x.Uses(s)
	}
}

// ofTask reports whether the expression mentions a symbol that Bind replaces.
func (e Expr) ofTask() bool {
	switch {
	case e.op == exprConst:
		return false
	case e.op == exprSym:
		return e.k == int(SpanA) || e.k == int(SpanB) || e.k == int(OnSM)
	default:
		return e.x != nil && e.x.ofTask() || e.y != nil && e.y.ofTask()
	}
}

// Affine returns c and d with e = c*pos + d, pos being the position of one sequence, if e has that form for every pos
// from 0 to maxAffinePos. It reports false for coefficients so large that Eval could saturate.
func (e Expr) Affine() (c, d int, ok bool) {
	if _, one := e.Sequence(); !one {
		return 0, 0, false
	}
	return e.affine()
}

func (e Expr) affine() (c, d int, ok bool) {
	switch e.op {
	case exprConst:
		c, d, ok = 0, e.k, true
	case exprSym:
		c, d, ok = 1, 0, Sym(e.k) == Pos
	case exprPosOf:
		c, d, ok = 1, 0, true
	case exprMul:
		c, d, ok = e.x.affine()
		c, d = satMul(c, e.k), satMul(d, e.k)
	case exprAdd, exprSub:
		c1, d1, ok1 := e.x.affine()
		c2, d2, ok2 := e.y.affine()
		if e.op == exprSub {
			c2, d2 = -c2, -d2
		}
		c, d, ok = satAdd(c1, c2), satAdd(d1, d2), ok1 && ok2
	}
	if abs(c) > satMax/4/maxAffinePos || abs(d) > satMax/4 {
		return 0, 0, false
	}
	return c, d, ok
}

// maxAffinePos bounds the positions that Affine speaks of.
const maxAffinePos = 1 << 31

// Equal reports whether e and f are the same expression, term by term.
func (e Expr) Equal(f Expr) bool {
	if e.op != f.op || e.k != f.k || (e.x == nil) != (f.x == nil) || (e.y == nil) != (f.y == nil) {
		return false
	}
	return (e.x == nil || e.x.Equal(*f.x)) && (e.y == nil || e.y.Equal(*f.y))
}

// String prints e so that ParseExpr reads it back.
func (e Expr) String() string { return string(e.append(nil)) }

func (e Expr) append(dst []byte) []byte {
	switch e.op {
	case exprConst:
		return strconv.AppendInt(dst, int64(e.k), 10)
	case exprSym:
		return append(dst, enumName(symNames[:], e.k)...)
	case exprAdd:
		return e.y.appendTight(append(e.x.append(dst), '+'))
	case exprSub:
		return e.y.appendTight(append(e.x.append(dst), '-'))
	case exprMul:
		return Int(e.k).appendTight(append(e.x.appendTight(dst), '*'))
	case exprDiv:
		return strconv.AppendInt(append(e.x.appendTight(dst), '/'), int64(e.k), 10)
	case exprMod:
		return strconv.AppendInt(append(e.x.appendTight(dst), '%'), int64(e.k), 10)
	case exprPosOf:
		of := Int(e.k)
		if e.x != nil {
			of = *e.x
		}
		return append(of.append(append(dst, "pos["...)), ']')
	}
	name := "min("
	if e.op == exprMax {
		name = "max("
	}
	return append(e.y.append(append(e.x.append(append(dst, name...)), ',')), ')')
}

// appendTight prints e as the right side of + or -, or the left side of *, / or %: sums and negative constants need
// brackets; a chain of *, / and % binds to the left and needs none.
func (e Expr) appendTight(dst []byte) []byte {
	if e.op == exprAdd || e.op == exprSub || e.op == exprConst && e.k < 0 {
		return append(e.append(append(dst, '(')), ')')
	}
	return e.append(dst)
}

func floorDiv(x, k int) int {
	if k <= 0 {
		return 0
	}
	q := x / k
	if x%k < 0 {
		q--
	}
	return q
}

// Saturation bounds leave room for one more addition of two saturated values.
const satMax = 1 << 60

func satAdd(x, y int) int { return clampInt(clampInt(x) + clampInt(y)) }

func satMul(x, y int) int {
	x, y = clampInt(x), clampInt(y)
	if x != 0 && (abs(y) > satMax/abs(x)) {
		if (x < 0) == (y < 0) {
			return satMax
		}
		return -satMax
	}
	return x * y
}

func clampInt(x int) int { return max(-satMax, min(satMax, x)) }

func abs(x int) int {
	if x < 0 {
		return -x
	}
	return x
}
