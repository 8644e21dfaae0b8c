package driver

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
