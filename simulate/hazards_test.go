package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// program reads a program of one variant at position pos, with two SMs.
func program(t *testing.T, body string) *ir.Program {
	p, err := ir.Parse([]byte(`amk 2.0
target two arch=sm_90a sms=2 smem_optin=16 l2_bytes=1 hbm_bytes=1 hbm_gbs=1 bulk_copy=false async_copy=false `+
		`mma16816=false
page p GLOBAL_SCRATCH word32 bytes=8
buffer in IO_INPUT F16 [4] HBM rowmajor
buffer w WEIGHT F16 [2,2] HBM rowmajor
buffer out IO_OUTPUT F32 [2] HBM rowmajor
buffer a ACTIVATION F16 [4] HBM rowmajor
buffer b ACTIVATION F16 [4] HBM rowmajor
buffer x ACTIVATION F16 [2] GLOBAL_SCRATCH word32 page p
buffer y ACTIVATION F16 [2] GLOBAL_SCRATCH word32 page p
buffer z ACTIVATION F16 [2] GLOBAL_SCRATCH word32
buffer s ACTIVATION F16 [4] SMEM rowmajor
buffer wide ACTIVATION F32 [8] SMEM rowmajor
buffer kv KV_CACHE F16 [1,4,2,2] HBM rowmajor
variant only pos 0..3
counter c counter gpu
counter d counter gpu
counter e flagged gpu
counter f flagged gpu
counter g flagged gpu
counter step counter gpu
`+body), "test.amk")
	require.NoError(t, err)
	return p
}

// on is a stage of one task.
func on(sm, name, lines string) string {
	return "stage " + name + " explicit\n task sm=" + sm + " a=0 b=1\n" + lines + "\n"
}

const whole = " out[0:2] = COPY(in[0:2])\n signal step"

func TestHazards(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Kind // "": safe
		body string
	}{
		{"nothing shared", "", on("0", "t", whole)},
		{"read after write, counted", "", on("0", "t", " a[0:2] = COPY(in[0:2])\n signal c") + on("1", "u",
			" wait c >= 1\n out[0:2] = COPY(a[0:2])\n signal step")},
		{"read after write, not ordered", Race,
			on("0", "t", " a[0:2] = COPY(in[0:2])\n signal step") + on("1", "u",
				" out[0:2] = COPY(a[0:2])\n signal step")},
		{"write after read, not ordered", Race,
			on("0", "r", " a[0:2] = COPY(in[0:2])\n signal c") + on("0", "t",
				" out[0:2] = COPY(a[0:2])\n signal step") + on("1", "u",
				" wait c >= 1\n a[0:2] = COPY(in[0:2])\n signal step")},
		{"which producer", Race, on("0", "t", " a[0:2] = COPY(in[0:2])\n signal c") + on("1", "u",
			" a[2:4] = COPY(in[0:2])\n signal c") + on("1", "v",
			" wait c >= 1\n out[0:2] = COPY(a[0:2])\n signal step")},
		{"plain memory on the strength of a flag", Race,
			on("0", "t", " a[0:2] = COPY(in[0:2])\n x[0:2] = COPY(in[0:2])\n signal e") +
				on("1", "u", " wait e >= 1\n %t = COPY(x[0:2])\n out[0:2] = COPY(a[0:2])\n signal step")},
		{"words", "", on("0", "t", " x[0:2] = COPY(in[0:2])\n signal e") + on("1", "u",
			" wait e >= 1\n out[0:2] = COPY(x[0:2])\n signal step")},
		{"words that nobody announces", Undefined,
			on("0", "t", " x[0:2] = COPY(in[0:2])\n signal e") + on("1", "u",
				" out[0:2] = COPY(x[0:2])\n signal step")},
		{"page reused when its reader is done", "",
			on("0", "t", " x[0:2] = COPY(in[0:2])\n signal e") + on("1", "u",
				" wait e >= 1\n z[0:2] = COPY(x[0:2])\n signal f") +
				on("0", "v", " wait f >= 1\n %t = COPY(z[0:2])\n y[0:2] = COPY(in[0:2])\n signal g") + on("1", "w",
				" wait g >= 1\n out[0:2] = COPY(y[0:2])\n signal step")},
		{"page reused too soon", Stuck, on("0", "t", " x[0:2] = COPY(in[0:2])\n signal e") + on("0", "v",
			" y[0:2] = COPY(in[0:2])\n signal g") +
			on("1", "u", " wait e >= 1\n %t = COPY(x[0:2])\n wait g >= 1\n out[0:2] = COPY(y[0:2])\n signal step")},
		{"stores that nobody has seen land in any order", Stuck,
			on("0", "t", " x[0:2] = COPY(in[0:2])\n z[0:2] = COPY(in[0:2])\n signal f") +
				on("1", "v", " wait f >= 1\n %t = COPY(z[0:2])\n y[0:2] = COPY(in[0:2])\n signal g") + on("0", "w",
				" wait g >= 1\n out[0:2] = COPY(y[0:2])\n signal step")},
		{"polled after publishing", Stuck, on("0", "t", " x[0:2] = COPY(in[0:2])\n signal e") + on("1", "u",
			" wait e >= 1\n z[0:2] = COPY(in[0:2])\n %t = COPY(x[0:2])\n signal f") +
			on("0", "v", " wait f >= 1\n %t = COPY(z[0:2])\n y[0:2] = COPY(in[0:2])\n signal g") + on("0", "w",
			" wait g >= 1\n out[0:2] = COPY(y[0:2])\n signal step")},
		{"never enough", Stuck, on("0", "t", " wait c >= 1\n"+whole)},
		{"deadlock through queues", Stuck, on("0", "t", " wait c >= 1\n signal d") + on("0", "t2", whole) + on("1", "u",
			" wait d >= 1\n signal c")},
		{"nobody wrote it", Undefined, on("0", "t", " out[0:2] = COPY(a[0:2])\n signal step")},
		{"row above pos", Undefined, on("0", "t", " %t = COPY(kv[0,pos,0,0:2])\n"+whole)},
		{"rows below pos", "", on("0", "t", " kv[0,pos,0,0:2] = KV_APPEND(in[0:2])\n kv[0,pos,1,0:2] = "+
			"KV_APPEND(in[0:2])\n %t = COPY(kv[0,0,0,0:2])\n"+whole)},
		{"a row that the step before left out", Undefined,
			on("0", "t", " %t = COPY(kv[0,max(pos-1,0),0,0:min(2,pos*2)])\n"+whole)},
		{"another buffer's words", Clobbered,
			on("0", "t", " x[0:2] = COPY(in[0:2])\n y[0:2] = COPY(in[0:2])\n out[0:2] = COPY(x[0:2])\n signal step")},
		{"operands overlap", Aliased, on("0", "t", " a[0:4] = COPY(in[0:4])\n a[1:3] = COPY(a[0:2])\n"+whole)},
		{"in place", "", on("0", "t", " a[0:2] = COPY(in[0:2])\n a[0:2] = ADD(a[0:2], in[0:2])\n"+whole)},
		{"gate in place", "", on("0", "t", " a[0:2] = COPY(in[0:2])\n a[0:2] = SILU_MUL(a[0:2], in[0:2])\n"+whole)},
		{"softmax in place", Aliased, on("0", "t", " a[0:2] = COPY(in[0:2])\n a[0:2] = SOFTMAX(a[0:2])\n"+whole)},
		{"gap in the output", OutputGap, on("0", "t", " out[0] = COPY(in[0])\n signal step")},
		{"read-only", ReadOnly, on("0", "t", " w[0,0:2] = COPY(in[0:2])\n"+whole)},
		{"shared memory of another SM", Owner,
			on("0", "t", " s[0:2] = COPY(in[0:2])\n signal c") + on("1", "u",
				" wait c >= 1\n out[0:2] = COPY(s[0:2])\n signal step")},
		{"too much shared memory", Capacity,
			on("0", "t", " wide[0:4] = COPY(in[0:4])\n wide[4:8] = COPY(in[0:4])\n"+whole)},
		{"outside", Refused, on("0", "t", " %t = COPY(a[3:5])\n"+whole)},
		{"operands that do not fit", Refused, on("0", "t", " %t = ADD(in[0:2], in[0:3])\n"+whole)},
		{"counter of one SM", Stuck, on("0", "t", " a[0:2] = COPY(in[0:2])\n signal h") + on("1", "u",
			" wait h >= 1\n out[0:2] = COPY(a[0:2])\n signal step")},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := program(t, "counter h counter sm\n"+c.body)
			v := Program(p, NewFootprints(), Effort{States: 5000, Orders: 20, Positions: 4})
			if c.kind == "" {
				require.Nil(t, v.Hazard)
				require.True(t, v.Complete)
				return
			}
			require.NotNil(t, v.Hazard)
			require.Equal(t, c.kind, v.Hazard.Kind, v.Hazard)
			f, diags := ir.Unroll(p, &p.Variants[0])
			require.NoError(t, diags.Err())
			sampled := Sample([]Run{{Flat: f, Pos: 1}}, NewFootprints(), Options{Target: p.Target}, 1, 200)
			if c.name != "a row that the step before left out" { // which takes two steps
				require.NotNil(t, sampled.Hazard, "sampling finds it too")
			}
		})
	}
}

// Nothing but the end of a step orders one step and the next, and that only if it is a release.
func TestStepsFollowEachOther(t *testing.T) {
	body := on("0", "t", " a[0:2] = COPY(in[0:2])\n signal step") + on("1", "u", " b[0:2] = COPY(in[0:2])\n signal c") +
		on("0", "v", " wait c >= 1\n out[0:2] = COPY(b[0:2])\n signal step")
	p := program(t, body)
	v := Program(p, NewFootprints(), Effort{States: 5000, Positions: 4})
	require.Nil(t, v.Hazard)
	p.Variants[0].Counters[5].How = ir.Flagged
	v = Program(p, NewFootprints(), Effort{States: 5000, Positions: 4})
	require.NotNil(t, v.Hazard)
	require.Contains(t, v.Hazard.String(), "u.s001 (next step): race: writes b")
}
