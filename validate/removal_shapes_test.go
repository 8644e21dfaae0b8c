package validate_test

import (
	"fmt"
	"math"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/simulate"
	"amkc/validate"
)

// Operands that do not agree, of the wrong type, and parameters. Each is one task, of which the reference code makes
// something else than its views say, or which it cannot run.
var shapeRemovals = func() []removal {
	op := func(code *diag.Code, says string, kind simulate.Kind, lines ...string) removal {
		return removal{code: code, says: says, kind: kind, text: stage("t", 0, lines...) + emit(0)}
	}
	shape := func(says string, lines ...string) removal {
		return op(validate.CodeShapes, says, simulate.Refused, lines...)
	}
	attention := func(operands, params string) string {
		return fmt.Sprintf("%%t = ATTENTION_TILE(%s) %s scale=1.0", operands, params)
	}
	const oneHead = "head_dim=2 n_heads=1 n_kv_heads=1"
	dtype := func(says string, lines ...string) removal {
		return op(validate.CodeDType, says, simulate.Refused, lines...)
	}
	parameter := func(says string, lines ...string) removal {
		return op(validate.CodeParameter, says, simulate.Refused, lines...)
	}
	i8 := fmt.Sprint(int(ir.I8))
	typed := func(r removal, buffer string, d ir.DType) removal {
		r.edit = func(m mutant) { m.Buffers[m.buffer(buffer)].DType = d }
		return r
	}
	edited := func(r removal, edit func(m mutant)) removal {
		r.edit = edit
		return r
	}
	const kept = "f[0:2], wide[0:5]"
	steps := func(says, out, in string) removal {
		return shape(says, "f[0:4] = COPY(in[0:4])", "wide[0:6] = COPY(v[0:6])",
			fmt.Sprintf("%%t, %s = RECURRENCE(%s) pos=pos", out, in))
	}
	convolves := func(says, out, in string) removal {
		return shape(says, "f[0:4] = COPY(in[0:4])", fmt.Sprintf("%%t, %s = STATE_CONV(%s) pos=pos taps=2", out, in))
	}
	return []removal{
		steps("output 2 is not the view of input 6", "f[2:4], wide[0:5]",
			"in[0], in[1], in[2:4], v[0], v[1], "+kept),
		steps("has 1 rows of q of 0 elements, and of v of 2", kept, "in[0:0], in[0:0], in[2:4], v[0], v[1], "+kept),
		steps("has 1 rows of q, 1 of k and 1 of v, the first of 1 elements and the second of 2", kept,
			"in[0], in[0:2], in[2:4], v[0], v[1], "+kept),
		steps("has 1 rows, 2 numbers of decay and 1 of beta", kept, "in[0], in[1], in[2:4], v[0:2], v[1], "+kept),
		steps("has a state of 1 rows of 3 elements, want 1 of 2", "f[0:3], wide[0:5]",
			"in[0], in[1], in[2:4], v[0], v[1], f[0:3], wide[0:5]"),
		steps("has 1 pending rows of 6 elements, want at least 1 of 5", "f[0:2], wide[0:6]",
			"in[0], in[1], in[2:4], v[0], v[1], f[0:2], wide[0:6]"),
		convolves("x has 1 rows of 2 elements and w 3, want 2 taps", "f[0:4]", "in[0:2], f[0:4], v[0:3]"),
		convolves("has 1 rows of 4 elements of the positions before, want at least 2 of 2", "f[0:4]",
			"in[0:2], f[0:4], v[0:4]"),
		shape("x has rows of 2 elements and w 3, want 2 taps", "%t = SHORT_CONV(in[0:2], wk[0:pos,0:1,0:2], v[0:3]) "+
			"taps=2"),
		shape("the length of input 1 of COPY depends on pos", "a[0:2] = COPY(in[0:pos])"),
		shape("the length of output 1 of COPY depends on pos", "a[0:pos] = COPY(in[0:2])"),
		shape("KV_APPEND writes a number of rows that depends on pos", "kv[0,0:pos,0,0:2] = KV_APPEND(in[0:2])"),
		shape("x must be whole rows as long as w", "%t = RMSNORM(in[0:4], v[0:3]) eps=1e-05"),
		shape("x has rows of 3 elements, want whole heads of 2",
			"%t = RMSNORM(in[0:3], v[0:2]) eps=1e-05 head_dim=2"),
		shape("weight 1 has 2 elements, want head_dim = 4", "%t = RMSNORM(in[0:4], v[0:2]) eps=1e-05 head_dim=4"),
		shape("w has 2 elements, want 4", "%t = XIELU(in[0:4], v[0:2])"),
		shape("one interleaved operand has rows of 3 elements", "%t = SILU_MUL(in[0:3])"),
		shape("output 1 has 3 elements, want 2", "a[0:3] = COPY(in[0:2])"),
		shape("numbers 2 elements from 2147483646 on",
			"%t = ROPE(in[0:2], v[0:1]) order=1 head_dim=2 first=2147483646"),
		shape("operands have 2 and 3 elements", "%t = ADD(in[0:2], in[0:3])"),
		shape("multiplies the sum by 2 elements, want one", "%t = ADD(in[0:2], in[0:2], v[0:2])"),
		shape("x has 3 elements, K is 2: x must be whole rows of K", "%t = GEMV_TILE(in[0:3], w[0:2,0:2])"),
		shape("K is 2, in 3 parts: want equal parts", "%t = GEMV_TILE(in[0:2], w[0:2,0:2]) parts=3"),
		shape("K is 2, in 4 parts: want equal parts", "%t = GEMV_TILE(in[0:2], w[0:2,0:2]) parts=4"),
		shape("the bias has 3 elements, n is 2", "%t = GEMV_TILE(in[0:2], w[0:2,0:2], v[0:3])"),
		shape("without qdtype has 4 inputs, want 2 to 3", "%t = GEMV_TILE(in[0:2], w[0:2,0:2], v[0:2], v[0:2])"),
		shape("scales or zeros have 3 elements", "%t = GEMV_TILE(in[0:2], q[0:2,0:2], v[0:3]) group=2 qdtype="+i8),
		shape("head_dim is 0, want a positive number", "%t = ATTENTION_COMBINE(v[0:4]) n_heads=1"),
		shape("3 heads are not a multiple of 2 kv heads",
			attention("v[0:6], wk[0:1,0:2,0:2], wk[0:1,0:2,0:2]", "head_dim=2 n_heads=3 n_kv_heads=2")),
		shape("q has 3 elements", attention("in[0:3], wk[0:1,0:1,0:2], wk[0:1,0:1,0:2]", oneHead)),
		shape("k or v is a temporary", "%k = COPY(v[0:4])", attention("in[0:2], %k, %k", oneHead)),
		shape("operand 2 has the shape [rows 1 2], want [rows 2 2], [1 rows 2 2], [2 rows 1 2]",
			attention("in[0:4], wk[0:1,0:1,0:2], wk[0:1,0:1,0:2]", "head_dim=2 n_heads=2 n_kv_heads=2")),
		shape("has 2 rows of keys and 1 of values at pos 0",
			attention("in[0:2], wk[0:2,0:1,0:2], wk[0:1,0:1,0:2]", oneHead)),
		shape("the length of input 2 of ATTENTION_TILE depends on pos",
			attention("in[0:2], wk[0:1,0:1,0:min(pos,2)], wk[0:1,0:1,0:min(pos,2)]",
				"head_dim=1 n_heads=2 n_kv_heads=1")),
		shape("has 1 rows of keys and 0 of values at pos 1",
			attention("in[0:2], wk[0:pos,0:1,0:2], wk[0:pos/2*2,0:1,0:2]", oneHead)),
		shape("operand 2 has the shape [rows 0 2], want [rows 2]",
			attention("in[0:2], wk[0:0,1:1,0:2], wk[0:0,1:1,0:2]", oneHead)),
		shape("x has rows of 2 elements and w 1", "%t = RMSNORM(in[0:2], v[0:1], in[0:4]) eps=0.1"),
		shape("x has 1 rows, and the whole 2 of 2 elements", "%t = RMSNORM(in[0:2], v[0:2], w[0:2,0:2]) eps=0.1"),
		shape("the table is a temporary", "%w = COPY(in[0:4])", "%t = EMBED(token[0], %w)"),
		shape("operand 2 has the shape [rows 2 2], want [rows 2]",
			attention("in[0:2], wk[0:pos,0:2,0:2], wk[0:pos,0:2,0:2]", oneHead)),
		shape("has k_row but no v_row", attention("in[0:2], wk[0:1,0:1,0:2], wk[0:1,0:1,0:2], v[0:2]",
			oneHead+" row=pos")),
		shape("has 2 sinks, want one for each of 1 heads",
			attention("in[0:2], wk[0:1,0:1,0:2], wk[0:1,0:1,0:2], v[0:2], v[0:2], v[0:2]", oneHead+" row=pos")),
		shape("has first_row and no parameter rows",
			attention("in[0:2], wk[0:1,0:1,0:2], wk[0:1,0:1,0:2]", oneHead+" first_row=0")),
		shape("takes 2 rows from row 0 on, of 1",
			attention("in[0:2], wk[0:1,0:1,0:2], wk[0:1,0:1,0:2]", oneHead+" rows=2")),
		shape("takes 1 rows from row 0 on, of 0", "kv[0,0:0,0,0:2] = KV_APPEND(in[0:0]) first_row=0 rows=1"),
		shape("k_row and v_row have 1 and 1 elements",
			attention("in[0:2], wk[0:1,0:1,0:2], wk[0:1,0:1,0:2], v[0:1], v[0:1]", oneHead+" row=pos")),
		shape("inv_freq has 3 elements", "%t = ROPE(in[0:4], v[0:3]) head_dim=4 order=1 pos=pos"),
		shape("x has rows of 3 elements, want rotation pairs", "%t = ROPE(in[0:3], v[0:2]) head_dim=4 order=1 pos=pos"),
		shape("turns 4 elements from element 1 on", "%t = ROPE(in[0:4], v[0:2]) head_dim=4 order=1 pos=pos first=1"),
		shape("x has 3 elements for 1 positions, want whole heads of 2",
			"%t = ROPE(in[0:3], token[0]) head_dim=2 order=0 theta=10000.0"),
		shape("head_dim is 3, want an even number", "%t = ROPE(in[0:3], token[0]) head_dim=3 order=0 theta=10000.0"),
		shape("x has 4 elements for 0 positions", "%t = ROPE(in[0:4], token[0:0]) head_dim=2 order=0 theta=10000.0"),
		shape("given has 3 elements, want 4, a row of 4 for each of 1 ids",
			"%t = EMBED(token[0], table[0:4,0:4], in[0:3])"),
		shape("the table has no rows", "%t = EMBED(token[0], table[0:0,0:4])"),
		shape("GEMV_TILE takes one row", "%t = GEMV_TILE(in[0:4], w[0:2,0:2])"),
		shape("has no values to choose from", "index[0] = SAMPLE_ARGMAX(in[0:0])"),
		shape("has 2 queries with rows of their own and rows to append",
			attention("v[0:4], wk4[0:2,0:1,0:1,0:2], wk4[0:2,0:1,0:1,0:2], v[0:4], v[0:4]", oneHead+" row=pos")),
		shape("has 2 rows to append and no parameter row",
			attention("v[0:4], w[0:2,0:2], w[0:2,0:2], v[0:4], v[0:4]", oneHead)),
		shape("has a window and no parameter row",
			attention("v[0:2], w[0:2,0:2], w[0:2,0:2]", oneHead+" window=2")),
		shape("x has 2 rows and the op no parameter pos", "%t = ROPE(w[0:2,0:2], v[0:1]) head_dim=2 order=1"),
		shape("has 3 values and 1 indices, in rows of 3 and 1", "index[0] = SAMPLE_ARGMAX(in[0:3], token[0])"),
		shape("the parameters say part 1 of 2",
			attention("in[0:2], wk[0:pos block 1 part 0 of 2,0:1,0:2], wk[0:pos block 1 part 0 of 2,0:1,0:2]",
				oneHead+" parts=2 block=1 part=1")),
		shape("has settings of 1 rows of 1 elements for 1 rows", "index[0] = SAMPLE(in[0:3], token[0]) pos=pos"),
		shape("with partial=1 has 1 outputs, want 2", "f[0] = SAMPLE_ARGMAX(in[0:4]) partial=1"),
		shape("last has 0 elements, want 1", "index[0] = STOP(token[0], token[0], token[0:0])"),
		shape("output 1 has 2 elements, want 1", "index[0:2] = SAMPLE_ARGMAX(in[0:3])"),
		shape("with splits has 1 inputs, want 2", "%t = ATTENTION_COMBINE(v[0:4]) splits=2"),
		shape("takes acc[2,1,w] and ml[2,1,2]", "%t = ATTENTION_COMBINE(v[0:3], v[0:4]) splits=2"),
		shape("chooses 5 of rows of 4 elements", "%v, %i = TOPK(in[0:4]) k=5"),
		shape("has a bias of 2 elements for rows of 4", "%v, %i = TOPK(in[0:4], w[0:1,0:2]) k=1"),
		shape("has one of groups and top_groups", "%v, %i = TOPK(in[0:4]) k=1 groups=2"),
		shape("chooses from 1 of 3 groups of rows of 4 elements", "%v, %i = TOPK(in[0:4]) k=1 groups=3 top_groups=1"),
		shape("chooses from 1 of 4 groups of rows of 4 elements", "%v, %i = TOPK(in[0:4]) k=1 groups=4 top_groups=1"),
		shape("chooses from 3 of 2 groups of rows of 4 elements", "%v, %i = TOPK(in[0:4]) k=1 groups=2 top_groups=3"),
		shape("chooses 3 of rows of 2 elements", "%v, %i = TOPK(in[0:4]) k=3 groups=2 top_groups=1"),
		shape("takes a view of other than three dimensions",
			"%t = SELECTED_TILE(in[0:2], w[0:2,0:2], token[0])"),
		shape("has 1 ids for 2 rows of x", "%t = SELECTED_TILE(in[0:4], wk[0:1,0:1,0:2], token[0])"),
		shape("has biases of another shape than 1 by 1",
			"%t = SELECTED_TILE(in[0:2], wk[0:1,0:1,0:2], token[0], v[0:1])"),
		shape("has 1 ids and 2 weights", "%t = SELECTED_TILE(in[0:2], wk[0:1,0:1,0:2], token[0], w[0:1,0:1], v[0:2])"),
		shape("has 3 operands to be added in pairs", "%t = ALLREDUCE_SHARD(in[0], in[1], in[2]) pairs=1"),
		shape("x has 1 rows, want a multiple of 2", "%t = SUM_ROWS(in[0:4]) parts=2"),
		shape("x has 1 rows and y 2, want as many", "%t = SCALE_BLOCKS(in[0:4], w[0:2,0:2]) block=2"),
		shape("takes elements 0 to 3 of a vector of 1 blocks of 2", "%t = SCALE_BLOCKS(in[0:4], v[0:1]) block=2"),
		shape("partial 1 has 5 elements", "%t = ATTENTION_COMBINE(v[0:5]) head_dim=2 n_heads=1"),

		dtype("input 1 is F32, want I32", "%i = COPY(in[0])", "%t = EMBED(%i, table[0:4,0:4])"),
		dtype("input 1 is I32, want F32, F16 or BF16", "%i = SAMPLE_ARGMAX(in[0:4])", "%t = GELU(%i)"),
		dtype("input 1 is F16, want I8", "%t = DEQUANT(w[0:2,0:2], v[0:2]) group=2 qdtype="+i8),
		dtype("input 3 is I32, want F32", "%t = GEMV_TILE(in[0:2], q[0,0:2], token[0]) group=2 qdtype="+i8),
		dtype("input 1 is F16, want I32", "%t = EMBED(in[0], table[0:4,0:4])"),
		dtype("input 2 is F16, want I8", "%t = GEMV_TILE(in[0:2], w[0:2,0:2], v[0:2]) group=2 qdtype="+i8),
		dtype("input 1 is I32, want F32, F16 or BF16", "%t = GELU(token[0])"),
		typed(dtype("output 1 is F16, want I32", "a[0] = SAMPLE_ARGMAX(in[0:4])"), "index", ir.I32),
		dtype("copies I32 to F16", "a[0] = COPY(token[0])"),
		typed(dtype("output 1 is I32, want F32, F16 or BF16", "b[0:4] = GELU(in[0:4])"), "b", ir.I32),

		edited(parameter("want 0, or a magnitude of", "%t = RMSNORM(in[0:4], v[0:4]) eps=1.0"),
			setParam("eps", ir.FloatParam("eps", math.NaN()))),
		parameter("want 0 or more", "%t = RMSNORM(in[0:4], v[0:4]) eps=-1.0"),
		parameter("want a positive number", "%t = ROPE(in[0:4], token[0]) head_dim=4 order=0 theta=0.0"),
		parameter("want a constant", attention("in[0:2], wk[0:1,0:1,0:2], wk[0:1,0:1,0:2]",
			"head_dim=pos+2 n_heads=1 n_kv_heads=1")),
		parameter("order=2; want 0 to 1", "%t = ROPE(in[0:4], v[0:2]) head_dim=4 order=2 pos=pos"),
		parameter("qdtype=1; want", "%t = GEMV_TILE(in[0:2], w[0:2,0:2], v[0:2]) group=2 qdtype=1"),
	}
}()
