// Package driver calls the CUDA driver API of the installed NVIDIA driver, without cgo and without a CUDA toolkit.
//
// It loads libcuda.so.1 when it is first needed, so a binary that links this package starts on any machine and reports
// a missing driver as an error.
//
// # Threads
//
// A CUDA context is current on a thread, and goroutines move between threads. So [Open] starts one goroutine, locked
// to its OS thread, that retains the device's primary context and makes every call for that [Device]; methods hand
// their call to it over a channel and wait. All methods are therefore safe for concurrent use, and run one at a time.
// Two consequences:
//
//   - [Stream.Synchronize] and [Event.Synchronize] occupy that thread until the GPU is done, and other calls queue
//     after them. Memory from [Device.AllocPinned] needs no call to read or write, so a running kernel can be told to
//     stop all the same; or poll [Stream.Query].
//   - A hop to the thread costs microseconds. [Device.Do] runs a function there, and calls made inside it do not hop.
//
// [Count] and [Probe] create no context and run on the caller's thread.
//
// # Limits
//
// The package reads facts and runs work; clocks and settings it reads through NVML ([Device.Monitor]), which it also
// binds only when asked. It never changes the state of the GPU that outlives the process: no clocks, no power limits,
// no compute mode, no partitioning, no persistence mode.
//
// It is copied into every emitted launcher, so it imports only the standard library and
// github.com/ebitengine/purego, and must not import any package of amkc. It is the only package that may import purego.
// Errors are plain: [Error] for a failed call, [Problem] where it is known what the user can do about it.
package driver

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
)

// A Device is a GPU opened by this process: its primary context, and the thread on which that context is current.
type Device struct {
	lib     *library
	handle  int32
	context uintptr // the primary context
	facts   Facts
	calls   chan call
	thread  int           // OS thread of the owner
	closed  chan struct{} // closed after the owner has released the context
	closes  atomic.Bool   // set on the owner's thread, by Close
	stage   staging
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
	d.context = ctx
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

// Facts describes one GPU. Sizes are bytes.
type Facts struct {
	Ordinal           int    // as Open takes it; CUDA_VISIBLE_DEVICES changes it
	Name              string // "NVIDIA H200"
	Major, Minor      int    // compute capability
	SMs               int
	MaxThreads        int // per block
	SharedPerBlock    int // the most that a kernel may opt in to
	SharedPerSM       int
	RegistersPerSM    int // 32-bit registers
	L2Bytes           int
	TotalMemory       uint64
	BusWidthBits      int
	ClockKHz          int // peak; 0 when the driver does not tell
	MemoryClockKHz    int // likewise
	CooperativeLaunch bool
	DriverVersion     int // newest CUDA version of the driver, 13000 for 13.0
}

// Arch returns the compute capability as a target name, "sm_90". The suffix of architecture-specific code ("sm_90a")
// belongs to the code, not to the device.
func (f Facts) Arch() string { return fmt.Sprintf("sm_%d%d", f.Major, f.Minor) }

// CUdevice_attribute numbers of cuda.h.
const (
	attrMaxThreadsPerBlock = 1
	attrClockRate          = 13
	attrSMCount            = 16
	attrMemoryClockRate    = 36
	attrBusWidth           = 37
	attrL2Size             = 38
	attrMajor              = 75
	attrMinor              = 76
	attrSharedPerSM        = 81
	attrRegistersPerSM     = 82
	attrCooperativeLaunch  = 95
	attrSharedPerBlock     = 97
)

// Count returns the number of GPUs that this process may use. It is at least 1 when err is nil; without a driver or a
// GPU the error is [ErrNoDriver] or [ErrNoDevice].
func Count() (int, error) {
	lib, err := systemLibrary()
	if err != nil {
		return 0, err
	}
	return lib.count()
}

// Probe returns the facts of every GPU, in the driver's order, without creating a context on any. Errors as [Count].
func Probe() ([]Facts, error) {
	lib, err := systemLibrary()
	if err != nil {
		return nil, err
	}
	return lib.probe()
}

func (l *library) count() (int, error) {
	var n int32
	if err := l.check("cuDeviceGetCount", l.api.DeviceGetCount(&n)); err != nil {
		return 0, l.explainInit(err)
	}
	if n == 0 {
		return 0, noDevice(nil)
	}
	return int(n), nil
}

func (l *library) probe() ([]Facts, error) {
	n, err := l.count()
	if err != nil {
		return nil, err
	}
	all := make([]Facts, n)
	for i := range all {
		if _, all[i], err = l.device(i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// device returns the handle and the facts of one GPU. It needs no context.
func (l *library) device(ordinal int) (int32, Facts, error) {
	n, err := l.count()
	if err != nil {
		return 0, Facts{}, err
	}
	if ordinal < 0 || ordinal >= n {
		return 0, Facts{}, &Problem{Kind: ErrNoDevice,
			What:   fmt.Sprintf("GPU %d was asked for, and there are %d", ordinal, n),
			Remedy: fmt.Sprintf("choose one from 0 to %d", n-1)}
	}
	var dev int32
	if err := l.check("cuDeviceGet", l.api.DeviceGet(&dev, int32(ordinal))); err != nil {
		return 0, Facts{}, err
	}
	f := Facts{Ordinal: ordinal, DriverVersion: l.version}
	name := make([]byte, 256)
	if err := l.check("cuDeviceGetName", l.api.DeviceGetName(&name[0], int32(len(name)), dev)); err != nil {
		return 0, Facts{}, err
	}
	text, _, _ := bytes.Cut(name, []byte{0})
	f.Name = string(text)
	var total uintptr
	if err := l.check("cuDeviceTotalMem", l.api.DeviceTotalMem(&total, dev)); err != nil {
		return 0, Facts{}, err
	}
	f.TotalMemory = uint64(total)
	return dev, f, l.attributes(dev, &f)
}

// attributes fills the facts that are integer attributes. Nothing depends on a clock, and drivers have begun to
// withdraw them, so one that is refused stays 0.
func (l *library) attributes(dev int32, f *Facts) error {
	var cooperative int
	for _, a := range []struct {
		id       int32
		into     *int
		optional bool
	}{
		{attrMajor, &f.Major, false},
		{attrMinor, &f.Minor, false},
		{attrSMCount, &f.SMs, false},
		{attrMaxThreadsPerBlock, &f.MaxThreads, false},
		{attrSharedPerBlock, &f.SharedPerBlock, false},
		{attrSharedPerSM, &f.SharedPerSM, false},
		{attrRegistersPerSM, &f.RegistersPerSM, false},
		{attrL2Size, &f.L2Bytes, false},
		{attrCooperativeLaunch, &cooperative, false},
		{attrBusWidth, &f.BusWidthBits, true},
		{attrClockRate, &f.ClockKHz, true},
		{attrMemoryClockRate, &f.MemoryClockKHz, true},
	} {
		var v int32
		err := l.check("cuDeviceGetAttribute", l.api.DeviceAttribute(&v, a.id, dev))
		if err != nil && !a.optional {
			return fmt.Errorf("attribute %d of GPU %d: %w", a.id, f.Ordinal, err)
		}
		if err == nil {
			*a.into = int(v)
		}
	}
	f.CooperativeLaunch = cooperative != 0
	return nil
}
