package host

import (
	"encoding/binary"
	"fmt"

	"amkc/runtime/driver"
)

// promptMatrixSize is sizeof(amk::PromptMatrix), amk/prompt_matrices.cuh.
const promptMatrixSize = 128

// A promptMatrix is an amk::PromptMatrix: a matrix, and the tensor that it is to copies, or none.
type promptMatrix struct {
	tensor driver.Tensor
	copied bool // by a tensor map
}

// decodePromptMatrix reads the bytes of an amk::PromptMatrix.
func decodePromptMatrix(raw []byte) promptMatrix {
	le := binary.LittleEndian
	t := driver.Tensor{At: driver.Ptr(le.Uint64(raw)), Sizes: make([]uint64, 4), Strides: make([]uint64, 3),
		Box: make([]uint32, 4)}
	for i := range t.Sizes {
		t.Sizes[i], t.Box[i] = le.Uint64(raw[8+8*i:]), le.Uint32(raw[64+4*i:])
	}
	for i := range t.Strides {
		t.Strides[i] = le.Uint64(raw[40+8*i:])
	}
	return promptMatrix{t, t.Sizes[0] > 0}
}

// mapMatrices has the kernel for prompts tell where the matrices of a pass lie, and leaves a tensor map of each in its
// workspace. The weights do not move, so that once is enough.
func (s *Session) mapMatrices() error {
	k := s.prompt
	p := s.params(1)
	p.Position, p.Exchange = 0, k.memory
	if err := s.stream.Launch(k.list, driver.Dim{}, driver.Dim{}, 0, p.encode()); err != nil {
		return err
	}
	if err := s.stream.Synchronize(); err != nil {
		return err
	}
	raw := make([]byte, k.mostMatrices*promptMatrixSize)
	if err := s.dev.CopyDtoH(raw, k.memory+driver.Ptr(k.matrices), nil); err != nil {
		return err
	}
	maps := make([]byte, k.mostMatrices*driver.TensorMapBytes)
	mapped := false
	for i := range k.mostMatrices {
		m := decodePromptMatrix(raw[i*promptMatrixSize:])
		if !m.copied {
			continue
		}
		encoded, err := s.dev.EncodeTensorMap(m.tensor)
		if err != nil {
			return fmt.Errorf("matrix %d of a pass over a prompt: %w", i, err)
		}
		copy(maps[i*driver.TensorMapBytes:], encoded)
		mapped = true
	}
	if !mapped {
		return nil
	}
	return s.dev.CopyHtoD(k.memory+driver.Ptr(k.maps), maps, nil)
}
