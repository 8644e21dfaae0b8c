package loops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/validate"
)

// Programs that are proved, and that a careless transformation would make others of: stages before the last one,
// which publishes the token, and the buffers alongside the token's.
var meanings = map[string]struct{ buffers, stages string }{
	"tasks of one SM that overlap, in a chain that looks as if it could be updated in place": {`
		buffer x IO_INPUT F32 [8] HBM rowmajor
		buffer z IO_OUTPUT F32 [8] HBM rowmajor
		buffer p ACTIVATION F32 [8] SMEM rowmajor
		buffer q ACTIVATION F32 [8] SMEM rowmajor`, `
		stage first explicit
		  task sm=0 a=0 b=6
		  task sm=0 a=2 b=8
		  p[a:b] = COPY(x[a:b])
		  signal step
		stage second explicit
		  task sm=0 a=0 b=6
		  task sm=0 a=2 b=8
		  q[a:b] = MUL(p[a:b]) scale=3.0
		  signal step
		stage third explicit
		  task sm=0 a=0 b=8
		  z[a:b] = COPY(q[a:b])
		  signal step`},
	"two chains in place of one role": {`
		buffer x IO_INPUT F32 [8] HBM rowmajor
		buffer y IO_INPUT F32 [8] HBM rowmajor
		buffer z IO_OUTPUT F32 [8] HBM rowmajor
		buffer zz IO_OUTPUT F32 [8] HBM rowmajor
		buffer L00.r ACTIVATION F32 [8] SMEM rowmajor
		buffer L01.r ACTIVATION F32 [8] SMEM rowmajor
		buffer L02.r ACTIVATION F32 [8] SMEM rowmajor
		buffer L03.r ACTIVATION F32 [8] SMEM rowmajor`, `
		stage begin explicit
		  task sm=0 a=0 b=8
		  L00.r[a:b] = COPY(x[a:b])
		  L02.r[a:b] = COPY(y[a:b])
		  signal step
		stage one explicit
		  task sm=0 a=0 b=8
		  L01.r[a:b] = MUL(L00.r[a:b]) scale=3.0
		  signal step
		stage other explicit
		  task sm=0 a=0 b=8
		  L03.r[a:b] = MUL(L02.r[a:b]) scale=5.0
		  signal step
		stage end explicit
		  task sm=0 a=0 b=8
		  z[a:b] = COPY(L01.r[a:b])
		  zz[a:b] = COPY(L03.r[a:b])
		  signal step`},
	"a chain on chip through the ends of a vector, whose middle another stage writes": {`
		buffer x IO_INPUT F32 [8] HBM rowmajor
		buffer z IO_OUTPUT F32 [8] HBM rowmajor
		buffer y ACTIVATION F32 [8] GLOBAL_SCRATCH rowmajor`, `
		stage middle explicit
		  task sm=0 a=2 b=6
		  z[a:b] = COPY(x[a:b])
		  signal step
		stage call0 explicit
		  task sm=0 a=0 b=2
		  task sm=0 a=6 b=8
		  %t = MUL(x[a:b]) scale=2.0
		  y[a:b] = GELU(%t)
		  signal step
		stage call1 explicit
		  task sm=0 a=0 b=2
		  task sm=0 a=6 b=8
		  %t = MUL(y[a:b]) scale=2.0
		  z[a:b] = GELU(%t)
		  signal step`},
	"a chain on chip whose first value another SM writes, which a stage before the reader waits for": {`
		buffer x IO_INPUT F32 [8] HBM rowmajor
		buffer f ACTIVATION F32 [8] GLOBAL_SCRATCH rowmajor
		buffer y ACTIVATION F32 [8] GLOBAL_SCRATCH rowmajor
		buffer z IO_OUTPUT F32 [8] HBM rowmajor
		buffer o0 IO_OUTPUT F32 [8] HBM rowmajor
		buffer o1 IO_OUTPUT F32 [8] HBM rowmajor
		counter c counter gpu`, `
		stage begin explicit
		  task sm=1 a=0 b=8
		  f[a:b] = COPY(x[a:b])
		  signal c
		stage beside0 explicit
		  task sm=0 a=0 b=8
		  wait c >= 1
		  o0[a:b] = COPY(x[a:b])
		  signal step
		stage call0 explicit
		  task sm=0 a=0 b=8
		  %t = MUL(f[a:b]) scale=2.0
		  y[a:b] = GELU(%t)
		  signal step
		stage beside1 explicit
		  task sm=0 a=0 b=8
		  wait c >= 1
		  o1[a:b] = COPY(x[a:b])
		  signal step
		stage call1 explicit
		  task sm=0 a=0 b=8
		  %t = MUL(y[a:b]) scale=2.0
		  z[a:b] = GELU(%t)
		  signal step`},
	"a chain on chip whose first value is announced within the first call": {`
		buffer x IO_INPUT F32 [8] HBM rowmajor
		buffer f ACTIVATION F32 [8] GLOBAL_SCRATCH rowmajor
		buffer y ACTIVATION F32 [8] GLOBAL_SCRATCH rowmajor
		buffer z IO_OUTPUT F32 [8] HBM rowmajor
		buffer o0 IO_OUTPUT F32 [8] HBM rowmajor
		buffer o1 IO_OUTPUT F32 [8] HBM rowmajor
		counter c0 counter gpu
		counter c1 counter gpu`, `
		stage begin explicit
		  task sm=1 a=0 b=8
		  f[a:b] = COPY(x[a:b])
		  signal step
		stage tell0 explicit
		  task sm=1 a=0 b=8
		  o0[a:b] = COPY(x[a:b])
		  signal c0
		stage call0 explicit
		  task sm=0 a=0 b=8
		  wait c0 >= 1
		  %t = MUL(f[a:b]) scale=2.0
		  y[a:b] = GELU(%t)
		  signal step
		stage tell1 explicit
		  task sm=1 a=0 b=8
		  o1[a:b] = COPY(x[a:b])
		  signal c1
		stage call1 explicit
		  task sm=0 a=0 b=8
		  wait c1 >= 1
		  %t = MUL(y[a:b]) scale=2.0
		  z[a:b] = GELU(%t)
		  signal step`},
	"weights under the names that a group gives them, which become a family": {`
		buffer x IO_INPUT F32 [8] HBM rowmajor
		buffer z0 IO_OUTPUT F32 [8] HBM rowmajor
		buffer z1 IO_OUTPUT F32 [8] HBM rowmajor
		buffer w0 WEIGHT F32 [8,8] HBM rowmajor from rows(calls.0.w)
		buffer w1 WEIGHT F32 [8,8] HBM rowmajor from rows(calls.1.w)
		group in{i} for 0..1 of w0 w1`, `
		stage call0 explicit
		  task sm=0 a=0 b=8
		  z0[a:b] = GEMV_TILE(x[0:8], in00[a:b,0:8])
		  signal step
		stage call1 explicit
		  task sm=0 a=0 b=8
		  z1[a:b] = GEMV_TILE(x[0:8], in01[a:b,0:8])
		  signal step`},
	"members of two families that differ in type": {`
		buffer x IO_INPUT F32 [8] HBM rowmajor
		buffer z0 IO_OUTPUT F32 [8] HBM rowmajor
		buffer z1 IO_OUTPUT F32 [8] HBM rowmajor
		buffer w{i} for 0..1 WEIGHT F32 [8,8] HBM rowmajor from rows(calls.{i}.w)
		buffer v{i} for 0..1 WEIGHT BF16 [16,8] HBM rowmajor from rows(other.{i}.w)`, `
		stage call0 explicit
		  task sm=0 a=0 b=8
		  z0[a:b] = GEMV_TILE(x[0:8], w00[a:b,0:8])
		  signal step
		stage call1 explicit
		  task sm=0 a=0 b=8
		  z1[a:b] = GEMV_TILE(x[0:8], v01[a:b,0:8])
		  signal step`},
}

// What a program computes, and that it is proved, the pass leaves as it was.
func TestLoopKeepsTheMeaning(t *testing.T) {
	for name, m := range meanings {
		t.Run(name, func(t *testing.T) {
			text := "amk 2.0\nbuffer token IO_INPUT I32 [1] HBM rowmajor\nbuffer next IO_OUTPUT I32 [1] HBM " +
				"rowmajor\nvariant all pos 0..0\ncounter step counter gpu" +
				m.buffers + m.stages + "\nstage emit explicit\n  task sm=0 a=0 b=1\n  next[0] = COPY(token[0])\n  " +
				"signal step\n"
			flat, err := ir.Parse([]byte(text), name)
			require.NoError(t, err)
			p := copyOf(t, flat)
			rollAll(t, p)
			require.NoError(t, ir.Check(p).Err(), "%s", ir.Print(p))
			for _, p := range []*ir.Program{flat, p} {
				report := validate.Program(p)
				require.True(t, report.OK, "%v\n%s", report.Diags, ir.Print(p))
			}
			require.Equal(t, outputs(t, flat), outputs(t, p), "%s", ir.Print(p))
		})
	}
}
