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
	Err    error  // the failed call that caused it, or nil
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

// codeOf returns the return code in err, and success when there is none.
func codeOf(err error) result {
	var e *Error
	if errors.As(err, &e) {
		return result(e.Code)
	}
	return success
}

// A result is a CUresult. Only the codes that this package tells apart have a name here; the text of all others comes
// from the driver.
type result int32

const (
	success                  result = 0
	errOutOfMemory           result = 2
	errStubLibrary           result = 34
	errDeviceUnavailable     result = 46
	errNoDevice              result = 100
	errInvalidDevice         result = 101
	errInvalidImage          result = 200
	errNoBinaryForGPU        result = 209
	errECCUncorrectable      result = 214
	errInvalidPTX            result = 218
	errNVLinkUncorrectable   result = 220
	errJITCompilerNotFound   result = 221
	errUnsupportedPTXVersion result = 222
	errJITDisabled           result = 223
	errContained             result = 226
	errInvalidSource         result = 300
	errOperatingSystem       result = 304
	errNotFound              result = 500
	errNotReady              result = 600
	errIllegalAddress        result = 700
	errLaunchTimeout         result = 702
	errAssert                result = 710
	errHardwareStack         result = 714
	errIllegalInstruction    result = 715
	errMisalignedAddress     result = 716
	errInvalidAddressSpace   result = 717
	errInvalidPC             result = 718
	errLaunchFailed          result = 719
	errTensorMemoryLeak      result = 721
	errSystemNotReady        result = 802
	errSystemDriverMismatch  result = 803
	errCompatNotSupported    result = 804
)

// sticky holds the codes of which cuda.h says that they leave the process in an inconsistent state, or that the
// context cannot be used any more.
var sticky = map[result]bool{
	errECCUncorrectable: true, errNVLinkUncorrectable: true, errContained: true, errIllegalAddress: true,
	errLaunchTimeout: true, errAssert: true, errHardwareStack: true, errIllegalInstruction: true,
	errMisalignedAddress: true, errInvalidAddressSpace: true, errInvalidPC: true, errLaunchFailed: true,
	errTensorMemoryLeak: true,
}

// check turns the return code of the named entry point into nil or an *Error with the driver's own name and text.
func (l *library) check(call string, r result) error {
	if r == success {
		return nil
	}
	return &Error{
		Call: call,
		Code: int(r),
		Name: l.describe(l.api.GetErrorName, r),
		Text: l.describe(l.api.GetErrorString, r),
	}
}
