package driver

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

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
