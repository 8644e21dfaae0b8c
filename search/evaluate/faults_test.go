package evaluate

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/internal/population"
	"amkc/ir"
	"amkc/search"
	"amkc/search/turns"
)

var (
	faultModels = flag.String("fault-models", "", "damage schedules of `all` models, or of those that patterns below "+
		"testdata/models match, with commas")
	faultSeeds = flag.Int("fault-seeds", 1, "damage each schedule by each operator in `N` ways")
	faultSave  = flag.String("fault-save", "", "`FILE` to write what was counted to")
)

// faultCount is what became of the schedules that an operator has damaged.
type faultCount struct {
	Operator string `json:"operator"`
	Made     int    `json:"made"`     // damaged, and another program than before
	Rejected int    `json:"rejected"` // before anything is built
	Failed   int    `json:"failed"`   // proved, and found to compute something else
	Harmless int    `json:"harmless"` // proved, and computes the same
	Launched int    `json:"launched"` // of the rejected; 0, or the test fails
	Kept     int    `json:"kept"`     // of the rejected and the failed; 0, or the test fails
}

// modelsToDamage lists models below testdata, which amkc has to take.
func modelsToDamage(t *testing.T) []string {
	t.Helper()
	pattern := *faultModels
	switch pattern {
	case "":
		if os.Getenv("AMKC_LONG") == "" {
			return []string{"models/zoo/llama-gqa"}
		}
		return []string{"models/zoo/llama-gqa", "models/zoo/gemma-tied", "models/zoo/gpt2", "models/pycoder-5m"}
	}
	var paths []string
	for _, pattern := range strings.Split(strings.ReplaceAll(pattern, "all", "*,*/*,*/*/*"), ",") {
		found, err := filepath.Glob(filepath.Join("../../testdata/models", pattern, "config.json"))
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	var models []string
	for _, path := range paths {
		model, err := filepath.Rel("../../testdata", filepath.Dir(path))
		require.NoError(t, err)
		if _, err := optionsToDamage(t, model); err == nil {
			models = append(models, model)
		} else {
			t.Logf("%s is refused: %v", model, firstError(err))
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// optionsToDamage compiles a model, for as many positions as it was made for or, where that is refused, for fewer: from
// position 64 on some scale queries in a way that is not modelled.
func optionsToDamage(t *testing.T, model string) (o compiler.Options, err error) {
	t.Helper()
	o = optionsFor(t, model, "h200")
	for _, o.MaxSeq = range []int{0, 64} {
		var l *compiler.Scheduled
		if l, err = compiler.RunPasses(o); err == nil {
			return o, l.Close()
		}
	}
	return o, err
}

// Every operator that can damage a schedule is applied to lowered models, and each damaged program is judged as a
// candidate on a GPU that finds it ten times as fast as its baseline. What is not proved is never built or launched;
// and nothing that computes something else passes, because what is checked is what the reference VM makes of it.
//
//	go test ./search/evaluate -run DamagedSchedulesAreNeverKept -timeout 2h -args -fault-models all
func TestDamagedSchedulesAreNeverKept(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	models, seeds := modelsToDamage(t), uint64(*faultSeeds)
	if *faultModels == "" && os.Getenv("AMKC_LONG") != "" {
		seeds = 4
	}
	counts := make([]faultCount, len(population.Operators))
	for _, model := range models {
		for i, op := range population.Operators {
			counts[i].Operator = op.Name
			for seed := range seeds {
				damageAndJudge(t, model, &population.Operators[i], seed, &counts[i])
			}
		}
	}
	all := faultCount{Operator: "all"}
	for _, c := range counts {
		all.Made, all.Rejected, all.Failed, all.Harmless = all.Made+c.Made, all.Rejected+c.Rejected,
			all.Failed+c.Failed, all.Harmless+c.Harmless
		all.Launched, all.Kept = all.Launched+c.Launched, all.Kept+c.Kept
	}
	if *faultSave != "" {
		text, err := json.MarshalIndent(map[string]any{"models": models, "seeds": seeds, "operators": counts,
			"all": all}, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(*faultSave, append(text, '\n'), 0o644))
	}
	t.Logf("%d models, %d damaged programs: %d rejected, %d compute something else, %d change nothing that matters; "+
		"%d of the first two kept, %d of the first launched", len(models), all.Made, all.Rejected, all.Failed,
		all.Harmless, all.Kept, all.Launched)
	require.Zero(t, all.Kept)
	require.Zero(t, all.Launched)
	require.Greater(t, all.Rejected, 25)
}

// damageAndJudge damages the schedule of a model, has the reference VM judge what it computes, and then a GPU that says
// that of it, and that it is fast. What may not happen is counted.
func damageAndJudge(t *testing.T, model string, op *population.Operator, seed uint64, count *faultCount) {
	t.Helper()
	what := fmt.Sprintf("%s of %s, seed %d", op.Name, model, seed)
	r := requestFor(t, nil, nil)
	o, err := optionsToDamage(t, model)
	require.NoError(t, err)
	r.Options, r.Positions = o, []int{0}
	changed := false
	r.Lower = func(o compiler.Options) (*compiler.Scheduled, error) {
		l, err := compiler.RunPasses(o)
		if err != nil {
			return nil, err
		}
		c := population.Case{Program: l.Program, Target: l.Program.Target, Kernel: true}
		before := ir.Print(l.Program)
		if changed = op.Apply(rand.New(rand.NewPCG(seed, 7)), &c) && c.Program != nil; changed {
			l.Program = c.Program
			changed = !bytes.Equal(before, ir.Print(l.Program))
		}
		return l, nil
	}
	v := judgedAs(t, r)
	if !changed {
		return
	}
	count.Made++
	g := newFakeGPU()
	if v.Class != search.Pass {
		g.fail = differs
	}
	g.us = func(e string, _, _ int) float64 {
		if e == candidate {
			return 10
		}
		return 100
	}
	r.Device, r.Build, r.Measure = search.DeviceCUDA, g.build, g.take
	measured, err := Evaluate(t.Context(), r)
	switch v.Class {
	case search.Rejected:
		count.Rejected++
		require.NotEmpty(t, v.Reason.Code, what)
		if len(g.built)+len(g.launched) > 0 {
			count.Launched++
			t.Errorf("%s is launched: %v", what, v.Reason)
		}
	case search.Fail:
		count.Failed++
	case search.Pass:
		count.Harmless++
		require.True(t, v.Correctness.Passed, what)
		require.True(t, v.Proof.OK, what)
		return
	default:
		t.Fatalf("%s: %s", what, v.Class)
	}
	require.NoError(t, err, what)
	if measured.Class != v.Class || measured.Decision != search.Revert {
		count.Kept++
		t.Errorf("%s is %s and %s", what, measured.Class, measured.Decision)
	}
}

// differs is how a GPU answers to a candidate whose kernel computes something else than the plain kernels.
func differs(entrant string) error {
	if entrant == candidate {
		return turns.ErrDiffers
	}
	return nil
}
