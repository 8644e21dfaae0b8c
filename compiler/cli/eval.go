package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/search"
	"amkc/search/evaluate"
)

// evalFlags are the flags of eval.
type evalFlags struct {
	model    modelFlags
	judge    judgeFlags
	baseline string
	rung     string
	sameBits bool
	build    bool
}

// judgeFlags say how configurations are judged, one by eval and many by search.
type judgeFlags struct {
	device    string
	positions []int
	gpu       int
	timeout   int // seconds
	key       string
	turn      string
	registers bool
	decided   bool // whether --registers was given, as true or false
}

// nvccHere reports whether nvcc can be asked for the registers of a prediction. Tests have it say no.
var nvccHere = compiler.CanCompileCUDA

func (f *judgeFlags) define(set *pflag.FlagSet) {
	set.Var(newChoice(&f.device, search.DeviceCost, search.DeviceCost, search.DeviceCUDA), "device",
		"where times come from: cost is the cost model, which predicts, and cuda the GPU of this machine")
	set.Var(newCounts(&f.positions, []int{0}), "position", "judge by a step at position `N`; several with commas")
	set.Var(newGPU(&f.gpu), "gpu", "use GPU number `N`, for --device cuda")
	set.Var(front.NewCount(&f.timeout, 600, 1, 86400), "timeout",
		"end an evaluation that takes longer than `N` seconds")
	set.Var(front.NewWord(&f.key, ""), "key",
		"sign verdicts with the key in `FILE`; default: verdict.key of the user's "+
			"configuration of amkc")
	set.Var(front.NewWord(&f.turn, ""), "turn",
		"lock `FILE` while the GPU is in use, so that evaluations and searches "+
			"can share it; --timeout does not count the wait")
	set.BoolVar(&f.registers, "registers", false, "have nvcc say how many registers the kernels of a final verdict "+
		"take, and what spills; default: of predictions, where nvcc is here and takes at most a quarter of --timeout")
}

// check refuses what does not go together.
func (f *judgeFlags) check(c *call) error {
	f.decided = c.flags.Changed("registers")
	if f.gpu != 0 && f.device != search.DeviceCUDA {
		return c.usage("--gpu %d goes with --device cuda", f.gpu)
	}
	if f.turn != "" && f.device != search.DeviceCUDA {
		return c.usage("--turn %s is about a GPU; want --device cuda", typedWord(f.turn))
	}
	if len(slices.Compact(slices.Sorted(slices.Values(f.positions)))) != len(f.positions) {
		return c.usage("--position names one twice; want each once")
	}
	return nil
}

// signingKey reads the key that verdicts are signed with, and makes one where there is none.
func (f *judgeFlags) signingKey() (search.Key, error) {
	if err := f.findKey(); err != nil {
		return nil, err
	}
	return search.LoadKey(f.key)
}

// publicKey reads the key that verdicts are verified with.
func (f *judgeFlags) publicKey() (search.PublicKey, error) {
	if err := f.findKey(); err != nil {
		return nil, err
	}
	return search.ReadPublicKey(f.key)
}

func (f *judgeFlags) findKey() (err error) {
	if f.key == "" {
		f.key, err = usersKey()
		return err
	}
	if f.key, err = filepath.Abs(f.key); err != nil {
		return diag.Errorf(codeInput, "key", "%s: %s", f.key, infile.Reason(err))
	}
	return nil
}

// usersKey is the file of the key that verdicts are signed with, unless --key names another.
func usersKey() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", diag.Errorf(codeInput, "key", "there is no directory of the user's configuration: %s; want --key",
			infile.Reason(err))
	}
	return filepath.Join(dir, "amkc", "verdict.key"), nil
}

func evalVerb() verb {
	f := &evalFlags{}
	return verb{
		name:     "search eval",
		synopsis: "MODEL --config FILE [--baseline FILE] [--device cost|cuda] [--position N,...]",
		min:      1, max: 1,
		summary: "judge one configuration against another",
		details: `
The configuration is lowered, proved and emitted. On a GPU it is then checked, and measured interleaved with the
baseline and an identical twin of the baseline; otherwise the cost model predicts it. Only proved schedules are
launched, and a prediction is never kept (docs/search.md). A candidate that emits the same step as its baseline is
REJECTED, unless their settings are the same. Exit code 0: PASS, or PREDICTED, which was not run; 1: any other class.

FILE is JSON, with a group of knobs in an object: tiling.ring.pace and pipelining_depth are

    {"tiling": {"ring": {"pace": 600}}, "pipelining_depth": 4}`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *evalFlags) define(set *pflag.FlagSet) {
	set.Var(front.NewWord(&f.baseline, ""), "baseline",
		"compare with the ScheduleConfig of `FILE`; default: all defaults")
	rungs := make([]string, len(search.Rungs))
	for i, r := range search.Rungs {
		rungs[i] = string(r)
	}
	set.Var(newChoice(&f.rung, string(search.Final), rungs...), "rung",
		"how much to ask: screen is proof and a first look, final everything")
	set.BoolVar(&f.sameBits, "same-bits", false, "refuse a configuration that adds up in another order than the "+
		"baseline")
	set.BoolVar(&f.build, "build-only", false, "prove and build both for --device cuda, which needs no GPU, and "+
		"measure nothing")
	f.judge.define(set)
	f.model.define(set, defaultTarget)
}

// judged is the result of eval in JSON.
type judged struct {
	Verdict *search.Verdict `json:"verdict,omitempty"`
	Built   bool            `json:"built,omitempty"` // of --build-only, where that went well: there is no verdict
}

func (f *evalFlags) run(c *call) error {
	if err := f.judge.check(c); err != nil {
		return err
	}
	if f.build && (f.judge.device != search.DeviceCUDA || f.judge.registers || f.judge.turn != "") {
		return c.usage("--build-only makes builds for a GPU; want --device cuda, and neither --registers nor --turn")
	}
	candidate, err := candidateIn(c, f.model.config)
	if err != nil {
		return err
	}
	baseline, err := settingsIn(c, f.baseline)
	if err != nil {
		return err
	}
	if !f.build {
		if err := f.judge.needGPU(c, &f.model, c.args[0]); err != nil {
			return err
		}
	}
	opts, err := f.judge.options(c, &f.model, c.args[0])
	if err != nil {
		return err
	}
	key, err := f.judge.signingKey()
	if err != nil {
		return err
	}
	ctx, cancel := interruptible()
	defer cancel()
	limit := limitTo(ctx, time.Duration(f.judge.timeout)*time.Second)
	defer limit.end()
	line := c.progress()
	request := evaluate.Request{Options: opts, Candidate: candidate, Baseline: baseline,
		Device: f.judge.device, Positions: f.judge.positions, Rung: search.Rung(f.rung), Rules: search.DefaultRules(),
		SameBits: f.sameBits, Registers: f.judge.registers, GPU: f.judge.gpu, Progress: line.Show,
		Turn: limit.turn(f.judge.turn), Left: limit.left}
	judge, most := evaluate.Evaluate, time.Duration(f.judge.timeout)*time.Second
	switch {
	case f.build:
		judge, request.BuildLimit = evaluate.Build, most
	case !f.judge.decided && f.judge.device == search.DeviceCost && nvccHere():
		request.Registers, request.BuildLimit = true, most/buildPart
	}
	v, err := judge(limit.ctx, request)
	line.Clear()
	if err != nil {
		return hostError(c.args[0], err)
	}
	if v == nil {
		c.payload = judged{Built: true}
		return c.printf("both are proved and built, and nothing was measured\n")
	}
	key.Sign(v)
	c.payload = judged{Verdict: v}
	if err := c.printf("%s", verdictText(v)); err != nil {
		return err
	}
	if !v.Class.Holds() {
		c.report(diag.List{v.Reason})
		return errDifferent
	}
	return nil
}

// needGPU refuses to measure without a GPU, before anything is built for it.
func (f *judgeFlags) needGPU(c *call, m *modelFlags, model string) error {
	if f.device != search.DeviceCUDA {
		return nil
	}
	return m.needGPU(c, model, f.gpu, "--device cost predicts, and --build-only of amkc search eval needs no GPU")
}

// options are those of a model that is judged. Predictions need no weights: they are opened where there are any, for
// the reference VM.
func (f *judgeFlags) options(c *call, m *modelFlags, model string) (compiler.Options, error) {
	with := *m
	with.config, with.gpu = "", f.gpu
	if f.device == search.DeviceCUDA {
		return with.optionsForGPU(c, model, f.gpu)
	}
	opts, err := with.options(c, model)
	if err == nil && opts.RandomSeed == nil {
		weights, _ := filepath.Glob(filepath.Join(opts.Model, "*.safetensors")) // no pattern but ours can be malformed
		opts.ConfigOnly = len(weights) == 0
	}
	return opts, err
}

// settingsIn reads a configuration as the settings of knobs that are searched; none without a file.
func settingsIn(c *call, file string) (knobs.Settings, error) {
	if file == "" {
		return knobs.Settings{}, nil
	}
	text, err := readFile(file, infile.Schedule)
	if err != nil {
		return nil, err
	}
	config, diags := ir.ParseConfig(text, file)
	if diags.Err() != nil {
		return nil, diags
	}
	c.report(diags)
	if err := knobs.Unknown(&config).Err(); err != nil {
		return nil, err
	}
	s, besides := knobs.SettingsOf(&config)
	if len(besides) > 0 {
		return nil, diag.Errorf(codeInput, file, "sets %s, which no search varies; want knobs that amkc search space "+
			"lists", strings.Join(besides, ", "))
	}
	return s, nil
}

// candidateIn is settingsIn for a configuration that is judged: what no schedule can have is in its settings too, so
// that the verdict is REJECTED and a campaign can record it. The error is for a file that states no settings.
func candidateIn(c *call, file string) (knobs.Settings, error) {
	s, err := settingsIn(c, file)
	if err == nil {
		return s, nil
	}
	text, unread := readFile(file, infile.Schedule)
	if unread != nil {
		return nil, unread
	}
	stated, is := knobs.ParseSettings(text)
	if _, refused := stated.Config(); !is || refused == nil {
		return nil, err
	}
	return stated, nil
}

func verdictText(v *search.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %s against %s: %s\n", v.Model, v.Target, v.ID, v.BaselineID, v.Class)
	if v.Proof != nil && v.Proof.OK {
		b.WriteString("proof: no deadlock, no race, no access outside\n")
	}
	for _, k := range v.Registers {
		fmt.Fprintf(&b, "%s: %d registers, %d bytes of spill stores, %d of loads\n", k.Kernel, k.Registers,
			k.SpillStores,
			k.SpillLoads)
	}
	if v.Class == search.Unchecked {
		b.WriteString("what it computes was not checked\n")
	}
	if c := v.Correctness; c != nil {
		for _, s := range c.Spans {
			fmt.Fprintf(&b, "positions %d to %d: logit error %.2e RMS, %.2e max, against the %s\n", s.First, s.Last,
				s.RMS,
				s.Max, c.Oracle)
		}
	}
	if v.Timing != nil {
		for _, at := range v.At {
			fmt.Fprintf(&b, "position %d: %.1f µs per token (%.1f to %.1f), baseline %.1f µs, ceiling %.1f µs; "+
				"ratio %s\n", at.Position, at.Candidate.Median, at.Candidate.P10, at.Candidate.P90, at.Baseline.Median,
				at.Ceiling, intervalText(at.Ratio))
		}
		twins := "predicted"
		if v.Device == search.DeviceCUDA {
			twins = fmt.Sprintf("twins within %.2f %%, %.2f %% in an opening", 100*v.Band, 100*v.Spread)
		}
		fmt.Fprintf(&b, "all positions: ratio %s; %s; %s\n", intervalText(v.Ratio), twins, v.Machine)
	}
	fmt.Fprintf(&b, "%s: %s\n", v.Decision, v.Why)
	return b.String()
}

// intervalText prints a ratio with its interval.
func intervalText(i search.Interval) string {
	high := fmt.Sprintf("%.4f", i.High)
	if i.High > 1e6 {
		high = "infinity"
	}
	return fmt.Sprintf("%.4f (%.4f to %s)", i.Mean, i.Low, high)
}
