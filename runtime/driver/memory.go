package driver

import "fmt"

// A Ptr is an address in the GPU's memory (a CUdeviceptr). Add byte offsets to it as to any integer.
type Ptr uint64

// MemInfo returns the free and the total memory of the GPU in bytes, other processes counted.
func (d *Device) MemInfo() (free, total uint64, err error) {
	var f, t uintptr
	err = d.invoke("cuMemGetInfo", func() result { return d.lib.api.MemGetInfo(&f, &t) })
	return uint64(f), uint64(t), err
}

// Alloc returns n bytes of GPU memory, n > 0, aligned to at least 256 bytes, contents undefined. Too little memory is
// [ErrOutOfMemory], and the message says how much there is.
func (d *Device) Alloc(n int) (Ptr, error) {
	if n <= 0 {
		return 0, fmt.Errorf("%d bytes of GPU memory: the size must be positive", n)
	}
	var p Ptr
	err := d.invoke("cuMemAlloc", func() result { return d.lib.api.MemAlloc(&p, uintptr(n)) })
	if codeOf(err) == errOutOfMemory {
		return 0, d.outOfMemory(n, err)
	}
	return p, err
}

func (d *Device) outOfMemory(n int, cause error) error {
	what := fmt.Sprintf("%s cannot give %s", d, formatBytes(uint64(n)))
	if free, total, err := d.MemInfo(); err == nil {
		what = fmt.Sprintf("%s has %s of %s free, and %s were asked for",
			d, formatBytes(free), formatBytes(total), formatBytes(uint64(n)))
	}
	return &Problem{Kind: ErrOutOfMemory, What: what, Err: cause,
		Remedy: "end other processes on it (nvidia-smi lists them), or use a smaller model, a shorter context " +
			"or another GPU"}
}

// Free returns memory from [Device.Alloc]. It waits for the work that may still use it. Freeing 0 does nothing.
func (d *Device) Free(p Ptr) error {
	if p == 0 {
		return nil
	}
	return d.invoke("cuMemFree", func() result { return d.lib.api.MemFree(p) })
}

// MemsetD8 sets n bytes, in stream order.
func (s *Stream) MemsetD8(p Ptr, value byte, n int) error {
	return s.dev.invoke("cuMemsetD8Async", func() result {
		return s.dev.lib.api.MemsetD8Async(p, value, uintptr(n), s.handle)
	})
}

// MemsetD32 sets n words of 32 bits, in stream order. p is a multiple of 4.
func (s *Stream) MemsetD32(p Ptr, value uint32, n int) error {
	return s.dev.invoke("cuMemsetD32Async", func() result {
		return s.dev.lib.api.MemsetD32Async(p, value, uintptr(n), s.handle)
	})
}

// formatBytes writes a size with the largest binary unit that keeps it at 1 or more.
func formatBytes(n uint64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(uint64(1)<<u.shift), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
