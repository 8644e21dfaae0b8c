package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/driver"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

func doctorVerb() verb {
	return verb{
		name:    "doctor",
		summary: "say whether this machine can compile and run models",
		details: `
Looks for nvcc, which compiles a small kernel, g++, go, the driver, GPUs and space on the disk, and says how to
install what is missing. It needs neither a model nor a GPU: builds can be made for another machine, and the reference
VM runs on the CPU. Exit code 0: builds can be made here; 2: they cannot, or a GPU of this machine cannot be used.
With --strict, 0 only if builds can be made with their executables, and run.`,
		run: runDoctor,
	}
}

// A finding is one line of what doctor prints.
type finding struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Found string `json:"found"` // empty where there is nothing
}

func runDoctor(c *call) error {
	ctx, cancel := interruptible()
	defer cancel()
	gpus, archs, version := checkGPUs()
	if len(archs) == 0 {
		archs = []string{ir.FindTarget(defaultTarget).Arch}
	}
	var faults diag.List
	var found []finding
	var b strings.Builder
	for _, check := range append(compiler.Doctor(ctx, archs, version), gpus...) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f := finding{check.Name, check.Fault == nil, check.Found}
		if check.Fault != nil {
			faults.Add(check.Fault)
		}
		found = append(found, f)
		mark := "ok"
		switch {
		case check.Fault != nil && f.Found == "":
			mark, f.Found = "no", "none that can be used"
		case check.Fault != nil:
			mark = "no"
		}
		fmt.Fprintf(&b, "%-23s %s  %s\n", f.Name, mark, f.Found)
	}
	c.payload = struct {
		Checks []finding `json:"checks"`
	}{found}
	if err := c.printf("%s", b.String()); err != nil {
		return err
	}
	c.report(faults.Warnings())
	return faults.Errors().Err()
}

// checkGPUs looks at the GPUs of this machine. It returns what they are, the architectures that nvcc compiles for them,
// and the newest CUDA version of the driver, 0 without one.
func checkGPUs() (checks []compiler.Check, archs []string, version int) {
	all, err := driver.Probe()
	if err != nil {
		fault := diag.Errorf(codeDevice, "GPU", "%v", infile.Reason(err)).With(
			"without one, amkc MODEL -o DIR --target NAME compiles for a GPU that is elsewhere",
			"and amkc run MODEL --device ref decodes on the CPU, slowly")
		if errors.Is(err, driver.ErrNoDriver) || errors.Is(err, driver.ErrNoDevice) {
			fault.Severity = diag.Warning
		}
		return []compiler.Check{{Name: "GPU", Fault: fault}}, nil, 0
	}
	for i := range all {
		check := compiler.Check{Name: fmt.Sprintf("GPU %d", i)}
		var arch string
		arch, check.Found, check.Fault = checkGPU(&all[i])
		if checks = append(checks, check); arch != "" && !slices.Contains(archs, arch) {
			archs = append(archs, arch)
		}
	}
	return checks, archs, all[0].DriverVersion
}

// checkGPU opens a GPU, as one that another process has to itself cannot be.
func checkGPU(f *driver.Facts) (arch, found string, fault *diag.Diagnostic) {
	pos := fmt.Sprintf("GPU %d", f.Ordinal)
	found = fmt.Sprintf("%s, %s, %d SMs, driver for CUDA %d.%d", f.Name, f.Arch(), f.SMs, f.DriverVersion/1000,
		f.DriverVersion%1000/10)
	t, err := describe(f, 0)
	if err != nil {
		return "", found, asList(pos, err)[0]
	}
	dev, err := driver.Open(f.Ordinal)
	if err != nil {
		return t.Arch, found, diag.Errorf(codeDevice, pos, "%v", infile.Reason(err))
	}
	defer dev.Close()
	free, total, err := dev.MemInfo()
	if err != nil {
		return t.Arch, found, diag.Errorf(codeDevice, pos, "%v", infile.Reason(err))
	}
	return t.Arch, found + fmt.Sprintf(", %s of %s free", host.FormatBytes(free), host.FormatBytes(total)), nil
}
