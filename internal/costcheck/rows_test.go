package costcheck

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/cost-model.md and docs/passes.md")

const root = "../../"

// A row is one measurement of docs/results that the model has a prediction for.
type row struct {
	target   *ir.Target
	Section  string   `json:"section"`
	ID       string   `json:"id"`
	Model    string   `json:"model"`
	Passed   bool     `json:"passed"`
	Position int      `json:"position"`
	Steps    int      `json:"steps_per_launch"`
	Latency  micros   `json:"latency_us"`
	Ceiling  micros   `json:"ceiling_us"`
	Drain    micros   `json:"drain_us"`
	Bytes    float64  `json:"bytes_per_token"`
	Loop     micros   `json:"loop_us"`     // section barriers
	Barriers micros   `json:"barriers_us"` // the same with tiling.loop.barrier 1
	Variant  string   `json:"variant"`     // section ablations
	Ratio    float64  `json:"ratio"`       // to the default build, in the same round
	Defaults int      `json:"defaults"`    // their number in bench/defaults.py; 0: that of before they were counted
	Commands []string `json:"steps"`
	Machine  struct {
		SMs int `json:"sms"`
	} `json:"machine"`
}

func (r *row) name() string { return r.target.Name + " " + r.ID }

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

// What a row is for: the constants marked as calibrated were chosen on section bench, and the rest tests them.
const (
	calibrating = "bench"
	contexts    = "contexts"
	barriers    = "barriers"
	ablations   = "ablations"
)

// allRows keeps what measured has read: the tests ask for the same.
var allRows []row

// measured returns the rows of sections bench, contexts and barriers of every GPU, in the order of the files.
func measured(t testing.TB) []row {
	if allRows == nil {
		for _, text := range results(t) {
			allRows = append(allRows, rowsOf(t, text, calibrating, contexts, barriers)...)
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
			require.NotEmpty(t, r.Commands, r.ID)
			r.target = targetOf(t, r.Commands[0])
			if r.Machine.SMs != 0 {
				require.Equal(t, r.target.SMs, r.Machine.SMs,
					"%s was measured on another chip than the record describes", r.name())
			}
			out = append(out, r)
		}
	}
	return out
}

// compiled keeps programs: several rows and tests ask for the same.
var compiled = map[string]*ir.Program{}

// compileAs compiles the model of a row's command with the command's flags and a configuration, for a target.
func compileAs(t testing.TB, command string, target *ir.Target, config ir.ScheduleConfig) *ir.Program {
	words := strings.Fields(command)
	key := fmt.Sprint(target.Name, config, words)
	if p, known := compiled[key]; known {
		return p
	}
	opts := compiler.Options{Name: "measured", ConfigOnly: true, Target: target, Config: config}
	for i, w := range words {
		switch w {
		case "--max-seq":
			n, err := strconv.Atoi(words[i+1])
			require.NoError(t, err)
			opts.MaxSeq = n
		case "--dtype":
			d := map[string]ir.DType{"bf16": ir.BF16, "fp16": ir.F16, "fp32": ir.F32}[words[i+1]]
			opts.DType = &d
		case "--config":
			require.Fail(t, "a row's command has a configuration that the test does not know", command)
		}
	}
	opts.Model = root + words[1]
	l, err := compiler.RunPasses(opts)
	require.NoError(t, err, command)
	defer l.Close()
	compiled[key] = l.Program
	return l.Program
}

// compileRow compiles what the row measured.
func compileRow(t testing.TB, r row, config ir.ScheduleConfig) *ir.Program {
	if r.Defaults < 2 {
		config = asMade(config)
	}
	return compileAs(t, r.Commands[0], r.target, config)
}

// asMade adds what was the default of every model when rows were made whose defaults have no number: 3 chunks in
// flight, and 16 splits of every context that is split.
func asMade(config ir.ScheduleConfig) ir.ScheduleConfig {
	if config.PipeliningDepth == 0 && config.Tiling["ring"]["in_flight"] == 0 {
		config.PipeliningDepth = 3
	}
	attention := map[string]int{"max_splits": 16, "middle_splits": 0}
	maps.Copy(attention, config.Tiling["attention"])
	tiling := map[string]map[string]int{}
	maps.Copy(tiling, config.Tiling)
	tiling["attention"] = attention
	config.Tiling = tiling
	return config
}

// byDefault is the schedule that amkc takes by itself.
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
