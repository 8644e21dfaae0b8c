package ir

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
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

func FuzzParseText(f *testing.F) {
	_, text := tiny(f)
	f.Add(text)
	f.Add([]byte("amk 1.0\nmodel m max_seq=1\nbuffer b IO_OUTPUT F32 [1] HBM rowmajor\nvariant v pos 0..0\ncounter c counter gpu\nstage s units extent=1 sms=1\n  b[a] = COPY(b[min(a,0)*3:1 block 2 part pos%2 of 2]) k=1.5\n  signal c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, diags := ParseText(data, "f"); diags.Err() == nil {
			exercise(t, p)
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	p, _ := tiny(f)
	data, err := p.MarshalJSON()
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"ir_version":"1.0","model":{},"buffers":[],"variants":[{"name":"\u00e9","lo":0,"hi":1,"counters":[],"body":[{"loop":"l","first":0,"count":2,"body":[]}]}]}`))
	f.Add([]byte(`{"ir_version":"1.0","x":[{"y":"]"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, diags := ParseJSON(data, "f"); diags.Err() == nil {
			exercise(t, norm(t, p))
		}
		_, _ = ParseConfig(data, "f")
		_, _ = Parse(bytes.TrimSpace(data), "f")
	})
}

func FuzzParseExpr(f *testing.F) {
	for _, s := range []string{"0", "pos", "a*64+b/8%3-(sm-1)", "min(pos,max(a,(-3)))", "-9223372036854775808", "((1))", "1*(-2)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
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
	})
}
