package compiler

import "testing"

// What a program says of a LayerNorm and of an activation is what the kernel computes, or it is refused.
func TestEditsOfLayerNorm(t *testing.T) {
	const norm = "LAYERNORM(L{i}.x[0:48], L{i}.input_norm.weight[0:48], L{i}.input_norm.bias[0:48]) eps=1e-05"
	testEdits(t, "starcoder2-tied", map[string]edited{
		"no bias":           {", L{i}.input_norm.bias[0:48])", ")", ""},
		"no weights":        {", L{i}.input_norm.weight[0:48], L{i}.input_norm.bias[0:48])", ")", ""},
		"an offset":         {norm, norm + " unit_offset=1", ""},
		"an offset of bias": {norm, norm + " unit_offset=2", "0 (w) or 1 (1 + w)"},
		"an offset and no bias": {"L{i}.input_norm.weight[0:48], L{i}.input_norm.bias[0:48]) eps=1e-05",
			"L{i}.input_norm.weight[0:48]) eps=1e-05 unit_offset=1", "no reader of the kernel computes"},
		"the weight twice": {"L{i}.input_norm.bias[0:48])", "L{i}.input_norm.weight[0:48])", ""},
		"another eps":      {norm, norm[:len(norm)-5] + "0.25", "by the model's facts it is 1e-05"},
		"an RMSNORM": {norm, "RMSNORM(L{i}.x[0:48], L{i}.input_norm.weight[0:48]) eps=1e-05",
			""},
		"another form of GELU": {"GELU_TANH(", "GELU(", ""},
		"RELU":                 {"GELU_TANH(", "RELU(", ""},
		"RELU squared":         {"GELU_TANH(", "RELU2(", ""},
		"a gate":               {"GELU_TANH(", "GELU_TANH_MUL(", "GELU_TANH_MUL"},
	})
}
