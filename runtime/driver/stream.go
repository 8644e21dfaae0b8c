package driver

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// A Stream is a queue of work for the GPU. What runs on it is ordered; two streams are not. All its methods but
// Synchronize return as soon as the work is queued, and an error of the work itself may come from any later call.
type Stream struct {
	dev    *Device
	handle uintptr
}

// streamNonBlocking keeps a stream from waiting for the default stream, which this package never uses.
const streamNonBlocking = 1

// NewStream creates a stream.
func (d *Device) NewStream() (*Stream, error) {
	s := &Stream{dev: d}
	err := d.invoke("cuStreamCreate", func() result { return d.lib.api.StreamCreate(&s.handle, streamNonBlocking) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Synchronize waits until the stream is idle, and occupies the device's thread meanwhile.
func (s *Stream) Synchronize() error {
	return s.dev.invoke("cuStreamSynchronize", func() result { return s.dev.lib.api.StreamSynchronize(s.handle) })
}

// Query says whether the stream is idle, without waiting.
func (s *Stream) Query() (idle bool, err error) {
	return finished(s.dev.invoke("cuStreamQuery", func() result { return s.dev.lib.api.StreamQuery(s.handle) }))
}

// Close destroys the stream once its work is done; it does not wait.
func (s *Stream) Close() error {
	return s.dev.invoke("cuStreamDestroy", func() result { return s.dev.lib.api.StreamDestroy(s.handle) })
}

// finished reads the answer of a query: "not ready" is an answer, not a failure.
func finished(err error) (bool, error) {
	if codeOf(err) == errNotReady {
		return false, nil
	}
	return err == nil, err
}

// An Event marks a point in a stream, and the time at which the GPU passed it.
type Event struct {
	dev    *Device
	handle uintptr
}

// NewEvent creates an event that keeps time.
func (d *Device) NewEvent() (*Event, error) {
	e := &Event{dev: d}
	if err := d.invoke("cuEventCreate", func() result { return d.lib.api.EventCreate(&e.handle, 0) }); err != nil {
		return nil, err
	}
	return e, nil
}

// Record puts the event after the work that the stream holds now. Recording again moves it.
func (s *Stream) Record(e *Event) error {
	return s.dev.invoke("cuEventRecord", func() result { return s.dev.lib.api.EventRecord(e.handle, s.handle) })
}

// Synchronize waits until the GPU has passed the event, and occupies the device's thread meanwhile. An event that was
// never recorded counts as passed.
func (e *Event) Synchronize() error {
	return e.dev.invoke("cuEventSynchronize", func() result { return e.dev.lib.api.EventSynchronize(e.handle) })
}

// Query says whether the GPU has passed the event, without waiting.
func (e *Event) Query() (passed bool, err error) {
	return finished(e.dev.invoke("cuEventQuery", func() result { return e.dev.lib.api.EventQuery(e.handle) }))
}

// ElapsedMS returns the milliseconds from start to end, to about half a microsecond. Both must have been passed.
func ElapsedMS(start, end *Event) (float64, error) {
	var ms float32
	err := start.dev.invoke("cuEventElapsedTime", func() result {
		return start.dev.lib.api.EventElapsedTime(&ms, start.handle, end.handle)
	})
	return float64(ms), err
}

// Close destroys the event; it does not wait.
func (e *Event) Close() error {
	return e.dev.invoke("cuEventDestroy", func() result { return e.dev.lib.api.EventDestroy(e.handle) })
}

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

// A ParamError is a launch whose arguments do not fit the kernel's parameters. It is found before the launch, because
// the driver would read past the end of an argument that is too short.
type ParamError struct {
	Kernel string
	Index  int // of the parameter; -1 when their number is wrong
	Msg    string
}

func (e *ParamError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("kernel %s: %s", e.Kernel, e.Msg)
	}
	return fmt.Sprintf("kernel %s, parameter %d: %s", e.Kernel, e.Index, e.Msg)
}

// marshal copies the arguments of a launch to aligned memory and returns a pointer to each, as cuLaunchKernel wants
// them. With a driver that tells the sizes of the kernel's parameters, they are compared.
func (f *Function) marshal(args []any) ([]unsafe.Pointer, error) {
	if f.known && len(args) != len(f.params) {
		return nil, &ParamError{f.Name, -1, fmt.Sprintf("it has %d parameters, and %d were given", len(f.params),
			len(args))}
	}
	ptrs := make([]unsafe.Pointer, len(args))
	for i, arg := range args {
		raw, err := encode(arg)
		if err != nil {
			return nil, &ParamError{f.Name, i, err.Error()}
		}
		if f.known && len(raw) != f.params[i] {
			return nil, &ParamError{f.Name, i, fmt.Sprintf("it is %d bytes, and %d were given", f.params[i], len(raw))}
		}
		words := make([]uint64, (len(raw)+7)/8)
		ptrs[i] = unsafe.Pointer(&words[0])
		copy(unsafe.Slice((*byte)(ptrs[i]), len(raw)), raw)
	}
	return ptrs, nil
}

// encode returns the bytes of one argument as the kernel sees them. GPUs, and the hosts that have them, are
// little-endian. An int is refused: its size is not that of a C int.
func encode(arg any) ([]byte, error) {
	le := binary.LittleEndian
	switch v := arg.(type) {
	case []byte:
		if len(v) == 0 {
			return nil, fmt.Errorf("an empty []byte; a struct has at least one byte")
		}
		return v, nil
	case Ptr:
		return le.AppendUint64(nil, uint64(v)), nil
	case uint64:
		return le.AppendUint64(nil, v), nil
	case int64:
		return le.AppendUint64(nil, uint64(v)), nil
	case uint32:
		return le.AppendUint32(nil, v), nil
	case int32:
		return le.AppendUint32(nil, uint32(v)), nil
	case float64:
		return le.AppendUint64(nil, math.Float64bits(v)), nil
	case float32:
		return le.AppendUint32(nil, math.Float32bits(v)), nil
	}
	return nil, fmt.Errorf("a %T; give a Ptr, a sized integer of 32 or 64 bits, a float, or a struct as []byte", arg)
}
