package loopsize

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler"
	"amkc/ir"
	"amkc/passes"
)

var (
	report = flag.String("report", "", "directory to write looping.json and looping.md to; measures, and "+
		"has nvcc compile")
	most = flag.Int("nvcc-unrolled", 16, "most layers of an unrolled program that nvcc is given")
)

// shape is a directory with the config.json of a 1B model that has another number of layers, and nothing else.
func shape(t testing.TB, layers int) string {
	t.Helper()
	text, err := os.ReadFile("../../testdata/configs/llama-3.2-1b/config.json")
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, json.Unmarshal(text, &config))
	config["num_hidden_layers"] = layers
	text, err = json.Marshal(config)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644))
	return dir
}

// lower compiles a shape as far as a program, and says how long each pass took.
func lower(t testing.TB, layers, roll int) (*ir.Program, []Seconds, error) {
	t.Helper()
	dtype := ir.BF16
	var passed []Seconds
	l, err := compiler.RunPasses(compiler.Options{Model: shape(t, layers), Name: "model", ConfigOnly: true,
		DType:  &dtype,
		Target: ir.FindTarget("h200"),
		Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"loop": {"roll": roll}}},
		After: func(_ int, p *passes.Pass, _ *passes.State, took time.Duration) error {
			passed = append(passed, Seconds{p.Name, took.Seconds()})
			return nil
		}})
	if err != nil {
		return nil, nil, err
	}
	return l.Program, passed, l.Close()
}

var number = regexp.MustCompile(`\d+`)

// A looped kernel has the same text for any number of layers: numbers differ, and nothing else.
func TestSourcesDoNotGrowWithLayers(t *testing.T) {
	texts := map[string]string{}
	for _, layers := range []int{2, 16, 80} {
		p, _, err := lower(t, layers, 1)
		require.NoError(t, err)
		files, err := codegen.CUDA(p)
		require.NoError(t, err)
		for name, text := range files {
			same := strings.Join(strings.Fields(strings.ReplaceAll(number.ReplaceAllString(string(text), "0"), "//",
				"")), " ")
			if before, seen := texts[name]; seen {
				require.Equal(t, before, same, "%s with %d layers", name, layers)
			}
			texts[name] = same
		}
	}
}

// What looping saves, and whether anything grows with depth all the same: measured with -report only.
func TestReport(t *testing.T) {
	if *report == "" {
		t.Skip("-report is not given")
	}
	r := Report{Host: hostCPU(t), Load: load(t), NVCC: nvccOf(t),
		Command: fmt.Sprintf("go test ./internal/loopsize -run Report -timeout 2h -nvcc-unrolled %d "+
			"-report docs/results", *most)}
	for _, roll := range []int{1, 0} {
		for _, layers := range []int{2, 16, 32, 80} {
			r.Rows = append(r.Rows, measure(t, layers, roll))
			row := &r.Rows[len(r.Rows)-1]
			fmt.Printf("%d layers, roll=%d: %d bytes of sources, %d of fatbin, nvcc %.1f s, amkc %.2f s\n", layers,
				roll, row.Sources, row.Fatbin, row.NVCC, row.Total)
			text, err := json.MarshalIndent(r, "", " ")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(*report, "looping.json"), append(text, '\n'), 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(*report, "looping.md"), []byte(r.Markdown()), 0o644))
		}
	}
}
