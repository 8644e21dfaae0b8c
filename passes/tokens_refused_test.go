package passes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/validate"
)

// A tokenEdit is of the text of a program, and is refused.
type tokenEdit struct {
	code  *diag.Code
	says  string
	edits []string // from and to
}

// Edits of a program of two sequences of three rows.
var tokenEdits = map[string]tokenEdit{
	"a row reads the cache of another sequence": {validate.CodeSequence, "is of the cache of another one",
		[]string{"TILE(L{i}.q_rope[a/2*3:(a/2+1)*3,a%2*12:(a%2+1)*12], L{i}.kv[a/2,",
			"TILE(L{i}.q_rope[a/2*3:(a/2+1)*3,a%2*12:(a%2+1)*12], L{i}.kv[1-a/2,"}},
	"keys and values of two sequences": {validate.CodeSequence, "looks at rows of sequence 0 and of sequence 1",
		[]string{"L{i}.kv[a/2,a%2,max(0,pos[a/2]-4):pos[a/2],1,",
			"L{i}.kv[1-a/2,a%2,max(0,pos[1-a/2]-4):pos[1-a/2],1,"}},
	"rows below the position of another sequence": {validate.CodeSequence, "goes by the position of sequence 1",
		[]string{"max(0,pos[a/2]-4):pos[a/2],0,", "max(0,pos[1-a/2]-4):pos[1-a/2],0,"}},
	"rows at the positions of another sequence": {validate.CodeSequence,
		"has row=pos[1]+t, and looks at rows of sequence 0", []string{"row=pos[a/2]+t", "row=pos[1-a/2]+t"}},
	"an append at the position of another sequence": {validate.CodeSequence, "goes by the position of sequence 1",
		[]string{"pos[a/2]:pos[a/2]+3,0,", "pos[1-a/2]:pos[1-a/2]+3,0,"}},
	"an append at the position of another row": {validate.CodeAppend, "are not written by the step at pos 0",
		[]string{"  L{i}.kv[a/2,a%2,pos[a/2]:pos[a/2]+3,0,0:6] = KV_APPEND(L{i}.k_rope[a/2*3:(a/2+1)*3,",
			"  L{i}.kv[a/2,a%2,pos[a/2]+1,0,0:6] = KV_APPEND(L{i}.k_rope[a/2*3,a%2*6:(a%2+1)*6])\n" +
				"  L{i}.kv[a/2,a%2,pos[a/2]+1:pos[a/2]+3,0,0:6] = KV_APPEND(L{i}.k_rope[a/2*3+1:(a/2+1)*3,"}},
	"an append less": {validate.CodeAppend, "elements [0 0 2 1 0] to [0 0 2 1 5] are not written by the step at pos 0",
		[]string{"pos[a/2]:pos[a/2]+3,1,0:6] = KV_APPEND(L{i}.v_proj[a/2*3:(a/2+1)*3,",
			"pos[a/2]:pos[a/2]+2,1,0:6] = KV_APPEND(L{i}.v_proj[a/2*3:a/2*3+2,"}},
	"an append beyond the cache": {validate.CodeBounds, "at pos 21, which has 24 elements",
		[]string{"pos[a/2]:pos[a/2]+3,0,", "pos[a/2]+1:pos[a/2]+4,0,"}},
	"a row of logits less": {validate.CodeOutputGap, "logits elements [5 0] to [5 18]",
		[]string{"logits[0:6,a:b] = GEMM_TILE(final_norm[0:6,", "logits[0:5,a:b] = GEMM_TILE(final_norm[0:5,",
			"next[0:6] = SAMPLE(logits[0:6,", "next[0:5] = SAMPLE(logits[0:5,", "sampling[0:2,0:4])",
			"sampling[0:1,0:4])",
			"stop[0:6] = STOP(next[0:6]", "stop[0:5] = STOP(next[0:5]"}},
	"a mask that is off by one": {validate.CodeReadRace, "and nothing orders the two",
		[]string{":pos[a/2],0,0:6], L{i}.kv[a/2,a%2,max(0,pos[a/2]-4):pos[a/2],1,0:6], ",
			":pos[a/2]+1,0,0:6], L{i}.kv[a/2,a%2,max(0,pos[a/2]-4):pos[a/2]+1,1,0:6], "}},
	"a row of k less": {validate.CodeShapes, "k_row and v_row have 12 and 18 elements, want 18",
		[]string{"L{i}.k_rope[a/2*3:(a/2+1)*3,a%2*6:(a%2+1)*6], ", "L{i}.k_rope[a/2*3:a/2*3+2,a%2*6:(a%2+1)*6], "}},
	"a window without the rows' positions": {validate.CodeShapes, "no parameter row",
		[]string{" window=5 row=pos[a/2]+t", " window=5"}},
	"a rotation without the rows' positions": {validate.CodeShapes, "the op no parameter pos",
		[]string{" limit=24 pos=pos[t/3]+t%3", " limit=24"}},
	"a row of a sequence that there is not": {validate.CodeParameter, "in row 2", []string{"limit=24 pos=pos[t/3]",
		"limit=24 pos=pos[t]"}},
	"a row before the first": {validate.CodeParameter, "(it is -1 at pos 0 in row 1)",
		[]string{"limit=24 pos=pos[t/3]+t%3", "limit=24 pos=pos[t/3]-t%3"}},
	"a cache of a sequence that there is not": {validate.CodeStructure, "want the position of one of 2 sequences",
		[]string{"L{i}.kv[a/2,a%2,pos[a/2]:pos[a/2]+3,0,", "L{i}.kv[a/2,a%2,pos[a/2+1]:pos[a/2+1]+3,0,"}},
	"an append before its rows": {validate.CodeReadRace, "missing: wait L00.k_rope >= 1",
		[]string{"stage L{i}.k_append tiled extent=4 grain=1\n  wait L{i}.k_rope >= 1\n",
			"stage L{i}.k_append tiled extent=4 grain=1\n"}},
	"too few tokens": {ir.CodeShape, "IO_INPUT of shape [5], want the 6 tokens",
		[]string{"buffer token IO_INPUT I32 [6]", "buffer token IO_INPUT I32 [5]"}},
	"too few caches": {ir.CodeShape, "KV_CACHE of shape [1 2 24 2 6], want the 2 sequences",
		[]string{"BF16 [2,2,24,2,6]", "BF16 [1,2,24,2,6]"}},
	"a variant beyond the last pass": {ir.CodeVariants, "end at position 22, want 21", []string{"variant all pos 0..21",
		"variant all pos 0..22"}},
}

// Edits of a program of three rows of one sequence, whose contexts are split.
var splitEdits = map[string]tokenEdit{
	"rows of another split": {validate.CodeShapes, "the cache rows are part 1 of 4 in blocks of 32, the parameters " +
		"say part 0 of 4", []string{"0:pos block 32 part a%4 of 4,0,", "0:pos block 32 part (a+1)%4 of 4,0,",
		"0:pos block 32 part a%4 of 4,1,", "0:pos block 32 part (a+1)%4 of 4,1,"}},
	"an append less than there are": {validate.CodeShapes, "output 1 has 128 elements, want 192",
		[]string{"pos:pos+3 block 32 part a%4 of 4,0,0:64] =", "pos:pos+2 block 32 part a%4 of 4,0,0:64] ="}},
	"an append that leaves rows out": {validate.CodeAppend,
		"elements [0 32 1 0] to [0 32 1 63] are not written by the step",
		[]string{"pos:pos+3 block 32 part a%4 of 4,1,0:64] =", "pos:pos+3 block 8 part a%4 of 5,1,0:64] ="}},
	"an append of one split's rows by all": {validate.CodeWriteRace, "overwrites L00.kv",
		[]string{"pos:pos+3 block 32 part a%4 of 4,1,0:64] =", "pos:pos+3 block 32 part 0 of 4,1,0:64] ="}},
	"an append by every split": {validate.CodeWriteRace, "L00.kv", []string{
		"pos:pos+3 block 32 part a%4 of 4,1,0:64] =", "pos:pos+3,1,0:64] ="}},
	"results of a row less": {validate.CodeShapes, "want 396", []string{
		"L{i}.part[a,0:3,0:2,0:66]", "L{i}.part[a,0:2,0:2,0:66]"}},
	"a variant that begins too late": {ir.CodeVariants, "want a non-empty interval from 18 to 20 on",
		[]string{"variant long pos 20", "variant long pos 21"}},
	"variants that end too early": {ir.CodeVariants, "end at position 74, want 75 to 77",
		[]string{"variant long pos 20..77", "variant long pos 20..74"}},
}

func TestWrongPassesAreRefused(t *testing.T) {
	refuse(t, severalState(t, "window", "bfloat16", ir.PassOf(2, 3), "lower"), tokenEdits)
	refuse(t, severalState(t, "splits", "bfloat16", ir.PassOf(1, 3), "pagecolor"), splitEdits)
}

// refuse makes each edit of the text of a program, and demands that it is refused for the right reason.
func refuse(t *testing.T, s *State, edits map[string]tokenEdit) {
	text := string(ir.Print(s.Program))
	for name, c := range edits {
		t.Run(name, func(t *testing.T) {
			edited := text
			for i := 0; i < len(c.edits); i += 2 {
				require.Contains(t, edited, c.edits[i])
				edited = strings.Replace(edited, c.edits[i], c.edits[i+1], 1)
			}
			p, diags := ir.ParseText([]byte(edited), "edited.amk")
			require.NoError(t, diags.Err())
			report := validate.Program(p)
			require.False(t, report.OK)
			said := false
			for _, d := range append(ir.Check(p), report.Diags...) {
				said = said || d.Code == c.code.ID && strings.Contains(d.Error(), c.says)
			}
			require.True(t, said, "want %s saying %q, got\n%v", c.code.ID, c.says, report.Diags.Err())
		})
	}
}

// A pass of more rows than there are positions is refused.
func TestLowerTakesAsManyRowsAsPositions(t *testing.T) {
	s := &State{Source: importers.Source{Name: "llama", Config: modeltest.OpenConfig(t, severalModels["llama"]+"}")},
		Target: modeltest.ToyTarget(4),
		Pass:   ir.PassOf(2, 25)}
	require.NoError(t, Import.Run(s))
	err := Lower.Run(s)
	require.ErrorContains(t, err, ir.CodeVariants.ID)
	require.ErrorContains(t, err, "a pass takes 25 rows of a sequence, which has 24 positions")
}
