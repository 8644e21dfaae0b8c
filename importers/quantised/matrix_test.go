package quantised

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/ir/half"
)

const (
	matrices = "../../testdata/models/quantised/matrices"
	models   = "../../testdata/models/quantised/models"
)

// elements are what the matrices of the fixtures are made of.
var elements = map[string]Element{
	"ct-int4-g32":               {Type: "I4", Group: 32, Scale: checkpoint.BF16},
	"ct-int4-g64-zeros":         {Type: "I4", Group: 64, Scale: checkpoint.BF16, Zeros: true},
	"ct-int4-g128-zeros-f16":    {Type: "I4", Group: 128, Scale: checkpoint.F16, Zeros: true},
	"ct-int4-g256":              {Type: "I4", Group: 128, Scale: checkpoint.F16},
	"ct-int4-channel":           {Type: "I4", Group: 128, Scale: checkpoint.BF16},
	"ct-int4-channel-zeros-f32": {Type: "I4", Group: 128, Scale: checkpoint.F32, Zeros: true},
	"ct-int8-packed-zeros":      {Type: "I8", Group: 128, Scale: checkpoint.BF16, Zeros: true},
	"ct-int8-packed-channel":    {Type: "I8", Group: 128, Scale: checkpoint.BF16},
	"ct-int8-channel":           {Type: "I8", Group: 128, Scale: checkpoint.BF16},
	"ct-int8-channel-zeros":     {Type: "I8", Group: 128, Scale: checkpoint.F16, Zeros: true},
	"ct-int8-tensor":            {Type: "I8", Group: 128, Scale: checkpoint.F32},
	"ct-fp8-channel":            {Type: "F8E4M3", Group: 128, Scale: checkpoint.BF16},
	"ct-fp8-tensor":             {Type: "F8E4M3", Group: 128, Scale: checkpoint.BF16},
	"ct-fp8-blocks":             {Type: "F8E4M3", Group: 128, Scale: checkpoint.BF16},
	"ct-nvfp4":                  {Type: "I5", Group: 16, Scale: checkpoint.F32},
	"ct-mxfp4":                  {Type: "F4E2M1", Group: 32, Scale: checkpoint.E8M0},
	"gptq-g128":                 {Type: "I4", Group: 128, Scale: checkpoint.F16},
	"gptq-g32-zeros":            {Type: "I4", Group: 32, Scale: checkpoint.F16, Zeros: true},
	"gptq-old":                  {Type: "I4", Group: 128, Scale: checkpoint.F16},
	"gptq-v2-g64-zeros":         {Type: "I4", Group: 64, Scale: checkpoint.F16, Zeros: true},
	"gptq-v2-g128":              {Type: "I4", Group: 128, Scale: checkpoint.F16},
	"gptq-int8-rows":            {Type: "I8", Group: 128, Scale: checkpoint.F16},
	"gptq-int8-zeros":           {Type: "I8", Group: 64, Scale: checkpoint.F16, Zeros: true},
	"awq-g128":                  {Type: "I4", Group: 128, Scale: checkpoint.F16, Zeros: true},
	"awq-g32":                   {Type: "I4", Group: 32, Scale: checkpoint.F16, Zeros: true},
	"awq-rows":                  {Type: "I4", Group: 128, Scale: checkpoint.F16, Zeros: true},
	"fp8-blocks":                {Type: "F8E4M3", Group: 128, Scale: checkpoint.F32},
	"fp8-tensor":                {Type: "F8E4M3", Group: 128, Scale: checkpoint.F32},
}

// schemeOf opens a checkpoint and reads its scheme.
func schemeOf(t *testing.T, dir string) (*checkpoint.Checkpoint, *Scheme) {
	t.Helper()
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	older, err := checkpoint.ReadDocument(dir, "quantize_config.json")
	require.NoError(t, err)
	scheme, d := Read(c.Config.Model, older)
	if d != nil {
		require.NoError(t, d)
	}
	require.NotNil(t, scheme)
	return c, scheme
}

// TestMatrices reads each matrix, and finds what the library that wrote it reads: the same bits, in its dtype.
func TestMatrices(t *testing.T) {
	dirs, err := os.ReadDir(matrices)
	require.NoError(t, err)
	require.Len(t, dirs, len(elements))
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			c, scheme := schemeOf(t, filepath.Join(matrices, dir.Name()))
			want, err := checkpoint.OpenFile(filepath.Join(matrices, dir.Name(), "dequantised.safetensors"))
			require.NoError(t, err)
			defer want.Close()
			parts, offMiddle := 0, false
			for i, w := range want.Tensors() {
				m, d := scheme.Open(c, fmt.Sprintf("m%d", i))
				if d != nil {
					require.NoError(t, d)
				}
				require.NotNil(t, m)
				require.Equal(t, elements[dir.Name()], m.Element)
				require.Equal(t, []int{m.Rows(), m.Cols()}, w.Shape)
				expected := scheme.Expected(fmt.Sprintf("m%d", i), m.cols, InLayer, m.Scale)
				require.Equal(t, &m.Element, expected, "what the config says")
				parts += len(m.Parts)
				want, values := make([]float32, m.rows*m.cols), make([]float32, m.rows*m.cols)
				require.NoError(t, w.ReadF32(want, 0))
				require.NoError(t, m.NewReader().ReadF32(values, 0))
				for k, v := range values {
					require.Equal(t, want[k], rounded[w.DType](v), "row %d, column %d", k/m.cols, k%m.cols)
				}
				offMiddle = offMiddle || m.checkRanges(t)
			}
			require.Len(t, c.Tensors(), parts, "every tensor is a part of a matrix")
			require.Equal(t, elements[dir.Name()].Zeros, offMiddle, "zero points that are not needed tell nothing")
		})
	}
}

// Every matrix of the models has the digest of what the library reads.
func TestModels(t *testing.T) {
	dirs, err := os.ReadDir(models)
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			c, scheme := schemeOf(t, filepath.Join(models, dir.Name()))
			var want map[string]struct{ DType, SHA256 string }
			text, err := os.ReadFile(filepath.Join(models, dir.Name(), "dequantised.json"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &want))
			plain := 0
			for _, tensor := range c.Tensors() {
				if module, ok := strings.CutSuffix(tensor.Name, ".weight"); ok && want[tensor.Name].DType == "" {
					m, d := scheme.Open(c, module)
					require.Nil(t, d)
					require.Nil(t, m, "%s is not quantised", module)
					plain++
				}
			}
			require.NotZero(t, plain)
			for key, w := range want {
				m, d := scheme.Open(c, strings.TrimSuffix(key, ".weight"))
				if d != nil {
					require.NoError(t, d)
				}
				values := make([]float32, m.rows*m.cols)
				require.NoError(t, m.NewReader().ReadF32(values, 0))
				raw := make([]byte, len(values)*sizes[w.DType])
				encoders[w.DType](raw, values)
				require.Equal(t, w.SHA256, fmt.Sprintf("%x", sha256.Sum256(raw)), key)
			}
		})
	}
}

var (
	sizes    = map[string]int{"bfloat16": 2, "float16": 2, "float32": 4}
	encoders = map[string]func([]byte, []float32){"bfloat16": half.EncodeBF16, "float16": half.EncodeF16,
		"float32": half.EncodeF32}
)

var rounded = map[checkpoint.DType]func(float32) float32{checkpoint.F16: half.RoundF16, checkpoint.BF16: half.RoundBF16,
	checkpoint.F32: func(f float32) float32 { return f }}

// checkRanges demands that any rows, and any elements, are those of the whole, and reports whether a zero point is off
// the middle.
func (m *Matrix) checkRanges(t *testing.T) (offMiddle bool) {
	whole, err := m.ReadRows(0, m.rows)
	require.NoError(t, err)
	per := len(whole.Scale) / m.rows
	require.Equal(t, (m.cols+m.Group-1)/m.Group, per)
	require.Equal(t, m.Zeros, whole.Zero != nil)
	for _, z := range whole.Zero {
		offMiddle = offMiddle || z != 0
	}
	for row0 := 0; row0 < m.rows; row0 += 3 {
		for _, row1 := range []int{row0, row0 + 1, min(row0+9, m.rows)} {
			some, err := m.ReadRows(row0, row1)
			require.NoError(t, err)
			require.Equal(t, whole.Q[row0*m.cols:row1*m.cols], some.Q)
			require.Equal(t, whole.Scale[row0*per:row1*per], some.Scale)
			if m.Zeros {
				require.Equal(t, whole.Zero[row0*per:row1*per], some.Zero)
			}
		}
	}
	r := m.NewReader()
	for _, row := range []int{0, m.rows - 1, m.rows / 2, 1, m.rows - 1} {
		g, err := r.Row(row)
		require.NoError(t, err)
		require.Equal(t, whole.Q[row*m.cols:(row+1)*m.cols], g.Q)
		require.Equal(t, whole.Scale[row*per:(row+1)*per], g.Scale)
	}
	values, some := make([]float32, m.rows*m.cols), make([]float32, 2*m.cols-1)
	require.NoError(t, r.ReadF32(values, 0))
	require.NoError(t, r.ReadF32(some, 3*m.cols+1))
	require.Equal(t, values[3*m.cols+1:][:len(some)], some)
	return offMiddle
}
