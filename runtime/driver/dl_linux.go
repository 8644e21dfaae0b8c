package driver

import (
	"syscall"

	"github.com/ebitengine/purego"
)

// dlopen loads a shared library and returns its handle. RTLD_NOW: a library that cannot be bound in full fails here,
// not in the middle of a run.
func dlopen(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func dlsym(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }

func threadID() int { return syscall.Gettid() }
