package compiler

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
	"amkc/readback"
)

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

// What a program says of an activation with weights is what the kernel computes, or it is refused.
func TestEditsOfXielu(t *testing.T) {
	l := lowerModel(t, "zoo/apertus-llama3", "h200", ir.BF16, 64, ir.ScheduleConfig{})
	const xielu = "XIELU(%y, L{i}.xielu.weight[0:4])"
	testEditsOf(t, ir.Print(l.Program), l.Graph, map[string]edited{
		"another activation": {xielu, "RELU2(%y)", ""},
		"twice": {"L{i}.act[a:b] = " + xielu, "%once = " + xielu + "\n  L{i}.act[a:b] = " +
			"XIELU(%once, L{i}.xielu.weight[0:4])", "a second time"},
		"some of its weights":   {xielu, "XIELU(%y, L{i}.xielu.weight[0:3])", "w has 3 elements, want 4"},
		"the weights of others": {xielu, "XIELU(%y, L{i}.q_norm.weight[0:4])", ""},
		"in another order":      {xielu, "XIELU(L{i}.xielu.weight[0:4], %y)", "XIELU"},
		"of the norm":           {xielu, "XIELU(%n, L{i}.xielu.weight[0:4])", "XIELU"},
	})
}

// Code that shapes an activation otherwise than the program says is told from it.
func TestForgedShapes(t *testing.T) {
	p := lowerModel(t, "zoo/apertus-llama3", "h200", ir.BF16, 64, ir.ScheduleConfig{}).Program
	for _, forged := range [][2]string{{"Xielu shape(curve)", "Xielu shape(gain)"}, {"xielu(y, shape)", "xielu(y)"},
		{"xielu(y, shape)", "xielu(shape, y)"}, {"xielu(y, shape)", "xielu(y, curve)"}, {"xielu(y, shape)", "relu2(y)"},
		{"  const Xielu shape(curve);\n", ""}, {"Xielu shape(curve)", "Xielu shape(c, curve)"},
		{"Xielu shape(curve)", "Xielu shape{curve}"}} {
		files, err := codegen.CUDA(p)
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(files["stages.h"], []byte(forged[0])), forged[0])
		files["stages.h"] = bytes.Replace(files["stages.h"], []byte(forged[0]), []byte(forged[1]), 1)
		read, diags := readback.Program(files)
		require.True(t, len(diags) > 0 || len(readback.Compare(read, p)) > 0, forged)
	}
}
