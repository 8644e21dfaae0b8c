package costcheck

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir"
	"amkc/passes"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/cost-model.md and docs/passes.md")

const root = "../../"

// A row is one measurement of docs/results that the model has a prediction for.
type row struct {
	target    *ir.Target
	command   string            // that made the build
	earlier   bool              // than the default of ring.in_flight that follows the layers
	times     map[string]micros // by the paths of their fields (timesOf)
	Section   string            `json:"section"`
	ID        string            `json:"id"`
	Model     string            `json:"model"`
	Type      string            `json:"dtype"`
	Weights   string            `json:"weights"` // nothing: as they are
	Sequences int               `json:"sequences"`
	Passed    bool              `json:"passed"`
	Position  int               `json:"position"`
	Steps     int               `json:"steps_per_launch"`
	Bytes     float64           `json:"bytes_per_token"`
	Variant   string            `json:"variant"`  // section ablations
	Ratio     float64           `json:"ratio"`    // to the default build, in the same round
	Defaults  int               `json:"defaults"` // number in bench/report.py; 0: before they were counted
	Commands  []string          `json:"steps"`
	Machine   struct {
		SMs int `json:"sms"`
	} `json:"machine"`
	Environment string `json:"environment"`
}

func (r *row) name() string { return r.target.Name + " " + r.ID }

// build is the model with what its matrices are stored as.
func (r *row) build() string {
	out := r.Model
	switch {
	case r.Weights != "":
		out += " " + r.Weights
	case r.Type == "fp32":
		out += " fp32"
	}
	if r.Sequences > 1 {
		out += fmt.Sprintf(" of %d sequences", r.Sequences)
	}
	return out
}

// label is the build, and what else its name has: two rows of a section and a position have different ones.
func (r *row) label() string {
	out := r.build()
	if _, rest, found := strings.Cut(r.ID, "-max"); found {
		digits, _, _ := strings.Cut(rest, "-")
		out += ", max-seq " + digits
	}
	return out
}

// micros is a median in microseconds: a number, or a field of the object that has p10 and p90 too.
type micros float64

func (m *micros) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return json.Unmarshal(text, (*float64)(m))
	}
	var q struct {
		Median float64 `json:"median"`
	}
	err := json.Unmarshal(text, &q)
	*m = micros(q.Median)
	return err
}

// What a row is for: the constants marked as calibrated were chosen on section bench, those of formats on rows of
// roofline and compare, and the rest tests them.
const (
	calibrating = "bench"
	contexts    = "contexts"
	ablations   = "ablations"
	passTimes   = "pass_times"
)

// allRows keeps what measured has read: the tests ask for the same.
var allRows []row

// measured returns the rows whose times are compared (followed), of every GPU, in the order of the files.
func measured(t testing.TB) []row {
	if allRows == nil {
		for _, text := range results(t) {
			allRows = append(allRows, rowsOf(t, text, slices.Collect(maps.Keys(followed))...)...)
		}
		require.NotEmpty(t, allRows)
	}
	return allRows
}

// results returns the files of docs/results that bench/results.py has written, one for each GPU, by name.
func results(t testing.TB) [][]byte {
	paths, err := filepath.Glob(root + "docs/results/*.json")
	require.NoError(t, err)
	var out [][]byte
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var head struct {
			Schema string `json:"schema"`
		}
		require.NoError(t, json.Unmarshal(text, &head), path)
		if head.Schema == "amkc.results/1" {
			out = append(out, text)
		}
	}
	return out
}

// targetOf reads the GPU off the command that made a row's build.
func targetOf(t testing.TB, command string) *ir.Target {
	words := strings.Fields(command)
	i := slices.Index(words, "--target")
	require.True(t, 0 <= i && i+1 < len(words),
		"no --target in %q: make the row again, with bench/results.py --target NAME", command)
	target := ir.FindTarget(words[i+1])
	require.NotNil(t, target, "%q is built for no GPU of ir.Targets: make the row again, with bench/results.py "+
		"--target NAME", command)
	return target
}

// rawRows returns the rows of some sections as they are written.
func rawRows(t testing.TB, text []byte, sections ...string) []json.RawMessage {
	var file struct {
		Rows []json.RawMessage `json:"rows"`
	}
	require.NoError(t, json.Unmarshal(text, &file))
	return slices.DeleteFunc(file.Rows, func(raw json.RawMessage) bool {
		var head struct {
			Section string `json:"section"`
		}
		require.NoError(t, json.Unmarshal(raw, &head))
		return !slices.Contains(sections, head.Section)
	})
}

// rowsOf returns the rows of some sections that passed.
func rowsOf(t testing.TB, text []byte, sections ...string) []row {
	var out []row
	for _, raw := range rawRows(t, text, sections...) {
		r := row{Steps: 16} // what bench does unless told otherwise
		require.NoError(t, json.Unmarshal(raw, &r))
		if r.Passed {
			r.command, r.times = compiling(t, r.Commands), timesOf(t, raw)
			r.target, r.earlier = targetOf(t, r.command), slices.Contains(threeInFlight, amkcOf(t, text, r.Environment))
			if r.Machine.SMs != 0 {
				require.Equal(t, r.target.SMs, r.Machine.SMs,
					"%s was measured on another chip than the record describes", r.name())
			}
			out = append(out, r)
		}
	}
	return out
}

// compiling is the command of a row's steps that makes its build. Others compare it with other engines first.
func compiling(t testing.TB, steps []string) string {
	for _, step := range steps {
		words := strings.Fields(step)
		if path.Base(words[0]) == "amkc" && strings.HasPrefix(words[1], "testdata/") {
			return step
		}
	}
	require.Fail(t, "no step compiles a model of testdata", steps)
	return ""
}

// threeInFlight are the builds of amkc that kept 3 chunks in flight for every model on an H200. Rows do not say it:
// they are those from before docs/results had another default.
var threeInFlight = []string{"e54f88509c85", "b9792362cfa2", "515699f0326f"}

// amkcOf is the digest of the amkc that an environment of a file of results names.
func amkcOf(t testing.TB, text []byte, environment string) string {
	var file struct {
		Environments map[string]struct {
			Amkc string `json:"amkc"`
		} `json:"environments"`
	}
	require.NoError(t, json.Unmarshal(text, &file))
	_, digest, _ := strings.Cut(file.Environments[environment].Amkc, "SHA-256 ")
	return strings.TrimSuffix(digest, ")")
}

// compiled keeps builds: several rows and tests ask for the same.
var compiled = map[string]*compiler.Scheduled{}

// compileAs compiles the model of a row's command with the command's flags and a configuration, for a target. It
// returns the program of one token.
func compileAs(t testing.TB, command string, target *ir.Target, config ir.ScheduleConfig) *ir.Program {
	return compileAll(t, command, target, config).Program
}

// compileAll does, and returns all programs of the build.
func compileAll(t testing.TB, command string, target *ir.Target, config ir.ScheduleConfig) *compiler.Scheduled {
	words := strings.Fields(command)[1:]
	if i := slices.Index(words, "-o"); i >= 0 {
		words = slices.Delete(words, i, i+2)
	}
	key := fmt.Sprint(target.Name, config, words)
	if l, known := compiled[key]; known {
		return l
	}
	opts := compiler.Options{Name: "measured", ConfigOnly: true, Target: target, Config: config}
	number := func(i int) int {
		n, err := strconv.Atoi(words[i+1])
		require.NoError(t, err, command)
		return n
	}
	for i, w := range words {
		switch w {
		case "--max-seq":
			opts.MaxSeq = number(i)
		case "--rows":
			opts.Passes = append(opts.Passes, ir.PassOf(1, number(i)))
		case "--sequences":
			opts.Passes = append(opts.Passes, ir.PassOf(number(i), 1))
		case "--weights":
			var err error
			opts.Formats, err = passes.ParseWeightFormats(words[i+1])
			require.NoError(t, err, command)
		case "--dtype":
			d := map[string]ir.DType{"bf16": ir.BF16, "fp16": ir.F16, "fp32": ir.F32}[words[i+1]]
			opts.DType = &d
		case "--config":
			require.Fail(t, "a row's command has a configuration that the test does not know", command)
		}
	}
	opts.Model = root + words[0]
	l, err := compiler.RunPasses(opts)
	require.NoError(t, err, command)
	require.NoError(t, l.Close())
	compiled[key] = l
	return l
}

// compileRow compiles what the row measured.
func compileRow(t testing.TB, r row, config ir.ScheduleConfig) *ir.Program {
	return buildOf(t, r, config).Program
}

// buildOf does, and returns all programs of the build.
func buildOf(t testing.TB, r row, config ir.ScheduleConfig) *compiler.Scheduled {
	return compileAll(t, r.command, r.target, asMade(r, config))
}

// asMade adds what was the default when a row was made: 3 chunks in flight, and, where defaults have no number, 16
// splits of every context that is split. Builds for several sequences have always had the splits of today.
func asMade(r row, config ir.ScheduleConfig) ir.ScheduleConfig {
	if r.earlier && config.PipeliningDepth == 0 && config.Tiling["ring"]["in_flight"] == 0 {
		config.PipeliningDepth = 3
	}
	if r.Defaults >= 2 || strings.Contains(r.command, "--sequences") {
		return config
	}
	attention := map[string]int{"max_splits": 16, "middle_splits": 0}
	maps.Copy(attention, config.Tiling["attention"])
	tiling := map[string]map[string]int{}
	maps.Copy(tiling, config.Tiling)
	tiling["attention"] = attention
	config.Tiling = tiling
	return config
}

// byDefault is the schedule that amkc takes on its own.
var byDefault ir.ScheduleConfig

// predictRow predicts the step in the middle of the launch that the row measured.
func predictRow(t testing.TB, r row, config ir.ScheduleConfig) *cost.Prediction {
	return predict(t, r.name(), compileRow(t, r, config), r.Position+r.Steps/2)
}

// A step is what a prediction is for.
type step struct {
	program  *ir.Program
	position int
}

// predicted keeps predictions: several rows and tests ask for the same.
var predicted = map[step]*cost.Prediction{}

func predict(t testing.TB, name string, p *ir.Program, position int) *cost.Prediction {
	key := step{p, position}
	if known, ok := predicted[key]; ok {
		return known
	}
	m, err := cost.New(p)
	require.NoError(t, err, name)
	out, err := m.At(position)
	require.NoError(t, err, name)
	predicted[key] = out
	return out
}
