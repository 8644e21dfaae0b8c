package ir

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomExpr builds an expression through the public constructors.
func randomExpr(r *rand.Rand, depth int) Expr {
	if depth == 0 || r.IntN(5) == 0 {
		if r.IntN(2) == 0 {
			return Int(r.IntN(41) - 20)
		}
		if r.IntN(4) == 0 {
			return PosOf(pickIndex(r, depth > 0))
		}
		return Symbol(Sym(r.IntN(len(symNames))))
	}
	e := randomExpr(r, depth-1)
	switch r.IntN(7) {
	case 0:
		return e.Add(randomExpr(r, depth-1))
	case 1:
		return e.Sub(randomExpr(r, depth-1))
	case 2:
		return e.Mul(r.IntN(21) - 10)
	case 3:
		return e.Div(1 + r.IntN(9))
	case 4:
		return e.Mod(1 + r.IntN(9))
	case 5:
		return e.Min(randomExpr(r, depth-1))
	default:
		return e.Max(randomExpr(r, depth-1))
	}
}

// pickIndex returns what may stand in the brackets of a position.
func pickIndex(r *rand.Rand, long bool) Expr {
	s := Symbol([]Sym{SpanA, SpanB, OnSM, Row}[r.IntN(4)])
	if long {
		return []Expr{s.Div(1 + r.IntN(4)), s.Add(Int(2)), s.Mod(3)}[r.IntN(3)]
	}
	return []Expr{Int(r.IntN(5) - 1), s}[r.IntN(2)]
}

func randomEnv(r *rand.Rand) Env {
	return Env{r.IntN(2000), r.IntN(300), r.IntN(300), r.IntN(132), r.IntN(4)}
}

func TestExprRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		e := randomExpr(r, 5)
		back, err := ParseExpr(e.String())
		require.NoError(t, err, e)
		require.True(t, e.Equal(back), "%s became %s", e, back)
		env := randomEnv(r)
		require.Equal(t, e.Eval(env), back.Eval(env), e)
	}
}

func TestBindAgreesWithEval(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	affine := 0
	for range 5000 {
		e, env := randomExpr(r, 5), randomEnv(r)
		bound := e.Bind(TaskSpan{SM: env[OnSM], A: env[SpanA], B: env[SpanB]}).With(Row, Int(env[Row]))
		for _, s := range []Sym{SpanA, SpanB, OnSM, Row} {
			require.False(t, bound.Uses(s), "%s bound to %s", e, bound)
		}
		require.Equal(t, e.Eval(env), bound.At(env[Pos]), "%s bound to %s", e, bound)
		if c, d, ok := bound.Affine(); ok {
			affine++
			for pos := range 40 {
				require.Equal(t, c*pos+d, bound.At(pos), bound)
			}
		}
	}
	require.Greater(t, affine, 1000)
}

func TestExprValues(t *testing.T) {
	env := Env{Pos: 37, SpanA: 8, SpanB: 24, OnSM: 5}
	for s, want := range map[string]int{
		"1+2*3": 7, "(1+2)*3": 9, "10-3-2": 5, "10-(3-2)": 9, "pos/16*16": 32, "pos%16": 5, "b-a": 16, "sm*8": 40,
		"min(pos,b)": 24, "max(pos,b)": 37, "(a-b)/5": -4, "(a-b)%5": 4, "0-7": -7, "a*(-2)": -16, "a+(-2)": 6,
		"1152921504606846976*1000": satMax, "1152921504606846976+1152921504606846976": satMax,
		"pos*1152921504606846976*(-3)": -satMax,
	} {
		e, err := ParseExpr(s)
		require.NoError(t, err, s)
		require.Equal(t, want, e.Eval(env), s)
	}
}

func TestExprErrors(t *testing.T) {
	for s, want := range map[string]string{
		"":                               `at offset 0: unexpected "", want a number`,
		"1+":                             `at offset 2: unexpected ""`,
		"a b":                            `at offset 1: unexpected " b"`,
		"x":                              `unexpected "x", want a number, pos, a, b, sm, t, rank, min or max`,
		"pos[":                           `unexpected ""`,
		"pos[1":                          `want ']', found ""`,
		"pos[pos]":                       `at offset 3: the number of a sequence depends on a position`,
		"b[1]":                           `unexpected "[1]"`,
		"a*b":                            `the right side of * must be a constant`,
		"a/0":                            `positive for / and %`,
		"a%(-1)":                         `positive for / and %`,
		"min(a)":                         `at offset 5: want ',', found ")"`,
		"(a":                             `want ')'`,
		"-":                              `bad integer "-"`,
		"1152921504606846977":            `bad integer`,
		"-9223372036854775808":           `bad integer`,
		strings.Repeat("(", 1000):        `nested deeper than 64`,
		"a" + strings.Repeat("+a", 1000): `more than 32 operators`,
		strings.Repeat("min(a,", 30) + "a" + strings.Repeat(",a)", 1) + "x": `want ')'`,
	} {
		_, err := ParseExpr(s)
		require.ErrorContains(t, err, want, s)
	}
}

func TestAffine(t *testing.T) {
	for s, want := range map[string][3]int{
		"5": {0, 5, 1}, "pos": {1, 0, 1}, "pos*3-(pos+4)*2": {1, -8, 1}, "pos/2": {0, 0, 0}, "pos%2": {0, 0, 0},
		"min(pos,4)": {0, 0, 0}, "pos+a": {0, 0, 0}, "pos[2]*3+1": {3, 1, 1}, "pos[2]-pos[2]+4": {0, 4, 1},
		"pos[1]-pos": {0, 0, 0}, "pos[a]": {0, 0, 0},
	} {
		e, err := ParseExpr(s)
		require.NoError(t, err)
		c, d, ok := e.Affine()
		require.Equal(t, want[2] == 1, ok, s)
		if ok {
			require.Equal(t, want[:2], []int{c, d}, s)
		}
	}
}

// Which sequence's position an expression mentions.
func TestSequence(t *testing.T) {
	for s, want := range map[string]int{
		"5": -1, "pos": 0, "a+b": -1, "pos[0]": 0, "pos[3]": 3, "max(0,pos[3]-4)*2": 3, "pos[3]%16+pos[3]/2": 3,
		"pos[1]+pos": -2, "pos[a]": -2, "min(pos[2],pos[3])": -2, "pos[-1]": -2,
	} {
		e, err := ParseExpr(s)
		require.NoError(t, err)
		n, ok := e.Sequence()
		require.Equal(t, want >= -1, ok, s)
		if ok {
			require.Equal(t, want, n, s)
		}
	}
	e, err := ParseExpr("pos[a/2]+t")
	require.NoError(t, err)
	require.Equal(t, "pos[3]+t", e.Bind(TaskSpan{A: 7}).String())
	require.Equal(t, "pos+t", e.Bind(TaskSpan{A: 1}).String())
}
