package validate_test

import (
	"amkc/ir"
	"amkc/simulate"
	"amkc/validate"
)

// Views inside buffers, operands of one op, on-chip memory.

var memoryRemovals = []removal{
	{validate.CodeBounds, "covers [7, 9) of dimension 0 at pos 0, which has 8 elements", simulate.Refused,
		stage("t", 0, "%t = COPY(v[7:9])") + emit(0), nil, flatly, nil},
	{validate.CodeBounds, "at pos 3, which has 4 elements", simulate.Refused,
		stage("t", 0, "%t = ATTENTION_TILE(in[0:2], wk[0:pos+2,0:1,0:2], wk[0:pos+2,0:1,0:2]) head_dim=2 n_heads=1 "+
			"n_kv_heads=1 scale=1.0") + emit(0), nil, flatly, nil},
	{validate.CodeBounds, "takes part 2 of 2 at pos 0", simulate.Refused,
		stage("t", 0, "%t = ATTENTION_TILE(in[0:2], wk[0:4 block 1 part 2 of 2,0:1,0:2], wk[0:4 block 1 part 2 of "+
			"2,0:1,0:2]) head_dim=2 n_heads=1 n_kv_heads=1 scale=1.0 parts=2 block=1 part=2") + emit(0), nil, flatly,
		nil},
	{validate.CodeReadOnly, "which no task of a step may write", simulate.ReadOnly,
		stage("t", 0, "v[0:2] = COPY(in[0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeAlias, "which overlap", simulate.Aliased,
		stage("t", 0, "a[0:4] = COPY(in[0:4])", "a[1:3] = COPY(a[0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeSymbolic, "which are the same ones at every position", simulate.Stuck,
		stage("t", 0, "z[0:2] = COPY(in[0:2])", "signal e") + stage("l", 0, "signal c") + stage("t2", 0,
			"z[0:2] = COPY(in[0:2])", "signal f") +
			stage("l2", 0, "signal d") + stage("u", 1, "wait e >= 1", "wait d >= 1", "%t = COPY(z[0:1])") + emit(0),
		func(m mutant) {
			pos := ir.Symbol(ir.Pos)
			r := &m.task("u.s001").Ops[0].In[0].Dims[0]
			r.Lo, r.Hi = pos.Sub(pos), pos.Add(ir.Int(1)).Sub(pos)
		}, flatly, nil},
	{validate.CodeSymbolic, "which has the same owner at every position", simulate.Owner,
		stage("t", 0, "s[0:4] = COPY(in[0:4])", "signal c") + stage("u", 1, "wait c >= 1",
			"%t = COPY(s[pos:pos+1])") + emit(0), nil, flatly, nil},
	{validate.CodeSymbolic, "memory that several buffers share", simulate.Race,
		stage("t", 0, "f[pos:pos+1] = COPY(in[0])", "signal c") + stage("u", 1, "g[pos*2+1] = COPY(in[0])") + emit(0),
		func(m mutant) {
			m.Buffers[m.buffer("g")].DType, m.Buffers[m.buffer("g")].Shape = ir.F16, []int{8}
		}, flatly, nil},
	{validate.CodeOwner, "but runs on no SM", simulate.Owner, stage("t", 0, "s[0:4] = COPY(in[0:4])") + emit(0),
		func(m mutant) { m.Tasks[0].SM = -1 }, flatly, nil},
	{validate.CodeOwner, "from SM 1, but it is in the shared memory of SM 0", simulate.Owner,
		stage("t", 0, "s[0:4] = COPY(in[0:4])", "signal c") + stage("u", 1, "wait c >= 1",
			"%t = COPY(s[0:4])") + emit(0), nil, flatly, nil},
	{validate.CodeOwner, "in registers, which belong to t.s000", simulate.Owner,
		stage("t", 0, "r[0:2] = COPY(in[0:2])") + stage("u", 0, "%t = COPY(r[0:2])") + emit(0), nil, flatly, nil},
	{validate.CodeCapacity, "SM 0 keeps 144 bytes", simulate.Capacity,
		stage("t", 0, "wide[0:8] = EMBED(index[0:2], table[0:4,0:4])", "wide[8:16] = EMBED(index[0:2], table[0:4,0:4])",
			"wide[16:24] = EMBED(index[0:2], table[0:4,0:4])",
			"wide[24:32] = EMBED(index[0:2], table[0:4,0:4])") + emit(0), func(m mutant) {
			m.Buffers[m.buffer("index")].Kind = ir.Input
		}, flatly, nil},
	{validate.CodeCapacity, "the pages in shared memory up to this one take 16 bytes", simulate.Capacity,
		stage("t", 0, "t[0:2] = COPY(in[0:2])") + emit(0), func(m mutant) {
			target := *m.Target
			target.SMemOptin = 2
			m.Target = &target
		}, flatly, nil},
	{validate.CodeLayout, "but runs on no SM, which decides the copy", simulate.Malformed,
		stage("t", 0, "z[0:2] = COPY(in[0:2])", "signal e") + stage("u", 1, "wait e >= 1", "%t = COPY(z[0:2])") +
			emit(0), func(m mutant) {
			m.Buffers[m.buffer("z")].Layout.Copies, m.task("u.s001").SM = 2, -1
		}, flatly, nil},
	{validate.CodeOutputGap, "is never written, and every element of an output must be", simulate.OutputGap,
		stage("t", 0, "a[0:2] = COPY(in[0:2])"), nil, flatly, nil},
}
