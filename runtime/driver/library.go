package driver

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libraryName is the driver's soname: the plain libcuda.so belongs to toolkits and may be a stub.
const libraryName = "libcuda.so.1"

// minVersion is the oldest CUDA version of a driver that this package works with, as cuDriverGetVersion counts it.
const minVersion = 12000

// A library is a loaded and initialised driver.
type library struct {
	api     api
	handle  uintptr
	version int // the newest CUDA version that the driver supports: 1000 × major + 10 × minor
}

// system holds the driver of this process. A failure is not kept, so that a long-lived process can try again.
var system struct {
	sync.Mutex
	lib *library
}

func systemLibrary() (*library, error) {
	system.Lock()
	defer system.Unlock()
	if system.lib == nil {
		lib, err := openLibrary(libraryName)
		if err != nil {
			return nil, err
		}
		system.lib = lib
	}
	return system.lib, nil
}

// Use makes the library at path the driver of this process, instead of the installed one. It is for a driver that
// simulates a GPU (package explore of amkc). The fields of the struct that more points to are functions of the library
// beyond those of CUDA, each tagged with its symbol: `cu:"name"`, or `cu:"name,optional"` for one that may be missing;
// nil binds none. Use comes before everything else that needs the driver.
func Use(path string, more any) error {
	system.Lock()
	defer system.Unlock()
	if system.lib != nil {
		return &Problem{Kind: ErrUnavailable, What: "this process has loaded a driver already",
			Remedy: "choose the driver before the first call that needs one"}
	}
	lib, err := openLibrary(path)
	if err != nil {
		return err
	}
	if more != nil {
		if missing := bindSymbols(lib.handle, more); missing != "" {
			return &Problem{Kind: ErrDriverTooOld, What: fmt.Sprintf("%s has no %s", path, missing),
				Remedy: "use a library of this version"}
		}
	}
	system.lib = lib
	return nil
}

// openLibrary loads the driver at path, binds its entry points, initialises it and checks its version. It is never
// unloaded: the driver keeps threads of its own.
func openLibrary(path string) (*library, error) {
	handle, err := dlopen(path)
	if err != nil {
		return nil, &Problem{Kind: ErrNoDriver, What: path + " cannot be loaded",
			Remedy: "install the NVIDIA driver; in a container, start it with access to the GPU; if it is installed " +
				"elsewhere, name its folder in LD_LIBRARY_PATH", Err: err}
	}
	lib := &library{handle: handle}
	if err := lib.bind(handle); err != nil {
		return nil, err
	}
	var version int32
	if err := lib.check("cuDriverGetVersion", lib.api.DriverGetVersion(&version)); err != nil {
		return nil, lib.explainInit(err)
	}
	lib.version = int(version)
	if lib.version < minVersion {
		return nil, tooOld(lib.version, minVersion, nil)
	}
	if err := lib.check("cuInit", lib.api.Init(0)); err != nil {
		return nil, lib.explainInit(err)
	}
	return lib, nil
}

// bind fills every field of the api from the symbol in its tag.
func (l *library) bind(handle uintptr) error {
	if missing := bindSymbols(handle, &l.api); missing != "" {
		return &Problem{Kind: ErrDriverTooOld, What: fmt.Sprintf("it has no %s", missing), Remedy: updateTo(minVersion)}
	}
	return nil
}

// bindSymbols fills every field of a struct of functions, which table points to, from the symbol in its tag. It
// returns the first that the library lacks and that is not optional, empty when there is none.
func bindSymbols(handle uintptr, table any) (missing string) {
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		symbol, optional := strings.CutSuffix(v.Type().Field(i).Tag.Get("cu"), ",optional")
		addr, err := dlsym(handle, symbol)
		switch {
		case err == nil && addr != 0:
			purego.RegisterFunc(v.Field(i).Addr().Interface(), addr)
		case !optional:
			return symbol
		}
	}
	return ""
}

// explainInit says what the failures of cuInit that have a known cause mean.
func (l *library) explainInit(err error) error {
	switch codeOf(err) {
	case errNoDevice, errInvalidDevice:
		return noDevice(err)
	case errStubLibrary:
		return &Problem{Kind: ErrNoDriver, What: "the libcuda.so.1 found is the link-time stub of a CUDA toolkit",
			Remedy: "take the toolkit's stubs folder out of LD_LIBRARY_PATH", Err: err}
	case errSystemDriverMismatch:
		return &Problem{Kind: ErrNoDriver, What: "the driver's library and its kernel module have different versions",
			Remedy: "reboot after the driver update, or use the library that belongs to the kernel module", Err: err}
	case errCompatNotSupported:
		return &Problem{Kind: ErrNoDriver, What: "the forward-compatibility libcuda does not support this GPU",
			Remedy: "take the compat folder out of LD_LIBRARY_PATH, or update the driver itself", Err: err}
	case errOperatingSystem:
		return &Problem{Kind: ErrUnavailable, What: "the driver could not reach its devices",
			Remedy: "check that /dev/nvidia* exist and may be opened by this user", Err: err}
	case errSystemNotReady:
		return &Problem{Kind: ErrUnavailable, What: "the system is not ready for CUDA",
			Remedy: "check that the fabric manager and the other services of the driver run", Err: err}
	}
	return &Problem{Kind: ErrUnavailable, What: "the driver did not start",
		Remedy: "check that nvidia-smi works on this machine", Err: err}
}

func noDevice(err error) error {
	return &Problem{Kind: ErrNoDevice, What: "the driver is installed and sees no GPU",
		Remedy: "check that nvidia-smi lists one, and that CUDA_VISIBLE_DEVICES does not hide it", Err: err}
}

// describe asks the driver for a text about a code; empty when it has none.
func (l *library) describe(ask func(result, *unsafe.Pointer) result, r result) string {
	var text unsafe.Pointer
	if ask(r, &text) != success || text == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(text, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(text), n))
}

func tooOld(have, need int, err error) error {
	return &Problem{Kind: ErrDriverTooOld,
		What:   fmt.Sprintf("it supports CUDA %s, and CUDA %s is needed", FormatVersion(have), FormatVersion(need)),
		Remedy: updateTo(need), Err: err}
}

// updateTo names the first driver branch of a CUDA major version; within one, every driver runs every minor version.
func updateTo(version int) string {
	branch := map[int]string{12: "525", 13: "580"}[version/1000]
	if branch == "" {
		return "update the NVIDIA driver to one for CUDA " + FormatVersion(version)
	}
	return fmt.Sprintf("update the NVIDIA driver to version %s or newer", branch)
}

// FormatVersion writes a CUDA version as the driver counts it (13000) the way people do ("13.0").
func FormatVersion(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// api holds the driver's entry points, bound by [openLibrary]. The tag is the exported symbol: the _v2 names are those
// that cuda.h maps the plain names to, and the plain ones would be the 32-bit interface of CUDA 3. Handles (context,
// module, function, stream, event) are opaque pointers of the driver and travel as uintptr, so that Go never
// dereferences them. A tag ending in ",optional" may be missing, and the field then stays nil.
type api struct {
	Init             func(flags uint32) result                                   `cu:"cuInit"`
	DriverGetVersion func(version *int32) result                                 `cu:"cuDriverGetVersion"`
	GetErrorName     func(code result, text *unsafe.Pointer) result              `cu:"cuGetErrorName"`
	GetErrorString   func(code result, text *unsafe.Pointer) result              `cu:"cuGetErrorString"`
	DeviceGetCount   func(count *int32) result                                   `cu:"cuDeviceGetCount"`
	DeviceGet        func(dev *int32, ordinal int32) result                      `cu:"cuDeviceGet"`
	DeviceGetName    func(name *byte, length int32, dev int32) result            `cu:"cuDeviceGetName"`
	DeviceTotalMem   func(bytes *uintptr, dev int32) result                      `cu:"cuDeviceTotalMem_v2"`
	PCIBus           func(id *byte, length int32, dev int32) result              `cu:"cuDeviceGetPCIBusId"`
	DeviceAttribute  func(value *int32, attribute int32, dev int32) result       `cu:"cuDeviceGetAttribute"`
	PrimaryRetain    func(ctx *uintptr, dev int32) result                        `cu:"cuDevicePrimaryCtxRetain"`
	PrimaryRelease   func(dev int32) result                                      `cu:"cuDevicePrimaryCtxRelease_v2"`
	CtxSetCurrent    func(ctx uintptr) result                                    `cu:"cuCtxSetCurrent"`
	CanAccessPeer    func(can *int32, dev, peer int32) result                    `cu:"cuDeviceCanAccessPeer"`
	P2PAttribute     func(value *int32, attribute, dev, peer int32) result       `cu:"cuDeviceGetP2PAttribute"`
	EnablePeer       func(ctx uintptr, flags uint32) result                      `cu:"cuCtxEnablePeerAccess"`
	MemGetInfo       func(free, total *uintptr) result                           `cu:"cuMemGetInfo_v2"`
	MemAlloc         func(p *Ptr, bytes uintptr) result                          `cu:"cuMemAlloc_v2"`
	MemFree          func(p Ptr) result                                          `cu:"cuMemFree_v2"`
	MemHostAlloc     func(p *unsafe.Pointer, bytes uintptr, flags uint32) result `cu:"cuMemHostAlloc"`
	MemFreeHost      func(p unsafe.Pointer) result                               `cu:"cuMemFreeHost"`
	MemHostDevicePtr func(p *Ptr, host unsafe.Pointer,
		flags uint32) result `cu:"cuMemHostGetDevicePointer_v2"`
	MemcpyHtoDAsync func(dst Ptr, src unsafe.Pointer, bytes uintptr, stream uintptr) result `cu:"cuMemcpyHtoDAsync_v2"`
	MemcpyDtoHAsync func(dst unsafe.Pointer, src Ptr, bytes uintptr, stream uintptr) result `cu:"cuMemcpyDtoHAsync_v2"`
	MemcpyDtoDAsync func(dst, src Ptr, bytes uintptr, stream uintptr) result                `cu:"cuMemcpyDtoDAsync_v2"`
	MemsetD8Async   func(p Ptr, value byte, count uintptr, stream uintptr) result           `cu:"cuMemsetD8Async"`
	MemsetD32Async  func(p Ptr, value uint32, count uintptr, stream uintptr) result         `cu:"cuMemsetD32Async"`

	ModuleLoadDataEx func(mod *uintptr, image unsafe.Pointer, n uint32, options *int32,
		values *jitValues) result `cu:"cuModuleLoadDataEx"`
	ModuleUnload      func(mod uintptr) result `cu:"cuModuleUnload"`
	ModuleGetFunction func(f *uintptr, mod uintptr,
		name string) result `cu:"cuModuleGetFunction"`
	ModuleGetGlobal func(p *Ptr, bytes *uintptr, mod uintptr,
		name string) result `cu:"cuModuleGetGlobal_v2"`
	FuncGetAttribute func(value *int32, attribute int32,
		f uintptr) result `cu:"cuFuncGetAttribute"`
	FuncSetAttribute func(f uintptr, attribute int32,
		value int32) result `cu:"cuFuncSetAttribute"`
	FuncGetParamInfo func(f uintptr, index uintptr, offset,
		size *uintptr) result `cu:"cuFuncGetParamInfo,optional"`
	Occupancy func(blocks *int32, f uintptr, blockSize int32,
		dynamicShared uintptr) result `cu:"cuOccupancyMaxActiveBlocksPerMultiprocessor"`

	TensorMapEncode func(to unsafe.Pointer, dtype int32, rank uint32, at Ptr, sizes, strides *uint64, box,
		elementStrides *uint32, interleave, swizzle, promotion,
		fill int32) result `cu:"cuTensorMapEncodeTiled,optional"`

	LaunchKernel func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr, params,
		extra *unsafe.Pointer) result `cu:"cuLaunchKernel"`
	LaunchCooperativeKernel func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr,
		params *unsafe.Pointer) result `cu:"cuLaunchCooperativeKernel"`

	StreamCreate      func(s *uintptr, flags uint32) result                `cu:"cuStreamCreate"`
	StreamDestroy     func(s uintptr) result                               `cu:"cuStreamDestroy_v2"`
	StreamSynchronize func(s uintptr) result                               `cu:"cuStreamSynchronize"`
	StreamQuery       func(s uintptr) result                               `cu:"cuStreamQuery"`
	EventCreate       func(e *uintptr, flags uint32) result                `cu:"cuEventCreate"`
	EventDestroy      func(e uintptr) result                               `cu:"cuEventDestroy_v2"`
	EventRecord       func(e uintptr, stream uintptr) result               `cu:"cuEventRecord"`
	EventSynchronize  func(e uintptr) result                               `cu:"cuEventSynchronize"`
	EventQuery        func(e uintptr) result                               `cu:"cuEventQuery"`
	EventElapsedTime  func(ms *float32, start uintptr, end uintptr) result `cu:"cuEventElapsedTime"`
}
