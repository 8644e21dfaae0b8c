package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/compiler/version"
	"amkc/ir/diag"
	"amkc/knobs"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
	"amkc/search"
	"amkc/search/evaluate"
)

// searchFlags are the flags of search.
type searchFlags struct {
	model    modelFlags
	judge    judgeFlags
	out      string
	trials   int
	minutes  float64
	seconds  float64 // of the GPU
	jobs     int
	via      string // what runs an evaluation on another machine
	buildVia string // likewise for a build
	heldOut  []int
	seed     string
	only     []string
	cold     bool
	sameBits bool
	tag      string
	width    int
	options  compiler.Options // of the model, once it is known
}

func searchVerb() verb {
	f := &searchFlags{}
	return verb{
		name: "search", synopsis: "MODEL -o DIR [--trials N] [--minutes N] [--device cost|cuda]", min: 1, max: 1,
		summary: "look for a faster schedule, trial by trial",
		details: `
DIR is a campaign: campaign.json, which never changes, and trials.jsonl, which gets a line for every trial. The same
command resumes a campaign that was stopped or killed. Each configuration is judged by a process of its own, which is
killed if it hangs. report.html and results.tsv are written at the end. On a GPU, only what is faster beyond the noise
is kept; on the cost model, a configuration is shortlisted (docs/search.md).

On a cluster, --via names a command that runs its arguments on a machine with a GPU, such as 'srun --gres=gpu:1', and
--build-via one for builds (scripts/cluster).`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *searchFlags) define(set *pflag.FlagSet) {
	set.VarP(front.NewWord(&f.out, ""), "out", "o", "the campaign's `DIR`")
	set.Var(front.NewCount(&f.trials, 0, 0, 1e6), "trials", "end when the campaign has `N` trials; 0: no limit")
	set.Var(newAmount(&f.minutes), "minutes", "end after `N` minutes, whole or not; 0: no limit")
	set.Var(newAmount(&f.seconds), "gpu-seconds", "end when the campaign has had the GPU for `N` seconds; 0: no limit")
	set.Var(front.NewCount(&f.jobs, 1, 1, 1024), "jobs",
		"prove and build `N` configurations at a time, ahead of the one that is measured, with a quarter of "+
			"--timeout per build; predict as many at a time, and with --via measure")
	set.Var(front.NewWord(&f.via, ""), "via",
		"run each evaluation by `COMMAND`, which has the process as its arguments")
	set.Var(front.NewWord(&f.buildVia, ""), "build-via", "run each build by `COMMAND`; default: here")
	set.Var(newCounts(&f.heldOut, nil), "held-out", "confirm the best at position `N`; several with commas; default: "+
		"near those of --position")
	set.Var(front.NewWord(&f.seed, "1"), "seed", "draw proposals from `SEED`")
	set.Var(&words{&f.only}, "only", "vary the knobs of region `NAME`, or knob NAME, and no others; may be repeated")
	set.BoolVar(&f.cold, "cold", false, "begin at the unoptimised value of each knob")
	set.BoolVar(&f.sameBits, "same-bits", false, "leave knobs alone that decide in which order sums are added up")
	set.Var(front.NewWord(&f.tag, ""), "tag", "call the campaign `TAG` in results.tsv; default: model and target")
	set.Var(front.NewCount(&f.width, search.DefaultRules().Width, 1, 1e4), "round",
		"screen `N` configurations in a round, of which at most three are judged in full")
	f.judge.define(set)
	f.model.define(set, defaultTarget)
}

// searched is the result of search in JSON.
type searched struct {
	Dir       string           `json:"dir"`
	Stop      string           `json:"stop"`
	Best      knobs.Settings   `json:"best"`
	Estimate  float64          `json:"estimate"`  // chained through the trials, relative to the start
	Confirmed *search.Interval `json:"confirmed"` // at held-out positions, below 1; null: not confirmed
	HeldOut   *search.Interval `json:"held_out"`  // what was found there, be it a gain or not; null: nothing yet
	Soundness search.Soundness `json:"soundness"`
}

// run makes trials.
func (f *searchFlags) run(c *call) error {
	if err := f.check(c); err != nil {
		return err
	}
	if f.via == "" {
		if err := f.judge.needGPU(c, &f.model, c.args[0]); err != nil {
			return err
		}
	}
	key, err := f.judge.signingKey()
	if err != nil {
		return err
	}
	ctx, cancel := interruptible()
	defer cancel()
	began := time.Now()
	line := c.progress()
	defer line.Clear()
	journal, err := f.open(ctx, c, key, line)
	if err != nil {
		return err
	}
	defer journal.Close()
	stop, err := f.carryOn(ctx, c, journal, key, line, began)
	line.Clear()
	if written := writeReport(f.out, journal.State); err == nil {
		err = written
	}
	if err != nil {
		return err
	}
	result := resultOf(f.out, stop, journal.State)
	c.payload = result
	return c.printf("%s", searchedText(result, journal.State))
}

// open opens the campaign that the flags ask for, and begins it where there is none.
func (f *searchFlags) open(ctx context.Context, c *call, key search.Key, line watcher) (*search.Journal, error) {
	campaign, err := f.campaign(ctx, c, key, line)
	line.Clear()
	if err != nil {
		return nil, err
	}
	if !search.Exists(f.out) {
		if err := search.Create(f.out, campaign); err != nil {
			return nil, err
		}
	}
	return search.OpenJournal(f.out)
}

// check refuses what does not go together.
func (f *searchFlags) check(c *call) error {
	if err := f.judge.check(c); err != nil {
		return err
	}
	switch {
	case f.out == "":
		return c.usage("a directory for the campaign is needed; want -o DIR")
	case f.trials == 0 && f.minutes == 0 && f.seconds == 0:
		return c.usage("a search needs an end; want --trials N, --minutes N or --gpu-seconds N")
	case (f.via != "" || f.buildVia != "") && f.judge.gpu != 0:
		return c.usage("--gpu is a number on this machine, and --via runs on others; want one of them")
	case f.buildVia != "" && f.judge.device != search.DeviceCUDA:
		return c.usage("--build-via goes with --device cuda: predictions build nothing")
	case f.cold && f.model.config != "":
		return c.usage("--cold and --config each say where to begin; want one of them")
	case f.seconds != 0 && f.judge.device != search.DeviceCUDA:
		return c.usage("--gpu-seconds goes with --device cuda")
	case f.model.dumpIR != "" || f.model.timePasses:
		return c.usage("--dump-ir and --time-passes are for one program; want amkc dump, or amkc search eval")
	}
	return nil
}

// campaign is what the flags ask for. One that is in the directory already has to be the same.
func (f *searchFlags) campaign(ctx context.Context, c *call, key search.Key, line watcher) (*search.Campaign,
	error) {
	seed, err := strconv.ParseUint(f.seed, 0, 64)
	if err != nil {
		return nil, c.usage("--seed %q; want an integer from 0 to 2^64-1", f.seed)
	}
	start, err := settingsIn(c, f.model.config)
	if err != nil {
		return nil, err
	}
	opts, err := f.judge.options(c, &f.model, c.args[0])
	if err != nil {
		return nil, err
	}
	f.options = opts
	source, positions, err := evaluate.Source(opts)
	if err != nil {
		return nil, err
	}
	for _, pos := range slices.Concat(f.judge.positions, f.heldOut) {
		if pos >= positions {
			return nil, c.usage("position %d; want 0 to %d, for which the model is compiled", pos, positions-1)
		}
	}
	if f.heldOut == nil {
		f.heldOut = heldOut(f.judge.positions, positions)
	}
	command, err := f.command(c)
	if err != nil {
		return nil, err
	}
	campaign := &search.Campaign{Schema: search.CampaignSchema, Tag: f.tag, Model: opts.Name, Source: source,
		Target: opts.Target.Name, Device: f.judge.device, Positions: f.judge.positions, HeldOut: f.heldOut,
		Start: start, Cold: f.cold, Only: f.only, SameBits: f.sameBits, Seed: seed, Rules: search.DefaultRules(),
		Key: key.Public().String(), Amkc: version.Get().Version, Command: command}
	if campaign.Tag == "" {
		campaign.Tag = opts.Name + "-" + opts.Target.Name
	}
	campaign.Rules.Width = f.width
	if search.Exists(f.out) {
		return campaign, f.same(campaign)
	}
	return campaign, f.space(ctx, opts, campaign, line)
}

// space finds out what can be set, and where a cold search begins.
func (f *searchFlags) space(ctx context.Context, opts compiler.Options, campaign *search.Campaign,
	line watcher) error {
	var err error
	if campaign.Space, err = evaluate.Space(ctx, opts, 0, line.Show); err != nil {
		return err
	}
	if f.cold { // with all that is not varied at its default
		campaign.Start = campaign.Space.Cold()
	}
	if len(f.only) > 0 {
		campaign.Space, err = campaign.Space.Only(f.only)
	}
	return err
}

// same holds a campaign to that of the directory, whose space and cold start are taken over.
func (f *searchFlags) same(campaign *search.Campaign) error {
	s, _, _, err := search.Load(f.out)
	if err != nil {
		return err
	}
	old := s.Campaign()
	campaign.Space = old.Space
	if f.cold {
		campaign.Start = old.Start
	}
	return old.Same(campaign, f.out)
}

// heldOut are positions near others, and none of them.
func heldOut(at []int, positions int) []int {
	var out []int
	for _, pos := range at {
		near := min(pos+pos/8+32, positions-1)
		for near > 0 && (slices.Contains(at, near) || slices.Contains(out, near)) {
			near--
		}
		out = append(out, near)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// command is the model with the flags of compiling, as eval is called with them.
func (f *searchFlags) command(c *call) ([]string, error) {
	model, err := filepath.Abs(c.args[0])
	if err != nil || !isModel(model) {
		model = c.args[0] // of a hub's cache
	}
	command := []string{model}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&modelFlags{}).define(own, "")
	own.VisitAll(func(flag *pflag.Flag) {
		given := c.flags.Lookup(flag.Name)
		if flag.Name == "config" || !given.Changed {
			return
		}
		if flag.Name == "assume-inert" {
			for _, field := range f.model.inert {
				command = append(command, "--assume-inert="+field)
			}
			return
		}
		command = append(command, "--"+flag.Name+"="+given.Value.String())
	})
	return command, nil
}

// buildPart is which part of the time of an evaluation a build may take. The round waits for all of its trials, and the
// GPU would be idle meanwhile. Where nobody asks for registers, nvcc may take as much for those of a prediction.
const buildPart = 4

// elsewhere is how long a process that runs on another machine may wait for that, and how often it is begun that ends
// without a word, as when the machine is taken away.
const (
	elsewhere         = 24 * time.Hour
	elsewhereAttempts = 3
)

// carryOn makes trials. The time of the run has begun before: to find out what can be set takes of it too.
func (f *searchFlags) carryOn(ctx context.Context, c *call, j *search.Journal, key search.Key,
	line watcher, began time.Time) (string, error) {
	w, done, err := f.worker(j.Campaign, key)
	if err != nil {
		return "", err
	}
	defer done()
	budget := search.Budget{Trials: f.trials, GPUSeconds: f.seconds}
	if f.minutes > 0 {
		budget.Time = max(1, time.Until(began.Add(time.Duration(f.minutes*float64(time.Minute)))))
	}
	r := search.Runner{Evaluate: w.Evaluate, Describe: evaluate.NewDescriber(f.options, j.Campaign.Positions),
		Builds: f.jobs, Judges: f.jobs, Now: time.Now, Budget: budget,
		Tell: func(s *search.State, t *search.Trial) {
			_, ratio := s.Best()
			line.Show(progress.Step{Activity: fmt.Sprintf("round %d, best %.4f, trial", t.Round, ratio),
				Done: int64(len(s.Trials())), Total: int64(f.trials), Unit: "trials"})
			if t.Accepted {
				line.Clear()
				c.note("trial %d: accepted: %s", t.N, t.Verdict.Why)
			}
		}}
	if j.Campaign.Device == search.DeviceCUDA {
		r.Build = w.Build
		if f.via == "" {
			r.Judges = min(2, f.jobs) // while one measures, the next one proves and finds its builds
		}
	}
	return r.Run(ctx, j)
}

// worker judges the jobs of a campaign, each in a process of its own: amkc search eval. done removes what it needs for
// that.
func (f *searchFlags) worker(campaign *search.Campaign, key search.Key) (w *search.Worker, done func(), err error) {
	if err := campaign.Signs(key.Public()); err != nil {
		return nil, nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, diag.Errorf(codeFailed, "amkc", "does not know where it is: %s", infile.Reason(err))
	}
	// In the campaign's directory, which other machines have too; what a killed run has left is removed.
	scratch, err := filepath.Abs(filepath.Join(f.out, ".eval"))
	if err == nil {
		if err = os.RemoveAll(scratch); err == nil {
			err = os.Mkdir(scratch, 0o777)
		}
	}
	if err != nil {
		return nil, nil, diag.Errorf(codeOutput, f.out, "cannot be written to: %s", infile.Reason(err))
	}
	if f.judge.turn == "" && f.via == "" { // shared by the evaluations of this search
		f.judge.turn = filepath.Join(scratch, "turn")
	} else if f.judge.turn != "" {
		if f.judge.turn, err = filepath.Abs(f.judge.turn); err != nil {
			return nil, nil, diag.Errorf(codeInput, "turn", "%s: %s", f.judge.turn, infile.Reason(err))
		}
	}
	limit := time.Duration(f.judge.timeout) * time.Second
	w = &search.Worker{Campaign: campaign, Key: key, Limit: limit, Builds: max(time.Second, limit/buildPart),
		Command: func(job *search.Job, build bool) ([]string, func(), error) {
			own, err := os.MkdirTemp(scratch, "") // several jobs may be judged at once
			if err != nil {
				return nil, nil, diag.Errorf(codeOutput, scratch, "cannot be written to: %s", infile.Reason(err))
			}
			args, err := f.evalCommand(campaign, job, exe, own, build)
			return args, func() { os.RemoveAll(own) }, err
		}}
	switch {
	case f.via != "" || f.buildVia != "":
		w.Waits, w.Attempts = elsewhere, elsewhereAttempts
	case campaign.Device == search.DeviceCUDA:
		w.Waits = w.Limit // for the one that has the GPU before
	}
	return w, func() { os.RemoveAll(scratch) }, nil
}

// evalCommand is the process that judges a job, or builds for it.
func (f *searchFlags) evalCommand(campaign *search.Campaign, job *search.Job, exe, scratch string, build bool) (
	[]string, error) {
	args := append([]string{exe, "search", "eval"}, campaign.Command...)
	for _, one := range []struct {
		flag string
		set  knobs.Settings
	}{{"config", job.Settings}, {"baseline", job.Against}} {
		text, err := configText(one.set)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(scratch, one.flag+".json")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, diag.Errorf(codeOutput, path, "cannot write: %s", infile.Reason(err))
		}
		args = append(args, "--"+one.flag+"="+path)
	}
	args = append(args, "--device="+campaign.Device, "--position="+joined(campaign.PositionsOf(job)),
		"--rung="+string(job.Rung), "--key="+f.judge.key, "--json")
	if campaign.SameBits {
		args = append(args, "--same-bits")
	}
	if f.judge.gpu != 0 {
		args = append(args, fmt.Sprintf("--gpu=%d", f.judge.gpu))
	}
	via, seconds := f.via, f.judge.timeout
	switch {
	case build:
		via, seconds = f.buildVia, max(1, f.judge.timeout/buildPart)
		args = append(args, "--build-only")
	case f.judge.decided:
		args = append(args, fmt.Sprintf("--registers=%t", f.judge.registers))
	}
	if campaign.Device == search.DeviceCUDA && f.judge.turn != "" && !build {
		args = append(args, "--turn="+f.judge.turn)
	}
	args = append(args, fmt.Sprintf("--timeout=%d", seconds))
	if via != "" {
		args = append([]string{"/bin/sh", "-c", via + ` "$@"`, "sh"}, args...)
	}
	return args, nil
}

func joined(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
