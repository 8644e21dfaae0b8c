package compiler

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"amkc/codegen"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
)

// Registers are the registers and spills of a kernel, as ptxas reports them. Spills go through memory, and cost time.
type Registers struct {
	Kernel      string `json:"kernel"` // amk_decode
	Registers   int    `json:"registers"`
	SpillStores int    `json:"spill_stores_bytes"` // of a thread
	SpillLoads  int    `json:"spill_loads_bytes"`
}

// CountRegisters compiles the kernels of an emission as a search does, and returns the report of ptxas for each.
// Outputs are discarded. limit is the time for nvcc, or 0. The error is a diagnostic: there is no nvcc, it failed, or,
// with CodeTooSlow, it exceeds its limit.
func CountRegisters(ctx context.Context, l *Scheduled, e *Emission, limit time.Duration) ([]Registers, error) {
	if err := canCompileCUDA("ptxas"); err != nil {
		return nil, err
	}
	if err := tooSlow(limit, l.Program); err != nil {
		return nil, err
	}
	whole := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	dir, err := os.MkdirTemp("", "amkc-ptxas-")
	if err != nil {
		return nil, diag.Errorf(codeNVCC, "ptxas", "there is no temporary directory: %v", infile.Reason(err))
	}
	defer os.RemoveAll(dir)
	for name, text := range e.Files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, text, 0o644)
		}
		if err != nil {
			return nil, diag.Errorf(codeNVCC, name, "cannot be written for nvcc: %v", infile.Reason(err))
		}
	}
	source := strings.TrimSuffix(host.FatbinFile, ".fatbin") + ".cu"
	cmd := exec.CommandContext(ctx, FindNVCC(), slices.Concat(codegen.NVCCFlags(), SearchKernels.flags(),
		[]string{"-Xptxas", "-v", "-gencode", codegen.Gencode(l.Program.Target.Arch), "-fatbin", "-o", os.DevNull,
			source})...)
	cmd.Dir, cmd.WaitDelay = dir, killDelay
	text, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil && whole.Err() == nil {
		return nil, diag.Errorf(codeTooSlow, source, "nvcc took longer than the %v that it may; want a larger "+
			"--timeout", limit)
	}
	if err != nil {
		return nil, diag.Errorf(codeNVCC, source, "nvcc failed (%v); want it to accept the generated sources",
			infile.Reason(err)).With(explainNVCC(string(text))...)
	}
	return parseRegisters(string(text)), nil
}

var (
	ptxasKernel = regexp.MustCompile(`Compiling entry function '(\w+)'`)
	ptxasSpills = regexp.MustCompile(`(\d+) bytes spill stores, (\d+) bytes spill loads`)
	ptxasUsed   = regexp.MustCompile(`Used (\d+) registers`)
)

// parseRegisters reads what ptxas -v prints: for each kernel its name, its spills and its registers, in this order.
func parseRegisters(text string) []Registers {
	found := []Registers{}
	for line := range strings.Lines(text) {
		number := func(s string) int {
			n, _ := strconv.Atoi(s) // digits; more of them than an int holds are not registers
			return n
		}
		if m := ptxasKernel.FindStringSubmatch(line); m != nil {
			found = append(found, Registers{Kernel: m[1]})
		}
		if len(found) == 0 {
			continue
		}
		last := &found[len(found)-1]
		if m := ptxasSpills.FindStringSubmatch(line); m != nil {
			last.SpillStores, last.SpillLoads = number(m[1]), number(m[2])
		}
		if m := ptxasUsed.FindStringSubmatch(line); m != nil {
			last.Registers = number(m[1])
		}
	}
	return found
}
