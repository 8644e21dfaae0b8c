package driver

import (
	"cmp"
	"fmt"
	"unsafe"
)

// A Dim is the size of a grid in blocks, or of a block in threads. 0 counts as 1, so Dim{X: 132} is a row.
type Dim struct{ X, Y, Z int }

func (d Dim) words() (x, y, z uint32) {
	return uint32(cmp.Or(d.X, 1)), uint32(cmp.Or(d.Y, 1)), uint32(cmp.Or(d.Z, 1))
}

// String writes the size as x × y × z.
func (d Dim) String() string {
	return fmt.Sprintf("%d × %d × %d", cmp.Or(d.X, 1), cmp.Or(d.Y, 1), cmp.Or(d.Z, 1))
}

// Launch queues a kernel. Each argument is a [Ptr], an int32, uint32, int64, uint64, float32 or float64, or a []byte
// that holds a struct passed by value, laid out as the kernel's compiler does. They are copied before Launch returns.
// Arguments that do not fit the kernel are a [ParamError].
func (s *Stream) Launch(f *Function, grid, block Dim, sharedBytes int, args ...any) error {
	return s.launch("cuLaunchKernel", f, grid, block, sharedBytes, args, func(params *unsafe.Pointer) result {
		gx, gy, gz := grid.words()
		bx, by, bz := block.words()
		return s.dev.lib.api.LaunchKernel(f.handle, gx, gy, gz, bx, by, bz, uint32(sharedBytes), s.handle, params, nil)
	})
}

// LaunchCooperative queues a kernel whose blocks all run at the same time, so that they may wait for one another. A
// grid that does not fit the GPU at once is an error; see [Function.Occupancy]. Arguments as for [Stream.Launch].
func (s *Stream) LaunchCooperative(f *Function, grid, block Dim, sharedBytes int, args ...any) error {
	return s.launch("cuLaunchCooperativeKernel", f, grid, block, sharedBytes, args,
		func(params *unsafe.Pointer) result {
			gx, gy, gz := grid.words()
			bx, by, bz := block.words()
			return s.dev.lib.api.LaunchCooperativeKernel(f.handle, gx, gy, gz, bx, by, bz, uint32(sharedBytes),
				s.handle, params)
		})
}

func (s *Stream) launch(
	name string, f *Function, grid, block Dim, sharedBytes int, args []any, call func(*unsafe.Pointer) result,
) error {
	ptrs, err := f.marshal(args)
	if err != nil {
		return err
	}
	err = s.dev.invoke(name, func() result { return call(unsafe.SliceData(ptrs)) })
	if err != nil && !IsSticky(err) {
		return fmt.Errorf("kernel %s with a grid of %s, blocks of %s and %d bytes of shared memory: %w",
			f.Name, grid, block, sharedBytes, err)
	}
	return err
}
