package driver

import (
	"bytes"
	"fmt"
)

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
