package driver

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// stagingBytes is the size of each of the two pinned buffers through which copies go: large enough to hide the cost of
// a call, small next to any model.
const stagingBytes = 32 << 20

// A Progress is told how many bytes of a copy are done. It runs on the goroutine that called the copy.
type Progress func(done, total int)

// staging holds the two pinned buffers of a device and the stream that copies them; one copy uses it at a time. The GPU
// reads one buffer while the host fills the other. Memory that is not pinned, and a mapped file least of all, would be
// copied by the driver at a fraction of that speed.
type staging struct {
	mu     sync.Mutex
	size   int
	stream *Stream
	slots  [2]slot
}

type slot struct {
	buf  *Pinned
	used *Event // passed when the GPU has no more use for buf
}

// open makes the buffers at the first copy.
func (st *staging) open(d *Device) (err error) {
	if st.stream != nil {
		return nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close())
		}
	}()
	if st.stream, err = d.NewStream(); err != nil {
		return err
	}
	for i := range st.slots {
		if st.slots[i].buf, err = d.AllocPinned(st.size); err != nil {
			return err
		}
		if st.slots[i].used, err = d.NewEvent(); err != nil {
			return err
		}
	}
	return nil
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

// CopyHtoD copies src, which may be a mapped file, to the GPU, and returns when it is there. It does not wait for work
// on streams: synchronise those that use the destination first. progress may be nil.
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

// CopyDtoH copies from the GPU to dst and returns when it is there. It does not wait for work on streams: synchronise
// the one that writes the source first. progress may be nil.
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

// copy walks total bytes in chunks of one buffer, taking the slots in turn: start is called on each chunk, and finish
// on it one chunk later, while the GPU works on the next.
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
	if err := st.open(d); err != nil {
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
