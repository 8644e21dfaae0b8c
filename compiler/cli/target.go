package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/driver"
	"amkc/runtime/infile"
)

// archName is the spelling of an architecture in --target; the suffix, which selects its own instructions, is amkc's
// to choose.
var archName = regexp.MustCompile(`^sm_?([0-9]{2,3})[af]?$`)

// resolveTarget turns --target and --num-sms into a target: a name, sm_NN with a number of multiprocessors, or auto
// for the given GPU of this machine. sms 0 is what the record says. Case does not matter.
func resolveTarget(name string, sms, gpu int) (*ir.Target, error) {
	const pos = "--target"
	lower := strings.ToLower(name)
	if lower == targetAuto {
		return liveTarget(sms, gpu)
	}
	if digits := archName.FindStringSubmatch(lower); digits != nil {
		cc, _ := strconv.Atoi(digits[1]) // three digits at most
		return resolveArch(cc, sms)
	}
	if t := ir.FindTarget(name); t != nil {
		if sms > 0 {
			t.SMs = sms
		}
		return t, nil
	}
	if reason, ok := ir.Unsupported(name); ok {
		return nil, diag.Errorf(codeTarget, pos, "%s", reason)
	}
	return nil, diag.Errorf(codeTarget, pos, "%q is not known; %s", name,
		diag.Guess(name, append(targetNames(), targetAuto),
			"want a name that amkc targets lists, sm_NN with --num-sms, or auto"))
}

func resolveArch(cc, sms int) (*ir.Target, error) {
	const pos = "--target"
	arch := fmt.Sprintf("sm_%d", cc)
	if reason, ok := ir.Unsupported(arch); ok {
		return nil, diag.Errorf(codeTarget, pos, "%s", reason)
	}
	known := ir.Capabilities()
	if !slices.Contains(known, cc) {
		var archs []string
		for _, k := range known {
			archs = append(archs, fmt.Sprintf("sm_%d", k))
		}
		return nil, diag.Errorf(codeTarget, pos, "architecture %s is not known; want %s", arch, listOr(archs))
	}
	if sms == 0 {
		return nil, diag.Errorf(codeTarget, pos, "%s is an architecture that GPUs of several sizes have; "+
			"give the number of multiprocessors with --num-sms as well", arch)
	}
	return ir.ArchTarget(cc, sms), nil
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

// liveTarget describes a GPU of this machine. What the driver does not tell (the data-sheet bandwidth) is taken from
// the record of the same GPU, if there is one.
func liveTarget(sms, gpu int) (*ir.Target, error) {
	all, err := driver.Probe()
	if err != nil {
		return nil, diag.Errorf(codeTarget, "--target auto",
			"there is no GPU to ask here; name the one that the build is for, as --target h200 (amkc targets lists "+
				"them), or --target sm_NN --num-sms N").With(infile.Reason(err))
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
		return nil, diag.Errorf(codeTarget, "--target auto",
			"the GPU here, %s (%s), is of an architecture that amkc does not compile for", f.Name, f.Arch())
	}
	if known := knownAs(f); known != nil {
		t.Name, t.HBMGBs = known.Name, known.HBMGBs
	}
	t.SMemOptin, t.L2Bytes, t.HBMBytes = f.SharedPerBlock, f.L2Bytes, int(f.TotalMemory)
	return t, nil
}

// knownAs returns the record of the GPU that the driver describes, or nil. The name of the record is a word of the
// driver's name, or several (RTX 4090): a GH200 is not an H200, though it has as many SMs.
func knownAs(f *driver.Facts) *ir.Target {
	words := strings.FieldsFunc(strings.ToLower(f.Name), func(r rune) bool { return r == ' ' || r == '-' })
	for i := range ir.Targets {
		t := &ir.Targets[i]
		cc := strings.TrimRight(strings.TrimPrefix(t.Arch, "sm_"), "a")
		short := strings.TrimPrefix(t.Name, "jetson-") // the driver of a Jetson says Orin
		if cc == fmt.Sprint(10*f.Major+f.Minor) && t.SMs == f.SMs && spelledBy(words, short) {
			return t
		}
	}
	return nil
}

// spelledBy reports whether some of the words, one after the other, are the name.
func spelledBy(words []string, name string) bool {
	for i := range words {
		for j := i + 1; j <= len(words); j++ {
			if strings.Join(words[i:j], "") == name {
				return true
			}
		}
	}
	return false
}
