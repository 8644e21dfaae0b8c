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

// openLibrary loads the driver at path, binds its entry points, initialises it and checks its version. It is never
// unloaded: the driver keeps threads of its own.
func openLibrary(path string) (*library, error) {
	handle, err := dlopen(path)
	if err != nil {
		return nil, &Problem{Kind: ErrNoDriver, What: path + " cannot be loaded",
			Remedy: "install the NVIDIA driver; in a container, start it with access to the GPU; if it is installed " +
				"elsewhere, name its folder in LD_LIBRARY_PATH", Err: err}
	}
	lib := &library{}
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
