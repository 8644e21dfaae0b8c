package driver

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
)

// A Device is a GPU opened by this process: its primary context, and the thread on which that context is current.
type Device struct {
	lib    *library
	handle int32
	facts  Facts
	calls  chan call
	thread int           // OS thread of the owner
	closed chan struct{} // closed after the owner has released the context
	closes atomic.Bool   // set on the owner's thread, by Close
	stage  staging
}

// A call is work for the owner.
type call struct {
	run  func() error
	done chan<- error
}

// Open starts the owner of a GPU's primary context; see the package comment. Ordinals count from 0. Errors:
// [ErrNoDriver], [ErrDriverTooOld], [ErrNoDevice], and [ErrUnavailable] or [ErrOutOfMemory] when the GPU is taken.
func Open(gpu int) (*Device, error) {
	lib, err := systemLibrary()
	if err != nil {
		return nil, err
	}
	return lib.open(gpu)
}

func (l *library) open(gpu int) (*Device, error) {
	handle, facts, err := l.device(gpu)
	if err != nil {
		return nil, err
	}
	d := &Device{lib: l, handle: handle, facts: facts, calls: make(chan call), closed: make(chan struct{})}
	d.stage.size = stagingBytes
	ready := make(chan error, 1)
	go d.own(ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	return d, nil
}

// own is the goroutine that makes every call. It reports on ready once, and runs until Close.
func (d *Device) own(ready chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(d.closed)
	if err := d.retain(); err != nil {
		ready <- err
		return
	}
	d.thread = threadID()
	ready <- nil
	for !d.closes.Load() {
		c := <-d.calls
		c.done <- c.run()
	}
}

func (d *Device) retain() error {
	var ctx uintptr
	err := d.lib.check("cuDevicePrimaryCtxRetain", d.lib.api.PrimaryRetain(&ctx, d.handle))
	switch codeOf(err) {
	case success:
	case errOutOfMemory:
		return &Problem{Kind: ErrOutOfMemory, What: fmt.Sprintf("%s has no room for another process", d),
			Remedy: "end a process that uses it (nvidia-smi lists them), or choose another GPU", Err: err}
	case errDeviceUnavailable:
		return &Problem{Kind: ErrUnavailable, What: fmt.Sprintf("%s is in use by a process that has it to itself", d),
			Remedy: "wait for that process (nvidia-smi lists it), or choose another GPU", Err: err}
	default:
		return err
	}
	if err := d.lib.check("cuCtxSetCurrent", d.lib.api.CtxSetCurrent(ctx)); err != nil {
		return errors.Join(err, d.lib.check("cuDevicePrimaryCtxRelease", d.lib.api.PrimaryRelease(d.handle)))
	}
	return nil
}

// errInsideDo refuses what would wait for the owner's thread while occupying it.
var errInsideDo = errors.New("copies and Close take turns with other goroutines, and cannot be called inside Do")

// onOwner says whether the caller runs on the owner's thread. The owner is locked to it, so nothing else does while the
// device is open; afterwards any goroutine may.
func (d *Device) onOwner() bool { return !d.closes.Load() && threadID() == d.thread }

// Do runs f on the thread that owns the context and returns its error. Calls on the device made inside f run at once,
// without a hop from thread to thread; use it around short sequences that repeat. Copies and Close are refused there.
func (d *Device) Do(f func() error) error {
	if d.onOwner() {
		return f()
	}
	done := make(chan error, 1)
	select {
	case d.calls <- call{f, done}:
		return <-done
	case <-d.closed:
		return ErrClosed
	}
}

// invoke makes one call on the owner's thread and checks its return code.
func (d *Device) invoke(name string, f func() result) error {
	return d.Do(func() error { return d.lib.check(name, f()) })
}

// Close waits for a copy in progress, releases the context and ends the owner. When no other device of the process is
// open on the same GPU, that frees all memory, modules, streams and events of this one, pinned host memory included:
// slices of it must not be used any more. Closing twice is harmless. After a sticky error (see [IsSticky]) the driver
// cannot tidy up, and Close does not repeat that error.
func (d *Device) Close() error {
	if d.onOwner() {
		return errInsideDo
	}
	d.stage.mu.Lock() // a copy in progress ends first: it writes to memory that goes away
	defer d.stage.mu.Unlock()
	err := d.Do(func() error {
		err := d.stage.close()
		d.closes.Store(true)
		return errors.Join(err,
			d.lib.check("cuCtxSetCurrent", d.lib.api.CtxSetCurrent(0)),
			d.lib.check("cuDevicePrimaryCtxRelease", d.lib.api.PrimaryRelease(d.handle)))
	})
	if errors.Is(err, ErrClosed) || IsSticky(err) {
		return nil
	}
	return err
}

// Facts returns what was read about the GPU when it was opened.
func (d *Device) Facts() Facts { return d.facts }

// String names the device in messages: `GPU 0 (NVIDIA H200)`.
func (d *Device) String() string { return fmt.Sprintf("GPU %d (%s)", d.facts.Ordinal, d.facts.Name) }
