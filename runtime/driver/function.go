package driver

import "fmt"

// A Function is a kernel of a module.
type Function struct {
	Name   string
	dev    *Device
	handle uintptr
	params []int // sizes of its parameters in bytes
	known  bool  // params was read; drivers before CUDA 12.4 do not tell
}

// Attributes are facts about the compiled kernel. Sizes are bytes.
type Attributes struct {
	Registers   int // per thread
	Local       int // per thread; more than a few bytes means that registers spilled
	Shared      int // static, per block
	Constant    int
	MaxThreads  int // the largest block that can be launched
	MaxDynamic  int // the dynamic shared memory set by SetMaxDynamicShared
	BinaryArch  int // architecture of the code that was chosen: 90
	VirtualArch int // architecture of the PTX that it came from
}

// CUfunction_attribute numbers of cuda.h.
const (
	funcMaxThreads       = 0
	funcShared           = 1
	funcConstant         = 2
	funcLocal            = 3
	funcRegisters        = 4
	funcPTXVersion       = 5
	funcBinaryVersion    = 6
	funcMaxDynamicShared = 8
)

// Function looks a kernel up. Without extern "C" the name is the mangled one.
func (m *Module) Function(name string) (*Function, error) {
	f := &Function{Name: name, dev: m.dev}
	api := &m.dev.lib.api
	err := m.dev.Do(func() error {
		err := m.dev.lib.check("cuModuleGetFunction", api.ModuleGetFunction(&f.handle, m.handle, name))
		if err != nil {
			return err
		}
		if f.known = api.FuncGetParamInfo != nil; !f.known {
			return nil
		}
		var offset, size uintptr // an index past the last parameter is an error, and ends the list
		for api.FuncGetParamInfo(f.handle, uintptr(len(f.params)), &offset, &size) == success {
			f.params = append(f.params, int(size))
		}
		return nil
	})
	if codeOf(err) == errNotFound {
		err = fmt.Errorf("the module has no kernel %q: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Attributes reads the facts about the compiled kernel.
func (f *Function) Attributes() (Attributes, error) {
	var a Attributes
	err := f.dev.Do(func() error {
		for _, q := range []struct {
			id   int32
			into *int
		}{
			{funcRegisters, &a.Registers}, {funcLocal, &a.Local}, {funcShared, &a.Shared}, {funcConstant, &a.Constant},
			{funcMaxThreads, &a.MaxThreads}, {funcMaxDynamicShared, &a.MaxDynamic},
			{funcBinaryVersion, &a.BinaryArch}, {funcPTXVersion, &a.VirtualArch},
		} {
			var v int32
			if err := f.dev.lib.check("cuFuncGetAttribute",
				f.dev.lib.api.FuncGetAttribute(&v, q.id, f.handle)); err != nil {
				return fmt.Errorf("attribute %d of kernel %s: %w", q.id, f.Name, err)
			}
			*q.into = int(v)
		}
		return nil
	})
	return a, err
}

// SetMaxDynamicShared lets launches of the kernel use up to n bytes of dynamic shared memory per block; without it the
// limit is 48 KiB. Static and dynamic memory together must fit Facts.SharedPerBlock.
func (f *Function) SetMaxDynamicShared(n int) error {
	err := f.dev.invoke("cuFuncSetAttribute", func() result {
		return f.dev.lib.api.FuncSetAttribute(f.handle, funcMaxDynamicShared, int32(n))
	})
	if err != nil {
		return fmt.Errorf("%d bytes of dynamic shared memory for kernel %s (%s allows %d per block): %w",
			n, f.Name, f.dev, f.dev.facts.SharedPerBlock, err)
	}
	return nil
}

// Occupancy returns how many blocks of the given size fit on one SM at once. A cooperative launch may have at most that
// many times Facts.SMs blocks.
func (f *Function) Occupancy(threads, dynamicShared int) (int, error) {
	var n int32
	err := f.dev.invoke("cuOccupancyMaxActiveBlocksPerMultiprocessor", func() result {
		return f.dev.lib.api.Occupancy(&n, f.handle, int32(threads), uintptr(dynamicShared))
	})
	return int(n), err
}
