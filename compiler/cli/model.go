package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
)

// modelFlags are the flags of every verb that takes a model directory through the passes.
type modelFlags struct {
	target     string
	numSMs     int
	dtype      string
	maxSeq     int
	config     string
	inert      []string
	name       string
	randomSeed string
	dumpIR     string
	check      bool
	timePasses bool

	gpu int // which one target auto is; no flag of compiling
}

// define adds the flags. What is compiled in memory needs no GPU, so the default target of those verbs is a fixed one:
// the same command prints the same program everywhere.
func (m *modelFlags) define(f *pflag.FlagSet, target string) {
	f.StringVar(&m.target, "target", target, "compile for the GPU `NAME`: one that amkc targets lists, sm_NN, or auto for the one of this machine")
	f.IntVar(&m.numSMs, "num-sms", 0, "number `N` of multiprocessors, for sm_NN")
	f.Var(newChoice(&m.dtype, "", "bf16", "fp16", "fp32"), "dtype", "dtype of weights and activations; default: that of the checkpoint")
	f.IntVar(&m.maxSeq, "max-seq", 0, fmt.Sprintf("compile for positions up to `N`; default: what the model was made for, at most %d", passes.DefaultMaxSeq))
	f.StringVar(&m.config, "config", "", "read the ScheduleConfig from `FILE`")
	f.StringArrayVar(&m.inert, "assume-inert", nil, "vouch that the config `FIELD` does not change the maths; may be repeated")
	f.StringVar(&m.name, "name", "", "call the model `NAME` in the output; default: the base name of its directory")
	f.StringVar(&m.randomSeed, "random-weights", "", "invent weights from `SEED`; MODEL then needs config.json alone")
	f.StringVar(&m.dumpIR, "dump-ir", "", "write the program after each pass into `DIR`, numbered")
	f.BoolVar(&m.check, "check", false, "check the structure of the program after each pass")
	f.BoolVar(&m.timePasses, "time-passes", false, "print the passes with their times")
}

// changed returns the first of the flags that was given, or nothing.
func (m *modelFlags) changed(c *call) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&modelFlags{}).define(own, "")
	found := ""
	own.VisitAll(func(f *pflag.Flag) {
		if found == "" && c.flags.Changed(f.Name) {
			found = f.Name
		}
	})
	return found
}

// dtypes maps the names of --dtype.
var dtypes = map[string]ir.DType{"bf16": ir.BF16, "fp16": ir.F16, "fp32": ir.F32}

// forThisGPU reports whether the flags leave the target to the machine.
func (m *modelFlags) forThisGPU(c *call) bool {
	return !c.flags.Changed("target") || m.target == targetAuto
}

// optionsForGPU is options for a program that a GPU of this machine is to run: it is the target, unless another was named.
func (m *modelFlags) optionsForGPU(c *call, model string, gpu int) (compiler.Options, error) {
	on := *m
	if on.gpu = gpu; m.forThisGPU(c) {
		on.target = targetAuto
	}
	return on.options(c, model)
}

// options turns the flags into what package compiler takes.
func (m *modelFlags) options(c *call, model string) (compiler.Options, error) {
	o := compiler.Options{Model: model, Name: m.name, MaxSeq: m.maxSeq, AssumeInert: m.inert, Check: m.check}
	if m.maxSeq < 0 || c.flags.Changed("max-seq") && m.maxSeq == 0 {
		return o, c.usage("--max-seq %d; want at least 1", m.maxSeq)
	}
	if o.Name == "" {
		o.Name = baseName(model)
	}
	if d, ok := dtypes[m.dtype]; ok {
		o.DType = &d
	}
	if m.randomSeed != "" {
		seed, err := strconv.ParseUint(m.randomSeed, 0, 64)
		if err != nil {
			return o, c.usage("--random-weights %q; want an integer from 0 to 2^64-1", m.randomSeed)
		}
		o.RandomSeed = &seed
	}
	if m.config != "" {
		text, err := readFile(m.config)
		if err != nil {
			return o, err
		}
		config, diags := ir.ParseConfig(text, m.config)
		if diags.Err() != nil {
			return o, diags
		}
		c.report(diags)
		o.Config = config
	}
	var err error
	o.Target, err = resolveTarget(m.target, m.numSMs, m.gpu)
	if err != nil {
		return o, err
	}
	o.After = m.observe(c)
	return o, nil
}

// observe prints and dumps what the flags ask for, after each pass.
func (m *modelFlags) observe(c *call) func(int, *passes.Pass, *passes.State, time.Duration) error {
	return func(n int, pass *passes.Pass, s *passes.State, took time.Duration) error {
		if m.timePasses || c.verbose {
			c.note("%-10s %8.3f ms", pass.Name, float64(took.Microseconds())/1000)
		}
		if c.verbose && pass.Name == passes.Loop.Name {
			c.note("%v", s.Loops)
		}
		if m.dumpIR == "" {
			return nil
		}
		return writeStage(m.dumpIR, fmt.Sprintf("%02d_%s.amk", n, pass.Name), s)
	}
}

// writeStage writes what a pass has left: the program, or the graph while there is no program.
func writeStage(dir, name string, s *passes.State) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return diag.Errorf(codeOutput, dir, "cannot make the directory: %v", err)
	}
	text := stageText(s)
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o666); err != nil {
		return diag.Errorf(codeOutput, path, "cannot write: %v", err)
	}
	return nil
}

func stageText(s *passes.State) []byte {
	if s.Program == nil {
		return graphText(s.Graph)
	}
	return ir.Print(s.Program)
}

// baseName is the last element of a model's path, also for `.` and `model/`.
func baseName(model string) string {
	if abs, err := filepath.Abs(model); err == nil {
		model = abs
	}
	return filepath.Base(model)
}

func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, diag.Errorf(codeInput, path, "cannot read: %v", cause(err))
	}
	return text, nil
}
