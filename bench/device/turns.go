package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"amkc/search/turns"
)

// turnsUsage is printed for invalid arguments.
const turnsUsage = "usage: device turns [--positions N,N...] [--rounds N] [--openings N] [--launches N] " +
	"[--warm-up N] [--prompt N] [--gpu N] DIR[:STEPS]..."

// takeTurns measures builds interleaved (package turns), and prints a line for every turn. Exit code 1: some turns
// could not be taken.
func takeTurns(args []string, stdout, stderr io.Writer) int {
	o, entrants, err := parseTurns(args)
	if err != nil {
		fmt.Fprintln(stderr, turnsUsage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	out := json.NewEncoder(stdout)
	all, err := turns.Take(ctx, entrants, o, func(t turns.Turn) error { return out.Encode(t) })
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "device: error:", err)
		return 2
	case !all:
		return 1
	}
	return 0
}

func parseTurns(args []string) (o turns.Options, entrants []turns.Entrant, err error) {
	set := flag.NewFlagSet("turns", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	positions := set.String("positions", "0", "")
	set.IntVar(&o.Rounds, "rounds", 3, "")
	set.IntVar(&o.Openings, "openings", 2, "")
	set.IntVar(&o.Bench.Launches, "launches", 40, "")
	set.IntVar(&o.Bench.WarmUp, "warm-up", 5, "")
	set.IntVar(&o.Bench.Prompt, "prompt", 0, "")
	set.IntVar(&o.GPU, "gpu", 0, "")
	if err := set.Parse(args); err != nil {
		return o, nil, err
	}
	for p := range strings.SplitSeq(*positions, ",") {
		n, err := strconv.Atoi(p)
		if err != nil {
			return o, nil, err
		}
		o.Positions = append(o.Positions, n)
	}
	for _, arg := range set.Args() {
		e := turns.Entrant{Name: arg, Dir: arg}
		if dir, steps, given := strings.Cut(arg, ":"); given {
			if e.Steps, err = strconv.Atoi(steps); err != nil || e.Steps < 1 {
				return o, nil, fmt.Errorf("%q", arg)
			}
			e.Dir = dir
		}
		entrants = append(entrants, e)
	}
	if len(entrants) == 0 || o.Rounds < 1 || o.Openings < 1 || o.Bench.Launches < 1 || o.Bench.WarmUp < 1 {
		return o, nil, errors.New("nothing to measure")
	}
	return o, entrants, nil
}
