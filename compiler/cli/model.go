package cli

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/passes"
	"amkc/runtime/infile"
	"amkc/runtime/shape"
)

// modelFlags are the flags of every verb that takes a model directory through the passes.
type modelFlags struct {
	target     string
	numSMs     int
	memory     float64
	dtype      string
	weights    passes.WeightFormats
	calibrate  string
	cache      string
	maxSeq     int
	config     string
	inert      []string
	name       string
	randomSeed string
	adapters   []string
	gpus       int
	dumpIR     string
	check      bool
	timePasses bool

	gpu        int  // which one target auto is; no flag of compiling
	configOnly bool // the verb needs no weights; no flag either
}

// define adds the flags. What is compiled in memory needs no GPU, so the default target of those verbs is a fixed one:
// the same command prints the same program everywhere.
func (m *modelFlags) define(f *pflag.FlagSet, target string) {
	f.Var(front.NewWord(&m.target, target), "target",
		"compile for the GPU `NAME`: one that amkc targets lists, sm_NN, or auto for the one of this machine")
	f.Var(front.NewCount(&m.numSMs, 0, 1, ir.MaxTargetSMs), "num-sms", "the GPU has `N` multiprocessors; for sm_NN")
	f.Var(newAmount(&m.memory), "memory",
		"take the GPU to have `GIB` of memory, where that is not what the target's record says; 0: do not compare")
	f.Var(newChoice(&m.dtype, "", "bf16", "fp16", "fp32"), "dtype",
		"dtype of weights, activations and the cache; default: that of the checkpoint")
	f.Var(&weightFormats{&m.weights}, "weights",
		"store matrices as `SPEC` says: int4, int8, fp8 or none, with :g32, :g64 or :g128 and :sym or :asym after "+
			"integers, and for some by name, as in 'int4,down_proj=int8'; default: in --dtype")
	f.Var(front.NewWord(&m.calibrate, ""), "calibrate",
		"round what --weights quantises for a text: that in `FILE`, or token ids as a NumPy array")
	f.Var(newChoice(&m.cache, "", "int8"), "cache",
		"store the keys and values of earlier positions in 8 bits, with a scale for each row; default: in --dtype")
	f.Var(front.NewCount(&m.maxSeq, 0, 1, importers.MostPositions), "max-seq",
		fmt.Sprintf("compile for `N` positions, as 8192 or 8k; default: what the model was made for, at most %d",
			importers.DefaultMaxSeq))
	f.Var(front.NewWord(&m.config, ""), "config", "read the ScheduleConfig from `FILE`")
	f.Var(&words{&m.inert}, "assume-inert", "state that the config `FIELD` does not change results; may be repeated")
	f.Var(front.NewWord(&m.name, ""), "name",
		"call the model `NAME` in the output; default: that of its directory, or in "+
			"a hub's cache that of the model")
	f.Var(front.NewWord(&m.randomSeed, ""), "random-weights",
		"use random weights from `SEED`; MODEL then needs only config.json")
	f.Var(&words{&m.adapters}, "adapter",
		"merge the LoRA adapter in `DIR` into the weights; may be repeated, and adapters are merged in order")
	f.Var(front.NewCount(&m.gpus, 1, 1, ir.MaxRanks), "gpus",
		"share the model among `N` GPUs of one machine: 2, 4 or 8, which run the build together")
	f.Var(front.NewWord(&m.dumpIR, ""), "dump-ir", "write the program after each pass into `DIR`, numbered")
	f.BoolVar(&m.check, "check", false, "check the structure of the program after each pass")
	f.BoolVar(&m.timePasses, "time-passes", false, "print the passes with their times")
}

// passFlags say what a pass takes, for verbs that print or count programs and emit none; or which passes a build has
// besides that of one token.
type passFlags struct {
	rows, sequences int
	ofEach          int // rows of each of the sequences in one more pass of a build
}

const passesOfPrograms = "--rows and --sequences are for compiling a model directory, and %s is a program"

func (p *passFlags) define(f *pflag.FlagSet) {
	f.Var(front.NewCount(&p.rows, 1, 1, ir.MaxRows), "rows",
		"take `N` rows of each sequence in a pass: tokens of a prompt, or drafts")
	f.Var(front.NewCount(&p.sequences, 1, 1, ir.MaxSequences), "sequences", "take `N` sequences in a pass")
}

// defineRows and defineSequences add the flags that ask for passes of a build.
func (p *passFlags) defineRows(f *pflag.FlagSet) {
	f.Var(front.NewCount(&p.rows, 1, 1, shape.MaxTokens), "rows",
		"build passes of `N` rows too, up to 8: they verify drafts, on a GPU")
}

func (p *passFlags) defineSequences(f *pflag.FlagSet) {
	f.Var(front.NewCount(&p.sequences, 1, 1, shape.MaxTokens), "sequences",
		"build passes of up to `N` sequences too, up to 8: they share what a pass reads of the weights, on a GPU")
	f.Var(front.NewCount(&p.ofEach, 1, 1, shape.MaxTokens/2), "sequence-rows",
		"build passes of `N` rows of each of --sequences too, up to 8 in all: they verify drafts of several texts")
}

func (p *passFlags) pass() ir.Pass { return ir.PassOf(p.sequences, p.rows) }

// set returns the first of the flags that asks for several, or nothing.
func (p *passFlags) set() string {
	switch {
	case p.rows > 1:
		return "rows"
	case p.sequences > 1:
		return "sequences"
	case p.ofEach > 1:
		return "sequence-rows"
	}
	return ""
}

// passes are those of a build.
func (p *passFlags) passes(c *call) (all []ir.Pass, err error) {
	mixed := ir.PassOf(p.sequences, p.ofEach)
	switch {
	case p.ofEach <= 1:
	case p.sequences <= 1:
		return nil, c.usage("--sequence-rows is of several sequences; want --sequences 2 or more")
	case mixed.NumTokens() > shape.MaxTokens:
		return nil, c.usage("--sequence-rows %d of --sequences %d are %d tokens; want at most %d", p.ofEach,
			p.sequences, mixed.NumTokens(), shape.MaxTokens)
	}
	for _, of := range []ir.Pass{ir.PassOf(1, p.rows), ir.PassOf(p.sequences, 1), mixed} {
		if of.NumTokens() > 1 && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all, nil
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

// forModels refuses the flags where all that is named is a build already.
func (m *modelFlags) forModels(c *call, dirs ...string) error {
	flag := m.changed(c)
	if flag == "" || slices.ContainsFunc(dirs, func(dir string) bool { return !isBuild(dir) }) {
		return nil
	}
	return c.builtAlready(flag, dirs...)
}

// builtAlready refuses a flag of compiling where there is nothing to compile.
func (c *call) builtAlready(flag string, dirs ...string) error {
	are := "is a build"
	if len(dirs) > 1 {
		are = "are builds"
	}
	return c.usage("--%s says how to compile a model, and %s %s already", flag, strings.Join(dirs, " and "), are)
}

// dtypes maps the names of --dtype.
var dtypes = map[string]ir.DType{"bf16": ir.BF16, "fp16": ir.F16, "fp32": ir.F32}

// caches maps the names of --cache.
var caches = map[string]ir.DType{"int8": ir.I8}

// forThisGPU reports whether the flags leave the target to the machine.
func (m *modelFlags) forThisGPU(c *call) bool {
	return !c.flags.Changed("target") || m.target == targetAuto
}

// optionsForGPU is options for a program that a GPU of this machine is to run: it is the target, unless another was
// named.
func (m *modelFlags) optionsForGPU(c *call, model string, gpu int) (compiler.Options, error) {
	on := *m
	if on.gpu = gpu; m.forThisGPU(c) {
		on.target = targetAuto
	}
	return on.options(c, model)
}

// options turns the flags into what package compiler takes.
func (m *modelFlags) options(c *call, model string) (compiler.Options, error) {
	o := compiler.Options{Name: m.name, MaxSeq: m.maxSeq, Ranks: m.gpus, AssumeInert: m.inert, Formats: m.weights,
		Check: m.check, ConfigOnly: m.configOnly, Strict: c.strict}
	dir, name, err := checkpoint.Locate(model)
	if err != nil {
		return o, err
	}
	if o.Model = dir; o.Name == "" {
		o.Name = name
	}
	if d, ok := dtypes[m.dtype]; ok {
		o.DType = &d
	}
	if d, ok := caches[m.cache]; ok {
		o.Cache = &d
	}
	if m.randomSeed != "" {
		seed, err := strconv.ParseUint(m.randomSeed, 0, 64)
		if err != nil {
			return o, c.usage("--random-weights %q; want an integer from 0 to 2^64-1", m.randomSeed)
		}
		o.RandomSeed = &seed
	}
	if o.Adapters, err = m.adapterDirs(); err != nil {
		return o, err
	}
	if len(o.Adapters) > 0 && o.RandomSeed != nil {
		return o, c.usage("--adapter changes the weights of a model, and --random-weights invents some; want one of " +
			"them")
	}
	if m.config != "" {
		text, err := readFile(m.config, infile.Schedule)
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
	if o.Calibration, err = m.calibration(c, dir); err != nil {
		return o, err
	}
	if o.Target, err = resolveTarget(m.target, m.numSMs, m.gpu); err != nil {
		return o, modelFirst(o, err)
	}
	if c.flags.Changed("memory") {
		o.Target.HBMBytes = int(math.Ceil(m.memory * (1 << 30)))
	}
	o.After = m.observe(c, model)
	return o, nil
}

// modelFirst returns what is wrong with the model or, where nothing is, what is wrong with the machine or the target:
// the latter is soon mended, and would be for nothing.
func modelFirst(o compiler.Options, machine error) error {
	if err := compiler.CheckModel(o); err != nil {
		return err
	}
	return machine
}

// observe prints and dumps what the flags ask for, after each pass.
func (m *modelFlags) observe(c *call, model string) func(int, *passes.Pass, *passes.State, time.Duration) error {
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
		return m.writeStage(c, model, fmt.Sprintf("%02d_%s.amk", n, pass.Name), s)
	}
}

// adapterDirs are the directories that --adapter names.
func (m *modelFlags) adapterDirs() (dirs []string, err error) {
	for _, path := range m.adapters {
		dir, err := checkpoint.LocateAdapter(path)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// inputs lists what is read for a model besides the flags: the model, its adapters, the configuration, and the text to
// calibrate with.
func (m *modelFlags) inputs(model string) []string {
	all := append([]string{model}, m.adapters...)
	for _, file := range []string{m.config, m.calibrate} {
		if file != "" {
			all = append(all, file)
		}
	}
	return all
}

// writeStage writes what a pass has left: the program, or the graph while there is no program.
func (m *modelFlags) writeStage(c *call, model, name string, s *passes.State) error {
	dir := m.dumpIR
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return diag.Errorf(codeOutput, dir, "cannot make the directory: %s", infile.Reason(err))
	}
	path := filepath.Join(dir, name)
	if err := c.mayWrite(path, m.inputs(model)...); err != nil {
		return err
	}
	text := stageText(s)
	return c.replaceFile(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func stageText(s *passes.State) []byte {
	if s.Program == nil {
		return graphText(s.Graph)
	}
	return ir.Print(s.Program)
}

func readFile(path string, kind infile.Kind) ([]byte, error) {
	text, err := infile.Read(path, kind)
	if err != nil {
		return nil, diag.Errorf(codeInput, path, "cannot read: %v", infile.Reason(err))
	}
	return text, nil
}

// calibration reads what --calibrate names: token ids if the file is one of NumPy, and else a text for the tokenizer of
// the model.
func (m *modelFlags) calibration(c *call, dir string) (*compiler.CalibrationText, error) {
	if m.calibrate == "" {
		return nil, nil
	}
	if len(m.weights) == 0 {
		return nil, c.usage("--calibrate says how to round what is quantised, and nothing is; want --weights with it")
	}
	raw, err := readFile(m.calibrate, infile.Text)
	if err != nil {
		return nil, err
	}
	text := &compiler.CalibrationText{}
	if bytes.HasPrefix(raw, []byte(npyMagic)) {
		text.IDs, err = readIDs(m.calibrate, raw)
	} else {
		tok, failed := compiler.LoadTokenizer(dir)
		if failed != nil {
			return nil, fmt.Errorf("--calibrate works without a tokenizer where FILE has token ids: %w", failed)
		}
		encoded, failed := encodeText(tok, "--calibrate", string(raw))
		text.Lead, text.IDs, err = encoded.Lead, encoded.IDs, failed
	}
	if err != nil {
		return nil, err
	}
	return text, checkIDs("--calibrate", text.IDs, 0, math.MaxInt, math.MaxInt)
}
