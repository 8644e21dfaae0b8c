package hostile

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkHostile reports what each family costs, from bytes to verdict: processor time of the whole process, garbage
// collection included, which is what the wall clock shows on an idle machine and does not change on a busy one.
func BenchmarkHostile(b *testing.B) {
	for _, f := range attacks() {
		b.Run(f.name, func(b *testing.B) {
			data := f.make(hostileSize)
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start, n := processorTime(), 0
			for b.Loop() {
				verdict(data, f.backend)
				n++
			}
			spent := processorTime() - start
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(spent.Milliseconds())/float64(n), "cpu-ms/op")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6/float64(n), "MB/op")
			b.ReportMetric(float64(len(data))/1e6, "MB-file")
		})
	}
}

// processorTime is what the process has used so far, in user and system mode.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
