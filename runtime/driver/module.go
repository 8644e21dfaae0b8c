package driver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// Built says what an image was compiled for, for the messages when it does not load.
type Built struct {
	Targets []string // the architectures in it: "sm_90a", "compute_90"
	CUDA    int      // version of the toolkit that made it, 13000 for 13.0; 0 when not known
}

// A Module is device code loaded into a context.
type Module struct {
	dev    *Device
	handle uintptr
}

// CUjit_option numbers of cuda.h.
const (
	jitErrorLog     = 5
	jitErrorLogSize = 6
)

// jitValues are the values of those two options, in that order: the driver takes an array of void*, and a number is
// passed as if it were a pointer.
type jitValues struct {
	log  unsafe.Pointer
	size uintptr
}

// LoadFatbin loads a fat binary or cubin (or PTX text, ended by a zero byte). When it holds no code that this GPU and
// driver can run, the error is [ErrNoBinary] or [ErrDriverTooOld] and says what the image is for and what the device
// is. A driver older than built.CUDA is not refused before it has tried: much code loads all the same.
func (d *Device) LoadFatbin(image []byte, built Built) (*Module, error) {
	if len(image) == 0 {
		return nil, errors.New("the image is empty")
	}
	// The loader reads 64-bit words; a slice of something larger may start anywhere.
	if uintptr(unsafe.Pointer(&image[0]))%8 != 0 {
		image = bytes.Clone(image)
	}
	log := make([]byte, 8<<10)
	options := []int32{jitErrorLog, jitErrorLogSize}
	values := &jitValues{log: unsafe.Pointer(&log[0]), size: uintptr(len(log))}
	m := &Module{dev: d}
	err := d.invoke("cuModuleLoadDataEx", func() result {
		return d.lib.api.ModuleLoadDataEx(&m.handle, unsafe.Pointer(&image[0]), uint32(len(options)), &options[0],
			values)
	})
	if err != nil {
		text, _, _ := bytes.Cut(log, []byte{0})
		return nil, d.explainLoad(err, strings.TrimSpace(string(text)), built)
	}
	return m, nil
}

// explainLoad says why an image did not load, in terms of what it is for and what there is.
func (d *Device) explainLoad(err error, log string, built Built) error {
	code := codeOf(err)
	if log != "" {
		err = fmt.Errorf("%w: %s", err, log)
	}
	switch code {
	case errOutOfMemory:
		return &Problem{Kind: ErrOutOfMemory, What: fmt.Sprintf("%s has no room for the code", d),
			Remedy: "end other processes on it (nvidia-smi lists them), or choose another GPU", Err: err}
	case errUnsupportedPTXVersion:
		if built.CUDA > d.lib.version {
			return tooOld(d.lib.version, built.CUDA, err)
		}
		return &Problem{Kind: ErrDriverTooOld,
			What: fmt.Sprintf("it supports CUDA %s, and the build holds PTX of a newer one",
				FormatVersion(d.lib.version)),
			Remedy: "update the NVIDIA driver, or build again for target " + d.facts.Arch(), Err: err}
	case errNoBinaryForGPU, errInvalidImage, errInvalidPTX, errInvalidSource, errJITCompilerNotFound, errJITDisabled:
		if built.CUDA/1000 > d.lib.version/1000 {
			return tooOld(d.lib.version, built.CUDA, err)
		}
	default:
		return err
	}
	return &Problem{Kind: ErrNoBinary,
		What: fmt.Sprintf("the build is %s, and %s is %s with a driver for CUDA %s",
			built, d, d.facts.Arch(), FormatVersion(d.lib.version)),
		Remedy: "build again for target " + d.facts.Arch(), Err: err}
}

// String describes a build: `for sm_90a, made with CUDA 13.0`.
func (b Built) String() string {
	s := "for an unknown target"
	if len(b.Targets) > 0 {
		s = "for " + strings.Join(b.Targets, ", ")
	}
	if b.CUDA > 0 {
		s += ", made with CUDA " + FormatVersion(b.CUDA)
	}
	return s
}

// Global returns the address and the size in bytes of a __device__ or __constant__ variable. Without extern "C" the
// name is the mangled one.
func (m *Module) Global(name string) (Ptr, int, error) {
	var p Ptr
	var n uintptr
	err := m.dev.invoke("cuModuleGetGlobal",
		func() result { return m.dev.lib.api.ModuleGetGlobal(&p, &n, m.handle, name) })
	if codeOf(err) == errNotFound {
		err = fmt.Errorf("the module has no variable %q: %w", name, err)
	}
	return p, int(n), err
}

// Close unloads the module. Its functions must not be used any more.
func (m *Module) Close() error {
	return m.dev.invoke("cuModuleUnload", func() result { return m.dev.lib.api.ModuleUnload(m.handle) })
}

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
