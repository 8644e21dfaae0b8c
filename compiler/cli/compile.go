package cli

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/codegen"
	"amkc/compiler"
	"amkc/cost"
	"amkc/passes"
	"amkc/runtime/host"
	"amkc/runtime/printable"
	"amkc/validate"
)

// compileName is the verb of a command line whose first word is not a verb.
const compileName = "compile"

// compileFlags are the flags of compiling.
type compileFlags struct {
	model    modelFlags
	out      string
	noBuild  bool
	leaveOut bool
	passFlags
}

func compileVerb() verb {
	f := &compileFlags{}
	return verb{
		name: compileName, synopsis: "MODEL -o DIR [flags]", min: 1, max: 1,
		summary: "compile a checkpoint into a CUDA project",
		details: `
MODEL is a directory with config.json and safetensors weights, or the id of a model in the hub's cache, ORG/NAME or
ORG/NAME@REVISION. DIR is new, empty, or an earlier build, whose packed weights are kept if only the schedule changes.
It appears complete or not at all.`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *compileFlags) define(set *pflag.FlagSet) {
	set.VarP(front.NewWord(&f.out, ""), "out", "o", "write the build to `DIR`")
	f.defineRows(set)
	f.defineSequences(set)
	set.BoolVar(&f.noBuild, "no-build", false, "emit and pack only; make in DIR runs nvcc and go later")
	set.BoolVar(&f.leaveOut, "leave-out", false, "leave random matrices out of weights.safetensors: a host that loads "+
		"the build makes other ones from the same SEED")
	f.model.define(set, targetAuto)
}

// built is the result of compiling in JSON.
type built struct {
	Dir    string         `json:"dir"`
	Name   string         `json:"name"`
	Target string         `json:"target"`
	Arch   string         `json:"arch"`
	Files  []string       `json:"files"`
	Stats  validate.Stats `json:"stats"`
	Pages  pageReport     `json:"pages"`
	// a step at position 0; absent if nothing is known of the target's bandwidth
	Predicted *cost.Prediction `json:"predicted,omitempty"`
	// a pass of each size that the build has, there
	PredictedPasses []*cost.Pass      `json:"predicted_passes,omitempty"`
	Memory          memoryReport      `json:"memory"`
	WeightBytes     int64             `json:"weight_bytes"`
	WeightsReused   bool              `json:"weights_reused"`
	Toolchain       codegen.Toolchain `json:"toolchain"`
	Built           bool              `json:"built"` // kernels and launcher are there
}

// pageReport says what page colouring did.
type pageReport struct {
	Buffers     int `json:"buffers"`
	Pages       int `json:"pages"`
	BytesBefore int `json:"bytes_before"`
	BytesAfter  int `json:"bytes_after"`
}

func (f *compileFlags) run(c *call) error {
	if f.out == "" {
		return c.usage("-o is missing; want the directory to write to")
	}
	opts, err := f.model.options(c, c.args[0])
	if err != nil {
		return err
	}
	if opts.Passes, err = f.passes(c); err != nil {
		return err
	}
	if opts.LeaveOut = f.leaveOut; f.leaveOut && (opts.RandomSeed == nil || opts.Calibration != nil) {
		return c.usage("--leave-out leaves out what a seed gives; want --random-weights, and no --calibrate")
	}
	ctx, cancel := interruptible()
	defer cancel()
	line := c.progress()
	b, err := compiler.Compile(ctx, compiler.BuildOptions{Options: opts, OutDir: f.out, NoBuild: f.noBuild,
		Inputs: f.model.inputs(c.args[0]), Stated: statedOptions(c), Progress: line.Show})
	line.Clear()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	}
	c.report(append(b.Warnings, b.Proof.Diags.Warnings()...))
	t, predicted, passes := b.Program.Target, predictBuild(b), predictPasses(b)
	c.payload = built{
		Dir: f.out, Name: b.Program.Model.Name, Target: t.Name, Arch: t.Arch, Files: b.Files, Stats: b.Proof.Stats,
		Pages:     pageReport{b.Pages.Buffers, b.Pages.Pages, b.Pages.BytesBefore, b.Pages.BytesAfter},
		Predicted: predicted, PredictedPasses: passes,
		Memory:      memoryReport{b.Memory, t.HBMBytes},
		WeightBytes: b.WeightBytes, WeightsReused: b.WeightsReused, Toolchain: b.Toolchain, Built: b.Built,
	}
	if c.quiet {
		return nil
	}
	text := summary(f.out, b, opts.Formats, predicted, passes)
	if c.verbose {
		text = fileList(f.out, b.Files) + b.Pages.String() + "\n" + text
	}
	return c.printf("%s", text)
}

// notRecorded are flags that change nothing of a build.
var notRecorded = []string{"out", "no-build", "dump-ir", "check", "time-passes", "json", "quiet", "verbose", "strict",
	"color", "progress", "all-errors"}

// statedOptions are the flags of the command line that a build depends on, as --name=value in the order of their names.
// Of a path it has the last element alone: the others say nothing about the build.
func statedOptions(c *call) (out []string) {
	c.flags.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		switch {
		case slices.Contains(notRecorded, f.Name):
			return
		case f.Name == "config" || f.Name == "calibrate":
			value = filepath.Base(value)
		case f.Name == "adapter":
			for _, dir := range *f.Value.(*words).values {
				out = append(out, printable.Clip("--adapter="+filepath.Base(dir)))
			}
			return
		}
		out = append(out, printable.Clip(fmt.Sprintf("--%s=%s", f.Name, value)))
	})
	// Adapters keep their order, which counts.
	const adapter = "--adapter="
	key := func(option string) string {
		if strings.HasPrefix(option, adapter) {
			return adapter
		}
		return option
	}
	slices.SortStableFunc(out, func(a, b string) int { return strings.Compare(key(a), key(b)) })
	return out
}

// fileList is one line a file, and one for all of the launcher, most of which is copied.
func fileList(dir string, files []string) string {
	const launcher = "launcher/"
	var b strings.Builder
	inLauncher := 0
	for _, name := range files {
		if strings.HasPrefix(name, launcher) {
			inLauncher++
		} else {
			fmt.Fprintln(&b, path.Join(dir, name))
		}
	}
	if inLauncher > 0 {
		fmt.Fprintf(&b, "%s/ (%d files)\n", path.Join(dir, launcher), inLauncher)
	}
	return b.String()
}

// summary is what most users want to know of a build, and the command that comes next.
func summary(dir string, b *compiler.Build, formats passes.WeightFormats, p *cost.Prediction,
	passes []*cost.Pass) string {
	var text strings.Builder
	line := func(title, format string, args ...any) {
		fmt.Fprintf(&text, "%-10s %s\n", title, fmt.Sprintf(format, args...))
	}
	m, t := &b.Program.Model, b.Program.Target
	types := m.DTypes.String()
	if len(formats) > 0 {
		types += ", matrices " + formats.String()
	}
	line("model", "%s: %s, %d layers, %s, %d positions", m.Name, m.Architecture, m.Layers, types, m.MaxSeq)
	each := ""
	if n := b.Program.NumRanks(); n > 1 {
		each = fmt.Sprintf(" on each of %d GPUs", n)
	}
	line("target", "%s (%s, %d SMs)%s", t.Name, t.Arch, t.SMs, strings.Replace(each, " on each of", ",", 1))
	line("schedule", "%d tasks, proved free of deadlocks and races", b.Proof.Stats.Tasks)
	line("memory", "%v%s", &memoryReport{b.Memory, t.HBMBytes}, each)
	if p != nil {
		line("predicted", "%.1f µs per token at position 0, %.1f %% of the ceiling%s (amkc cost)", p.Latency,
			100*p.Share, strings.TrimPrefix(p.Label, cost.Predicted))
	}
	for _, pass := range passes {
		line("", "%v: %s%s", pass.Traffic.Pass, passTime(pass), strings.TrimPrefix(pass.Label, cost.Predicted))
	}
	has, next := "sources and weights", "make -C "+shellWord(dir)
	kernels, launcher := b.Toolchain.NVCC != "", slices.Contains(b.Files, m.Name)
	executable, verb := path.Join(filepath.ToSlash(dir), m.Name), "chat"
	if !slices.Contains(b.Files, host.TokenizerFile) {
		verb = "check"
	}
	switch {
	case kernels && launcher:
		if !strings.Contains(executable, "/") {
			executable = "./" + executable
		}
		has, next = "sources, weights, kernels and executable",
			fmt.Sprintf("%s %s, on a machine with this GPU", shellWord(executable), verb)
	case kernels: // amkc itself can run them
		has, next = has+", kernels", fmt.Sprintf("amkc %s %s, on a machine with this GPU", verb, shellWord(dir))
	case launcher:
		has += ", executable"
	}
	if b.WeightsReused {
		has += " (weights reused)"
	}
	line("build", "%s: %s", dir, has)
	line("next", "%s", next)
	return text.String()
}

// predictBuild is what the cost model says of a step at the build's first position, or nil where it says nothing.
func predictBuild(b *compiler.Build) *cost.Prediction {
	m, err := cost.New(b.Program)
	if err != nil {
		return nil
	}
	p, err := m.At(0)
	if err != nil {
		return nil
	}
	return p
}

// predictPasses is what the cost model says of a pass of each size at the build's first position. Of a target that it
// knows too little of it says nothing.
func predictPasses(b *compiler.Build) []*cost.Pass {
	var out []*cost.Pass
	for _, p := range b.Passes {
		m, err := cost.NewPass(p, b.Program)
		if err != nil {
			return nil
		}
		if pass, err := m.At(0); err == nil {
			out = append(out, pass)
		}
	}
	return out
}
