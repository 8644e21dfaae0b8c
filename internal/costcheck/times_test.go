package costcheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// A kernelTime is a time of a row, and what of a prediction it is compared with.
type kernelTime struct {
	path    string // of the row's field
	what    string // latency, ceiling or drain
	barrier bool   // of the build with a barrier at every layer
}

// followed says, for each section whose rows have times of steps or of passes of eight sequences, which of them are
// compared with predictions (compare).
var followed = map[string][]kernelTime{
	"bench":     kernels3(),
	"contexts":  kernels3(),
	"roofline":  kernels3(),
	"drawn":     kernels3(),
	passTimes:   kernels3(),
	"compare":   {{path: "engines.amkc.us", what: "latency"}, {path: "ceiling_us", what: "ceiling"}},
	"timelines": {{path: "loop.latency_us", what: "latency"}, {"barriers.latency_us", "latency", true}},
	"barriers":  withBarriers(),
	"boundaries": append(withBarriers(),
		kernelTime{path: "drain_us", what: "drain"}),
}

func kernels3() []kernelTime {
	return []kernelTime{{path: "latency_us", what: "latency"}, {path: "ceiling_us", what: "ceiling"},
		{path: "drain_us", what: "drain"}}
}

func withBarriers() []kernelTime {
	return []kernelTime{{path: "loop_us", what: "latency"}, {path: "ceiling_us", what: "ceiling"},
		{"barriers_us", "latency", true}}
}

// heldElsewhere are times that another test compares with predictions.
var heldElsewhere = map[string]string{
	"ablations us":                   "TestKnobsHold, as a ratio to default_us",
	"ablations default_us":           "TestKnobsHold, as what us is a ratio to",
	"pass_times passes[].latency_us": "TestPassesHold",
	"pass_times passes[].ceiling_us": "TestPassesHold",
	"pass_times rows_us":             "TestPassesHold: that of passes[] again",
	"pass_times sequences_us":        "TestPassesHold: that of passes[] again",
	"prompts first_token_ms":         "TestPromptsHold",
}

// unpredicted are times that the model says nothing of, and why. The first part may be any section.
var unpredicted = map[string]string{
	"* all_us.loop[]":                 "rounds of a time that is compared",
	"* all_us.barriers[]":             "rounds of a time that is compared",
	"ablations round_us[]":            "rounds of a time that is compared",
	"ablations default_round_us[]":    "rounds of a time that is compared",
	"ablations ceiling_us":            "of the variant, whose latency is compared",
	"compare engines.amkc.round_us[]": "rounds of a time that is compared",
	"prompts round_ms[]":              "rounds of a time that is compared",
	"contexts first_token_ms":         "a prompt of experts: gpt-oss takes twice what is predicted, not explained",
	"boundaries launches.layer.us":    "launches of parts of a step, by the host",
	"boundaries launches.stage.us":    "launches of parts of a step, by the host",
	"timelines loop.recorded_us":      "of a step that records itself",
	"timelines loop.step_us":          "of a step that records itself",
	"timelines barriers.recorded_us":  "of a step that records itself",
	"timelines barriers.step_us":      "of a step that records itself",
	"timelines bin_us":                "a width of the picture",
	"drawn drawn_us":                  "what drawing a token takes",
	"drawn chosen[].latency_us":       "steps that draw their token",
	"soak latency_us":                 "a launch for every token, mean over all positions",
	"soak seconds":                    "how long it ran",
	"sequences minutes":               "how long it ran",
	"first_answer *":                  "compiling, loading and answering, by the host",
	"load *":                          "prompts and launches of several sequences, by the host",
	"serving *":                       "a server with its clients, by the host",
	"drafts *":                        "tokens a second of an engine that drafts, by the host",
	"prompts transformers_ms":         "another engine",
	"prompts transformers_round_ms[]": "another engine",
	"compare engines.compile.*":       "another engine",
	"compare engines.eager.*":         "another engine",
	"compare engines.ops.*":           "another engine",
	"compare engines.products.*":      "another engine",
}

// ofTime is what a field of a time, or of a rate, is called.
var ofTime = regexp.MustCompile(`^(.*_)?(us|ms|s|seconds|minutes|hours)(\[\])?$`)

// timesOf returns the times of a row, by the paths of their fields. Where there are a median and its neighbours, the
// median counts; of a list, its first.
func timesOf(t testing.TB, raw json.RawMessage) map[string]micros {
	out := map[string]micros{}
	var walk func(path string, v any, timed bool)
	walk = func(path string, v any, timed bool) {
		switch v := v.(type) {
		case map[string]any:
			if median, is := v["median"].(float64); is && timed {
				out[path] = micros(median)
				return
			}
			for name, of := range v {
				to := strings.TrimPrefix(path+"."+name, ".")
				walk(to, of, timed || ofTime.MatchString(name))
			}
		case []any:
			if len(v) > 0 {
				walk(path+"[]", v[0], timed)
			}
		case float64:
			if timed {
				out[path] = micros(v)
			}
		}
	}
	var fields map[string]any
	require.NoError(t, json.Unmarshal(raw, &fields))
	walk("", fields, false)
	return out
}

// known says what becomes of a time of a section, or nothing.
func known(section, path string) string {
	for _, f := range followed[section] {
		if f.path == path {
			return "compared as " + f.what
		}
	}
	if where, is := heldElsewhere[section+" "+path]; is {
		return where
	}
	for name, why := range unpredicted {
		of, field, _ := strings.Cut(name, " ")
		prefix, all := strings.CutSuffix(field, "*")
		if (of == "*" || of == section) && (field == path || all && strings.HasPrefix(path, prefix)) {
			return why
		}
	}
	return ""
}

// TestEveryTimeIsHeld: each time of each section of docs/results is compared with a prediction, or is listed with why
// there is none; and what is listed is there.
func TestEveryTimeIsHeld(t *testing.T) {
	seen := map[string]bool{}
	for _, text := range results(t) {
		var file struct {
			Rows []json.RawMessage `json:"rows"`
		}
		require.NoError(t, json.Unmarshal(text, &file))
		for _, raw := range file.Rows {
			var head struct{ Section, ID string }
			require.NoError(t, json.Unmarshal(raw, &head))
			for path := range timesOf(t, raw) {
				seen[head.Section+" "+path] = true
				require.NotEmpty(t, known(head.Section, path), "%s: no prediction is compared with %s of section %s; "+
					"want it in followed, or in unpredicted with the reason", head.ID, path, head.Section)
			}
		}
	}
	for section, times := range followed {
		for _, f := range times {
			require.True(t, seen[section+" "+f.path], "%s %s is listed and was not measured", section, f.path)
		}
	}
	for name := range heldElsewhere {
		require.True(t, seen[name], "%s is listed and was not measured", name)
	}
	for name := range unpredicted {
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*") + "$")
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(seen)), pattern.MatchString),
			"%s is listed and was not measured", name)
	}
}

// otherFiles are the files of docs/results that have times and are not rows of sections, and which test holds them.
var otherFiles = map[string]string{
	"candidates.json": "TestCandidatesHold",
	"searches.json":   "predictions themselves: searches without a GPU",
}

// TestEveryFileIsHeld: no other file of docs/results has times that nobody looks at.
func TestEveryFileIsHeld(t *testing.T) {
	paths, err := filepath.Glob(root + "docs/results/*.json")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var head struct {
			Schema string `json:"schema"`
		}
		require.NoError(t, json.Unmarshal(text, &head), path)
		times := slices.DeleteFunc(slices.Collect(maps.Keys(timesOf(t, text))), func(path string) bool {
			fields := strings.Split(path, ".")
			return !strings.HasSuffix(fields[len(fields)-1], "us") && !strings.HasSuffix(fields[len(fields)-1], "ms")
		})
		if name := filepath.Base(path); head.Schema != "amkc.results/1" && len(times) > 0 {
			found[name] = true
			require.Contains(t, otherFiles, name, "it has times, as %s: want a test that holds them", times[0])
		}
	}
	for name := range otherFiles {
		require.True(t, found[name], "%s is listed and has no times", name)
	}
}

// A kernelTimes is what is predicted for a build at a position.
type kernelTimes struct{ latency, ceiling, drain float64 }

func (k kernelTimes) of(what string) float64 {
	return map[string]float64{"latency": k.latency, "ceiling": k.ceiling, "drain": k.drain}[what]
}

// kernelsOf predicts what a row has measured: a step, or a pass of one token of each sequence.
func kernelsOf(t testing.TB, r row, config ir.ScheduleConfig) kernelTimes {
	if r.Sequences <= 1 {
		p := predictRow(t, r, config)
		return kernelTimes{p.Latency, p.Ceiling, p.Drain}
	}
	l := buildOf(t, r, config)
	require.Len(t, l.Passes, 1, r.ID)
	p := predictPass(t, r.name(), l.Passes[0], l.Program, r.Position+r.Steps/2)
	return kernelTimes{p.Latency, p.Ceiling, p.Drain}
}

// TestTimesOf: of a field with a median the median counts, and fields that are not times do not.
func TestTimesOf(t *testing.T) {
	require.Equal(t, map[string]micros{"latency_us": 2, "passes[].ceiling_us": 3, "engines.amkc.us": 4,
		"between_us.p50": 5, "tokens_per_s": 6},
		timesOf(t, json.RawMessage(`{"latency_us": {"median": 2, "p10": 1}, "passes": [{"ceiling_us": {"median": 3}},
			{"ceiling_us": 9}], "engines": {"amkc": {"us": 4, "gbs": 7}}, "between_us": {"p50": 5},
			"tokens_per_s": 6, "position": 8, "rms": 1}`)))
	require.Empty(t, known("bench", "other_us"))
	require.Empty(t, known("nothing", "latency_us"))
	require.Equal(t, "another engine", known("compare", "engines.eager.trial_us.sdpa"))
	require.NotEmpty(t, known("barriers", "all_us.loop[]"), fmt.Sprint(unpredicted))
}
