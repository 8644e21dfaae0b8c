package driver

import (
	"fmt"
	"unsafe"
)

// TensorMapBytes is the size of an encoded tensor map.
const TensorMapBytes = 128

// A Tensor is what a kernel copies boxes of: values of 16 bits at an address, in a space of some dimensions, the
// innermost first. What a box has outside of it is zeros.
type Tensor struct {
	At      Ptr
	Sizes   []uint64
	Strides []uint64 // in bytes, of all dimensions but the first
	Box     []uint32
}

// Values of the driver's enumerations.
const (
	tensorOfUint16   = 1 // CU_TENSOR_MAP_DATA_TYPE_UINT16
	tensorPlain      = 0 // CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
	tensorPromotes   = 3 // CU_TENSOR_MAP_L2_PROMOTION_L2_256B
	tensorDimensions = 5 // at most
)

// EncodeTensorMap returns the tensor map of a tensor, which a kernel reads from global memory.
func (d *Device) EncodeTensorMap(t Tensor) ([]byte, error) {
	n := len(t.Sizes)
	if n < 1 || n > tensorDimensions || len(t.Strides) != n-1 || len(t.Box) != n {
		return nil, fmt.Errorf("a tensor of %d sizes, %d strides and a box of %d; want 1 to %d dimensions", n,
			len(t.Strides), len(t.Box), tensorDimensions)
	}
	encode := d.lib.api.TensorMapEncode
	if encode == nil {
		return nil, &Problem{Kind: ErrDriverTooOld, What: "it has no cuTensorMapEncodeTiled",
			Remedy: updateTo(minVersion)}
	}
	strides := append(append([]uint64{}, t.Strides...), 0) // one dimension has none, and a pointer to something
	ones := [tensorDimensions]uint32{1, 1, 1, 1, 1}
	words := make([]uint64, TensorMapBytes/8+7) // the driver wants it at a multiple of 64
	at := unsafe.Pointer(&words[(64-uintptr(unsafe.Pointer(&words[0]))%64)%64/8])
	err := d.invoke("cuTensorMapEncodeTiled", func() result {
		return encode(at, tensorOfUint16, uint32(n), t.At, &t.Sizes[0], &strides[0], &t.Box[0], &ones[0], tensorPlain,
			tensorPlain, tensorPromotes, tensorPlain)
	})
	if err != nil {
		return nil, fmt.Errorf("the tensor map of %+v: %w", t, err)
	}
	return append([]byte{}, unsafe.Slice((*byte)(at), TensorMapBytes)...), nil
}
