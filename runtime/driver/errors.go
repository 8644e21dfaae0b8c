package driver

import (
	"errors"
	"fmt"
)

// The kinds of [Problem]. Test for them with errors.Is.
var (
	ErrNoDriver     = errors.New("no usable NVIDIA driver")
	ErrNoDevice     = errors.New("no such GPU")
	ErrDriverTooOld = errors.New("the NVIDIA driver is too old")
	ErrUnavailable  = errors.New("the GPU is not available")
	ErrNoBinary     = errors.New("no code for this GPU")
	ErrOutOfMemory  = errors.New("out of GPU memory")
	ErrNoMonitor    = errors.New("the GPU's clocks cannot be read")
)

// ErrClosed is returned by every method of a [Device], and of what was made with it, once it is closed.
var ErrClosed = errors.New("the device is closed")

// A Problem is a failure that the user of the machine can do something about.
type Problem struct {
	Kind   error  // one of the Err variables above
	What   string // what is wrong, with the facts
	Remedy string // what to do
	Err    error  // the failed call behind it, or nil
}

func (p *Problem) Error() string {
	msg := fmt.Sprintf("%v: %s; %s", p.Kind, p.What, p.Remedy)
	if p.Err != nil {
		msg += fmt.Sprintf(" (%v)", p.Err)
	}
	return msg
}

// Unwrap returns the kind and the failed call.
func (p *Problem) Unwrap() []error {
	if p.Err == nil {
		return []error{p.Kind}
	}
	return []error{p.Kind, p.Err}
}

// An Error is a driver call that did not return CUDA_SUCCESS.
type Error struct {
	Call string // "cuMemAlloc"
	Code int    // the CUresult, 2
	Name string // "CUDA_ERROR_OUT_OF_MEMORY"; empty when the driver does not know the code
	Text string // "out of memory"; likewise
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: error %d", e.Call, e.Code)
	}
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name, e.Code, e.Text)
}

// IsSticky says whether err ended the context: the failed kernel did (illegal address, launch failure, time-out, …),
// or the hardware. Every later call on the device returns the same code, and only a new process can use the GPU again.
func IsSticky(err error) bool {
	return sticky[codeOf(err)]
}

// codeOf returns the return code behind err, and success when there is none.
func codeOf(err error) result {
	var e *Error
	if errors.As(err, &e) {
		return result(e.Code)
	}
	return success
}
