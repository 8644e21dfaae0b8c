package exploration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"amkc/compiler/objects"
	"amkc/explore"
	"amkc/runtime/host"
)

// Options say how builds are explored.
type Options struct {
	Root      string // of the repository
	Cache     string // where compiled objects are kept
	Dir       string // where builds and scripts are written
	Schedules int
	All       bool                      // all jobs of each build, and not those of the table alone
	Command   []string                  // that starts a worker
	Wanted    func(i int, b Build) bool // whether the i-th build is explored; its schedules follow from i
	Done      func(*Row)
}

// A Row is what came of a build.
type Row struct {
	Build     Build            `json:"build"`
	Jobs      []string         `json:"jobs"`
	Schedules int              `json:"schedules"` // over all jobs
	Launches  uint64           `json:"launches"`
	Steps     uint64           `json:"steps"`
	Choices   uint64           `json:"choices"`
	Late      uint64           `json:"late"` // stores that others saw late, and loads of what was not the newest store
	Values    int              `json:"values"`
	Findings  []*explore.Found `json:"findings"`
	Compiled  int              `json:"compiled"` // objects that were not in the cache
	Compiler  string           `json:"-"`
}

// atOnce is how many builds are explored at a time, each by one worker.
const atOnce = 2

// Run explores the builds that are wanted, and returns their rows in their order.
func Run(ctx context.Context, o Options, builds []Build) ([]*Row, error) {
	rows := make([]*Row, len(builds))
	var mu sync.Mutex
	err := objects.SideBySide(len(builds), atOnce, func(i int) (err error) {
		if !o.Wanted(i, builds[i]) {
			return nil
		}
		if rows[i], err = explored(ctx, &o, builds[i], i); err != nil {
			return fmt.Errorf("%s: %w", builds[i].Name(), err)
		}
		mu.Lock()
		defer mu.Unlock()
		if o.Done != nil {
			o.Done(rows[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(r *Row) bool { return r == nil }), nil
}

// explored explores one build. Its seeds are its own, so that the table has as many schedules as it has rows of them.
func explored(ctx context.Context, o *Options, b Build, number int) (*Row, error) {
	work := filepath.Join(o.Dir, fmt.Sprintf("%02d", number+1))
	dir, err := b.Compile(ctx, o.Root, work)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Join(work, "model"))
	facts, err := host.ReadFacts(dir)
	if err != nil {
		return nil, err
	}
	row := &Row{Build: b}
	if !o.All {
		row.Jobs = b.jobs(facts, number)
	}
	report, objects, err := o.explore(ctx, dir, row.Jobs, number)
	if err != nil {
		return nil, err
	}
	row.Jobs, row.Compiled, row.Compiler, row.Findings = nil, objects.Made, objects.Compiler, report.Findings
	for _, j := range report.Jobs {
		row.Jobs = append(row.Jobs, j.Name)
		row.Schedules, row.Values = row.Schedules+j.Schedules, row.Values+j.Values
		row.Launches, row.Steps, row.Choices = row.Launches+j.Launches, row.Steps+j.Steps, row.Choices+j.Choices
		row.Late += j.Counts.Delayed + j.Counts.Stale
	}
	for i, f := range report.Findings {
		if f.Script == nil {
			continue
		}
		if err := f.Script.Write(filepath.Join(work, fmt.Sprintf("explore-%d.json", i+1))); err != nil {
			return nil, err
		}
	}
	if len(report.Findings) == 0 {
		err = os.RemoveAll(work)
	}
	return row, err
}

// explore compiles what jobs of a build run, and runs them. make explore-coverage counts the lines of kernels as amkc
// explore compiles them: of called functions compilers list other lines.
func (o *Options) explore(ctx context.Context, dir string, jobs []string, number int) (*explore.Report,
	*explore.Objects, error) {
	all := explore.Options{Build: dir, Cache: o.Cache, Schedules: o.Schedules, Seed: uint64(number * (o.Schedules - 1)),
		Jobs: jobs, Workers: 1, Called: os.Getenv("AMKC_COVERAGE") == "", Command: o.Command}
	objects, err := explore.Compile(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	report, err := explore.Explore(ctx, all)
	return report, objects, err
}

// everyFew are jobs that take a kernel of their own, or long: rows of the table have them by turns. measure comes along
// with stops, which is short.
var everyFew = []string{"ends", "reference", "stops", "late-epochs", "abort"}

// jobs are those that the table runs on a build: the steps that others are compared with, all of its passes, one
// prompt, and by turns one of those that every build has.
func (b Build) jobs(facts *host.Facts, number int) []string {
	prompts := []string{"prompt-20", "prompt-9", "prompt-3"}
	var jobs []string
	for _, j := range explore.Jobs(facts) {
		turn := slices.Index(everyFew, j.Name)
		if j.Name == "measure" {
			turn = slices.Index(everyFew, "stops")
		}
		prompt := slices.Index(prompts, j.Name)
		switch {
		case turn >= 0 && turn != number%len(everyFew),
			prompt >= 0 && prompt != number%len(prompts),
			j.Name == "drawings" && b["ends"] != "drawn":
			continue
		}
		jobs = append(jobs, j.Name)
	}
	return jobs
}
