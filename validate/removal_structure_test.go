package validate_test

import (
	"fmt"
	"slices"
	"strconv"

	"amkc/ir"
	"amkc/simulate"
	"amkc/validate"
)

// Structure: indices, names, arities, buffers and pages.

var (
	one  = stage("t", 0, "a[0:2] = COPY(in[0:2])") + emit(0)
	norm = stage("t", 0, "%n = RMSNORM(in[0:4], v[0:4]) eps=1e-05") + emit(0)
	temp = stage("t", 0, "%n = COPY(in[0:2])", "a[0:2] = COPY(in[0:2])") + emit(0)
	wait = stage("t", 0, "a[0:2] = COPY(in[0:2])", "signal c") + stage("u", 1, "wait c >= 1",
		"%t = COPY(a[0:2])") + emit(0)
)

// several is a step of a pass of two tokens, once its buffers have them.
var several = passOf(2)

// passOf is a step of a pass of n tokens.
func passOf(tokens int) string {
	n := strconv.Itoa(tokens)
	return stage("t", 0, "a[0:2] = COPY(v[0:2])") +
		stage("emit", 0, "next[0:"+n+"] = COPY(token[0:"+n+"])", "signal step")
}

// ofPass gives a program its pass, and inputs and outputs their tokens.
func ofPass(sequences, rows int) func(m mutant) {
	return func(m mutant) {
		m.Pass = ir.PassOf(sequences, rows)
		for _, name := range []string{"token", "in", "next"} {
			m.Buffers[m.buffer(name)].Shape = []int{m.Pass.NumTokens()}
		}
		m.Buffers[m.buffer("kv")].Shape[0] = sequences
	}
}

// ofSequence lets ranges of a view go by the position of another sequence.
func ofSequence(s int, o *ir.Operand) {
	o.Dims = slices.Clone(o.Dims)
	for d := range o.Dims {
		r, pos := &o.Dims[d], ir.PosOf(ir.Int(s))
		r.Lo, r.Hi = r.Lo.With(ir.Pos, pos), r.Hi.With(ir.Pos, pos)
	}
}

func firstOp(m mutant) *ir.FlatOp { return &m.Tasks[0].Ops[0] }

func setParam(key string, p ir.Param) func(m mutant) {
	return func(m mutant) {
		op := firstOp(m)
		op.Params = append([]ir.Param(nil), op.Params...)
		for i := range op.Params {
			if op.Params[i].Key == key {
				op.Params[i] = p
				return
			}
		}
		op.Params = append(op.Params, p)
	}
}

var structureRemovals = []removal{
	{validate.CodeStructure, "the positions are 4 to 3", simulate.Malformed, one, func(m mutant) { m.Lo = 4 }, flatly,
		nil},
	{validate.CodeStructure, "there are -1 SMs", relied, one,
		func(m mutant) { m.SMs, m.Tasks[0].SM, m.Tasks[1].SM = -1, -1, -1 }, flatly, nil},
	{validate.CodeStructure, "buffer 6 has no name", simulate.Malformed, one, func(m mutant) { m.Buffers[6].Name = "" },
		flatly, nil},
	{validate.CodeStructure, "is defined twice; names are unique among counters", simulate.Malformed, one,
		func(m mutant) { m.Counters[1].Name = "c" }, flatly, nil},
	{validate.CodeStructure, "is defined twice; names are unique among pages", simulate.Malformed, one, func(m mutant) {
		m.Pages = append([]ir.Page{{Name: "plain", Space: ir.GlobalScratch, Bytes: 16}}, m.Pages...)
	}, flatly, nil},
	{validate.CodeStructure, "is defined twice; names are unique among tasks", simulate.Malformed, one,
		func(m mutant) { m.Tasks[1].Name = m.Tasks[0].Name }, flatly, nil},
	{validate.CodeStructure, "runs on SM 2, want 0 to 1", relied, one,
		func(m mutant) { m.Target, m.Tasks[0].SM = nil, 2 }, flatly, nil},
	{validate.CodeStructure, "runs on SM 2, target two has 2", simulate.Malformed,
		stage("t", 2, "a[0:2] = COPY(in[0:2])", "signal c") + emit(0, "wait c >= 1"), nil, stepwise, nil},
	{validate.CodeStructure, "signals counter 7 of 7", relied, one, func(m mutant) { m.Tasks[0].Signal = 7 }, flatly,
		nil},
	{validate.CodeStructure, "waits on counter 7 of 7", relied, wait,
		func(m mutant) { m.Tasks[1].Waits[0].Counter = 7 }, flatly, nil},
	{validate.CodeStructure, "starts at -1, want 0", simulate.Malformed, one,
		func(m mutant) { m.Counters[0].Init = -1 }, flatly, nil},
	{validate.CodeStructure, "COPY has 1 and 1 operands but 0 and 1 buffer indices", relied, one,
		func(m mutant) { firstOp(m).InBuf = nil }, flatly, nil},
	{validate.CodeStructure, "has no buffer; only temporaries", simulate.Malformed, temp,
		func(m mutant) { m.Tasks[0].Ops[1].OutBuf[0] = -1 }, flatly, nil},
	{validate.CodeStructure, "is buffer 99 of", relied, one, func(m mutant) { firstOp(m).InBuf[0] = 99 }, flatly, nil},
	{validate.CodeStructure, "is a temporary but has buffer", simulate.Malformed, one,
		func(m mutant) { firstOp(m).Out[0].Buf = "%a" }, flatly, nil},
	{validate.CodeStructure, "view of in mentions a, b, sm or t", simulate.Malformed, one, func(m mutant) {
		firstOp(m).In[0].Dims[0].Lo = ir.Symbol(ir.SpanA)
		firstOp(m).In[0].Dims[0].Hi = ir.Symbol(ir.SpanA).Add(ir.Int(2))
	}, flatly, nil},
	{validate.CodeStructure, "parameter pos of ROPE mentions a, b or sm", simulate.Malformed,
		stage("t", 0, "a[0:4] = ROPE(in[0:4], v[0:2]) head_dim=4 order=1 pos=pos") + emit(0),
		setParam("pos", ir.IntParam("pos", ir.Symbol(ir.SpanA))), flatly, nil},

	{validate.CodeStructure, "is of rank 1, and no task before it is what it is on rank 0", relied, wait,
		func(m mutant) { m.Peers, m.Tasks[1].Rank = 1, 1 }, flatly, nil},

	{ir.CodeOperands, "op 0 has opcode 77", relied, one, func(m mutant) { firstOp(m).Code = 77 }, flatly, nil},
	{ir.CodeOperands, "COPY has 2 inputs, want 1", simulate.Refused, one, func(m mutant) {
		op := firstOp(m)
		op.In, op.InBuf = append(op.In, op.In[0]), append(op.InBuf, op.InBuf[0])
	}, flatly, nil},
	{ir.CodeOperands, "COPY has 0 outputs, want 1 to 4", simulate.Refused, one,
		func(m mutant) { op := firstOp(m); op.Out, op.OutBuf = nil, nil }, flatly, nil},
	{ir.CodeOperands, "RMSNORM lacks parameter eps", simulate.Refused, norm, func(m mutant) { firstOp(m).Params = nil },
		flatly, nil},
	{ir.CodeOperands, "COPY has 1 parameters, want at most 0", simulate.Malformed, one,
		setParam("colour", ir.IntParam("colour", ir.Int(1))), flatly, nil},
	{ir.CodeOperands, "SAMPLE_ARGMAX has no parameter colour", simulate.Malformed,
		stage("t", 0, "next[0] = SAMPLE_ARGMAX(in[0:4])", "signal step"),
		setParam("colour", ir.IntParam("colour", ir.Int(1))), flatly, nil},
	{ir.CodeOperands, "parameter first of SAMPLE_ARGMAX is a float", simulate.Refused,
		stage("t", 0, "next[0] = SAMPLE_ARGMAX(in[0:4])", "signal step"),
		setParam("first", ir.FloatParam("first", 0.5)), flatly, nil},
	{ir.CodeOperands, "SAMPLE_ARGMAX has parameter first twice", simulate.Refused,
		stage("t", 0, "next[0] = SAMPLE_ARGMAX(in[0:4]) first=0", "signal step"), func(m mutant) {
			op := firstOp(m)
			op.Params = append(append([]ir.Param(nil), op.Params...), ir.IntParam("first", ir.Int(2)))
		}, flatly, nil},

	{validate.CodeBackend, "is a recipe, which no backend implements", simulate.Refused,
		stage("t", 0, "a[0:2] = FUSED(in[0:2]) recipe=0") + emit(0), nil, flatly, nil},

	{ir.CodeShape, "view of in has 2 ranges, the buffer has 1 dimensions", relied, one,
		func(m mutant) { op := firstOp(m); op.In[0].Dims = append(op.In[0].Dims, span(0, 1)) }, flatly, nil},
	{ir.CodeShape, "is distributed in blocks of 0 to 2 parts", simulate.Refused, temp,
		func(m mutant) { firstOp(m).In[0].Dims[0].Parts = 2 }, flatly, nil},
	{ir.CodeShape, "buffer b: error: has 6 dimensions", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("b")].Shape = []int{1, 1, 1, 1, 1, 4} }, flatly, nil},
	{ir.CodeShape, "IO_INPUT of shape [4], want the 2 tokens of a pass", simulate.Malformed, several,
		func(m mutant) { ofPass(1, 2)(m); m.Buffers[m.buffer("token")].Shape = []int{4} }, flatly, nil},
	{ir.CodeShape, "KV_CACHE of shape [1 4 2 2], want the 2 sequences of a pass", simulate.Malformed, several,
		func(m mutant) { ofPass(2, 1)(m); m.Buffers[m.buffer("kv")].Shape[0] = 1 }, flatly, nil},
	{validate.CodeStructure, "view a[pos[1]], want the position of one of 1 sequences", simulate.Malformed,
		stage("t", 0, "a[pos:pos+1] = COPY(in[0])") + emit(0),
		func(m mutant) { ofSequence(1, &firstOp(m).Out[0]) }, flatly, nil},
	{validate.CodeStructure, "view a[pos-pos[1]], want the position of one of 2 sequences",
		simulate.Malformed, stage("t", 0, "a[0:1] = COPY(v[0])") + stage("emit", 0, "next[0:2] = COPY(token[0:2])",
			"signal step"), func(m mutant) {
			ofPass(2, 1)(m)
			apart := ir.Symbol(ir.Pos).Sub(ir.PosOf(ir.Int(1)))
			firstOp(m).Out[0].Dims[0] = ir.Index(apart)
		}, flatly, nil},
	{validate.CodeSequence, "goes by the position of sequence 0, and is of the cache of another one",
		simulate.Undefined,
		stage("t", 0, "%t = ATTENTION_TILE(v[0:2], kv[1,0:pos,0,0:2], kv[1,0:pos,1,0:2]) head_dim=2 n_heads=1 "+
			"n_kv_heads=1 scale=1.0") + stage("emit", 0, "next[0:2] = COPY(token[0:2])", "signal step"), ofPass(2, 1),
		flatly, nil},
	{validate.CodeSequence, "looks at rows of sequence 0 and of sequence 1", simulate.Refused,
		stage("t", 0, "%t = ATTENTION_TILE(v[0:2], kv[0,0:pos,0,0:2], kv[0,0:pos,1,0:2]) head_dim=2 n_heads=1 "+
			"n_kv_heads=1 scale=1.0") + stage("emit", 0, "next[0:2] = COPY(token[0:2])", "signal step"),
		func(m mutant) {
			ofPass(2, 1)(m)
			ofSequence(1, &firstOp(m).In[2])
			firstOp(m).In[2].Dims[0] = span(1, 2)
		}, flatly, nil},
	{validate.CodeSymbolic, "by the position of another sequence than other tasks", simulate.Race,
		stage("t", 0, "c[pos] = COPY(v[0])") + stage("u", 1, "c[pos+1] = COPY(v[1])", "signal c") +
			stage("emit", 0, "wait c >= 1", "next[0:2] = COPY(token[0:2])", "signal step"), func(m mutant) {
			ofPass(2, 1)(m)
			ofSequence(1, &m.task("u.s001").Ops[0].Out[0])
		}, flatly, nil},
	{ir.CodeShape, "has shape [0], want positive extents", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("b")].Shape = []int{0} }, flatly, nil},
	{ir.CodeShape, "more than 17592186044416 elements", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("b")].Shape = []int{1 << 31, 1 << 31} }, flatly, nil},

	{validate.CodeLayout, "one of them does not exist", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("b")].Space = 9 }, flatly, nil},
	{validate.CodeLayout, "has 2 copies, want 1", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("b")].Layout.Copies = 2 }, flatly, nil},
	{validate.CodeLayout, "has 32-bit elements in layout word32", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("z")].DType = ir.F32 }, flatly, nil},
	{validate.CodeLayout, "exchange words are ACTIVATION in GLOBAL_SCRATCH", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("z")].Space = ir.HBM }, flatly, nil},
	{validate.CodeLayout, "ranks push exchange words", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("b")].Space = ir.PeerScratch }, flatly, nil},
	{validate.CodeLayout, "want a WEIGHT matrix, or several, in one of", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("v")].Layout.Kind = ir.Tile8x32 }, flatly, nil},
	{validate.CodeLayout, "which is for KV_CACHE [heads, rows, 2, head_dim]", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("b")].Layout.Kind = ir.KVRows16 }, flatly, nil},
	{validate.CodeLayout, "is a KV_CACHE of shape [4]", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("b")].Kind = ir.KVCache }, flatly, nil},
	{validate.CodeLayout, "where only row-major ACTIVATION can be", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("v")].Space = ir.SMEM }, flatly, nil},
	{validate.CodeLayout, "whose elements share bytes", simulate.Race,
		stage("t", 0, "b[0] = COPY(in[0])") + stage("u", 1, "b[1] = COPY(in[0])") + emit(0),
		func(m mutant) { m.Buffers[m.buffer("b")].DType = ir.I4 }, flatly, nil},
	{validate.CodeLayout, "touches kv, whose rows are I8 with a scale", simulate.Malformed,
		stage("t", 0, "kv[0,pos,0,0:2] = COPY(v[0:2])") + emit(0), scaledRows, flatly, nil},
	{validate.CodeLayout, "a part of rows of I8 that share a scale", simulate.Race,
		stage("t", 0, "kv[0,pos,0,0] = KV_APPEND(v[0])") + stage("u", 1, "kv[0,pos,0,1] = KV_APPEND(v[1])") + emit(0),
		scaledRows, flatly, nil},

	{ir.CodePage, "has -1 bytes in GLOBAL_SCRATCH", simulate.Malformed, one, func(m mutant) {
		m.Pages[1].Bytes = -1
		m.Buffers[m.buffer("f")].Pages = nil
		m.Buffers[m.buffer("g")].Pages = nil
	}, flatly, nil},
	{ir.CodePage, "is on 2 pages", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("f")].Pages = []string{"plain", "p"} }, flatly, nil},
	{ir.CodePage, "page nowhere, which does not exist", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("f")].Pages = []string{"nowhere"} }, flatly, nil},
	{ir.CodePage, "only ACTIVATION can share memory", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("f")].Kind = ir.Input }, flatly, nil},
	{ir.CodePage, "what shares memory has elements of whole bytes", simulate.Undefined,
		stage("t", 0, "%t = COPY(f[0:2])") + emit(0), func(m mutant) { m.Buffers[m.buffer("f")].DType = ir.I4 }, flatly,
		nil},
	{ir.CodePage, "is in HBM, its page plain is in GLOBAL_SCRATCH", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("f")].Space = ir.HBM }, flatly, nil},
	{ir.CodePage, "has layout word64, its page plain has rowmajor", simulate.Malformed, one,
		func(m mutant) { m.Buffers[m.buffer("f")].Layout.Kind = ir.Word64 }, flatly, nil},
	{ir.CodePage, "needs 16 bytes per copy, its page plain has 12", simulate.Outside,
		stage("t", 0, "f[0:4] = COPY(in[0:4])") + emit(0), func(m mutant) { m.Pages[1].Bytes = 12 }, flatly, nil},

	{ir.CodeVariants, "the program has no variant", simulate.Malformed, one, nil, stepwise,
		func(p *ir.Program) { p.Variants = nil }},
	{ir.CodeVariants, "is defined twice", simulate.Malformed, one + more(4), nil, stepwise,
		func(p *ir.Program) { p.Variants[1].Name = "only" }},
	{ir.CodeVariants, "starts at position 5, want 4", simulate.Malformed, one + more(5), nil, stepwise, nil},
	{ir.CodeVariants, "the variants end at position 3, want 4", simulate.Malformed, one, nil, stepwise,
		func(p *ir.Program) { p.Model.MaxSeq = 5 }},
}

// more is a variant for one position more.
func more(pos int) string {
	return fmt.Sprintf("variant more pos %d..%d\ncounter step counter gpu\n", pos, pos) + emit(0)
}

// scaledRows makes the cache one of integers.
func scaledRows(m mutant) {
	kv := &m.Buffers[m.buffer("kv")]
	kv.DType, kv.Layout.Kind = ir.I8, ir.KVRows16
}
