package cli

import (
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/driver"
)

// resolveTarget turns --target and --num-sms into a target: a name, sm_NN with a number of multiprocessors, or auto for the
// given GPU of this machine. sms 0 is what the record says.
func resolveTarget(name string, sms, gpu int) (*ir.Target, error) {
	const pos = "--target"
	if sms < 0 {
		return nil, diag.Errorf(codeTarget, "--num-sms", "%d; want the number of multiprocessors of the GPU", sms)
	}
	if digits, ok := strings.CutPrefix(name, "sm_"); ok {
		cc, err := strconv.Atoi(strings.TrimSuffix(digits, "a"))
		if err != nil {
			return nil, diag.Errorf(codeTarget, pos, "%q is no architecture; want one like sm_89", name)
		}
		if sms == 0 {
			return nil, diag.Errorf(codeTarget, pos, "%s is an architecture that GPUs of several sizes have; "+
				"give the number of multiprocessors with --num-sms as well", name)
		}
		if t := ir.ArchTarget(cc, sms); t != nil {
			return t, nil
		}
		return nil, diag.Errorf(codeTarget, pos, "architecture %s is not known; want one from sm_75 on that amkc targets lists, or a close relative", name)
	}
	if name == targetAuto {
		return liveTarget(sms, gpu)
	}
	t := ir.FindTarget(name)
	if t == nil {
		return nil, diag.Errorf(codeTarget, pos, "%q is not known; want %s, sm_NN with --num-sms, or auto", name, strings.Join(targetNames(), ", "))
	}
	if sms > 0 {
		t.SMs = sms
	}
	return t, nil
}

// targetAuto is the GPU of this machine.
const targetAuto = "auto"

func targetNames() []string {
	names := make([]string, len(ir.Targets))
	for i := range ir.Targets {
		names[i] = ir.Targets[i].Name
	}
	return names
}

// liveTarget describes a GPU of this machine. What the driver does not tell (the data-sheet bandwidth) is taken from the
// record of the same GPU, if there is one.
func liveTarget(sms, gpu int) (*ir.Target, error) {
	all, err := driver.Probe()
	if err != nil {
		return nil, diag.Errorf(codeTarget, "--target auto", "there is no GPU to ask here (%v); name the GPU that the build is for: --target %s, or --target sm_NN --num-sms N",
			err, strings.Join(targetNames(), "|"))
	}
	if gpu < 0 || gpu >= len(all) {
		return nil, diag.Errorf(codeDevice, "--gpu", "%d; this machine has GPUs 0 to %d", gpu, len(all)-1)
	}
	return describe(&all[gpu], sms)
}

func describe(f *driver.Facts, sms int) (*ir.Target, error) {
	if sms == 0 {
		sms = f.SMs
	}
	t := ir.ArchTarget(10*f.Major+f.Minor, sms)
	if t == nil {
		return nil, diag.Errorf(codeTarget, "--target auto", "the GPU here, %s (%s), is of an architecture that amkc does not compile for", f.Name, f.Arch())
	}
	for _, known := range ir.Targets {
		if known.Arch == t.Arch && known.SMs == f.SMs && strings.Contains(strings.ToLower(strings.ReplaceAll(f.Name, " ", "")), known.Name) {
			t.Name, t.HBMGBs = known.Name, known.HBMGBs
		}
	}
	t.SMemOptin, t.L2Bytes, t.HBMBytes = f.SharedPerBlock, f.L2Bytes, int(f.TotalMemory)
	return t, nil
}
