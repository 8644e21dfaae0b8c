package ir

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"amkc/ir/diag"
	"amkc/ir/transform"

	"github.com/stretchr/testify/require"
)

// TestCheckText breaks the golden program in one place at a time.
func TestCheckText(t *testing.T) {
	_, good := tiny(t)
	for name, c := range map[string]struct {
		from, to string
		code     *diag.Code
		want     string
	}{
		"page twice": {"page xchg1 ", "page xchg0 ", CodeName, "page xchg0: error: is defined twice"},
		"page gone": {"page xchg4 GLOBAL_SCRATCH word32x2 bytes=384\n", "", CodeName,
			"buffer L{i}.act: error: page \"xchg4\" is not defined"},
		"page small": {"bytes=384", "bytes=380", CodePage, "needs 384 bytes, its page xchg4 has 380"},
		"page layout": {"page xchg4 GLOBAL_SCRATCH word32x2", "page xchg4 GLOBAL_SCRATCH word32x3", CodePage,
			"has layout word32x2, its page xchg4 has word32x3"},
		"page space": {"page xchg4 GLOBAL_SCRATCH", "page xchg4 HBM", CodePage,
			"is in GLOBAL_SCRATCH, its page xchg4 in HBM"},
		"page empty":      {"bytes=384", "bytes=0", CodeSize, "has 0 bytes"},
		"buffer twice":    {"buffer logits ", "buffer token ", CodeName, "buffer token: error: is defined twice"},
		"family overlaps": {"buffer logits ", "buffer L01.h ", CodeName, "buffer L01.h: error: is defined twice"},
		"no name":         {"buffer logits ", "buffer \"\" ", CodeName, "buffer: error: has no name"},
		"temporary":       {"buffer logits ", "buffer %l ", CodeName, "those of temporaries"},
		"zero dimension": {"[2,64,2,16]", "[2,0,2,16]", CodeShape,
			"shape [2 0 2 16], want one to 5 positive dimensions"},
		"no dimension": {"IO_OUTPUT F32 [96]", "IO_OUTPUT F32 []", CodeShape, "shape []"},
		"huge": {"[2,64,2,16]", "[9007199254740991,9007199254740991,2,16]", CodeSize,
			"at most 2^45 elements"},
		"kv shape":   {"[2,64,2,16]", "[2,64,3,16]", CodeShape, "want [heads, rows, 2, head size]"},
		"tile shape": {"[192,64]", "[192]", CodeShape, "want two dimensions"},
		"word dtype": {"ACTIVATION F32 [4,2,18]", "ACTIVATION BF16 [4,2,18]", CodeShape, "want a 32-bit dtype"},
		"copies":     {"HBM kvfrag16", "HBM kvfrag16x2", CodeShape, "with 2 copies"},
		"pairs":      {"pairs:16(", "pairs:15(", CodePiece, "pairs:15 wants a positive even HEAD"},
		"rows argument": {"rows(model.norm", "rows:2(model.norm", CodePiece,
			"rows:2 has 1 integers, want rows:LO:HI[:EVERY]"},
		"odd alone": {"even(model", "rows(model", CodePiece, "each even piece is followed by an odd one"},
		"even alone": {" odd(model.layers.{i}.mlp.up_proj.weight)", "", CodePiece,
			"each even piece is followed by an odd one"},
		"pieces": {"[1] HBM rowmajor\nbuffer logits", "[1] HBM rowmajor from rows(x)\nbuffer logits",
			CodePiece, "comes from no checkpoint"},
		"gap": {"split pos 16..63", "split pos 17..63", CodeVariants,
			"covers positions 17 to 63, want a non-empty interval from 16 on"},
		"overlap": {"split pos 16..63", "split pos 15..63", CodeVariants, "from 16 on"},
		"short": {"split pos 16..63", "split pos 16..62", CodeVariants,
			"end at position 62, want 63, max_seq being 64"},
		"reversed": {"split pos 16..63", "split pos 16..15", CodeVariants, "non-empty"},
		"start":    {"short pos 0..15", "short pos 1..15", CodeVariants, "from 0 on"},
		"max_seq":  {"max_seq=64", "max_seq=0", CodeVariants, "max_seq 0"},
		"rows at the end": {"config {", "pass sequences=1 rows=3\nconfig {", CodeVariants,
			"the variants end at position 63, want 59 to 61, max_seq being 64"},
		"rows of outputs": {"config {", "pass sequences=1 rows=3\nconfig {", CodeShape,
			"buffer logits: error: IO_OUTPUT of shape [96], want the 3 tokens of a pass as its first dimension"},
		"sequences of caches": {"config {", "pass sequences=3 rows=1\nconfig {", CodeShape,
			"KV_CACHE of shape [2 64 2 16], want the 3 sequences of a pass as its first dimension"},
		"too many tokens": {"config {", "pass sequences=64 rows=256\nconfig {", CodeRange,
			"256 rows of 64 sequences are 16384 tokens, want at most 1024"},
		"another sequence":  {"[a,0:pos,0,0:16]", "[a,0:pos[1],0,0:16]", CodeShape, "no other sequence than the 1 of"},
		"sequence below 0":  {"[a,0:pos,0,0:16]", "[a,0:pos[-1],0,0:16]", CodeShape, "from or to pos[-1], want no row"},
		"row in a view":     {"[a,0:pos,0,0:16]", "[a,0:pos+t,0,0:16]", CodeShape, "from or to pos+t, want no row"},
		"row of a constant": {"limit=96", "limit=96+t", CodeOperands, "has limit=96+t, which depends on the row"},
		"row of a sequence": {" pos=pos\n", " pos=pos[2]\n", CodeOperands,
			"has pos=pos[2], and a pass has 1 sequences"},
		"same variant":  {"variant split", "variant short", CodeName, "variant short: error: is defined twice"},
		"counter gone":  {"counter best flagged gpu\n", "", CodeName, "counter best is not defined"},
		"counter twice": {"counter best", "counter L00.h", CodeName, "counter L00.h: error: is defined twice"},
		"threshold":     {">= 4", ">= 0", CodeSync, "stage L{i}.qkv: error: waits for L{i}.x >= 0"},
		"wait twice": {"  wait L{i}.x >= 4\n", "  wait L{i}.x >= 4\n  wait L{i}.x >= 2\n", CodeSync,
			"waits for counter L{i}.x twice"},
		"stage twice": {"stage sample ", "stage embed ", CodeName, "stage embed: error: is defined twice"},
		"same tasks": {"stage sample ", "stage L00.qkv ", CodeName,
			"task L00.qkv.s000: error: is defined twice in variant short"},
		"stage index": {"stage embed ", "stage embed{i} ", CodeName, "stands in no loop"},
		"past the loop": {"L{i+1}.x[a:b]", "L{i+2}.x[a:b]", CodeName,
			"stage L01.down: error: buffer L03.x is not defined"},
		"before the loop": {"L{i+1}.x[a:b]", "L{i-1}.x[a:b]", CodeName, "index -1 is negative"},
		"no iteration":    {"loop layers for 0..1", "loop layers for 0..-1", CodeShape, "runs 5 stages 0 times"},
		"too many SMs": {"extent=4 grain=1 sms=4", "extent=4 grain=1 sms=5", CodeShape,
			"uses 5 SMs, the target has 4"},
		"task SM":    {"task sm=0", "task sm=4", CodeShape, "uses 5 SMs, the target has 4"},
		"task span":  {"a=0 b=1", "a=2 b=1", CodeShape, "span [2, 1)"},
		"no tasks":   {"  task sm=0 a=0 b=1\n", "", CodeShape, "explicit with 0 listed tasks"},
		"rot":        {"rot=0 step=3", "rot=4 step=3", CodeShape, "rot 4 and step 3"},
		"step":       {"rot=0 step=3", "rot=0 step=-1", CodeShape, "rot 0 and step -1"},
		"grain":      {"extent=4 grain=1", "extent=4 grain=0", CodeShape, "grain 0"},
		"unit grain": {"units extent=2", "units extent=2 grain=2", CodeShape, "exactly 1 for units"},
		"extent":     {"extent=4 grain=1", "extent=0 grain=1", CodeShape, "extent 0"},
		"empty": {"units extent=2 sms=4 rot=0 step=1", "units extent=2 sms=4 rot=0 step=1 empty", CodeShape,
			"empty with distribution units"},
		"arity": {"EMBED(token[0], ", "EMBED(", CodeOperands, "EMBED of 1 operands, want 2"},
		"outputs": {"L{i}.kv[a,pos,0,0:16] = ", "L{i}.kv[a,pos,0,0:16], %z = ", CodeOperands,
			"KV_APPEND with 2 outputs, want 1"},
		"parameter gone": {" eps=1e-05\n  %y", "\n  %y", CodeOperands, "RMSNORM without eps"},
		"parameter": {"splits=2", "splits=2 eps=1.0", CodeOperands,
			"ATTENTION_COMBINE has no parameter \"eps\", want one of [splits"},
		"read first": {"ADD(residual[a:b], %y)", "ADD(residual[a:b], %x)", CodeTemp,
			"ADD reads %x, which no op before it writes"},
		"read own": {"%n = RMSNORM(L{i}.x[0:64]", "%n = RMSNORM(%n", CodeTemp, "RMSNORM reads %n"},
		"written twice": {"%y = GEMV_TILE(%n, L{i}.qkv", "%n = GEMV_TILE(%n, L{i}.qkv", CodeTemp,
			"GEMV_TILE writes %n, which has a value already"},
		"temporary ranges": {"%n = RMSNORM(L{i}.x", "%n[0:1] = RMSNORM(L{i}.x", CodeTemp, "RMSNORM on %n with ranges"},
		"rank":             {"token[0]", "token[0,0]", CodeShape, "view of token has 2 ranges"},
		"target SMs":       {"sms=4 smem", "sms=0 smem", CodeRange, "sms 0, want 1 to 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, string(good), c.from)
			p, diags := ParseText([]byte(strings.Replace(string(good), c.from, c.to, 1)), "f")
			require.NoError(t, diags.Err())
			got := Check(p)
			require.ErrorContains(t, got.Err(), c.want)
			codes := map[string]bool{}
			for _, d := range got {
				codes[d.Code] = true
			}
			require.True(t, codes[c.code.ID], got)
		})
	}
}

// TestCheckValues breaks what the text form cannot express.
func TestCheckValues(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(p *Program)
		want  string
	}{
		"kind":       {func(p *Program) { p.Buffers[0].Kind = 77 }, "unknown kind #77"},
		"layout":     {func(p *Program) { p.Buffers[0].Layout.Kind = -1 }, "unknown layout #-1"},
		"page space": {func(p *Program) { p.Pages[0].Space = 9 }, "unknown space #9"},
		"opcode":     {func(p *Program) { p.Variants[0].Body[0].(*Stage).Ops[0].Code = 99 }, "unknown opcode #99"},
		"dist":       {func(p *Program) { p.Variants[0].Body[0].(*Stage).Dist.Kind = 99 }, "unknown distribution #99"},
		"block": {func(p *Program) { p.Variants[0].Body[0].(*Stage).Ops[0].In[0].Dims[0].Parts = 2 },
			"blocks of 0 in 2 parts"},
		"transform": {func(p *Program) { p.Buffers[7].Pieces[0].Chain = transform.Of(9) }, "#9 is unknown, want"},
		"float": {func(p *Program) {
			p.Variants[0].Body[1].(*Loop).Body[0].Ops[0].Params[0].Float = math.NaN()
		}, "RMSNORM has eps=NaN"},
		"twice": {func(p *Program) {
			o := &p.Variants[0].Body[1].(*Loop).Body[0].Ops[0]
			o.Params = append(o.Params, o.Params[0])
		}, "RMSNORM has parameter eps twice"},
		"counter": {func(p *Program) { p.Variants[0].Counters[0].Scope = 8 }, "scope #8"},
		"node":    {func(p *Program) { p.Variants[0].Body = append(p.Variants[0].Body, nil) }, "body with <nil>"},
		"name":    {func(p *Program) { p.Buffers[0].Name = "\xff" }, `the name "\xff" holds "\xff"`},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := tiny(t)
			c.spoil(p)
			require.ErrorContains(t, Check(p).Err(), c.want)
		})
	}
}

func TestCheckSaysThingsOnce(t *testing.T) {
	_, good := tiny(t)
	p, diags := ParseText([]byte(strings.Replace(string(good), "buffer logits ", "buffer L01.h ", 1)), "f")
	require.NoError(t, diags.Err())
	n := 0
	for _, d := range Check(p) {
		if strings.Contains(d.Msg, "is defined twice") {
			n++
		}
	}
	require.Equal(t, 1, n)
}

// A program that names no model is for the positions that its variants cover, which follow each other all the same.
func TestCheckWithoutModel(t *testing.T) {
	const text = "amk 2.0\nvariant a pos 0..3\nvariant b pos %d..9\n"
	for lo, refused := range map[int]bool{4: false, 5: true} {
		p, diags := ParseText(fmt.Appendf(nil, text, lo), "f")
		require.NoError(t, diags.Err())
		require.Equal(t, refused, Check(p).Err() != nil, lo)
	}
}
