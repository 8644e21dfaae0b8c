package host

import (
	"fmt"
	"strconv"
	"strings"

	"amkc/runtime/driver"
)

// checkArch refuses a device for which the target's code cannot run. It needs no fatbin, so it comes first; whether the
// fatbin really holds code for the device is for the driver to say.
func checkArch(t Target, d driver.Facts) error {
	digits, specific := strings.CutSuffix(strings.TrimPrefix(t.Arch, "sm_"), "a")
	cc, err := strconv.Atoi(digits)
	if err != nil {
		return fmt.Errorf("target architecture %q: sm_NN is expected", t.Arch)
	}
	have := 10*d.Major + d.Minor
	if have == cc || have > cc && !specific {
		return nil
	}
	return &DeviceError{Device: deviceName(d),
		What:   fmt.Sprintf("compiled for %s, and this device is %s", t.Arch, d.Arch()),
		Remedy: remedyFor(d)}
}

// checkShape refuses a device on which the blocks of a launch cannot all run at once: the kernel's SMs wait for one
// another.
func checkShape(i Info, d driver.Facts) error {
	what := ""
	switch {
	case !d.CooperativeLaunch:
		what = "it cannot launch cooperative kernels, and this build is one"
	case d.SMs < i.SMs:
		what = fmt.Sprintf("compiled for %d SMs, this device has %d", i.SMs, d.SMs)
	case d.SharedPerBlock < i.SharedBytes:
		what = fmt.Sprintf("compiled for %s of shared memory a block, this device has %s",
			FormatBytes(uint64(i.SharedBytes)), FormatBytes(uint64(d.SharedPerBlock)))
	case d.MaxThreads < i.Threads:
		what = fmt.Sprintf("compiled for %d threads a block, this device has %d", i.Threads, d.MaxThreads)
	default:
		return nil
	}
	return &DeviceError{Device: deviceName(d), What: what, Remedy: remedyFor(d)}
}

// checkOccupancy refuses a kernel of which no block fits an SM, whatever the device's limits say.
func checkOccupancy(f *driver.Function, i Info, d driver.Facts) error {
	n, err := f.Occupancy(i.Threads, i.SharedBytes)
	if err != nil {
		return err
	}
	if n < 1 {
		return &DeviceError{Device: deviceName(d),
			What: fmt.Sprintf("a block of kernel %s with %d threads and %s of shared memory "+
				"does not fit an SM", f.Name, i.Threads, FormatBytes(uint64(i.SharedBytes))), Remedy: remedyFor(d)}
	}
	return nil
}

func deviceName(d driver.Facts) string { return fmt.Sprintf("GPU %d (%s)", d.Ordinal, d.Name) }

func remedyFor(d driver.Facts) string {
	return fmt.Sprintf("recompile with --target %s --num-sms %d (or --target auto on this machine), or choose "+
		"another GPU with --gpu",
		d.Arch(), d.SMs)
}
