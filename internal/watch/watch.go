// Package watch holds the executions of fuzz targets to a time and a memory. Go's fuzzing engine notices a crash, but
// not an input that never ends or that takes all memory: here such an input crashes the process that runs it, with
// the stacks of what it was doing, so that the engine saves it and reports a failure like any other.
//
// It is for tests alone, and imports nothing of amkc.
package watch

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits are what one execution may take.
type Limits struct {
	Time    time.Duration // of the clock, if as much processor time was used: a busy machine is not blamed on an input
	Blocked time.Duration // of the clock alone: an execution that waits for something uses no processor
	Memory  uint64        // bytes that the process takes from the system meanwhile
}

// limits of every execution.
var limits = Limits{Time: 5 * time.Second, Blocked: 30 * time.Second, Memory: 1 << 30}

// An execution is one call of a fuzz target.
type execution struct {
	clock     time.Time
	processor time.Duration
	memory    uint64
}

var (
	current atomic.Pointer[execution]
	watcher sync.Once
)

// Execution starts to watch an execution; the function that it returns ends it. A fuzz target begins with
//
//	defer watch.Execution()()
//
// Executions of one process follow one another, as those of a fuzzing worker do.
func Execution() (end func()) {
	watcher.Do(func() { go watch(limits, crash) })
	e := &execution{time.Now(), processorTime(), memory()}
	current.Store(e)
	return func() { current.CompareAndSwap(e, nil) }
}

// watch looks at the current execution every few milliseconds, and calls exceeded when a limit is.
func watch(l Limits, exceeded func(why string)) {
	for range time.Tick(20 * time.Millisecond) {
		e := current.Load()
		if e == nil {
			continue
		}
		if why := e.excess(l); why != "" && current.Load() == e {
			exceeded(why)
		}
	}
}

// excess says which limit an execution exceeds, or nothing.
func (e *execution) excess(l Limits) string {
	clock, processor := time.Since(e.clock), processorTime()-e.processor
	switch used := memory(); {
	case clock > l.Time && processor > l.Time:
		return fmt.Sprintf("it runs for %v, and %v is allowed", clock.Round(time.Millisecond), l.Time)
	case clock > l.Blocked:
		return fmt.Sprintf("it waits for %v, and %v is allowed", clock.Round(time.Millisecond), l.Blocked)
	case used > e.memory+l.Memory:
		return fmt.Sprintf("it takes %d MB of memory, and %d are allowed", (used-e.memory)>>20, l.Memory>>20)
	}
	return ""
}

// Thread calls f and returns for how long a processor was at work on its goroutine. Neither what else the machine and
// the process do counts, nor what f waits for, so that a test can tell linear time from quadratic on a busy machine.
func Thread(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	f()
	return threadTime() - start
}

// crash ends the process as a panic does, after the stacks of all goroutines.
func crash(why string) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	os.Stderr.Write(stacks)
	panic("input exceeds a limit: " + why)
}

// memory is what the Go runtime has from the system and has not given back, in bytes.
func memory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// processorTime is what the process has used so far, in user and system mode.
func processorTime() time.Duration { return usage(syscall.RUSAGE_SELF) }

// threadTime is the same of the thread; of the process where the system does not tell it of threads.
func threadTime() time.Duration {
	if runtime.GOOS == "linux" {
		return usage(1) // RUSAGE_THREAD
	}
	return processorTime()
}

func usage(of int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(of, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
