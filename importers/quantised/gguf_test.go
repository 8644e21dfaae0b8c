package quantised

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/importers/gguf"
	"amkc/ir"
	"amkc/ir/format"
)

// blocksFile has matrices of each type of blocks: of one block, of five rows of three, and of three rows of seven.
func blocksFile(t *testing.T) ([]byte, *gguf.Header) {
	file, err := os.ReadFile("../../testdata/models/gguf/blocks/blocks.gguf")
	require.NoError(t, err)
	h, bad := gguf.Read("blocks.gguf", bytes.NewReader(file), int64(len(file)))
	require.Nil(t, bad)
	return file, h
}

var scales = map[checkpoint.DType]ir.DType{checkpoint.F16: ir.F16, checkpoint.BF16: ir.BF16}

func groupsOf(t *testing.T, file []byte, tensor gguf.Tensor) (*Matrix, *format.Groups) {
	r := blockForms[tensor.Type.Name]
	m := &Matrix{Element: r.block.element, rows: tensor.Shape[0], cols: tensor.Shape[1]}
	g, err := (&blockRows{of: tensor.Type, block: r.block}).groups(m, file[tensor.At:tensor.At+tensor.Size], 0)
	require.NoError(t, err)
	return m, g
}

// What is streamed of the blocks of a file means what package gguf reads them as, to the bit, packed or not.
func TestBlockForms(t *testing.T) {
	file, h := blocksFile(t)
	seen := map[string]bool{}
	for _, tensor := range h.Tensors {
		r := blockForms[tensor.Type.Name]
		if r == nil {
			continue
		}
		seen[tensor.Type.Name] = true
		rows, cols := tensor.Shape[0], tensor.Shape[1]
		want := make([]float32, rows*cols)
		tensor.Type.Decode(want, file[tensor.At:tensor.At+tensor.Size])
		m, g := groupsOf(t, file, tensor)
		e := m.Element
		dtype, err := ir.ParseDType(e.Type)
		require.NoError(t, err)
		f := ir.Storage{DType: dtype, Scales: ir.Scales{Group: e.Group, DType: scales[e.Scale], Mins: e.Mins,
			Steps: e.Steps}}.Format()
		require.NotNil(t, f, tensor.Type.Name)
		unpacked := make([]float32, rows*cols)
		f.Unpack(unpacked, f.(format.Quantised).PackGroups(nil, g), cols)
		for i, v := range want {
			got := g.Value(e.Type, i, i/cols*g.PerRow()+i%cols/g.Group)
			require.Equal(t, math.Float32bits(v+0), math.Float32bits(got+0), "%s %d", tensor.Name, i)
			require.Equal(t, math.Float32bits(v+0), math.Float32bits(unpacked[i]+0), "%s %d", tensor.Name, i)
		}
	}
	require.Len(t, seen, len(blockForms))
}

// Matrices of two types that are streamed as one keep their values.
func TestWider(t *testing.T) {
	tensors := map[string]gguf.Tensor{}
	file, h := blocksFile(t)
	for _, tensor := range h.Tensors {
		if tensor.Shape[0] == 3 {
			tensors[tensor.Type.Name] = tensor
		}
	}
	pairs := 0
	for a := range blockForms {
		for b := range blockForms {
			wider := blockForms[a].block.element.Wider(&blockForms[b].block.element)
			if wider == nil {
				continue
			}
			pairs++
			tensor := tensors[a]
			m, own := groupsOf(t, file, tensor)
			require.True(t, m.IsStoredIn(*wider), "%s and %s", a, b)
			g, err := m.in(*wider, *own)
			require.NoError(t, err)
			want := make([]float32, m.rows*m.cols)
			tensor.Type.Decode(want, file[tensor.At:tensor.At+tensor.Size])
			for i, v := range want {
				of := i/m.cols*g.PerRow() + i%m.cols/g.Group
				require.Equal(t, v, g.Value(wider.Type, i, of), "%s with %s", a, b)
			}
		}
	}
	// Blocks of 32: four types of less than 8 bits, two of 8 bits, and each of these with what has no minima. Of 256:
	// five types and IQ4_XS, which goes with the two that have no minima. And MXFP4 with itself.
	require.Equal(t, 4*4+2*2+2*2*2+5*5+1+2*2+1, pairs)
	var none *Element
	require.Nil(t, none.Wider(&blockForms["Q4_K"].block.element))
	require.Nil(t, blockForms["Q4_1"].block.element.Wider(&blockForms["Q8_0"].block.element))
	require.False(t, blockForms["Q6_K"].block.element.IsStoredIn(blockForms["Q4_K"].block.element))
}
