package host

import (
	"cmp"
	"math"
	"time"

	"amkc/runtime/driver"
)

// Machine is what a measurement depends on besides the build. Zero values mean that the driver does not report them.
type Machine struct {
	GPU               string  `json:"gpu"` // "NVIDIA H200"
	Arch              string  `json:"arch"`
	SMs               int     `json:"sms"`
	MemoryBytes       uint64  `json:"memory_bytes"`
	L2Bytes           int     `json:"l2_bytes"`
	CUDA              string  `json:"cuda"`             // newest version that the driver supports
	Driver            string  `json:"driver,omitempty"` // "580.159.04"
	MaxSMClockMHz     int     `json:"max_sm_mhz,omitempty"`
	MaxMemoryClockMHz int     `json:"max_memory_mhz,omitempty"`
	PowerLimitW       float64 `json:"power_limit_w,omitempty"`
	ECC               string  `json:"ecc,omitempty"` // "on" or "off"
	Clocks            *Clocks `json:"clocks,omitempty"`
	ClocksAbsent      string  `json:"clocks_absent,omitempty"` // why there are no Clocks
}

// FitsL2 reports whether everything that a token reads fits in L2, so that a measurement hardly accesses memory.
func (r *BenchReport) FitsL2() bool { return r.BytesPerToken <= float64(r.Machine.L2Bytes) }

// cached is the part of the bytes that may still be in L2 from the step before, and by chance more of it than in the
// ceiling's kernel or in a plain read. Where all of it fits, it is in L2 for either.
func (r *BenchReport) cached() float64 {
	if r.FitsL2() {
		return 0
	}
	return float64(r.Machine.L2Bytes) / r.BytesPerToken
}

// Clocks are the clocks while measured launches ran, sampled once per batch of launches, or every 10 ms during prompts.
// A zero Range means that the driver does not report it.
type Clocks struct {
	Samples     int   `json:"samples"`
	SM          Range `json:"sm_mhz"`
	Memory      Range `json:"memory_mhz"`
	PowerW      Range `json:"power_w"`
	Temperature Range `json:"temperature_c"`
	// why clocks were not higher, in the terms of nvidia-smi; null: the driver does not report it
	LimitedBy []string `json:"limited_by"`
}

// Range is the least and the largest of what was seen.
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// A clockWatch collects the state of a GPU. Its zero value has nothing to look with.
type clockWatch struct {
	monitor *driver.Monitor
	absent  error // why not
	states  []driver.State
}

// watchClocks opens a watch. One without a monitor is not an error: it says so in the report.
func watchClocks(d *driver.Device) clockWatch {
	m, err := d.Monitor()
	return clockWatch{monitor: m, absent: err}
}

func (w *clockWatch) close() error {
	if w.monitor == nil {
		return nil
	}
	return w.monitor.Close()
}

// look takes one sample. Call it while the kernels of which it is to tell run.
func (w *clockWatch) look() {
	if w.monitor != nil {
		w.states = append(w.states, w.monitor.State())
	}
}

// lookEvery is how often a watch samples.
const lookEvery = 10 * time.Millisecond

// watch takes samples until the function is called that it returns.
func (w *clockWatch) watch() (stop func()) {
	if w.monitor == nil {
		return func() {}
	}
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.look()
			case <-stopped:
				return
			}
		}
	}()
	return func() {
		close(stopped)
		<-ended
	}
}

// forget drops the samples taken so far.
func (w *clockWatch) forget() { w.states = nil }

// machine describes the GPU and what the watch has seen.
func (w *clockWatch) machine(f driver.Facts) Machine {
	m := Machine{GPU: f.Name, Arch: f.Arch(), SMs: f.SMs, MemoryBytes: f.TotalMemory, L2Bytes: f.L2Bytes,
		CUDA:          driver.FormatVersion(f.DriverVersion),
		MaxSMClockMHz: megahertz(f.ClockKHz), MaxMemoryClockMHz: megahertz(f.MemoryClockKHz)}
	if w.monitor == nil {
		m.ClocksAbsent = w.absent.Error()
		return m
	}
	s := w.monitor.Settings()
	m.Driver, m.PowerLimitW, m.ECC = s.Driver, s.PowerLimitW, s.ECC
	m.MaxSMClockMHz = cmp.Or(s.MaxSMClockMHz, m.MaxSMClockMHz)
	m.MaxMemoryClockMHz = cmp.Or(s.MaxMemoryClockMHz, m.MaxMemoryClockMHz)
	if m.Clocks = clocksOf(w.states); m.Clocks == nil {
		m.ClocksAbsent = "no sample was taken"
	}
	return m
}

func megahertz(khz int) int { return int(math.Round(float64(khz) / 1000)) }

// clocksOf sums up samples, nil when there are none.
func clocksOf(states []driver.State) *Clocks {
	if len(states) == 0 {
		return nil
	}
	c := &Clocks{Samples: len(states)}
	var limits driver.ClockLimits
	known := true
	for i, s := range states {
		for _, v := range []struct {
			into  *Range
			value float64
		}{{&c.SM, float64(s.SMClockMHz)}, {&c.Memory, float64(s.MemoryClockMHz)}, {&c.PowerW, s.PowerW},
			{&c.Temperature, float64(s.TemperatureC)}} {
			if i == 0 {
				*v.into = Range{v.value, v.value}
			}
			v.into.Min, v.into.Max = min(v.into.Min, v.value), max(v.into.Max, v.value)
		}
		limits |= s.Limits
		known = known && s.LimitsKnown
	}
	if known {
		c.LimitedBy = append([]string{}, limits.Names()...)
	}
	return c
}
