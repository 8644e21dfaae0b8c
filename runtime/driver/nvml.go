package driver

import (
	"bytes"
	"errors"
	"fmt"
)

// nvmlName is the soname of NVML, the library behind nvidia-smi. It comes with the driver, and containers may lack it.
const nvmlName = "libnvidia-ml.so.1"

// nvml holds the entry points of NVML, which only read: this package has no way to change a clock or a limit. Tags
// are as those of [api]. What is optional came late or is refused by some GPUs, and then is not told.
type nvml struct {
	Init          func() int32                                         `cu:"nvmlInit_v2"`
	Shutdown      func() int32                                         `cu:"nvmlShutdown"`
	ByPCIBus      func(bus *byte, device *uintptr) int32               `cu:"nvmlDeviceGetHandleByPciBusId_v2"`
	DriverVersion func(text *byte, length uint32) int32                `cu:"nvmlSystemGetDriverVersion"`
	Clock         func(device uintptr, kind uint32, mhz *uint32) int32 `cu:"nvmlDeviceGetClockInfo"`
	MaxClock      func(device uintptr, kind uint32, mhz *uint32) int32 `cu:"nvmlDeviceGetMaxClockInfo"`
	PowerUsage    func(device uintptr, milliwatts *uint32) int32       `cu:"nvmlDeviceGetPowerUsage"`
	PowerLimit    func(device uintptr,
		milliwatts *uint32) int32 `cu:"nvmlDeviceGetEnforcedPowerLimit,optional"`
	Temperature func(device uintptr, sensor uint32,
		celsius *uint32) int32 `cu:"nvmlDeviceGetTemperature,optional"`
	ECC          func(device uintptr, current *uint32, pending *uint32) int32 `cu:"nvmlDeviceGetEccMode,optional"`
	EventReasons func(device uintptr,
		reasons *uint64) int32 `cu:"nvmlDeviceGetCurrentClocksEventReasons,optional"`
	ThrottleReasons func(device uintptr,
		reasons *uint64) int32 `cu:"nvmlDeviceGetCurrentClocksThrottleReasons,optional"` // its name before driver 535
}

// nvmlClockType and nvmlTemperatureSensors of nvml.h.
const (
	nvmlClockSM     = 1
	nvmlClockMemory = 2
	nvmlSensorGPU   = 0
)

// A Monitor reads the clocks and the settings of one GPU. It is not for concurrent use; its calls need no context, take
// some microseconds to milliseconds, and may run while kernels do.
type Monitor struct {
	api    nvml
	device uintptr
}

// Settings of a GPU stay until someone changes them. Zero values: the driver does not tell.
type Settings struct {
	Driver            string // "580.159.04"
	MaxSMClockMHz     int
	MaxMemoryClockMHz int
	PowerLimitW       float64
	ECC               string // "on" or "off"
}

// State is what a GPU does at a moment. Zero values: the driver does not tell.
type State struct {
	SMClockMHz     int
	MemoryClockMHz int
	PowerW         float64
	TemperatureC   int
	Limits         ClockLimits
	LimitsKnown    bool // the driver tells Limits; none is an answer too
}

// ClockLimits are the reasons why clocks are not higher, as nvmlClocksEventReason* count them.
type ClockLimits uint64

// clockLimits names the bits as nvidia-smi does.
var clockLimits = []struct {
	bit  ClockLimits
	name string
}{
	{0x1, "gpu_idle"}, {0x2, "applications_clocks_setting"}, {0x4, "sw_power_cap"}, {0x8, "hw_slowdown"},
	{0x10, "sync_boost"},
	{0x20, "sw_thermal_slowdown"}, {0x40, "hw_thermal_slowdown"}, {0x80, "hw_power_brake_slowdown"},
	{0x100, "display_clock_setting"},
}

// Names returns the reasons, none when nothing holds the clocks back.
func (l ClockLimits) Names() []string {
	var names []string
	for _, c := range clockLimits {
		if l&c.bit != 0 {
			names = append(names, c.name)
			l &^= c.bit
		}
	}
	if l != 0 {
		names = append(names, fmt.Sprintf("unknown_%#x", uint64(l)))
	}
	return names
}

// Monitor opens NVML for this GPU, which it finds by its PCI address: NVML ignores CUDA_VISIBLE_DEVICES. The error is
// [ErrNoMonitor] where NVML is missing or refuses. The Monitor must be closed.
func (d *Device) Monitor() (*Monitor, error) { return d.monitor(nvmlName) }

func (d *Device) monitor(path string) (*Monitor, error) {
	bus := make([]byte, 32)
	if err := d.invoke("cuDeviceGetPCIBusId",
		func() result { return d.lib.api.PCIBus(&bus[0], int32(len(bus)), d.handle) }); err != nil {
		return nil, err
	}
	handle, err := dlopen(path)
	if err != nil {
		return nil, noMonitor(path+" cannot be loaded", err)
	}
	m := &Monitor{}
	if missing := bindSymbols(handle, &m.api); missing != "" {
		return nil, noMonitor(path+" has no "+missing, nil)
	}
	if code := m.api.Init(); code != 0 {
		return nil, noMonitor("nvmlInit failed", nvmlCode(code))
	}
	if code := m.api.ByPCIBus(&bus[0], &m.device); code != 0 {
		text, _, _ := bytes.Cut(bus, []byte{0})
		return nil, errors.Join(noMonitor(fmt.Sprintf("it does not know the GPU at %s", text), nvmlCode(code)),
			m.Close())
	}
	return m, nil
}

func noMonitor(what string, err error) error {
	return &Problem{Kind: ErrNoMonitor, What: what,
		Remedy: "install NVML, which comes with nvidia-smi, to have them recorded", Err: err}
}

func nvmlCode(code int32) error { return fmt.Errorf("NVML error %d", code) }

// Close releases NVML.
func (m *Monitor) Close() error {
	if code := m.api.Shutdown(); code != 0 {
		return fmt.Errorf("nvmlShutdown: %w", nvmlCode(code))
	}
	return nil
}

// Settings reads what holds until someone changes it.
func (m *Monitor) Settings() Settings {
	s := Settings{
		MaxSMClockMHz:     int(m.read(func(v *uint32) int32 { return m.api.MaxClock(m.device, nvmlClockSM, v) })),
		MaxMemoryClockMHz: int(m.read(func(v *uint32) int32 { return m.api.MaxClock(m.device, nvmlClockMemory, v) })),
	}
	text := make([]byte, 96)
	if m.api.DriverVersion(&text[0], uint32(len(text))) == 0 {
		version, _, _ := bytes.Cut(text, []byte{0})
		s.Driver = string(version)
	}
	if m.api.PowerLimit != nil {
		s.PowerLimitW = float64(m.read(func(v *uint32) int32 { return m.api.PowerLimit(m.device, v) })) / 1000
	}
	if m.api.ECC != nil {
		var current, pending uint32
		if m.api.ECC(m.device, &current, &pending) == 0 {
			s.ECC = map[bool]string{false: "off", true: "on"}[current != 0]
		}
	}
	return s
}

// State reads what the GPU does now.
func (m *Monitor) State() State {
	s := State{
		SMClockMHz:     int(m.read(func(v *uint32) int32 { return m.api.Clock(m.device, nvmlClockSM, v) })),
		MemoryClockMHz: int(m.read(func(v *uint32) int32 { return m.api.Clock(m.device, nvmlClockMemory, v) })),
		PowerW:         float64(m.read(func(v *uint32) int32 { return m.api.PowerUsage(m.device, v) })) / 1000,
	}
	if m.api.Temperature != nil {
		s.TemperatureC = int(m.read(func(v *uint32) int32 { return m.api.Temperature(m.device, nvmlSensorGPU, v) }))
	}
	for _, reasons := range []func(uintptr, *uint64) int32{m.api.EventReasons, m.api.ThrottleReasons} {
		var bits uint64
		if !s.LimitsKnown && reasons != nil && reasons(m.device, &bits) == 0 {
			s.Limits, s.LimitsKnown = ClockLimits(bits), true
		}
	}
	return s
}

// read returns what a call fills in, 0 if the GPU refuses it.
func (m *Monitor) read(call func(*uint32) int32) uint32 {
	var v uint32
	if call(&v) != 0 {
		return 0
	}
	return v
}
