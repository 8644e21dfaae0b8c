// Package turns measures several builds interleaved on one GPU, so that what changes on the machine meanwhile changes
// for all of them.
//
// It opens builds, checks them and takes times; what the times mean is for others to say. It must not import the
// compiler: what it shows of a build must not depend on how the build was made.
package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"amkc/runtime/host"
)

// Options say what is measured.
type Options struct {
	Positions []int
	Rounds    int // in which each entrant has one turn at each position
	Openings  int // how often the builds are opened anew, each for its share of the rounds; 0: twice
	// More says whether to take as many openings and rounds again. It is called once, when the openings were taken
	// without an error. nil: no.
	More func() bool
	// Bench has launches and warm-up of a turn, and the stage that is measured by itself, if one is: then the builds
	// have to have a step in parts, and each is checked for that stage too.
	Bench host.BenchOptions
	GPU   int
}

// An Entrant takes part in turns: a build, and how many tokens per launch of it decodes.
type Entrant struct {
	Name  string // in turns
	Dir   string
	Steps int // 0: what bench takes by itself
	// Session: entrants of one build and one session share what is open; those of different sessions have weights and
	// a cache each, as two builds have that are alike.
	Session string
	// Trusted builds are checked once in a run, the others each time they are opened.
	Trusted bool
	// Profiled is given a profile of the build, if there is to be one: of the first position, once, when all turns of
	// the first opening are taken, so that none of them follows kernels which no other entrant has launched. It is not
	// called where there can be no profile: the turns are what was asked for.
	Profiled func(*host.Profile)
}

// A Turn is one measurement. Without an error there is a report, and the build has passed check in this run.
type Turn struct {
	Build    string            `json:"build"` // the entrant's name
	Position int               `json:"position"`
	Round    int               `json:"round"` // from 0
	Opening  int               `json:"opening"`
	Error    string            `json:"error,omitempty"`
	Report   *host.BenchReport `json:"report,omitempty"`

	Cause error             `json:"-"` // of Error
	Check *host.CheckReport `json:"-"` // of the opening; nil if it could not be carried out
	// CheckStage is that of the stage that is measured by itself.
	CheckStage *host.BisectReport `json:"-"`
}

// Take opens all builds at once and measures them round by round. It opens them anew for each of Openings shares of the
// rounds, in another order each time, and takes the turns in that order: one build opened twice differs by up to 2 %,
// by where its weights and cache lie. As many openings as there are builds have each of them at each place once. It
// checks each build whenever it opens it, unless its entrants are trusted, and gives every turn to emit; one that could
// not be taken says why. The builds must fit the GPU's memory together. It reports whether all turns could be taken,
// and returns the cause of a cancelled context and errors of emit and of closing. A profile that could not be made is
// no error.
func Take(ctx context.Context, entrants []Entrant, o Options, emit func(Turn) error) (all bool, err error) {
	return take(ctx, entrants, o, openChecked, emit)
}

// A build is open.
type build interface {
	bench(ctx context.Context, o host.BenchOptions) (*host.BenchReport, error)
	profile(ctx context.Context, position int) (*host.Profile, error)
	checked() (*host.CheckReport, *host.BisectReport)
	close() error
}

// checks are what was found of a build that has passed: of the step, and of a stage if one is measured by itself.
type checks struct {
	check *host.CheckReport
	stage *host.BisectReport
}

// An opener opens a build and checks it, and a stage of it if one is named. With known results it checks nothing.
type opener func(ctx context.Context, dir string, gpu int, stage string, known *checks) build

func take(ctx context.Context, entrants []Entrant, o Options, open opener,
	emit func(Turn) error) (all bool, err error) {
	openings := o.Openings
	if openings == 0 {
		openings = 2
	}
	all, trusted := true, map[string]*checks{}
	for k, end := 0, openings; k < end; k++ {
		first, last := (k*o.Rounds+openings-1)/openings, ((k+1)*o.Rounds+openings-1)/openings
		if first < last {
			taken, err := takeShare(ctx, ordered(entrants, k), o, k, [2]int{first, last}, trusted, open, emit)
			if err != nil {
				return false, err
			}
			all = all && taken
		}
		if k+1 == openings && all && o.More != nil && o.More() {
			end += openings
		}
	}
	return all, nil
}

// ordered is the order of an opening: rotated by one each time, and reversed in every other cycle. What is opened in
// the middle of three is measured otherwise than what is at their ends.
func ordered(entrants []Entrant, opening int) []Entrant {
	n := len(entrants)
	if n == 0 {
		return nil
	}
	by := opening % n
	order := slices.Concat(entrants[by:], entrants[:by])
	if opening/n%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// takeShare opens builds in the order of entrants and takes the turns of some rounds, the second number excluded. It
// reuses the results of trusted builds, by directory, and adds to them.
func takeShare(ctx context.Context, entrants []Entrant, o Options, opening int, rounds [2]int,
	trusted map[string]*checks, open opener, emit func(Turn) error) (all bool, err error) {
	type key struct{ dir, session string }
	builds := map[key]build{}
	defer func() {
		for _, b := range builds {
			err = errors.Join(err, b.close())
		}
	}()
	for _, e := range entrants {
		k := key{e.Dir, e.Session}
		if builds[k] != nil {
			continue
		}
		var known *checks
		if e.Trusted {
			known = trusted[e.Dir]
		}
		builds[k] = open(ctx, e.Dir, o.GPU, o.Bench.Stage, known)
		if check, stage := builds[k].checked(); check != nil && check.Passed && (stage == nil || stage.Passed) {
			trusted[e.Dir] = &checks{check, stage}
		}
	}
	all = true
	for _, position := range o.Positions {
		for round := rounds[0]; round < rounds[1]; round++ {
			for _, e := range entrants {
				t := Turn{Build: e.Name, Position: position, Round: round, Opening: opening}
				bench := o.Bench
				bench.Position, bench.StepsPerLaunch = position, e.Steps
				b := builds[key{e.Dir, e.Session}]
				report, err := b.bench(ctx, bench)
				if cause := context.Cause(ctx); cause != nil {
					return false, cause
				}
				if t.Check, t.CheckStage = b.checked(); err != nil {
					t.Error, t.Cause, all = err.Error(), err, false
				} else {
					t.Report = report
				}
				if err := emit(t); err != nil {
					return false, err
				}
			}
		}
	}
	for _, e := range entrants {
		if e.Profiled == nil || opening > 0 || len(o.Positions) == 0 {
			continue
		}
		p, err := builds[key{e.Dir, e.Session}].profile(ctx, o.Positions[0])
		if cause := context.Cause(ctx); cause != nil {
			return false, cause
		}
		if err == nil {
			e.Profiled(p)
		}
	}
	return all, nil
}

// An openBuild is a session that has passed check, or why there is none.
type openBuild struct {
	session *host.Session
	check   *host.CheckReport
	stage   *host.BisectReport // nil: none is measured by itself
	failed  error
}

// ErrDiffers is what turns of a build fail with whose kernel computes something else than its plain kernels.
var ErrDiffers = errors.New("the kernel and the plain kernels differ")

func openChecked(ctx context.Context, dir string, gpu int, stage string, known *checks) build {
	s, err := host.Open(ctx, dir, host.Options{GPU: gpu})
	if err != nil {
		return &openBuild{failed: err}
	}
	b := &openBuild{session: s}
	if known != nil {
		b.check, b.stage, b.failed = known.check, known.stage, s.Trust(known.check)
	} else {
		b.failed = b.verify(ctx, stage)
	}
	if b.failed == nil {
		b.failed = s.FillCache() // so that checked and trusted sessions read the same
	}
	return b
}

// verify checks the build, and a stage of it, if one is named.
func (b *openBuild) verify(ctx context.Context, stage string) (err error) {
	if b.check, err = b.session.Check(ctx, nil); err != nil {
		return err
	}
	if !b.check.Passed {
		return fmt.Errorf("%w: %s", ErrDiffers, b.check.Failures[0])
	}
	if stage == "" {
		return nil
	}
	if b.stage, err = b.session.CheckStage(ctx, stage, nil); err == nil && !b.stage.Passed {
		err = fmt.Errorf("%w: %s", ErrDiffers, b.stage.First)
	}
	return err
}

func (b *openBuild) bench(ctx context.Context, o host.BenchOptions) (*host.BenchReport, error) {
	if b.failed != nil {
		return nil, b.failed
	}
	return b.session.Bench(ctx, o, nil)
}

func (b *openBuild) profile(ctx context.Context, position int) (*host.Profile, error) {
	if b.failed != nil {
		return nil, b.failed
	}
	return b.session.Profile(ctx, host.ProfileOptions{Position: position})
}

func (b *openBuild) checked() (*host.CheckReport, *host.BisectReport) { return b.check, b.stage }

func (b *openBuild) close() error {
	if b.session == nil {
		return nil
	}
	return b.session.Close()
}
