package driver

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

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

// CopyDtoD copies n bytes between places on the device, in stream order. They do not overlap.
func (s *Stream) CopyDtoD(dst, src Ptr, n int) error {
	return s.dev.invoke("cuMemcpyDtoDAsync", func() result {
		return s.dev.lib.api.MemcpyDtoDAsync(dst, src, uintptr(n), s.handle)
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

// stagingBytes is the largest size of each of the two pinned buffers through which copies go: large enough to hide the
// cost of a call, small next to any model. Pinning that much takes longer than all else that opens a small model.
const stagingBytes = 32 << 20

// A Progress is told how many bytes of a copy are done. It runs on the goroutine that called the copy.
type Progress func(done, total int)

// staging holds the two pinned buffers of a device and the stream that copies them; one copy uses it at a time. The GPU
// reads one buffer while the host fills the other. Memory that is not pinned, and a mapped file least of all, would be
// copied by the driver at a fraction of that speed.
type staging struct {
	mu     sync.Mutex
	size   int // the largest of a buffer
	stream *Stream
	slots  [2]slot
}

type slot struct {
	buf  *Pinned
	used *Event // passed when the GPU has no more use for buf
}

// open makes what a copy of n bytes needs: at the first copy all of it, and larger buffers if the copy would fill
// those that are there. The GPU must be through with them.
func (st *staging) open(d *Device, total int) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close())
		}
	}()
	if st.stream == nil {
		if st.stream, err = d.NewStream(); err != nil {
			return err
		}
	}
	chunk := min(st.size, 1<<bits.Len(uint(total-1))) // a power of two, so that few copies grow them
	for i := range min(len(st.slots), (total+st.size-1)/st.size) {
		if err := st.slots[i].open(d, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (s *slot) open(d *Device, size int) (err error) {
	if s.used == nil {
		if s.used, err = d.NewEvent(); err != nil {
			return err
		}
	}
	if s.buf != nil && len(s.buf.Bytes) >= size {
		return nil
	}
	if err := s.buf.Free(); err != nil {
		return err
	}
	s.buf, err = d.AllocPinned(size)
	return err
}

func (st *staging) close() error {
	var errs []error
	for i := range st.slots {
		errs = append(errs, st.slots[i].buf.Free())
		if e := st.slots[i].used; e != nil {
			errs = append(errs, e.Close())
		}
		st.slots[i] = slot{}
	}
	if st.stream != nil {
		errs = append(errs, st.stream.Close())
		st.stream = nil
	}
	return errors.Join(errs...)
}

// CopyHtoD copies src, which may be a mapped file, to the GPU, and returns when the copy is complete. It does not wait
// for work on streams: synchronise those that use the destination first. progress may be nil.
func (d *Device) CopyHtoD(dst Ptr, src []byte, progress Progress) error {
	return d.stage.copy(d, len(src), progress, func(s *slot, off, n int) error {
		if err := s.used.Synchronize(); err != nil {
			return err
		}
		copyParallel(s.buf.Bytes[:n], src[off:off+n])
		return d.stage.submit(s, "cuMemcpyHtoDAsync", func() result {
			return d.lib.api.MemcpyHtoDAsync(dst+Ptr(off), unsafe.Pointer(&s.buf.Bytes[0]), uintptr(n),
				d.stage.stream.handle)
		})
	}, nil)
}

// CopyDtoH copies from the GPU to dst and returns when the copy is complete. It does not wait for work on streams:
// synchronise the one that writes the source first. progress may be nil.
func (d *Device) CopyDtoH(dst []byte, src Ptr, progress Progress) error {
	return d.stage.copy(d, len(dst), progress, func(s *slot, off, n int) error {
		return d.stage.submit(s, "cuMemcpyDtoHAsync", func() result {
			return d.lib.api.MemcpyDtoHAsync(unsafe.Pointer(&s.buf.Bytes[0]), src+Ptr(off), uintptr(n),
				d.stage.stream.handle)
		})
	}, func(s *slot, off, n int) error {
		if err := s.used.Synchronize(); err != nil {
			return err
		}
		copyParallel(dst[off:off+n], s.buf.Bytes[:n])
		return nil
	})
}

// copy walks total bytes in chunks of one buffer, taking the slots one after another: start is called on each chunk,
// and finish on it one chunk later, while the GPU works on the next.
func (st *staging) copy(d *Device, total int, progress Progress, start,
	finish func(s *slot, off, n int) error) (err error) {
	if total == 0 {
		return nil
	}
	if d.onOwner() {
		return errInsideDo
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.open(d, total); err != nil {
		return fmt.Errorf("staging buffers: %w", err)
	}
	// Also after an error: the GPU must be through with the buffers before the next copy fills them.
	defer func() {
		if syncErr := st.stream.Synchronize(); err == nil {
			err = syncErr
		}
		if err == nil && progress != nil {
			progress(total, total)
		}
	}()
	chunks := (total + st.size - 1) / st.size
	span := func(i int) (*slot, int, int) {
		return &st.slots[i%2], i * st.size, min(st.size, total-i*st.size)
	}
	for i := range chunks + 1 {
		if i < chunks {
			if err := start(span(i)); err != nil {
				return err
			}
		}
		if i > 0 && finish != nil {
			if err := finish(span(i - 1)); err != nil {
				return err
			}
		}
		if i > 0 && i < chunks && progress != nil {
			progress(i*st.size, total)
		}
	}
	return nil
}

// submit queues a copy of a slot and the event that ends its use, in one visit to the device's thread.
func (st *staging) submit(s *slot, name string, f func() result) error {
	return s.used.dev.Do(func() error {
		if err := s.used.dev.invoke(name, f); err != nil {
			return err
		}
		return st.stream.Record(s.used)
	})
}

// copyParallel is copy with several goroutines: one alone takes page faults and memory traffic more slowly than the bus
// carries the bytes away.
func copyParallel(dst, src []byte) {
	const least = 1 << 20 // below that, starting a goroutine costs more than it saves
	workers := min(runtime.GOMAXPROCS(0), 8, len(src)/least)
	if workers < 2 {
		copy(dst, src)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		from, to := len(src)*w/workers, len(src)*(w+1)/workers
		wg.Go(func() { copy(dst[from:to], src[from:to]) })
	}
	wg.Wait()
}
