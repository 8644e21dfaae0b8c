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
