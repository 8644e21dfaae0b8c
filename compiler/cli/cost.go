package cli

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	sessions "amkc/app/engine"
	"amkc/app/front"
	"amkc/codegen"
	"amkc/compiler"
	"amkc/cost"
	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/runtime/host"
)

// costFlags are the flags of cost.
type costFlags struct {
	model      modelFlags
	pass       passFlags
	allTargets bool
	positions  []int
	prompts    []int
	cached     int // tokens of these
}

func costVerb() verb {
	f := &costFlags{}
	return verb{
		name: "cost",
		synopsis: "MODEL|FILE|DIR [--position N,...] [--target NAME|--all-targets] [--prompt N,... [--reuse N]] " +
			"[--rows N] [--sequences N]",
		min: 1, max: 1,
		summary: "predict the time of a step, a pass or a prompt",
		details: `
MODEL is compiled in memory; weights are not read. FILE is .amk text or native JSON for the target that it names, or a
build, whose program.json is meant. Nothing is run: every number is a prediction of the cost model
(docs/cost-model.md), whose constants were measured on an H200. For other GPUs they come from data sheets and
assumptions, which are printed with the numbers.

Columns are what the mean SM spends: executing code, waiting for what other SMs publish, and waiting for bytes. A wait
for the slowest SM of a stage therefore counts as exchange of the next one. A context that is split is attention in
two stages: part, which reads the cache, and attn, which waits for all parts and combines them. The ceiling is the
step of the same schedule if SMs do not wait for each other, and so depends on the knobs of the ring.`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *costFlags) define(set *pflag.FlagSet) {
	set.BoolVar(&f.allTargets, "all-targets", false, "predict for every GPU that amkc targets lists")
	set.Var(newCounts(&f.positions, []int{0}), "position", "predict the step at position `N`; several with commas")
	set.Var(newCounts(&f.prompts, nil), "prompt", "predict the first token after a prompt of `N` tokens too; several "+
		"with commas")
	set.Var(front.NewCount(&f.cached, 0, 0, math.MaxInt32), "reuse", "with --prompt, the first `N` tokens are in the "+
		"cache")
	f.pass.define(set)
	f.model.define(set, defaultTarget)
}

// predictions is the result of cost in JSON.
type predictions struct {
	Model       string       `json:"model"`
	Predictions []prediction `json:"predictions"`
	Passes      []*cost.Pass `json:"passes,omitempty"` // of several tokens
	// with --prompt
	Prompts []promptPrediction `json:"prompts,omitempty"`
	// with --all-targets: GPUs that the model cannot be compiled for
	Refused []refused `json:"refused"`
}

// promptPrediction is one of a prompt.
type promptPrediction struct {
	*cost.Prompt
	Alongside *cost.Alongside `json:"alongside,omitempty"` // absent where no pass reads any of it
}

// prediction is one of a target and a position.
type prediction struct {
	*cost.Prediction
	Memory *memoryReport `json:"memory,omitempty"` // absent for a program that cannot be emitted
}

// refused is a target that has no prediction.
type refused struct {
	Target string    `json:"target"`
	Errors diag.List `json:"errors"`
}

func (f *costFlags) run(c *call) error {
	result := &predictions{Predictions: []prediction{}, Refused: []refused{}}
	if len(f.prompts) > 0 && f.pass.pass() != (ir.Pass{}) {
		return c.usage("prompts are read by a kernel of their own; want --prompt without --rows and --sequences")
	}
	if f.cached > 0 && len(f.prompts) == 0 {
		return c.usage("--reuse is for prompts; want --prompt N with it")
	}
	path := c.args[0]
	dir, _, err := checkpoint.Locate(path)
	if err != nil {
		return err
	}
	if !isModel(dir) || isBuild(dir) {
		p, err := f.file(c, path)
		if err != nil {
			return err
		}
		result.Model = p.Model.Name
		memory, diags := memoryOf(p)
		for _, d := range diags {
			d.Severity = diag.Warning // the program is judged as it is
		}
		c.report(diags)
		if err := f.add(result, p, memory); err != nil {
			return err
		}
		return result.print(c)
	}
	f.model.configOnly = true
	opts, err := f.model.options(c, path)
	if err != nil {
		return err
	}
	if pass := f.pass.pass(); pass != (ir.Pass{}) {
		opts.Passes = []ir.Pass{pass}
	}
	result.Model = opts.Name
	if !f.allTargets {
		if err := f.compile(c, result, opts); err != nil {
			return err
		}
		return result.print(c)
	}
	if c.flags.Changed("target") || c.flags.Changed("num-sms") || c.flags.Changed("memory") {
		return c.usage("--all-targets names every target; want no --target, --num-sms or --memory with it")
	}
	for _, t := range ir.Targets {
		opts.Target = &t
		if err := f.compile(c, result, opts); err != nil {
			result.Refused = append(result.Refused, refused{t.Name, asList("target "+t.Name, err)})
		}
	}
	if len(result.Predictions)+len(result.Passes) == 0 {
		c.payload = result // it says of every target why
		return result.Refused[0].Errors
	}
	return result.print(c)
}

// print says what was predicted. Where that failed there is no result: lists that are empty would look like one.
func (r *predictions) print(c *call) error {
	c.payload = r
	return c.printf("%s", costText(r))
}

// compile predicts for a model and one target. What codegen has no room for has no time either.
func (f *costFlags) compile(c *call, result *predictions, opts compiler.Options) error {
	l, err := compiler.RunPasses(opts)
	if err != nil {
		return err
	}
	defer l.Close()
	if len(result.Predictions)+len(result.Passes) == 0 {
		c.report(l.Warnings)
	}
	if l.Program.NumRanks() > 1 { // what the kernel does not do on several GPUs is predicted, too
		memory, diags := memoryOf(l.Program)
		c.report(diags)
		return f.add(result, l.Program, memory)
	}
	if err := compiler.Lacking(opts.Model, append(l.Passes[:len(l.Passes):len(l.Passes)], l.Program)...); err != nil {
		return err
	}
	if len(l.Passes) > 0 {
		return f.predictPasses(result, l.Passes[0], l.Program) // alongside one token of the same build
	}
	if _, err := codegen.CUDA(l.Program); err != nil {
		return err
	}
	memory, diags := memoryOf(l.Program)
	if err := diags.Err(); err != nil {
		return err
	}
	c.report(diags)
	return f.add(result, l.Program, memory)
}

// file reads a native program, which has its target and its knobs.
func (f *costFlags) file(c *call, path string) (*ir.Program, error) {
	if given := f.model.changed(c); given != "" || f.allTargets || f.pass.pass() != (ir.Pass{}) {
		switch {
		case given != "":
		case f.allTargets:
			given = "all-targets"
		default:
			return nil, c.usage(passesOfPrograms, path)
		}
		return nil, c.usage("--%s is for compiling a model directory, and %s is a program", given, path)
	}
	p, err := c.readProgram(path)
	if p.profile != nil {
		return &ir.Program{}, nil // one step of a model, for no target: cost refuses it
	}
	return p.native, err
}

func (f *costFlags) add(result *predictions, p *ir.Program, memory *memoryReport) error {
	if p.Pass.NumTokens() > 1 {
		return f.predictPasses(result, p, nil)
	}
	m, err := cost.New(p)
	if err != nil {
		return err
	}
	for _, pos := range f.positions {
		one, err := m.At(pos)
		if err != nil {
			return err
		}
		result.Predictions = append(result.Predictions, prediction{one, memory})
	}
	return f.addPrompts(result, p)
}

// addPrompts predicts prompts, of which codegen knows by what kernel they are read.
func (f *costFlags) addPrompts(result *predictions, p *ir.Program) error {
	if len(f.prompts) == 0 {
		return nil
	}
	facts, err := codegen.Facts(p)
	if err != nil {
		return err
	}
	m, err := cost.NewPrompt(p, facts.Prompt)
	if err != nil {
		return err
	}
	served := sessions.Served()
	for _, tokens := range f.prompts {
		one, err := m.After(f.cached, tokens)
		if err != nil {
			return err
		}
		alongside, err := m.Between(f.cached, tokens, host.DefaultPause, served.Within)
		if err != nil {
			return err
		}
		result.Prompts = append(result.Prompts, promptPrediction{one, alongside})
	}
	return nil
}

func (f *costFlags) predictPasses(result *predictions, p, one *ir.Program) error {
	m, err := cost.NewPass(p, one)
	if err != nil {
		return err
	}
	missing := kernelMissing(p)
	for _, pos := range f.positions {
		pass, err := m.At(pos)
		if err != nil {
			return err
		}
		if missing != "" {
			pass.Label = cost.NeverMeasured
			pass.Assumptions = append(pass.Assumptions, "a kernel for such passes, which there is not: "+missing)
		}
		result.Passes = append(result.Passes, pass)
	}
	return nil
}

// kernelMissing says why the kernel does not take the passes of a program, or nothing if it does.
func kernelMissing(p *ir.Program) string {
	if !p.Pass.HasKernel() {
		return fmt.Sprintf("it takes none of %v", p.Pass)
	}
	if _, err := codegen.CUDA(p); err != nil {
		return err.Error()
	}
	return ""
}

func costText(r *predictions) string {
	var b strings.Builder
	for i, p := range r.Predictions {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(predictionText(r.Model, p))
	}
	for i, p := range r.Passes {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(passText(r.Model, p))
	}
	for _, p := range r.Prompts {
		b.WriteString("\n" + promptText(r.Model, p))
	}
	for _, no := range r.Refused {
		fmt.Fprintf(&b, "\n%s: no prediction: %s\n", no.Target, no.Errors[0].Error())
	}
	return b.String()
}

// passText says how long a pass of several tokens takes, and what it moves.
func passText(model string, p *cost.Pass) string {
	mb := func(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s (%s), position %d, passes of %v: %s\n", model, p.Target, p.Arch, p.Position,
		p.Traffic.Pass, p.Label)
	fmt.Fprintf(&b, "%s: %s", p.Label, passTime(p))
	fmt.Fprintf(&b, "; %.1f %% of the ceiling's %.1f µs\n", 100*min(1, p.Ceiling/p.Latency), p.Ceiling)
	fmt.Fprintf(&b, "reads %s of weights, once for all tokens, and %s of cache rows\n", mb(p.Weights), mb(p.Cache))
	fmt.Fprintf(&b, "SMs store %s of exchanged words, and read %s of them from L2\n", mb(p.Stored), mb(p.Polled))
	fmt.Fprintf(&b, "the widest vector of a product is %d bytes; the caches take %s of memory\n", p.Widest,
		mb(p.Caches))
	stageTable(&b, p.Stages, p.StepEnd, p.Ring, p.RingFull)
	for _, a := range p.Assumptions {
		fmt.Fprintf(&b, "assumes: %s\n", a)
	}
	return b.String()
}

// passTime says how long a pass takes, compared with one token where that is known.
func passTime(p *cost.Pass) string {
	text := fmt.Sprintf("%.1f µs per pass, %.0f tokens per second", p.Latency, p.TokensPerSecond)
	if p.OneToken > 0 {
		text += fmt.Sprintf(", %.2f × one token's %.1f µs", p.Times, p.OneToken)
	}
	return text
}

// promptText says how long it takes to the first token after a prompt.
func promptText(model string, p promptPrediction) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s (%s), prompt of %d tokens", model, p.Target, p.Arch, p.Tokens)
	if p.Cached > 0 {
		fmt.Fprintf(&b, ", %d of them in the cache", p.Cached)
	}
	fmt.Fprintf(&b, ": %s\n", p.Label)
	fmt.Fprintf(&b, "%s: %.1f ms to the first token, %.0f tokens per second\n", p.Label, p.FirstToken,
		1e3*float64(p.Tokens-p.Cached)/p.FirstToken)
	if p.Passes > 0 {
		fmt.Fprintf(&b, "%s over the prompt: products %.1f ms, attention %.1f ms, head %.1f ms\n",
			counted(p.Passes, "pass", "es"), p.Products, p.Attention, p.Head)
	}
	if p.Steps > 0 {
		fmt.Fprintf(&b, "%s of one token: %.1f ms\n", counted(p.Steps, "step", "s"), p.Stepping)
	}
	if a := p.Alongside; a != nil {
		fmt.Fprintf(&b, "alongside other answers (serve --pause %.0f): %s of up to %d tokens, between which they wait "+
			"up to %.1f ms; %.1f ms to the first token\n", a.Pause, counted(a.Parts, "part", "s"), a.Most, a.Longest,
			a.FirstToken)
	}
	for _, a := range p.Assumptions {
		fmt.Fprintf(&b, "assumes: %s\n", a)
	}
	return b.String()
}

// counted is n of something.
func counted(n int, of, plural string) string {
	if n != 1 {
		of += plural
	}
	return fmt.Sprint(n, " ", of)
}

func predictionText(model string, p prediction) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s (%s), position %d: %s\n", model, p.Target, p.Arch, p.Position, p.Label)
	fmt.Fprintf(&b, "%s: %.1f µs per token, %.1f %% of the ceiling's %.1f µs; %.1f MB per token, %.0f GB/s\n",
		p.Label, p.Latency, 100*p.Share, p.Ceiling, float64(p.BytesPerToken)/1e6,
		float64(p.BytesPerToken)/p.Latency/1e3)
	stageTable(&b, p.Stages, p.StepEnd, p.Ring, p.RingFull)
	if l := p.Link; l != nil {
		fmt.Fprintf(&b, "link: each of %d GPUs receives %.1f MB in %d exchanges, at %.0f GB/s and %.2f µs after the "+
			"last word\n", l.GPUs, float64(l.Bytes)/1e6, l.Exchanges, l.GBs, l.Latency)
	}
	if p.Memory != nil {
		fmt.Fprintf(&b, "memory: %v\n", p.Memory)
	}
	for _, a := range p.Assumptions {
		fmt.Fprintf(&b, "assumes: %s\n", a)
	}
	return b.String()
}

// stageTable says where the time goes, and what the ring does meanwhile.
func stageTable(b *strings.Builder, stages []cost.Stage, end float64, ring cost.Ring, full float64) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "times\tinstructions\texchange\tstream\ttotal µs\t\n")
	for _, s := range stages {
		fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%.1f\t%.1f\t %s\n", s.Times, s.Instructions, s.Exchange, s.Stream, s.Total(),
			s.Name)
	}
	fmt.Fprintf(w, "1\t\t\t\t%.1f\t step end\n", end)
	w.Flush()
	fmt.Fprintf(b, "ring: %d slots, %.0f GB/s; full, with the stream at rest, for %.1f µs of the step\n", ring.Slots,
		ring.Bandwidth, full)
}
