package driver

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tensor map holds what the tensor is, in the order in which the driver takes it.
func TestEncodesTensorMaps(t *testing.T) {
	d := newFake(t).open(t, 1<<12)
	raw, err := d.EncodeTensorMap(Tensor{At: 1 << 20, Sizes: []uint64{256, 2, 1, 3}, Strides: []uint64{512, 1024, 1024},
		Box: []uint32{128, 2, 1, 16}})
	require.NoError(t, err)
	require.Len(t, raw, TensorMapBytes)
	var words [16]uint32
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	require.Equal(t, [16]uint32{0x3a9, 4, 3, 256, 2, 1, 3, 0, 128, 2, 1, 16, 0, 512, 1024, 1024}, words)
}

// What no tensor is, is refused before the driver is asked, or by the driver.
func TestRefusesTensors(t *testing.T) {
	d := newFake(t).open(t, 1<<12)
	for _, bad := range []Tensor{
		{},
		{Sizes: []uint64{8, 8}, Box: []uint32{8, 8}},
		{Sizes: []uint64{8}, Box: []uint32{8, 8}},
		{Sizes: make([]uint64, 6), Strides: make([]uint64, 5), Box: make([]uint32, 6)},
	} {
		_, err := d.EncodeTensorMap(bad)
		require.ErrorContains(t, err, "want 1 to 5 dimensions")
	}
	_, err := d.EncodeTensorMap(Tensor{Sizes: []uint64{8}, Box: []uint32{257}})
	require.ErrorContains(t, err, "cuTensorMapEncodeTiled")
}
