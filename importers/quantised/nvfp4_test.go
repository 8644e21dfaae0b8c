package quantised

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/ir/format"
)

func nvfp4Settings(weights string) string { return fourBitSettings("nvfp4-pack-quantized", weights) }

func fourBitSettings(format, weights string) string {
	return `{"quant_method": "compressed-tensors", "format": "` + format + `", "config_groups": {"g": {"targets":
		["Linear"], "weights": {` + weights + `}}}}`
}

const modelOpt = `{"quant_method": "modelopt", "quant_algo": "NVFP4", "producer": {"name": "modelopt"},
	"ignore": ["n*"],
	"config_groups": {"group_0": {"input_activations": {"num_bits": 4}, "weights": {"num_bits": 4, "group_size": 16}}}}`

// ofModelOpt is a matrix of module m with every element and every scale, and a number that scales are multiplied by.
func ofModelOpt(scale float32) map[string]stored {
	elements, scales := make([]byte, 127*8), make([]byte, 127)
	for i := range elements {
		elements[i] = byte(2*i)&15 | byte(2*i+1)&15<<4
	}
	for i := range scales {
		scales[i] = byte(i)
	}
	one := binary.LittleEndian.AppendUint32(nil, math.Float32bits(scale))
	return map[string]stored{"weight": {u8, []int{127, 8}, elements}, "weight_scale": {e4m3, []int{127, 1}, scales},
		"weight_scale_2": {checkpoint.F32, []int{}, one}, "input_scale": {checkpoint.F32, []int{}, one}}
}

// ModelOpt multiplies scales by a number of the matrix, which compressed-tensors divides them by: every element with
// every scale is rounded once in the scale and once in the product.
func TestModelOpt(t *testing.T) {
	const by = 0.0123
	dir := write(t, modelOpt, ofModelOpt(by))
	c, scheme := schemeOf(t, dir)
	require.True(t, scheme.Inputs)
	m, d := scheme.Open(c, "m")
	require.Nil(t, d)
	require.Equal(t, Element{Type: "I5", Group: 16, Scale: checkpoint.F32}, m.Element)
	require.Len(t, m.Parts, 4)
	require.Equal(t, &m.Element, scheme.Expected("m", 16, InLayer, checkpoint.BF16))
	require.Nil(t, scheme.Expected("nothing", 16, InLayer, checkpoint.BF16))
	got := make([]float32, 127*16)
	require.NoError(t, m.NewReader().ReadF32(got, 0))
	values := [8]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	for i, v := range got {
		scale := format.FromE4M3(byte(i/16)) * float32(by)
		want := values[i%8] * scale
		if i%16 >= 8 {
			want = -want
		}
		require.Equal(t, want, v, "scale %d, element %d", i/16, i%16)
	}
}

// What is wrong with the tensors of a matrix is said with their names.
func TestNVFP4Refused(t *testing.T) {
	require.Nil(t, readAll(t, write(t, modelOpt, ofModelOpt(1))))
	nan := slices.Clone(ofModelOpt(1)["weight_scale"].data)
	nan[5] = 0x7f
	for _, c := range []struct {
		code, says string
		edits      map[string]stored
	}{
		{"AMK1122", "weight_scale is missing", map[string]stored{"weight_scale": {}}},
		{"AMK1122", "weight_scale_2 is missing", map[string]stored{"weight_scale_2": {}}},
		{"AMK1122", "want F8_E4M3 [127 1]", map[string]stored{"weight_scale": {e4m3, []int{1, 127}, nan}}},
		{"AMK1123", "the scale of row 5, group 0", map[string]stored{"weight_scale": {e4m3, []int{127, 1}, nan}}},
		{"AMK1122", "want one F32", map[string]stored{"weight_scale_2": {checkpoint.F32, []int{2}, floats(2, 1)}}},
		{"AMK1123", "is 0; want a finite number", map[string]stored{"weight_scale_2": {checkpoint.F32, []int{1},
			floats(1, 0)}}},
		{"AMK1122", "want U8 of rows of groups of 16", map[string]stored{"weight": {u8, []int{127, 4},
			make([]byte, 127*4)}}},
	} {
		tensors := ofModelOpt(1)
		maps.Copy(tensors, c.edits)
		maps.DeleteFunc(tensors, func(_ string, s stored) bool { return s.data == nil })
		requireDiagnostic(t, readAll(t, write(t, modelOpt, tensors)), c.code, c.says)
	}
}
