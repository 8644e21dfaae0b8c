// Package turns measures several builds interleaved on one GPU, so that changes of the machine during a run affect all
// of them.
//
// It opens builds, checks them and takes times; callers interpret the times. It must not import the compiler: a
// measurement must not depend on how the build was made.
package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"amkc/runtime/host"
)

// Options are the parameters of a measurement.
type Options struct {
	Positions []int
	Rounds    int // in which each entrant has one turn at each position
	Openings  int // how often the builds are reopened, each for its share of the rounds; 0: twice
	// More reports whether to repeat the openings and rounds once more. It is called once, after all openings
	// succeeded. nil: no.
	More  func() bool
	Bench host.BenchOptions // has launches and warm-up of a turn
	GPU   int
}

// An Entrant is a build to measure, and its number of tokens per launch.
type Entrant struct {
	Name  string // in turns
	Dir   string
	Steps int // 0: what bench takes on its own
	// Session: entrants of one build with the same session share weights and a cache. With different sessions, each has
	// its own, as two identical builds would.
	Session string
	// Trusted builds are checked once in a run, other builds each time they are opened.
	Trusted bool
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
	Check *host.CheckReport `json:"-"` // of the opening; nil if it could not be made
}

// Take opens all builds at once and measures them round by round. It reopens them for each of Openings shares of the
// rounds, in another order each time, and takes the turns in that order, because the times of a build opened twice
// differ by up to 2 % with the addresses of its weights and cache. With one opening per build, each build is at each
// place of the order once. It checks each build whenever it opens it, unless its entrants are trusted, and passes every
// turn to emit; a failed turn has the reason. All builds together must fit the GPU's memory. Take reports whether all
// turns succeeded, and returns the cause of a cancelled context and errors of emit and of closing.
func Take(ctx context.Context, entrants []Entrant, o Options, emit func(Turn) error) (all bool, err error) {
	return take(ctx, entrants, o, openChecked, emit)
}

// A build is open.
type build interface {
	bench(ctx context.Context, o host.BenchOptions) (*host.BenchReport, error)
	checked() *host.CheckReport
	close() error
}

// An opener opens a build and checks it. With a known result it checks nothing.
type opener func(ctx context.Context, dir string, gpu int, known *host.CheckReport) build

func take(ctx context.Context, entrants []Entrant, o Options, open opener,
	emit func(Turn) error) (all bool, err error) {
	openings := o.Openings
	if openings == 0 {
		openings = 2
	}
	all, trusted := true, map[string]*host.CheckReport{}
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
	trusted map[string]*host.CheckReport, open opener, emit func(Turn) error) (all bool, err error) {
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
		var known *host.CheckReport
		if e.Trusted {
			known = trusted[e.Dir]
		}
		builds[k] = open(ctx, e.Dir, o.GPU, known)
		if check := builds[k].checked(); check != nil && check.Passed {
			trusted[e.Dir] = check
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
				if t.Check = b.checked(); err != nil {
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
	return all, nil
}

// An openBuild is a session that has passed check, or why there is none.
type openBuild struct {
	session *host.Session
	check   *host.CheckReport
	failed  error
}

// ErrDiffers is the error of turns of a build whose kernel and plain kernels compute different results.
var ErrDiffers = errors.New("the kernel and the plain kernels differ")

func openChecked(ctx context.Context, dir string, gpu int, known *host.CheckReport) build {
	s, err := host.Open(ctx, dir, host.Options{GPU: gpu})
	if err != nil {
		return &openBuild{failed: err}
	}
	b := &openBuild{session: s}
	if known != nil {
		b.check, b.failed = known, s.Trust(known)
	} else if b.check, b.failed = s.Check(ctx, nil); b.failed == nil && !b.check.Passed {
		b.failed = fmt.Errorf("%w: %s", ErrDiffers, b.check.Failures[0])
	}
	if b.failed == nil {
		b.failed = s.FillCache() // so that checked and trusted sessions read the same
	}
	return b
}

func (b *openBuild) bench(ctx context.Context, o host.BenchOptions) (*host.BenchReport, error) {
	if b.failed != nil {
		return nil, b.failed
	}
	return b.session.Bench(ctx, o, nil)
}

func (b *openBuild) checked() *host.CheckReport { return b.check }

func (b *openBuild) close() error {
	if b.session == nil {
		return nil
	}
	return b.session.Close()
}
