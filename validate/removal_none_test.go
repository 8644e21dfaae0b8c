package validate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/validate"
)

// What needs no rule: programs that look wrong and mean something, of which the oracle finds nothing to say.
func TestNeedsNoRule(t *testing.T) {
	for name, text := range map[string]string{
		"a temporary as weight": stage("t", 0, "%w = COPY(v[0:4])", "%y = GEMV_TILE(in[0:4], %w)",
			"a[0] = COPY(%y)") + emit(0),
		"MUL by nothing": stage("t", 0, "a[0:4] = MUL(in[0:4])") + emit(0),
		"quantised without scales": stage("t", 0,
			"a[0:2] = GEMV_TILE(in[0:2], q[0:2,0:2]) qdtype=6 group=2") + emit(0),
		"the row of this step": stage("t", 0,
			"a[0:2] = ATTENTION_TILE(in[0:2], wk[0:pos,0:1,0:2], wk[0:pos,0:1,0:2], v[0:2], v[0:2]) head_dim=2 "+
				"n_heads=1 n_kv_heads=1 scale=1.0") + emit(0),
		"a part of rows not dealt": stage("t", 0,
			"a[0:2] = ATTENTION_TILE(in[0:2], wk[0:pos,0:1,0:2], wk[0:pos,0:1,0:2]) head_dim=2 n_heads=1 "+
				"n_kv_heads=1 scale=1.0 part=1") + emit(0),
		"an unknown flag": stage("t", 0,
			"a[0:2] = ATTENTION_TILE(in[0:2], wk[0:pos,0:1,0:2], wk[0:pos,0:1,0:2]) head_dim=2 n_heads=1 "+
				"n_kv_heads=1 scale=1.0 flags=4") + emit(0),
		"a flagged wait without words": stage("t", 0, "a[0:2] = COPY(in[0:2])", "signal e") + stage("u", 0,
			"wait e >= 1", "%t = COPY(a[0:2])") + emit(0),
	} {
		t.Run(name, func(t *testing.T) {
			s := subject{backend: validate.Reference, flat: flat(t, parse(t, small+text), 0)}
			rep, _ := s.proveWithout()
			require.NoError(t, rep.Diags.Err())
			require.Nil(t, s.judge().Hazard)
		})
	}
}
