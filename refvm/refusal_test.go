package refvm

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/ir/diag"
)

// Programs that no VM is made for, and steps that end in an error, in every order.
func TestRefusals(t *testing.T) {
	const x = "buffer x IO_INPUT F32 [4] HBM rowmajor\nbuffer out ACTIVATION F32 [4] HBM rowmajor\nbuffer w WEIGHT " +
		"F32 [4] HBM rowmajor\nbuffer m WEIGHT F32 [2,4] HBM rowmajor\nbuffer ids IO_INPUT I32 [2] HBM rowmajor\n" +
		"buffer q WEIGHT I8 [2,4] HBM rowmajor\nbuffer n4 WEIGHT I4 [4] HBM rowmajor\nbuffer index ACTIVATION I32 " +
		"[4] HBM rowmajor\nbuffer k3 WEIGHT F32 [4,1,4] HBM rowmajor\nbuffer kv ACTIVATION F32 [1,8,1,4] HBM rowmajor"
	for _, c := range []struct {
		buffers, op string
		want        *diag.Code
		says        string
	}{
		{x, `out[0:4] = FUSED(x[0:4]) recipe=1`, CodeOp, "FUSED"},
		{x, `out[0:4] = ADD(x[0:4])`, CodeOp, "1 inputs"},
		{x, `out[0:4] = RMSNORM(x[0:4], w[0:4])`, CodeOp, "eps"},
		{x, `w[0:4] = COPY(x[0:4])`, CodeOp, "WEIGHT"},
		{x, `out[0:4] = COPY(%y)`, CodeOp, "%y"},
		{x, `out[0:4] = COPY(x[1:5])`, CodeView, "1:5"},
		{x, `out[0:4] = COPY(x[pos:pos+4])`, CodeView, "position 1"},
		{x, `out[0:4] = COPY(x[0:4 block 2 part 3 of 2])`, CodeView, "part 3"},
		{x, `out[0:3] = COPY(x[0:4])`, CodeSizes, "4 elements"},
		{x, `out[0:4] = ADD(x[0:4], x[1:3])`, CodeSizes, "4 and 2"},
		{x, `out[0:4] = MUL(x[0:4], x[1:3])`, CodeSizes, "4 and 2"},
		{x, `out[0:4] = ALLREDUCE_SHARD(x[0:4], x[1:3])`, CodeSizes, "4 and 2"},
		{x, `out[0:2] = SILU_MUL(x[0:3])`, CodeSizes, "interleaved"},
		{x, `out[0:3] = RMSNORM(x[0:3], w[0:2]) eps=0.1`, CodeSizes, "whole rows"},
		{x, `out[0:4] = RMSNORM(x[0:4], w[0:2]) eps=0.1 head_dim=4`, CodeSizes,
			"want whole heads of 4, and a weight for one or for each"},
		{x, `out[0:3] = RMSNORM(x[0:3], w[0:2]) eps=0.1 head_dim=2`, CodeSizes, "want whole heads of 2"},
		{x, `out[0:4] = LAYERNORM(x[0:4], w[0:4], w[0:2]) eps=0.1`, CodeSizes, "bias of 2"},
		{x, `out[0:2] = GEMV_TILE(x[0:3], m[0:2,0:4])`, CodeSizes, "4 columns"},
		{x, `out[0:2] = GEMV_TILE(x[0:4], m[0:2,0:4], w[0:3])`, CodeSizes, "bias of 3"},
		{x, `out[0:2] = GEMV_TILE(x[0:4], m[0:2,0:4], w[0:2], w[0:2])`, CodeSizes, "qdtype"},
		{x, `out[0:2] = GEMV_TILE(x[0:4], q[0:2,0:4], w[0:3]) qdtype=6 group=2`, CodeSizes, "3 scales, want 4"},
		{x, `out[0:2] = GEMV_TILE(x[0:4], q[0:2,0:4], w[0:4], w[0:2]) qdtype=6 group=2`, CodeSizes, "2 zeros, want 4"},
		{x, `out[0:2] = GEMV_TILE(x[0:4], q[0:2,0:4], w[0:2]) qdtype=6`, CodeOp, "group"},
		{x, `out[0:2] = GEMV_TILE(x[0:4], q[0:1,0:2], w[0:2]) qdtype=6 group=4`, CodeSizes, "2 rows, want one"},
		{x, `out[0:0] = GEMM_TILE(x[0:0], m[0:2,0:4])`, CodeSizes, "0 elements"},
		{x, `out[0:4] = DEQUANT(q[0,0:4], w[0:4]) qdtype=6 group=0`, CodeOp, "group=0"},
		{x, `out[0:4] = DEQUANT(q[0,0:4], w[0:4]) qdtype=6 group=2`, CodeSizes, "4 scales"},
		{x, `out[0:0] = DEQUANT(q[0,0:0], w[0:0], w[0:1]) qdtype=6 group=2`, CodeSizes, "1 zeros"},
		{x, `out[0:4] = EMBED(ids[1], m[0:1,0:4])`, CodeValue, "token 1"},
		{x, `out[0:4] = EMBED(ids[1], m[0:0,0:4], x[0:4])`, CodeSizes, "without rows"},
		{x, `out[0:4] = EMBED(ids[0], m[0:1,0:4], x[0:3])`, CodeSizes, "is given 3 elements, want a row of 4"},
		{x, `out[0:4] = EMBED(ids[0], m[0:0,0:4])`, CodeSizes, "without rows"},
		{x, `out[0:4] = ROPE(x[0:4], w[0:2]) head_dim=3 order=1`, CodeSizes, "head_dim 3"},
		{x, `out[0:4] = ROPE(x[0:4], w[0:2]) head_dim=4 order=2`, CodeOp, "order=2"},
		{x, `out[0:3] = ROPE(x[0:3], w[0:2]) head_dim=4 order=1 limit=2`, CodeSizes, "rotation pairs"},
		{x, `out[0:4] = ROPE(x[0:4], ids[0:0]) head_dim=4 order=0`, CodeSizes, "0 positions"},
		{x, `out[0:4] = ROPE(x[0:4], w[0:3]) head_dim=4 order=1`, CodeSizes, "3 frequencies"},
		{x, `out[0:4] = ROPE(x[0:4], w[0:0]) head_dim=4 order=1`, CodeSizes, "0 frequencies"},
		{x, `out[0:4] = ROPE(x[0:4], w[0:2]) head_dim=4 order=1 first=1`, CodeSizes, "whole pairs"},
		{x, `out[0:4] = ROPE(x[0:4], ids[0:2]) head_dim=4 order=0`, CodeSizes, "2 positions"},
		{x, `out[0], index[0] = SAMPLE_ARGMAX(x[0:4]) partial=1 first=2147483644`, CodeSizes,
			"numbers an element 2147483647, want at most 2147483646"},
		{x, `out[0], index[0] = SAMPLE(x[0:4], ids[0:1]) partial=1 first=2147483644 pos=pos`, CodeSizes,
			"numbers an element 2147483647"},
		{x, `out[0:4] = ROPE(x[0:4], w[0:2]) head_dim=4 order=1 first=2147483644`, CodeSizes,
			"numbers an element 2147483647"},
		{x, `out[0:4] = ATTENTION_TILE(x[0:4], m[0:2,0:4], m[0:2,0:4]) head_dim=4 n_heads=3 n_kv_heads=2 scale=1.0`,
			CodeSizes, "3 heads"},
		{x, `out[0:4] = ROPE(x[0:4], ids[0:2]) head_dim=1152921504606846976 order=0`, CodeOp,
			"head_dim=1152921504606846976"},
		{x, `out[0:4] = ROPE(x[0:4], ids[0:2]) head_dim=2147483646 order=0`, CodeSizes, "2 positions"},
		{x, `out[0:4] = ATTENTION_TILE(x[0:4], m[0:2,0:4], m[0:2,0:4]) head_dim=2147483647 n_heads=2147483647 ` +
			`n_kv_heads=1 scale=1.0`, CodeSizes, "4 query"},
		{x, `out[0:4] = ATTENTION_TILE(x[0:4], k3[0:4 block 2 part 0 of 2,0,0:4], k3[0:2,0,0:4]) head_dim=4 ` +
			`n_heads=1 n_kv_heads=1 scale=1.0`, CodeSizes, "part 0 of 1"},
		{x, `out[0:4] = ATTENTION_TILE(x[0:4], k3[0:2,0,0:4], k3[0:2,0,0:4]) head_dim=4 n_heads=1 n_kv_heads=1 ` +
			`scale=1.0 parts=2`, CodeSizes, "takes all rows"},
		{x, `out[0:4] = ATTENTION_TILE(x[0:4], k3[0:2,0,0:4], k3[0:2,0,0:4]) head_dim=pos+1 n_heads=1 n_kv_heads=1 ` +
			`scale=1.0`, CodeOp, "constant"},
		{x, `out[0:4] = ATTENTION_TILE(x[0:3], m[0:2,0:4], m[0:2,0:4]) head_dim=4 n_heads=1 n_kv_heads=1 scale=1.0`,
			CodeSizes, "3 query"},
		{x, `out[0:4] = ATTENTION_TILE(x[0:4], m[0:2,0:2], m[0:2,0:2]) head_dim=4 n_heads=1 n_kv_heads=1 scale=1.0`,
			CodeSizes, "cache view"},
		{x, `out[0:4] = ATTENTION_TILE(x[0:4], m[0:2,0:4], m[0:1,0:4]) head_dim=4 n_heads=1 n_kv_heads=1 scale=1.0`,
			CodeSizes, "2 rows of keys and 1"},
		{x, `out[0:4] = ATTENTION_TILE(x[0:4], m[0:2,0:4], m[0:2,0:4], w[0:4], w[0:2]) head_dim=4 n_heads=1 ` +
			`n_kv_heads=1 scale=1.0`, CodeSizes, "rows of 4 and 2"},
		{x, `out[0:2] = ATTENTION_COMBINE(x[0:4], w[0:3]) splits=2`, CodeSizes, "2 splits"},
		{x, `out[0:2] = ATTENTION_COMBINE(x[0:3], w[0:3]) head_dim=2 n_heads=1`, CodeSizes, "2 more"},
		{x, `out[0:2] = ATTENTION_COMBINE(x[0:4], w[0:4]) head_dim=2`, CodeSizes, "0 heads"},
		{x, `out[0] = SAMPLE_ARGMAX(x[0:4]) partial=1`, CodeSizes, "1 outputs"},
		{x, `index[0] = SAMPLE_ARGMAX(x[0:4], ids[0:2])`, CodeSizes, "4 values and 2"},
		{x, `index[0] = SAMPLE_ARGMAX(x[0:0])`, CodeSizes, "no values"},
		{x, `index[0:4] = SAMPLE_ARGMAX(m[0:2,0:4])`, CodeSizes, "2 elements"},
		{x, `index[0] = SAMPLE(x[0:4], ids[0:2]) pos=pos`, CodeSizes, "settings of 2 elements"},
		{x, `out[0] = SAMPLE_ARGMAX(x[0:4])`, CodeOp, "F32 elements to output 1, want I32"},
		{x, `out[0:4] = ADD(x[0:4], ids[0:4])`, CodeView, "0:4"},
		{x, `out[0:2] = ADD(x[0:2], ids[0:2])`, CodeOp, "I32 elements in input 2"},
		{x, "%i = SAMPLE_ARGMAX(x[0:4])\nout[0] = GELU(%i)", CodeOp, "I32 elements in input 1"},
		{x, "%i = COPY(x[0:1])\nout[0:4] = EMBED(%i, m[0:2,0:4])", CodeOp, "F32 elements in input 1, want I32"},
		{x, "out[0:4] = COPY(x[0:4]) colour=1", CodeOp, "no parameter"},
		{x, `out[0:4] = RMSNORM(x[0:4], w[0:4]) eps=-1.0`, CodeOp, "eps=-1"},
		{x, `out[0:4] = ROPE(x[0:4], w[0:2]) head_dim=4.5 order=1`, CodeOp, "integer"},
		{x, `out[0:4] = ROPE(x[0:4], w[0:2]) head_dim=4 order=1 pos=pos-1`, CodeOp, "pos=-1"},
		{x, `out[0:2] = COPY(x[0:min(pos,4)])`, CodeSizes, "another length of dimension 0 of input 1"},
		{x, `kv[0,0:min(pos,8),0,0:4] = KV_APPEND(x[0:4])`, CodeSizes, "another length of dimension 1 of output 1"},
		{x, `out[0:4] = COPY(x[0:0 block 2 part 3 of 2])`, CodeView, "part 3"},
		{"buffer x ACTIVATION F32 [4] HBM rowmajor page p", `NOP()`, CodeBuffer, "page p"},
		{"page p HBM rowmajor bytes=64\nbuffer x ACTIVATION F32 [4] HBM rowmajor page p\nbuffer y ACTIVATION BF16 " +
			"[4] HBM rowmajor page p", `NOP()`, CodeBuffer, "16 bits"},
		{"page p HBM rowmajor bytes=64\nbuffer x IO_INPUT F32 [4] HBM rowmajor page p", `NOP()`, CodeBuffer,
			"IO_INPUT"},
		{"buffer x IO_INPUT F32 [65536,65536] HBM rowmajor", `NOP()`, CodeBuffer, "65536 65536"},
	} {
		t.Run(c.op, func(t *testing.T) {
			vm, err := New(unroll(t, parse(t, oneTask(c.buffers, c.op))), noise(1), Options{})
			if err == nil {
				for _, order := range orders {
					err = vm.Step(0, -1, order)
					if err == nil {
						err = vm.Step(1, -1, order)
					}
					require.Equal(t, c.want.ID, code(t, err))
				}
			}
			require.Equal(t, c.want.ID, code(t, err))
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestWeightRefusals(t *testing.T) {
	flat := unroll(t, parse(t, oneTask("buffer w WEIGHT F32 [4] HBM rowmajor", `NOP()`)))
	_, err := New(flat, weightsFunc(func(*ir.Buffer, int) ([]float32, error) {
		return nil,
			errors.New("no such tensor")
	}), Options{})
	require.Equal(t, CodeWeights.ID, code(t, err))
	require.ErrorContains(t, err, "no such tensor")
	_, err = New(flat, weightsFunc(func(*ir.Buffer, int) ([]float32, error) { return make([]float32, 3), nil }),
		Options{})
	require.Equal(t, CodeWeights.ID, code(t, err))
}

// Counters that never get there are found before the first step, and named.
func TestStuck(t *testing.T) {
	const buffers = "buffer x IO_INPUT F32 [4] HBM rowmajor\nbuffer out ACTIVATION F32 [4] HBM rowmajor\nvariant v " +
		"pos 0..9\ncounter a counter gpu\ncounter b counter gpu\n"
	for _, stages := range []string{
		"stage one whole extent=1\n wait a >= 1\n NOP()\n signal b\nstage two whole extent=1\n wait b >= 1\n " +
			"NOP()\n signal a\n",
		"stage one whole extent=1\n NOP()\n signal a\nstage two whole extent=1\n wait a >= 2\n NOP()\n signal b\n",
		"stage one explicit\n task sm=0 a=0 b=1\n wait b >= 1\n NOP()\n signal a\nstage two explicit\n task sm=0 " +
			"a=0 b=1\n NOP()\n signal b\n",
	} {
		_, err := New(unroll(t, parse(t, buffers+stages)), noise(1), Options{})
		require.Equal(t, CodeStuck.ID, code(t, err))
		require.ErrorContains(t, err, "waits for counter")
	}
	legal := "stage one explicit\n task sm=0 a=0 b=1\n wait b >= 1\n NOP()\n signal a\nstage two explicit\n task " +
		"sm=1 a=0 b=1\n NOP()\n signal b\n"
	vm, err := New(unroll(t, parse(t, buffers+legal)), noise(1), Options{})
	require.NoError(t, err)
	for _, order := range orders {
		require.NoError(t, vm.Step(0, -1, order), "a task may be listed before what it waits for")
	}
}

func TestHosts(t *testing.T) {
	vm, err := New(unroll(t, parse(t, oneTask("buffer x IO_INPUT F32 [4] HBM rowmajor\nbuffer w WEIGHT F32 "+
		"[4] HBM rowmajor", `NOP()`))), noise(1), Options{})
	require.NoError(t, err)
	require.Nil(t, vm.Logits())
	require.Equal(t, -1, vm.Next())
	_, err = vm.Read("y")
	require.Equal(t, CodeBuffer.ID, code(t, err))
	require.Equal(t, CodeBuffer.ID, code(t, vm.Write("y", nil)))
	require.Equal(t, CodeBuffer.ID, code(t, vm.Write("x", make([]float32, 3))))
	require.Equal(t, CodeBuffer.ID, code(t, vm.Write("w", make([]float32, 4))))
	require.Equal(t, CodePosition.ID, code(t, vm.Step(100, -1, Order{})))
	require.Equal(t, CodePosition.ID, code(t, vm.Step(-1, -1, Order{})))

	s := odd.session(t, odd.tensors(1), Options{})
	for _, token := range []int{-1, odd.Vocab, 1 << 40} {
		_, _, err = s.Step(token)
		require.Equal(t, CodeValue.ID, code(t, err))
	}
	_, _, err = s.Step(odd.Vocab - 1)
	require.NoError(t, err, "a refused token leaves the session as it was")
	_, err = NewSession(&ir.Program{}, noise(1), Options{})
	require.Equal(t, CodePosition.ID, code(t, err))
}
