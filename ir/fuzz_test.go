package ir

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// exercise takes a program that a reader accepted through everything that must work on it.
func exercise(t *testing.T, p *Program) {
	text := Print(p)
	again, diags := ParseText(text, "text")
	require.NoError(t, diags.Err(), string(text))
	require.Equal(t, p, again)
	data, err := p.MarshalJSON()
	require.NoError(t, err)
	again, diags = ParseJSON(data, "json")
	require.NoError(t, diags.Err(), string(data))
	require.Equal(t, string(text), string(Print(again)))
	if Check(p).Err() != nil {
		return
	}
	for i := range p.Variants {
		flat, diags := Unroll(p, &p.Variants[i])
		require.NoError(t, diags.Err())
		for k := range flat.Tasks {
			flat.Tasks[k].Footprint(nil)
		}
	}
}

// requireLinear demands that f allocates at most 64 KiB and 256 bytes for each byte that it reads. The value of one
// byte is highest in expressions, where two are an operator and its two nodes.
func requireLinear(t *testing.T, input []byte, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10+256*len(input)))
}

func FuzzParseText(f *testing.F) {
	_, text := tiny(f)
	f.Add(text)
	f.Add([]byte(severalTokens))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		var p *Program
		requireLinear(t, data, func() {
			parsed, diags := ParseText(data, "f")
			require.Equal(t, parsed == nil, diags.Err() != nil)
			p = parsed
		})
		if p != nil {
			exercise(t, p)
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	p, _ := tiny(f)
	data, err := p.MarshalJSON()
	require.NoError(f, err)
	f.Add(data)
	data, err = readSeveral(f, "", "").MarshalJSON()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watch.Execution()()
		var p *Program
		requireLinear(t, data, func() {
			parsed, diags := ParseJSON(data, "f")
			require.Equal(t, parsed == nil, diags.Err() != nil)
			p = parsed
		})
		if p != nil {
			exercise(t, norm(t, p))
		}
		_, _ = ParseConfig(data, "f")
		_, _ = Parse(bytes.TrimSpace(data), "f")
	})
}

func FuzzParseExpr(f *testing.F) {
	for _, s := range []string{"0", "pos", "a*64+b/8%3-(sm-1)", "min(pos,max(a,(-3)))", "-9223372036854775808", "((1))",
		"1*(-2)", "pos[a/4]+t%4", "max(0,pos[2]-15)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer watch.Execution()()
		e, err := ParseExpr(s)
		if err != nil {
			return
		}
		again, err := ParseExpr(e.String())
		require.NoError(t, err)
		require.True(t, e.Equal(again), "%s became %s", e, again)
		c, d, ok := e.Affine()
		if ok && abs(c) < 1<<20 && abs(d) < 1<<40 {
			require.Equal(t, c*7+d, e.At(7))
		}
		requireAffine(t, e, 0, 99)
	})
}
