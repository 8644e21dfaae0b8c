package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"amkc/runtime/host"
)

// turnsUsage is printed for arguments that are none.
const turnsUsage = "usage: device turns [--positions N,N...] [--rounds N] [--launches N] [--warm-up N] [--gpu N] " +
	"DIR[:STEPS]..."

// turnsOptions say what turns measures.
type turnsOptions struct {
	positions []int
	rounds    int
	bench     host.BenchOptions // launches and warm-up of a turn
	gpu       int
}

// An entrant takes part in turns: a build, and how many tokens per launch of it decodes.
type entrant struct {
	name  string // as it was given
	dir   string
	steps int // 0: what bench takes by itself
}

// A turn is one line of what turns prints. Without an error there is a report, and the build has passed check in this
// run.
type turn struct {
	Build    string            `json:"build"` // DIR or DIR:STEPS, as it was given
	Position int               `json:"position"`
	Round    int               `json:"round"` // from 0
	Error    string            `json:"error,omitempty"`
	Report   *host.BenchReport `json:"report,omitempty"`
}

// turns opens several builds at once and measures them interleaved, round by round, so that what changes on the machine
// meanwhile changes for all. For the second half of the rounds it opens them anew in reverse order, and takes the turns
// in that: one build opened twice differs by up to 2 %, by where its weights and cache lie. It checks each build
// whenever it opens it, and prints a line for every turn; one that could not be taken says why. The builds must fit the
// GPU's memory together. Exit code 1: some turns could not be taken.
func turns(args []string, stdout, stderr io.Writer) int {
	o, entrants, err := parseTurns(args)
	if err != nil {
		fmt.Fprintln(stderr, turnsUsage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	all, half := true, (o.rounds+1)/2
	for _, rounds := range [][2]int{{0, half}, {half, o.rounds}} {
		if rounds[0] == rounds[1] || err != nil {
			break
		}
		var taken bool
		taken, err = takeTurns(ctx, entrants, o, rounds, json.NewEncoder(stdout))
		all = all && taken
		slices.Reverse(entrants)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	case !all:
		return 1
	}
	return 0
}

func parseTurns(args []string) (o turnsOptions, entrants []entrant, err error) {
	set := flag.NewFlagSet("turns", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	positions := set.String("positions", "0", "")
	set.IntVar(&o.rounds, "rounds", 3, "")
	set.IntVar(&o.bench.Launches, "launches", 40, "")
	set.IntVar(&o.bench.WarmUp, "warm-up", 5, "")
	set.IntVar(&o.gpu, "gpu", 0, "")
	if err := set.Parse(args); err != nil {
		return o, nil, err
	}
	for p := range strings.SplitSeq(*positions, ",") {
		n, err := strconv.Atoi(p)
		if err != nil {
			return o, nil, err
		}
		o.positions = append(o.positions, n)
	}
	for _, arg := range set.Args() {
		e := entrant{name: arg, dir: arg}
		if dir, steps, given := strings.Cut(arg, ":"); given {
			if e.steps, err = strconv.Atoi(steps); err != nil || e.steps < 1 {
				return o, nil, fmt.Errorf("%q", arg)
			}
			e.dir = dir
		}
		entrants = append(entrants, e)
	}
	if len(entrants) == 0 || o.rounds < 1 || o.bench.Launches < 1 || o.bench.WarmUp < 1 {
		return o, nil, errors.New("nothing to measure")
	}
	return o, entrants, nil
}

// takeTurns opens builds in the order of entrants and takes the turns of some rounds, the second number excluded. It
// prints a line for every turn, and reports whether all could be taken. It returns the cause of a cancelled context,
// and errors of printing and of closing.
func takeTurns(ctx context.Context, entrants []entrant, o turnsOptions, rounds [2]int,
	out *json.Encoder) (all bool, err error) {
	builds := map[string]*openBuild{}
	defer func() {
		for _, b := range builds {
			err = errors.Join(err, b.close())
		}
	}()
	for _, e := range entrants {
		if builds[e.dir] == nil {
			builds[e.dir] = openChecked(ctx, e.dir, o.gpu)
		}
	}
	all = true
	for _, position := range o.positions {
		for round := rounds[0]; round < rounds[1]; round++ {
			for _, e := range entrants {
				t := turn{Build: e.name, Position: position, Round: round}
				bench := o.bench
				bench.Position, bench.StepsPerLaunch = position, e.steps
				report, err := builds[e.dir].bench(ctx, bench)
				if cause := context.Cause(ctx); cause != nil {
					return false, cause
				}
				if err != nil {
					t.Error, all = err.Error(), false
				} else {
					t.Report = report
				}
				if err := out.Encode(t); err != nil {
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
	failed  error
}

func openChecked(ctx context.Context, dir string, gpu int) *openBuild {
	s, err := host.Open(ctx, dir, host.Options{GPU: gpu})
	if err != nil {
		return &openBuild{failed: err}
	}
	b := &openBuild{session: s}
	check, err := s.Check(ctx, nil)
	switch {
	case err != nil:
		b.failed = err
	case !check.Passed:
		b.failed = fmt.Errorf("the kernel and the plain kernels differ: %s", check.Failures[0])
	}
	return b
}

func (b *openBuild) bench(ctx context.Context, o host.BenchOptions) (*host.BenchReport, error) {
	if b.failed != nil {
		return nil, b.failed
	}
	return b.session.Bench(ctx, o, nil)
}

func (b *openBuild) close() error {
	if b.session == nil {
		return nil
	}
	return b.session.Close()
}
