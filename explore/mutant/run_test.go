package mutant_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/explore"
	"amkc/explore/mutant"
)

func TestMain(m *testing.M) {
	if explore.IsWorker() {
		os.Exit(explore.Work(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles kernels and runs them")
	}
	schedules, _ := strconv.Atoi(os.Getenv("MUTANTS_SCHEDULES"))
	exe, err := os.Executable()
	require.NoError(t, err)
	o := explore.MutantOptions{Cache: cache(t), Schedules: schedules, Jobs: 1, Workers: runtime.NumCPU(), Command: []string{exe}}
	only := os.Getenv("MUTANTS_BUILDS")
	for i := range builds {
		if only == "" || strings.Contains(only, builds[i].name) {
			o.Builds = append(o.Builds, builds[i].compile(t))
		}
	}
	if jobs := os.Getenv("MUTANTS_JOBS"); jobs != "" {
		for i := range o.Builds {
			o.Builds[i].Jobs = strings.Split(jobs, ",")
		}
	}
	killed, _ := os.ReadFile(os.Getenv("MUTANTS_SKIP"))
	o.Only = func(m *mutant.Mutant) bool {
		return strings.Contains(m.ID(), os.Getenv("MUTANTS_ONLY")) && !strings.Contains(string(killed), m.ID()+" [killed")
	}
	log, _ := os.OpenFile("/tmp/hU/each.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	o.Each = func(m *explore.MutantResult) {
		fmt.Fprintf(log, "%s [%s %s] %s | %s | %s | %d | %.200s\n", m.ID, m.Fate, m.By, m.Build, m.Job, m.Schedule, m.Runs, m.Message)
	}
	r, err := explore.RunMutants(t.Context(), o)
	require.NoError(t, err)
	for _, m := range r.Results {
		t.Logf("%s [%s %s] %s %s %s %d", m.ID, m.Fate, m.By, m.Build, m.Job, m.Schedule, m.Runs)
	}
	t.Logf("\n%s", r.Table())
}
