package main

import (
	"fmt"
	"runtime"
	"syscall"
)

// A footprint is what a process holds at a time when it decodes nothing.
type footprint struct {
	goroutines     int
	heap, resident float64 // MB, the heap without garbage, and the most that was resident
}

func takeFootprint() footprint {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f := footprint{goroutines: runtime.NumGoroutine(), heap: float64(m.HeapAlloc) / 1e6}
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		f.resident = float64(usage.Maxrss) * 1024 / 1e6 // Linux counts it in KiB
	}
	return f
}

// Memory may grow by this share and n MB on top, for what is allocated once and late, and for what a collector
// leaves lying.
const (
	growthShare = 1.25
	growthMB    = 32
)

// growth says what has grown since an earlier time, or nothing.
func (f *footprint) growth(since *footprint) string {
	for _, m := range []struct {
		what     string
		now, was float64
	}{{"heap", f.heap, since.heap}, {"resident memory", f.resident, since.resident}} {
		if m.now > growthShare*m.was+growthMB {
			return fmt.Sprintf("the %s has grown from %.0f to %.0f MB", m.what, m.was, m.now)
		}
	}
	if f.goroutines > since.goroutines {
		return fmt.Sprintf("there are %d goroutines, and were %d", f.goroutines, since.goroutines)
	}
	return ""
}
