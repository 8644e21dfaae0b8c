package driver

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Pinned is host memory that the GPU reads and writes in place. Host and GPU see each other's writes while a kernel
// runs, so it carries the words that a launcher and a running kernel exchange.
type Pinned struct {
	Bytes []byte // zeroed when allocated; page-aligned
	Ptr   Ptr    // the same memory as the GPU addresses it
	dev   *Device
}

// Flags of cuMemHostAlloc: usable from every context, and mapped into the device's address space.
const (
	hostPortable  = 1
	hostDeviceMap = 2
)

// AllocPinned returns n zeroed bytes of pinned host memory, n > 0.
func (d *Device) AllocPinned(n int) (*Pinned, error) {
	if n <= 0 {
		return nil, fmt.Errorf("%d bytes of pinned memory: the size must be positive", n)
	}
	p := &Pinned{dev: d}
	err := d.Do(func() error {
		var host unsafe.Pointer
		err := d.lib.check("cuMemHostAlloc", d.lib.api.MemHostAlloc(&host, uintptr(n), hostPortable|hostDeviceMap))
		if err != nil {
			return fmt.Errorf("%s of pinned host memory: %w", formatBytes(uint64(n)), err)
		}
		if err := d.lib.check("cuMemHostGetDevicePointer", d.lib.api.MemHostDevicePtr(&p.Ptr, host, 0)); err != nil {
			d.lib.api.MemFreeHost(host) // the first error is the one to report
			return err
		}
		p.Bytes = unsafe.Slice((*byte)(host), n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	clear(p.Bytes)
	return p, nil
}

// Load32 reads the 32-bit word at a byte offset, a multiple of 4, atomically and not reordered with other such
// accesses. A value that a kernel wrote last with a system-scope release makes what it wrote before visible too.
func (p *Pinned) Load32(offset int) uint32 { return atomic.LoadUint32(p.word(offset)) }

// Store32 writes the 32-bit word at a byte offset, a multiple of 4, atomically and after all earlier writes.
func (p *Pinned) Store32(offset int, v uint32) { atomic.StoreUint32(p.word(offset), v) }

// word indexes the slice, so that an offset outside fails like any slice access.
func (p *Pinned) word(offset int) *uint32 {
	return (*uint32)(unsafe.Pointer(&p.Bytes[offset : offset+4][0]))
}

// Free returns the memory; no kernel may be using it. Freeing twice, or nil, does nothing.
func (p *Pinned) Free() error {
	if p == nil || p.Bytes == nil {
		return nil
	}
	host := unsafe.Pointer(&p.Bytes[0])
	p.Bytes, p.Ptr = nil, 0
	return p.dev.invoke("cuMemFreeHost", func() result { return p.dev.lib.api.MemFreeHost(host) })
}
