package explore

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"amkc/compiler/objects"
	"amkc/explore/mutant"
	"amkc/ir/diag"
	"amkc/runtime/host"
	"amkc/runtime/infile"
	"amkc/runtime/progress"
)

// MutantOptions select the mutants and builds to run.
type MutantOptions struct {
	Builds    []MutantBuild
	Cache     string                      // as of Options
	Only      func(m *mutant.Mutant) bool // nil: all
	Schedules int                         // of each job that comes to a mutant, at most
	Jobs      int                         // of a build that run a mutant under other schedules than the default one
	Runs      int                         // of an equivalent mutant, at most; 0: all that there are
	Known     map[string]*MutantResult    // of mutants by id that were killed before, and are not run
	Earlier   map[string]*MutantResult    // of mutants by id, in earlier kernels: where one was killed it is run first
	Workers   int
	Command   []string
	Report    progress.Func
	Each      func(*MutantResult) // is told what became of each mutant, as soon as it is known; or nil
}

// A MutantBuild is a build whose kernels are mutated, and the jobs that run them; none: all of its jobs.
type MutantBuild struct {
	Name string
	Dir  string
	Jobs []string
}

// A Fate is the outcome of a mutant.
type Fate string

// The fates.
const (
	Killed     Fate = "killed"     // something went wrong, and only with it
	Equivalent Fate = "equivalent" // mutant.Equivalent says why nothing can go wrong
	Unreached  Fate = "unreached"  // no kernel comes to its site
	Survived   Fate = "survived"
)

// A MutantResult is the outcome of a mutant, and where it was killed.
type MutantResult struct {
	ID       string      `json:"id"`
	Kind     mutant.Kind `json:"kind"`
	Fate     Fate        `json:"fate"`
	By       string      `json:"by,omitempty"` // the kind of the finding, "difference" for other bits
	Message  string      `json:"message,omitempty"`
	Build    string      `json:"build,omitempty"`
	Job      string      `json:"job,omitempty"`
	Schedule string      `json:"schedule,omitempty"`
	Number   int         `json:"number,omitempty"` // of that schedule among those of its job
	Runs     int         `json:"runs"`
}

// A MutantReport has the outcomes of all mutants, by id.
type MutantReport struct {
	Results []*MutantResult
	Stays   map[string]int // statements that are not moved, by the reason
}

// mutantLimit is how much processor time a run with a mutant may take. One may loop without waiting.
const mutantLimit = 2 * time.Minute

// A mutated is a build with its mutants, ready to run.
type mutated struct {
	MutantBuild
	set   *mutant.Set
	facts *host.Facts
	jobs  []Job
	pool  *pool
	dir   string
	close func()

	// jobs that come to a site, the shortest first
	reaching map[int][]*Job
	steps    map[string]uint64 // of a job without a mutant, at most

	mu    sync.RWMutex
	known known
	clean map[scheduled]*cleanRun
}

// A scheduled is a job under the schedule of a number.
type scheduled struct {
	job    string
	number int
}

// A cleanRun is a run without a mutant.
type cleanRun struct {
	once    sync.Once
	steps   uint64
	reached []int // sites
	err     error
}

// RunMutants runs mutants until each is killed or has run its schedules. The kernels must not have a finding without a
// mutant.
func RunMutants(ctx context.Context, o MutantOptions) (*MutantReport, error) {
	if o.Schedules < 1 {
		o.Schedules = 1
	}
	o.Jobs = max(1, o.Jobs)
	r := &MutantReport{Stays: map[string]int{}}
	var builds []*mutated
	defer func() {
		for _, b := range builds {
			b.close()
		}
	}()
	stays := map[string]bool{}
	for _, build := range o.Builds {
		b, err := mutate(ctx, &o, build)
		if err != nil {
			return nil, err
		}
		builds = append(builds, b)
		for _, s := range b.set.Stays {
			if key := string(s.Kind) + " " + s.Site.String(); !stays[key] {
				stays[key] = true
				r.Stays[s.Why]++
			}
		}
	}
	if err := baseline(&o, builds); err != nil {
		return nil, err
	}
	return r, r.run(ctx, &o, builds)
}

// mutate makes the mutants of a build and compiles them.
func mutate(ctx context.Context, o *MutantOptions, build MutantBuild) (_ *mutated, err error) {
	b := &mutated{MutantBuild: build, known: known{}, reaching: map[int][]*Job{}, steps: map[string]uint64{},
		clean: map[scheduled]*cleanRun{}}
	if b.facts, err = host.ReadFacts(build.Dir); err != nil {
		return nil, err
	}
	sources, err := sourcesOf(build.Dir, b.facts)
	if err != nil {
		return nil, err
	}
	if b.set, err = mutant.Generate(sources); err != nil {
		return nil, diag.Errorf(codeCompile, build.Dir, "its sources are not understood: %s", infile.Reason(err))
	}
	b.jobs = slices.DeleteFunc(Jobs(b.facts), func(j Job) bool {
		return len(build.Jobs) > 0 && !slices.Contains(build.Jobs, j.Name)
	})
	if len(build.Jobs) > 0 && len(b.jobs) != len(build.Jobs) {
		return nil, diag.Errorf(codeJob, build.Name, "has not all of the jobs %s", strings.Join(build.Jobs, ", "))
	}
	top, err := os.MkdirTemp("", "amkc-mutants-")
	if err != nil {
		return nil, diag.Errorf(codeWorker, build.Dir, "there is no temporary directory: %s", infile.Reason(err))
	}
	b.close = func() {
		if b.pool != nil {
			b.pool.close()
		}
		os.RemoveAll(top)
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	copied, run := filepath.Join(top, "sources"), filepath.Join(top, "run")
	if err := b.write(copied); err != nil {
		return nil, diag.Errorf(codeWorker, copied, "cannot be written: %s", infile.Reason(err))
	}
	names := make([]string, 0, len(b.jobs))
	for _, j := range b.jobs {
		names = append(names, j.Name)
	}
	objects, err := Compile(ctx, Options{Build: copied, Cache: o.Cache, Jobs: names, Called: true, Report: o.Report})
	if err != nil {
		return nil, err
	}
	if err := layOut(run, build.Dir, objects); err != nil {
		return nil, diag.Errorf(codeWorker, run, "cannot be written: %s", infile.Reason(err))
	}
	b.dir = run
	device, err := deviceOf(b.facts)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(build.Dir)
	if err != nil {
		return nil, err
	}
	b.pool = newPool(ctx, o.workers(), o.Command, device, setup{Library: objects.Library, Dir: run, Build: dir})
	b.pool.limit = mutantLimit
	return b, nil
}

func (o *MutantOptions) workers() int { return max(1, o.Workers) }

// write writes the mutated sources, next to a link to the manifest.
func (b *mutated) write(to string) error {
	for _, name := range sorted(b.set.Files) {
		at := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(at, b.set.Files[name], 0o666); err != nil {
			return err
		}
	}
	manifest, err := filepath.Abs(filepath.Join(b.Dir, host.ManifestFile))
	if err != nil {
		return err
	}
	return os.Symlink(manifest, filepath.Join(to, host.ManifestFile))
}

// judge says what is wrong with a run.
func (b *mutated) judge(j *Job, o *order, outcome *Outcome, keep bool) []Finding {
	if keep {
		b.mu.Lock()
		defer b.mu.Unlock()
	} else {
		b.mu.RLock()
		defer b.mu.RUnlock()
	}
	return append(slices.Clone(outcome.Findings), b.known.differences(j, o, outcome, keep)...)
}

// schedule is the i-th schedule of a job.
func (b *mutated) schedule(j *Job, i int) Schedule {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e := explorer{known: b.known, o: Options{Seed: 1}}
	return e.fitted(j, schedules(i+1, e.o.Seed, nil)[i], i)
}

// eager is under how many schedules the jobs of all builds run before any mutant: it says which jobs come to which
// sites. Under others they run without a mutant when one is to be run under them.
const eager = 8

// baseline runs the jobs without a mutant, under the default schedule first, with which others are compared.
func baseline(o *MutantOptions, builds []*mutated) error {
	err := objects.SideBySide(len(builds), o.workers(), func(i int) error {
		for k := range builds[i].jobs {
			if _, err := builds[i].runClean(&builds[i].jobs[k], 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var rest []func() error
	for i := 1; i < min(o.Schedules, eager); i++ {
		for _, b := range builds {
			for k := range b.jobs {
				if j := &b.jobs[k]; !j.Once {
					rest = append(rest, func() error { _, err := b.runClean(j, i); return err })
				}
			}
		}
	}
	if err := objects.SideBySide(len(rest), o.workers(), func(i int) error { return rest[i]() }); err != nil {
		return err
	}
	for _, b := range builds {
		b.findReaching()
	}
	return nil
}

// runClean runs a job without a mutant under the i-th schedule, once: nothing may go wrong.
func (b *mutated) runClean(j *Job, i int) (*cleanRun, error) {
	b.mu.Lock()
	r := b.clean[scheduled{j.Name, i}]
	if r == nil {
		r = &cleanRun{}
		b.clean[scheduled{j.Name, i}] = r
	}
	b.mu.Unlock()
	r.once.Do(func() { r.err = r.run(b, j, i) })
	return r, r.err
}

func (r *cleanRun) run(b *mutated, j *Job, i int) error {
	ordered := order{Job: j.Name, Schedule: b.schedule(j, i)}
	outcome, err := b.pool.run(&ordered)
	if err != nil {
		return err
	}
	if outcome.Problem != "" {
		return diag.Errorf(codeWorker, b.Name+", job "+j.Name, "cannot be run: %s", outcome.Problem)
	}
	if wrong := b.judge(j, &ordered, outcome, true); len(wrong) > 0 {
		return diag.Errorf(codeFound, b.Name+", job "+j.Name, "without a mutant, schedule %s: %s: %s",
			ordered.Schedule.String(), wrong[0].Kind, wrong[0].Message)
	}
	r.steps, r.reached = outcome.Steps, outcome.Reached
	return nil
}

// findReaching notes which jobs come to which sites.
func (b *mutated) findReaching() {
	come := map[int]map[string]bool{}
	for of, r := range b.clean {
		b.steps[of.job] = max(b.steps[of.job], r.steps)
		for _, site := range r.reached {
			if come[site] == nil {
				come[site] = map[string]bool{}
			}
			come[site][of.job] = true
		}
	}
	for site, names := range come {
		for k := range b.jobs {
			if names[b.jobs[k].Name] {
				b.reaching[site] = append(b.reaching[site], &b.jobs[k])
			}
		}
		slices.SortStableFunc(b.reaching[site], func(x, y *Job) int {
			return int(b.steps[x.Name]) - int(b.steps[y.Name])
		})
	}
}

// A trial is a mutant in a build, and a job that comes to its site.
type trial struct {
	build  *mutated
	mutant *mutant.Mutant
	job    *Job
	once   bool // under the default schedule alone: the job is not one of the shortest
}

func (t *trial) steps() uint64 { return t.build.steps[t.job.Name] }

// run runs all mutants, several at a time.
func (r *MutantReport) run(ctx context.Context, o *MutantOptions, builds []*mutated) error {
	trials, first, results := map[string][]trial{}, map[string]trial{}, map[string]*MutantResult{}
	for _, b := range builds {
		for _, m := range b.set.Mutants {
			id := m.ID()
			if o.Only != nil && !o.Only(m) {
				continue
			}
			if results[id] = cmp.Or(results[id], o.Known[id]); results[id] == nil {
				results[id] = &MutantResult{ID: id, Kind: m.Kind, Fate: Unreached}
			}
			for i, j := range b.reaching[m.Site.Number] {
				trials[id] = append(trials[id], trial{b, m, j, j.Once || i >= o.Jobs})
			}
			if e := o.Earlier[id]; e != nil && e.Build == b.Name {
				if k := slices.IndexFunc(b.jobs, func(j Job) bool { return j.Name == e.Job }); k >= 0 {
					first[id] = trial{b, m, &b.jobs[k], b.jobs[k].Once}
				}
			}
		}
	}
	ids := slices.Sorted(maps.Keys(results))
	for _, id := range ids {
		r.Results = append(r.Results, results[id])
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return results[id] == o.Known[id] })
	step := progress.Step{Activity: "running mutants", Total: int64(len(ids)), Unit: "mutants"}
	var mu sync.Mutex
	return objects.SideBySide(len(ids), o.workers(), func(i int) error {
		m := results[ids[i]]
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := m.try(o, first[m.ID], trials[m.ID]); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if o.Each != nil {
			o.Each(m)
		}
		step.Done++
		o.Report.Report(step)
		return nil
	})
}

// try runs a mutant until it is killed: first where it was killed before, then by every job under the default schedule,
// the shortest first, then under others.
func (m *MutantResult) try(o *MutantOptions, first trial, trials []trial) error {
	limit := 0
	if mutant.Reason(m.ID) != "" {
		limit = o.Runs
	}
	if first.build != nil {
		if dead, err := m.tryOne(first, o.Earlier[m.ID].Number); dead || err != nil {
			return err
		}
		trials = slices.DeleteFunc(trials, func(t trial) bool { return t.build == first.build && t.job == first.job })
		for i := range o.Schedules {
			if i == o.Earlier[m.ID].Number || i > 0 && first.once || limit > 0 && m.Runs >= limit {
				continue
			}
			if dead, err := m.tryOne(first, i); dead || err != nil {
				return err
			}
		}
	} else if len(trials) == 0 {
		return nil
	}
	m.Fate = Survived
	slices.SortStableFunc(trials, func(x, y trial) int { return int(x.steps()) - int(y.steps()) })
	for i := range o.Schedules {
		for _, t := range trials {
			if i > 0 && t.once || limit > 0 && m.Runs >= limit {
				continue
			}
			if dead, err := m.tryOne(t, i); dead || err != nil {
				return err
			}
		}
	}
	if mutant.Reason(m.ID) != "" {
		m.Fate = Equivalent
	}
	return nil
}

// mostSteps is how many steps a run may have with a mutant, in those without: one that goes on and on is killed.
const mostSteps = 2

func (m *MutantResult) tryOne(t trial, i int) (dead bool, err error) {
	clean, err := t.build.runClean(t.job, i)
	if err != nil {
		return false, err
	}
	s := t.build.schedule(t.job, i)
	s.Mutant, s.MaxSteps = t.mutant.Number, mostSteps*max(t.steps(), clean.steps)
	ordered := order{Job: t.job.Name, Schedule: s}
	outcome, err := t.build.pool.run(&ordered)
	if err != nil {
		return false, err
	}
	m.Runs++
	wrong := t.build.judge(t.job, &ordered, outcome, false)
	if outcome.Problem != "" {
		// With a mutant the host may refuse what kernels say.
		wrong = append(wrong, Finding{Kind: "refused", Message: outcome.Problem})
	}
	if len(wrong) == 0 {
		return false, nil
	}
	first := wrong[0]
	if at := slices.IndexFunc(wrong, func(f Finding) bool { return f.Kind == "stall" }); at >= 0 {
		first = wrong[at] // what goes wrong after a wait that is aborted follows from it
	}
	m.Fate, m.By, m.Message = Killed, first.Kind, first.Message
	m.Build, m.Job, m.Schedule, m.Number = t.build.Name, t.job.Name, s.String(), i
	return true, nil
}
