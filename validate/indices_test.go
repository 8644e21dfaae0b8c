package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// indexProgram has tables of 1 to 9 rows and a variant for each list of ops, of two positions each.
func indexProgram(variants ...string) string {
	text := `amk 2.0
buffer token IO_INPUT I32 [1] HBM rowmajor
buffer given IO_INPUT I32 [2] HBM rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
buffer w WEIGHT F32 [9] HBM rowmajor
buffer i ACTIVATION I32 [2] GLOBAL_SCRATCH rowmajor
buffer j ACTIVATION I32 [2] GLOBAL_SCRATCH rowmajor
buffer v ACTIVATION F32 [2] GLOBAL_SCRATCH rowmajor
buffer words ACTIVATION I32 [2] GLOBAL_SCRATCH word64
buffer table WEIGHT F32 [9,2] HBM rowmajor
buffer family WEIGHT F32 [9,2,3] HBM rowmajor
buffer biases WEIGHT F32 [9,2] HBM rowmajor
`
	for n, ops := range variants {
		text += fmt.Sprintf("variant v%d pos %d..%d\ncounter step counter gpu\n", n, 2*n, 2*n+1) + stage("t", 0,
			append(strings.Split(ops, "; "), "signal step")...)
	}
	return text
}

// An index that a step computes has room, or one row too few is refused: over all ways to make and to hand on an index.
func TestIndexChains(t *testing.T) {
	const done = "next[0] = COPY(token[0])"
	for _, c := range []struct {
		name string
		ops  []string // of each variant; R is the number of rows
		need int      // rows
	}{
		{"an argmax", []string{"i[0] = SAMPLE_ARGMAX(w[0:5]); %t = EMBED(i[0], table[0:R,0:2]); " + done}, 5},
		{"an argmax elsewhere in the vector",
			[]string{"i[0] = SAMPLE_ARGMAX(w[4:9]); %t = EMBED(i[0], table[9-R:9,0:2]); " + done}, 5},
		{"a temporary", []string{"%i = SAMPLE_ARGMAX(w[0:5]); %j = COPY(%i); %t = EMBED(%j, table[0:R,0:2]); " + done},
			5},
		{"the argmax of norms", []string{"%n = RMSNORM(w[0:5], w[0:5]) eps=1e-05; i[0] = SAMPLE_ARGMAX(%n); %t = " +
			"EMBED(i[0], table[0:R,0:2]); " + done}, 5},
		{"copies", []string{"i[0] = SAMPLE_ARGMAX(w[0:5]); j[1] = COPY(i[0]); words[0] = COPY(j[1]); %t = " +
			"EMBED(words[0], table[0:R,0:2]); " + done}, 5},
		{"partial results", []string{"v[0], i[0] = SAMPLE_ARGMAX(w[0:3]) partial=1 first=0; v[1], i[1] = " +
			"SAMPLE_ARGMAX(w[3:5]) partial=1 first=3; j[0] = SAMPLE_ARGMAX(v[0:2], i[0:2]); %t = EMBED(j[0], " +
			"table[0:R,0:2]); " + done}, 5},
		{"a partial result of nothing", []string{"v[0], i[0] = SAMPLE_ARGMAX(w[0:4]) partial=1 first=0; v[1], i[1] " +
			"= SAMPLE_ARGMAX(w[4:4]) partial=1 first=4; j[0] = SAMPLE_ARGMAX(v[0:2], i[0:2]); %t = EMBED(j[0], " +
			"table[0:R,0:2]); " + done}, 4},
		{"a shift", []string{"v[0], i[0] = SAMPLE_ARGMAX(w[0:2]) partial=1 first=4; j[0] = SAMPLE_ARGMAX(v[0], " +
			"i[0]); %t = EMBED(j[0], table[0:R,0:2]); " + done}, 6},
		{"two rows of a batch", []string{"i[0:2] = SAMPLE_ARGMAX(table[0:2,0:2]); %t = EMBED(i[0:2], " +
			"table[0:R,0:2]); " + done}, 2},
		{"written again before it is used", []string{"i[0] = SAMPLE_ARGMAX(w[0:5]); %t = EMBED(i[0], " +
			"table[0:R,0:2]); i[0] = SAMPLE_ARGMAX(w[0:9]); " + done}, 5},
		{"the token of the next step", []string{"%t = EMBED(token[0], table[0:R,0:2]); next[0] = " +
			"SAMPLE_ARGMAX(w[0:5])"}, 5},
		{"a copy of the token", []string{"i[0] = COPY(token[0]); %t = EMBED(i[0], table[0:R,0:2]); next[0] = " +
			"SAMPLE_ARGMAX(w[0:5])"}, 5},
		{"the larger of two", []string{"%t = EMBED(token[0], table[0:R,0:2]); i[0] = SAMPLE_ARGMAX(w[0:3]); i[1] = " +
			"SAMPLE_ARGMAX(w[0:5]); next[0] = COPY(i[1])"}, 5},
		{"the variant after it", []string{"next[0] = SAMPLE_ARGMAX(w[0:5])",
			"%t = EMBED(token[0], table[0:R,0:2]); " + done}, 5},
		{"the variant after it, and its own steps",
			[]string{"%t = EMBED(token[0], table[0:9,0:2]); next[0] = SAMPLE_ARGMAX(w[0:5])",
				"%t = EMBED(token[0], table[0:R,0:2]); next[0] = SAMPLE_ARGMAX(w[0:2])"}, 5},
		{"handed on by the variant between",
			[]string{"next[0] = SAMPLE_ARGMAX(w[0:5])", done, "%t = EMBED(token[0], table[0:R,0:2]); " + done}, 5},
		{"no step comes after", []string{"%t = EMBED(token[0], table[0:R,0:2]); " + done,
			"next[0] = SAMPLE_ARGMAX(w[0:9])"}, 1},
		{"experts of a router", []string{"%v, i[0:2] = TOPK(w[0:5]) k=2; %t = SELECTED_TILE(w[0:3], " +
			"family[0:R,0:2,0:3], i[0:2]); " + done}, 5},
		{"experts of a router, with biases", []string{"%p = SOFTMAX(w[2:6]); %v, %i = TOPK(%p) k=1; %j = COPY(%i); " +
			"%t = SELECTED_TILE(w[0:3], family[9-R:9,0:2,0:3], %j, biases[9-R:9,0:2]); " + done}, 4},
		{"experts of two tokens", []string{"%v, i[0:2] = TOPK(table[0:2,0:2]) k=1; %t = SELECTED_TILE(w[0:6], " +
			"family[0:R,0:2,0:3], i[0:2]) first_row=1 rows=1; " + done}, 2},
		{"an expert that an argmax chooses", []string{"i[0] = SAMPLE_ARGMAX(w[0:5]); %t = SELECTED_TILE(w[0:3], " +
			"family[0:R,0:2,0:3], i[0]); " + done}, 5},
		{"the largest of a router as a row", []string{"%v, i[0] = TOPK(w[0:5]) k=1; %t = EMBED(i[0], " +
			"table[0:R,0:2]); " + done}, 5},
		{"what the host gives", []string{"%t = EMBED(given[0:2], table[0:R,0:2]); " + done}, 1},
		{"what the host gives, in the first step", []string{"%t = EMBED(token[0], table[0:R,0:2]); " + done}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for rows := 1; rows <= 9; rows++ {
				ops := make([]string, len(c.ops))
				for n := range c.ops {
					ops[n] = strings.ReplaceAll(strings.ReplaceAll(c.ops[n], "9-R:", fmt.Sprint(9-rows, ":")), "R,",
						fmt.Sprint(rows, ","))
				}
				p := parse(t, indexProgram(ops...))
				rep := validate.Program(p)
				if rows >= c.need {
					require.NoError(t, rep.Diags.Err(), "%d rows", rows)
					continue
				}
				require.False(t, rep.OK, "%d rows", rows)
				requireCode(t, rep, validate.CodeIndex, "")
				if len(c.ops) < 3 { // the oracle runs two steps in a row
					require.True(t, subject{prog: p}.judge().Unsafe(), "%d rows", rows)
				}
			}
		})
	}
}

// A pass of several rows may go on after the variant after its own, if that has fewer positions than there are rows.
func TestIndexBeyondTheVariantAfter(t *testing.T) {
	for _, c := range []struct {
		name       string
		ends, rows int // where the variant between ends, and rows of a pass
		between    string
		need       int // rows of the table of the last variant
	}{
		{"reached", 4, 2, "next[0:$R] = SAMPLE_ARGMAX(w[0:$R,0:2])", 5},
		{"not reached", 5, 2, "next[0:$R] = SAMPLE_ARGMAX(w[0:$R,0:2])", 2},
		{"reached by the last of many rows", 6, 4, "next[0:$R] = SAMPLE_ARGMAX(w[0:$R,0:2])", 5},
		{"not reached by the last of many rows", 7, 4, "next[0:$R] = SAMPLE_ARGMAX(w[0:$R,0:2])", 2},
		{"not reached, and handed on", 5, 2, "next[0:$R] = COPY(token[0:$R])", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			for rows := 1; rows <= 6; rows++ {
				text := fmt.Sprintf(`amk 2.0
pass sequences=1 rows=$R
buffer token IO_INPUT I32 [$R] HBM rowmajor
buffer next IO_OUTPUT I32 [$R] HBM rowmajor
buffer w WEIGHT F32 [$R,9] HBM rowmajor
buffer table WEIGHT F32 [9,2] HBM rowmajor
variant first pos 0..3
counter step counter gpu
%svariant between pos 4..%d
counter step counter gpu
%svariant last pos %d..20
counter step counter gpu
%s`, stage("t", 0, "next[0:$R] = SAMPLE_ARGMAX(w[0:$R,0:5])", "signal step"), c.ends,
					stage("t", 0, c.between, "signal step"), c.ends+1,
					stage("t", 0, fmt.Sprintf("%%t = EMBED(token[0:$R], table[0:%d,0:2])", rows),
						"next[0:$R] = COPY(token[0:$R])", "signal step"))
				p := parse(t, strings.ReplaceAll(text, "$R", fmt.Sprint(c.rows)))
				rep := validate.Program(p)
				if rows >= c.need {
					require.NoError(t, rep.Diags.Err(), "%d rows", rows)
					require.False(t, subject{prog: p}.judge().Unsafe(), "%d rows", rows)
					continue
				}
				requireCode(t, rep, validate.CodeIndex, "")
			}
		})
	}
}

// A role is believed of a buffer that is what the role asks for, and of no other: the host writes no weight.
func TestRoleOfAnotherKind(t *testing.T) {
	for _, kind := range []ir.BufferKind{ir.Weight, ir.Const} {
		p := parse(t, indexProgram("%t = EMBED(token[0], table[0:9,0:2]); next[0] = COPY(token[0])"))
		require.NoError(t, validate.Program(p).Diags.Err())
		require.Equal(t, ir.RoleToken, p.Buffers[0].Role)
		p.Buffers[0].Kind = kind
		requireCode(t, validate.Program(p), validate.CodeIndex, "nothing bounds it")
		require.True(t, subject{prog: p}.judge().Unsafe(), kind)
	}
}

// An index is of type I32, of which the largest value says that there is none: what an op numbers ends below it.
func TestIndicesOfTheirType(t *testing.T) {
	const most = 1<<31 - 2
	program := func(op string) *ir.Program {
		return parse(t, `amk 2.0
buffer w WEIGHT BF16 [4294967296] HBM rowmajor
buffer t WEIGHT BF16 [4294967296,1] HBM rowmajor
buffer inv WEIGHT F32 [2] HBM rowmajor
buffer v ACTIVATION F32 [1] GLOBAL_SCRATCH rowmajor
buffer i ACTIVATION I32 [1] GLOBAL_SCRATCH rowmajor
buffer token IO_INPUT I32 [1] HBM rowmajor
buffer settings IO_INPUT I32 [1,4] HBM rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
variant all pos 0..0
counter step counter gpu
`+stage("t", 0, op, "next[0] = COPY(token[0])", "signal step"))
	}
	for _, c := range []struct {
		op             string // N elements from FIRST on
		first, n, more int    // how many there may be, and how many more there are then
	}{
		{"v[0], i[0] = SAMPLE_ARGMAX(w[0:N]) partial=1 first=FIRST", 0, most + 1, 1},
		{"v[0], i[0] = SAMPLE_ARGMAX(w[0:N]) partial=1 first=FIRST", most - 63, 64, 1},
		{"v[0], i[0] = SAMPLE_ARGMAX(w[0:N]) partial=1 first=FIRST", most, 1, 1},
		{"i[0] = SAMPLE_ARGMAX(w[0:N])", 0, most + 1, 1},
		{"i[0] = SAMPLE(w[0:N], settings[0,0:4]) pos=pos", 0, most + 1, 1},
		{"v[0], i[0] = SAMPLE(w[0:N], settings[0,0:4]) pos=pos partial=1 first=FIRST", most - 1, 2, 1},
		{"%t = EMBED(token[0], t[0:N,0:1], v[0])", 0, most, 1}, // N itself is the id of what is given
		{"%t = ROPE(w[0:N], inv[0:2]) order=1 head_dim=4 first=FIRST pos=pos", most - 4, 4, 2},
	} {
		of := func(n int) error {
			op := strings.NewReplacer("N]", fmt.Sprint(n, "]"), "N,", fmt.Sprint(n, ","), "FIRST", fmt.Sprint(c.first))
			return validate.Program(program(op.Replace(c.op))).Diags.Err()
		}
		if err := of(c.n); err != nil {
			require.NotContains(t, err.Error(), fmt.Sprint(most), c.op)
		}
		require.ErrorContains(t, of(c.n+c.more), fmt.Sprint(most), c.op)
	}
	// The oracle knows it from the numbers alone.
	for n, over := range map[int]bool{8: false, 9: true} {
		for _, op := range []string{"SAMPLE_ARGMAX(w[0:%d]) partial=1", "SAMPLE(w[0:%d], s[0,0:4]) pos=pos partial=1"} {
			p := parse(t, `amk 2.0
buffer token IO_INPUT I32 [1] HBM rowmajor
buffer w WEIGHT F32 [9] HBM rowmajor
buffer s IO_INPUT I32 [1,4] HBM rowmajor
buffer v ACTIVATION F32 [1] GLOBAL_SCRATCH rowmajor
buffer i ACTIVATION I32 [1] GLOBAL_SCRATCH rowmajor
buffer next IO_OUTPUT I32 [1] HBM rowmajor
variant all pos 0..0
counter step counter gpu
`+stage("t", 0, fmt.Sprintf("v[0], i[0] = "+op+" first=%d", n, most-7), "next[0] = COPY(token[0])", "signal step"))
			require.Equal(t, !over, validate.Program(p).OK, "%s of %d", op, n)
			require.Equal(t, over, subject{prog: p}.judge().Unsafe(), "%s of %d", op, n)
		}
	}
}

// So it is with positions, of a program that names no model with a last one.
func TestPositionsOfTheirType(t *testing.T) {
	const text = "amk 2.0\nbuffer next IO_OUTPUT I32 [1] HBM rowmajor\nbuffer token IO_INPUT I32 [1] HBM rowmajor\n" +
		"variant all pos 0..%d\ncounter step counter gpu\n"
	for _, last := range []int{1<<31 - 2, 1<<31 - 1, 1 << 40} {
		err := validate.Program(parse(t, fmt.Sprintf(text, last)+stage("t", 0, "next[0] = COPY(token[0])",
			"signal step"))).Diags.Err()
		if last == 1<<31-2 {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "want at most 2147483646")
		}
	}
}
