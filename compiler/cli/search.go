package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"amkc/compiler"
	"amkc/compiler/evaluate"
	"amkc/compiler/version"
	"amkc/knobs"
	"amkc/runtime/progress"
	"amkc/search"
)

// searchFlags are the flags of search.
type searchFlags struct {
	model     modelFlags
	judge     judgeFlags
	out       string
	trials    int
	minutes   float64
	seconds   float64 // of the GPU
	jobs      int
	overnight bool
	heldOut   []int
	seed      string
	proposers []string
	cold      bool
	sameBits  bool
	tag       string
	bracket   int
	corpus    string
	options   compiler.Options // of the model, once it is known
	describe  search.Describer // of it
	index     int
	stage     string // of work
	tuned     string // the stage that is tuned on its own; empty: the step is
}

func searchVerb() verb {
	f := &searchFlags{}
	return verb{
		name: "search", synopsis: "MODEL -o DIR [--trials N] [--minutes N] [--device cost|cuda]", min: 1, max: -1,
		summary: "look for a faster schedule, trial by trial; keep what is shown to be faster",
		details: "DIR is a campaign: campaign.json, which never changes, and trials.jsonl, to which every trial is " +
			"added. " +
			"A\n" +
			"campaign that was stopped or killed is gone on with by the same command. Each configuration is judged " +
			"by a " +
			"process\nof its own, which is killed if it hangs. The page report.html and the table results.tsv are " +
			"written at the end.\nOn a GPU only what is faster beyond the noise is kept; by the cost model a " +
			"configuration is shortlisted\n(docs/search.md).\n\n" +
			"On many machines: amkc search plan MODEL -o DIR --trials N writes a round of trials, amkc search work " +
			"-o DIR\n--index N makes one of them, as often and wherever it is run, and amkc search merge -o DIR " +
			"[DIR...] adds the round\nto the campaign when all of it is made.",
		flags: f.define,
		run:   f.run,
	}
}

func (f *searchFlags) define(set *pflag.FlagSet) {
	f.defineCommon(set)
	set.BoolVar(&f.overnight, "overnight", false, "go on to another basin whether the last ones led to anything or not")
	set.Var(newWord(&f.corpus, ""), "corpus", "have --proposer prior go by what is learnt from the verdicts in `FILE`")
	set.Var(newCount(&f.index, 0, 0, 1e6), "index", "of work: make trial `N` of the round")
	set.Var(newChoice(&f.stage, string(search.StageJudge), string(search.StageBuild), string(search.StageJudge)),
		"stage", "of work: build needs no GPU and measures nothing, judge does everything that is left")
}

// defineCommon defines the flags of every search, of a step or of a stage on its own.
func (f *searchFlags) defineCommon(set *pflag.FlagSet) {
	set.VarP(newWord(&f.out, ""), "out", "o", "the campaign's `DIR`")
	set.Var(newCount(&f.trials, 0, 0, 1e6), "trials", "end when the campaign has `N` trials; 0: no limit")
	set.Var(newAmount(&f.minutes), "minutes", "end after `N` minutes, whole or not; 0: no limit")
	set.Var(newAmount(&f.seconds), "gpu-seconds", "end when the campaign has had the GPU for `N` seconds; 0: no limit")
	set.Var(newCount(&f.jobs, 1, 1, 1024), "jobs", "propose in rounds, and prove and build `N` configurations at a "+
		"time, ahead of the one that is measured, with a quarter of --timeout per build; predict as many at a time")
	set.Var(newCounts(&f.heldOut, nil), "held-out", "confirm the best at position `N`; several with commas; default: "+
		"near those of --position")
	set.Var(newWord(&f.seed, "1"), "seed", "draw proposals from `SEED`")
	set.Var(&words{&f.proposers}, "proposer", "have proposals made by `NAME`: random, local, evolve, cost, prior, "+
		"or exec:COMMAND; may be repeated; default: local twice, evolve, random")
	set.BoolVar(&f.cold, "cold", false, "begin at the least clever value of each knob")
	set.BoolVar(&f.sameBits, "same-bits", false, "leave knobs alone that decide in which order sums are added up")
	set.Var(newWord(&f.tag, ""), "tag", "call the campaign `TAG` in results.tsv; default: model and target")
	set.Var(newCount(&f.bracket, search.DefaultRules().Bracket, 1, 1e4), "bracket",
		"screen `N` configurations together, of which one in three goes on")
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
	Stage     *tuned           `json:"stage,omitempty"`
	Soundness search.Soundness `json:"soundness"`
}

func (f *searchFlags) run(c *call) error {
	action, err := searchActionOf(c)
	if err != nil {
		return err
	}
	return action.run(f, c)
}

// carry makes trials, one after another, on this machine.
func (f *searchFlags) carry(c *call) error {
	if err := f.check(c); err != nil {
		return err
	}
	if f.trials == 0 && f.minutes == 0 && f.seconds == 0 {
		return c.usage("a search needs an end; want --trials N, --minutes N or --gpu-seconds N")
	}
	if err := f.judge.needGPU(c, &f.model, c.args[0]); err != nil {
		return err
	}
	key, err := f.judge.signingKey(search.LoadKey)
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
	return c.printf("%s", searchedText(result, journal.Campaign))
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
	case f.cold && f.model.config != "":
		return c.usage("--cold and --config each say where to begin; want one of them")
	case f.seconds != 0 && f.judge.device != search.DeviceCUDA:
		return c.usage("--gpu-seconds goes with --device cuda")
	case f.model.dumpIR != "" || f.model.timePasses:
		return c.usage("--dump-ir and --time-passes are for one program; want amkc dump, or amkc eval")
	}
	for _, name := range f.proposers {
		if err := search.CheckProposer(name); err != nil {
			return err
		}
	}
	if slices.Contains(f.proposers, "prior") != (f.corpus != "") {
		return c.usage("--proposer prior goes by a --corpus, and nothing else does; want both or none")
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
		Objective: search.Objective, Start: start, Cold: f.cold, SameBits: f.sameBits, Seed: seed,
		Proposers: f.proposers, Rules: search.DefaultRules(), Key: key.Public().String(), Amkc: version.Get().Version,
		Command: command, Stage: f.tuned}
	if campaign.Tag == "" {
		campaign.Tag = opts.Name + "-" + opts.Target.Name
	}
	if f.tuned != "" {
		campaign.Objective = search.ObjectiveOfStage
		if f.tag == "" {
			campaign.Tag += "-" + f.tuned
		}
	}
	campaign.Rules.Bracket = f.bracket
	if len(campaign.Proposers) == 0 {
		campaign.Proposers = search.DefaultProposers()
	}
	if search.Exists(f.out) {
		return campaign, f.same(campaign)
	}
	if f.corpus != "" {
		corpus, err := search.LoadCorpus(f.corpus, key.Public())
		if err != nil {
			return nil, err
		}
		if campaign.Prior, err = corpus.Prior(f.corpus); err != nil {
			return nil, err
		}
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
	if f.tuned != "" {
		if campaign.Space, err = evaluate.SpaceOf(opts, campaign.Space, f.tuned); err != nil {
			return err
		}
	}
	if f.cold {
		campaign.Start = campaign.Space.Cold()
	}
	return nil
}

// same holds a campaign to that of the directory, whose space, cold start and prior are taken over.
func (f *searchFlags) same(campaign *search.Campaign) error {
	s, _, _, err := search.Load(f.out)
	if err != nil {
		return err
	}
	old := s.Campaign()
	campaign.Space, campaign.Prior = old.Space, old.Prior // a corpus may have grown since
	if f.cold {
		campaign.Start = old.Space.Cold()
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
	if err != nil || !isDir(model) {
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

// asker asks commands and the cost model.
func (f *searchFlags) asker(s *search.State) search.Asker {
	if f.describe == nil {
		f.describe = evaluate.NewDescriber(f.options, s.Campaign().Positions, s.Campaign().Stage)
	}
	return s.Asker(time.Duration(f.judge.timeout)*time.Second, f.describe)
}

// carryOn makes trials. The time of the run has begun before: to find out what can be set takes of it too.
func (f *searchFlags) carryOn(ctx context.Context, c *call, j *search.Journal, key search.Key,
	line watcher, began time.Time) (string, error) {
	w, done, err := f.judge.worker(j.Campaign, key, max(1, f.judge.timeout/buildPart))
	if err != nil {
		return "", err
	}
	defer done()
	budget := search.Budget{Trials: f.trials, GPUSeconds: f.seconds, Forever: f.overnight}
	if f.minutes > 0 {
		budget.Time = max(1, time.Until(began.Add(time.Duration(f.minutes*float64(time.Minute)))))
	}
	r := search.Runner{Evaluate: w.Evaluate, Ask: f.asker(j.State), Now: time.Now, Budget: budget,
		Tell: func(s *search.State, t *search.Trial) {
			_, ratio := s.Best()
			line.Show(progress.Step{Activity: fmt.Sprintf("basin %d, best %.4f, trial", t.Basin, ratio),
				Done: int64(len(s.Trials())), Total: int64(f.trials), Unit: "trials"})
			if t.Best {
				line.Clear()
				c.note("trial %d: %s", t.N, t.Verdict.Why)
			}
		}}
	if f.jobs == 1 {
		return r.Run(ctx, j)
	}
	return r.Together(ctx, j, &search.Crew{Jobs: f.jobs, Ask: f.asker, Work: w.Work, Key: key.Public(),
		Told: func(done, of int) {
			line.Show(progress.Step{Activity: "a round", Done: int64(done), Total: int64(of), Unit: "trials"})
		}})
}

func joined(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
