package host

import (
	"errors"
	"fmt"
)

// ErrNotChecked is returned for a measurement without a passed check: the latency of a wrong kernel is meaningless.
var ErrNotChecked = errors.New("no latency is reported before check has passed in the same run")

// ErrClosed is returned by a [Session] after Close.
var ErrClosed = errors.New("the session is closed")

// A BuildError says that a directory is not a build of amkc, is incomplete, or holds files that do not belong together.
type BuildError struct {
	Path   string // the file or directory
	What   string // what is wrong with it
	Remedy string // what to do
	Err    error  // the failed operation that caused it, or nil
}

func (e *BuildError) Error() string {
	msg := fmt.Sprintf("%s: %s", e.Path, e.What)
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	if e.Remedy != "" {
		msg += "; " + e.Remedy
	}
	return msg
}

func (e *BuildError) Unwrap() error { return e.Err }

// A PrefixError says that a build cannot continue from the prefix in a file.
type PrefixError struct {
	Path string
	What string
	Err  error // the failed operation that caused it, or nil
}

func (e *PrefixError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("prefix %s: %s: %v", e.Path, e.What, e.Err)
	}
	return fmt.Sprintf("prefix %s: %s", e.Path, e.What)
}

func (e *PrefixError) Unwrap() error { return e.Err }

// A DeviceError says that the GPU is not one that the build can run on.
type DeviceError struct {
	Device string // "GPU 0 (NVIDIA H200)"
	What   string
	Remedy string
}

func (e *DeviceError) Error() string { return fmt.Sprintf("%s: %s; %s", e.Device, e.What, e.Remedy) }

// A MemoryError says that the build does not fit the free memory of the GPU. Sizes are bytes. Nothing was loaded.
type MemoryError struct {
	Footprint
	Device      string
	Free, Total uint64
	Fits        int // the largest --max-seq that would fit, 0 when not even the weights do
}

func (e *MemoryError) Error() string {
	msg := fmt.Sprintf("%s has %s of %s free, and this build needs %s: weights %s, KV cache for %d positions "+
		"%s, scratch %s; ",
		e.Device, FormatBytes(e.Free), FormatBytes(e.Total), FormatBytes(e.Bytes()),
		FormatBytes(e.Weights), e.MaxSeq, FormatBytes(e.Cache), FormatBytes(e.Other))
	if e.Fits > 0 {
		return msg + fmt.Sprintf("recompile with --max-seq %d or less, or end other processes on it "+
			"(nvidia-smi lists them)", e.Fits)
	}
	return msg + "the weights alone do not fit: end other processes on it (nvidia-smi lists them), use a GPU with " +
		"more memory, " +
		"or a smaller model"
}

// A PositionError says that a request reaches past the last position of the build.
type PositionError struct {
	First, Steps int // the request: positions First to First+Steps-1
	MaxSeq       int
}

func (e *PositionError) Error() string {
	return fmt.Sprintf("positions %d to %d were asked for, and this build decodes positions 0 to %d; "+
		"shorten the prompt, "+
		"lower --max-tokens, or recompile with --max-seq %d", e.First, e.First+e.Steps-1, e.MaxSeq-1, e.First+e.Steps)
}

// A TokenError says that the model has no such token id.
type TokenError struct {
	ID, Vocab int
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("token id %d: the model has ids 0 to %d", e.ID, e.Vocab-1)
}

// An ArtefactError reports a measurement that cannot be right. Times are microseconds, of a token or a pass.
type ArtefactError struct {
	Latency, Ceiling float64
	Read             float64 // what a plain read of the bytes takes
	Cached           float64 // the part of the bytes that L2 can hold from one step to the next
}

// unevenShares is how far a step may be below its ring's ceiling, as a part of it: where SMs stream unequal shares,
// steps were up to 5.5 % below it. The likely cause is that an SM which has more is served ahead in a step, in which
// the others wait for it with full rings, and not in the ceiling's kernel.
const unevenShares = 0.1

// impossible reports whether a median of a step is below what it can take.
func (e *ArtefactError) impossible() bool {
	if !(e.Latency > 0 && e.Ceiling > 0 && e.Read > 0) { // nor is a NaN a measurement
		return true
	}
	return e.Latency < e.Ceiling && e.Latency < max(e.Read*(1-e.Cached), e.Ceiling*(1-unevenShares))
}

func (e *ArtefactError) Error() string {
	return fmt.Sprintf("the decode kernel took %.2f µs, less than is possible: in the same run its ring "+
		"took %.2f µs for the same bytes, and a plain read %.2f µs; something disturbed the measurement, and it is "+
		"not reported; run it again on an idle GPU, with more --launches", e.Latency, e.Ceiling, e.Read)
}

// FormatBytes writes a size with the largest binary unit that keeps it at 1 or more.
func FormatBytes(n uint64) string {
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
