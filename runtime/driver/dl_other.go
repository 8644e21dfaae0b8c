//go:build !linux

package driver

import "errors"

// Only Linux has libcuda.so.1. Elsewhere the package builds, and says that there is no driver.
var errNotLinux = errors.New("CUDA programs run on Linux only")

func dlopen(string) (uintptr, error) { return 0, errNotLinux }

func dlsym(uintptr, string) (uintptr, error) { return 0, errNotLinux }

func threadID() int { return 0 }
