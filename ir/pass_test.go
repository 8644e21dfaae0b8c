package ir

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// severalTokens is a program of two sequences of three rows.
const severalTokens = `amk 2.0
pass sequences=2 rows=3
buffer token IO_INPUT I32 [6] HBM rowmajor
buffer next IO_OUTPUT I32 [6] HBM rowmajor
buffer kv KV_CACHE F32 [2,1,16,2,4] HBM rowmajor
buffer table WEIGHT F32 [8,4] HBM rowmajor from rows(table)
buffer k ACTIVATION F32 [6,4] GLOBAL_SCRATCH rowmajor
variant all pos 0..13
counter k undecided gpu
counter step undecided gpu
stage embed whole extent=4
  %k = EMBED(token[0:6], table[0:8,a:b])
  k[0:6,a:b] = ROPE(%k, table[0,0:2]) head_dim=4 order=1 first=a pos=pos[t/3]+t%3
  next[0:6] = COPY(token[0:6])
  signal k
stage append tiled extent=2 grain=1
  wait k >= 1
  kv[a,0,pos[a]:pos[a]+3,0,0:4] = KV_APPEND(k[a*3:a*3+3,0:4])
  kv[a,0,pos[a]:pos[a]+3,1,0:4] = KV_APPEND(k[a*3:a*3+3,0:4])
  signal step
`

// readSeveral reads it with one thing replaced, if there is anything to replace.
func readSeveral(t testing.TB, from, to string) *Program {
	p, diags := ParseText([]byte(strings.Replace(severalTokens, from, to, 1)), "several.amk")
	require.NoError(t, diags.Err())
	return p
}

func TestPassRoundTrips(t *testing.T) {
	p := readSeveral(t, "", "")
	require.Empty(t, Check(p))
	require.Equal(t, Pass{Sequences: 2, Rows: 3}, p.Pass)
	require.Contains(t, string(Print(p)), "\npass sequences=2 rows=3\nconfig ")
	data, err := p.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(data), "\n \"pass\": {\"sequences\": 2, \"rows\": 3},\n")
	back, diags := ParseJSON(data, "several.json")
	require.NoError(t, diags.Err())
	require.Equal(t, norm(t, p), norm(t, back))
	require.Equal(t, string(Print(p)), string(Print(back)))
	back, diags = ParseText(Print(p), "again.amk")
	require.NoError(t, diags.Err())
	require.Equal(t, norm(t, p), norm(t, back))
}

// A pass of one row of one sequence is no different from none.
func TestPassOfOne(t *testing.T) {
	for line, want := range map[string]Pass{
		"pass sequences=1 rows=1": {}, "pass rows=1": {}, "pass": {}, "": {}, "pass sequences=1 rows=4": {Rows: 4},
		"pass sequences=7": {Sequences: 7}, "pass rows=0 sequences=0": {},
	} {
		p := readSeveral(t, "pass sequences=2 rows=3", line)
		require.Equal(t, want, p.Pass, line)
		require.Equal(t, want != Pass{}, strings.Contains(string(Print(p)), "\npass"), line)
	}
	var p Program
	plain := string(Print(&p))
	p.Pass = Pass{Sequences: 1, Rows: 1}
	require.Equal(t, plain, string(Print(&p)), "what is not written by PassOf is printed alike")
	require.Equal(t, 1, Pass{}.NumTokens())
	require.Equal(t, 28, PassOf(7, 4).NumTokens())
}

// Tasks take the sequences that their spans name, and all sequences are at positions of the variant.
func TestUnrollSequences(t *testing.T) {
	p := readSeveral(t, "variant all pos 0..13", "variant all pos 5..13")
	flat, diags := Unroll(p, &p.Variants[0])
	require.NoError(t, diags.Err())
	require.Equal(t, [2]int{5, 13}, [2]int{flat.Lo, flat.Hi})
	require.Equal(t, p.Pass, flat.Pass)
	require.Equal(t, "kv[0,0,pos:pos+3,0,0:4]", flat.Tasks[1].Ops[0].Out[0].String())
	require.Equal(t, "kv[1,0,pos[1]:pos[1]+3,1,0:4]", flat.Tasks[2].Ops[1].Out[0].String())
	require.Equal(t, "pos[t/3]+t%3", flat.Tasks[0].Ops[1].Params[3].Int.String())
}
