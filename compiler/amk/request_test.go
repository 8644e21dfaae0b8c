package amk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler/amk"
)

const shapeJSON = `"shape": {"vocab": 256, "hidden": 64, "n_layers": 1, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16,
	"intermediate": 128, "rms_eps": 0, "rope_theta": 10000, "max_seq": 256}`

// The lowering writes eps and theta as floats, also where the request has integers.
func TestParseRequestDefaults(t *testing.T) {
	q, diags := amk.ParseRequest([]byte(`{`+shapeJSON+`, "scheme": "toy", "pos": 0, "dtype": "F32"}`), "q.json")
	require.Empty(t, diags)
	want := toy()
	want.Shape.RMSEps = 0
	require.Equal(t, want, q)
	rope, _ := labelled(lower(t, q), "L0.rope_q")[1].Params.Get("theta")
	require.Equal(t, amk.Float(10000), rope)
}

func TestParseRequestDiagnostics(t *testing.T) {
	for _, c := range []struct{ name, fields, want string }{
		{"target", `"target": "h200"`, `q.json:3:11: error: request: unknown target "h200"; accepted are rtx5090, ` +
			`b200, h100, a100, l4, t4, a10g, l40s [AMK3904]`},
		{"target type", `"target": {}`, `q.json:3:11: error: request: "target" must be a string, found an object ` +
			`[AMK3902]`},
		{"tied toy", `"tied": true`, `q.json:3:9: warning: "tied" has no effect on scheme "toy", which has its own ` +
			`lm_head.weight [AMK3911]`},
		{"unknown", `"batches": 4`, `q.json:3:1: warning: request: unknown key "batches" is dropped; known are ` +
			`shape, scheme, tied, target, config, pos, dtype, batch, quant [AMK3906]`},
		{"quant", `"quant": {"bits": 8}`, `q.json:3:10: error: quant: required field "group" is missing [AMK3903]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, diags := amk.ParseRequest([]byte(`{`+shapeJSON+`, "scheme": "toy", "pos": 0, "dtype": "F32",`+"\n"+
				c.fields+`}`), "q.json")
			require.Equal(t, c.want, diags.Error())
		})
	}
	_, diags := amk.ParseRequest([]byte(`{"scheme": "toy"}`), "q.json")
	require.Len(t, diags.Errors(), 3, "shape, pos, dtype")
}
