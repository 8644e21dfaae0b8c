package search

import (
	"context"
	"crypto/ed25519"
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/ir/diag"
	"amkc/knobs"
)

var (
	toyKey    = keyOf("k")
	toyPublic = toyKey.Public()
)

// keyOf is a key pair that is always the same.
func keyOf(letter string) Key { return Key(ed25519.NewKeyFromSeed([]byte(strings.Repeat(letter, 32)))) }

// toySpace has real knobs with made-up regions.
func toySpace() *Space {
	knob := func(path, region string, def, plain knobs.Value, values ...knobs.Value) Knob {
		return Knob{Path: path, Region: region, Default: def, Plain: plain, Values: values, Doc: "a knob",
			Accepts: "some",
			Changes: []string{"program"}, Refused: []Refused{}, Same: []Same{}}
	}
	s := &Space{Model: "toy", Target: "h200", Knobs: []Knob{
		knob("pipelining_depth", "ring", "3", "1", "1", "2", "3", "4", "5", "6", "8"),
		knob("tiling.ring.pace", "ring", "800", "800", "0", "200", "400", "600", "700", "800", "1000", "1600"),
		knob("tiling.ring.run_ahead", "ring", "8", "0", "0", "2", "4", "8", "16"),
		knob("tiling.exchange.copies", "exchange", "2", "1", "1", "2", "4"),
		knob("tiling.exchange.flagged", "exchange", "1", "0", "0", "1"),
		knob("tiling.loop.barrier", "layers", "0", "1", "0", "1"),
		knob("tiling.warps.qkv", "qkv", "8", "8", "1", "2", "4", "8"),
		knob("tiling.warps.down", "down", "8", "8", "1", "2", "4", "8"),
		knob("page_allocation", "exchange", "graph_color", "none", "graph_color", "linear", "none"),
	}}
	s.Knobs[6].Order, s.Knobs[7].Order = true, true
	s.Seal()
	return s
}

func toyCampaign(start knobs.Settings) *Campaign {
	return &Campaign{Schema: CampaignSchema, Tag: "t", Model: "toy", Source: "s", Target: "h200", Device: DeviceCUDA,
		Positions: []int{0, 100}, HeldOut: []int{50}, Start: start, Seed: 1, Rules: DefaultRules(),
		Key: toyPublic.String(), Amkc: "test", Command: []string{"toy"}, Space: toySpace()}
}

// A toy takes a time that settings determine: by how far each knob is from its best value, and by how two of them go
// together. There is a basin around four chunks in flight, and a better one around eight.
func toyTime(s knobs.Settings) float64 {
	space := toySpace()
	at := func(path string) float64 {
		k := space.Knob(path)
		n, err := strconv.Atoi(string(k.value(s)))
		if err != nil {
			return 0
		}
		return float64(n)
	}
	us := 100.0
	depth := at("pipelining_depth")
	us += min(3*math.Abs(depth-4), 3*math.Abs(depth-8)-6+20*math.Abs(at("tiling.exchange.copies")-4))
	us += math.Abs(at("tiling.ring.pace")-600) / 100
	us += math.Abs(at("tiling.ring.run_ahead")-16) / 2
	us += 5 * (1 - at("tiling.exchange.flagged"))
	us += 20 * at("tiling.loop.barrier")
	us += math.Abs(at("tiling.warps.qkv") - 4)
	us += math.Abs(at("tiling.warps.down") - 8)
	return us
}

// believed is what a cost model takes a toy's time to be: wrong about two knobs, and blind to a third.
func believed(s knobs.Settings) float64 {
	blind := maps.Clone(s)
	delete(blind, "tiling.warps.qkv")
	us := toyTime(blind)
	if s["tiling.exchange.copies"] == "4" {
		us *= 0.9
	}
	if s["tiling.ring.run_ahead"] == "16" {
		us *= 0.95
	}
	return us
}

// toyDescribe refuses what a compiler refuses.
func toyDescribe(candidate, baseline knobs.Settings) (float64, error) {
	if candidate["page_allocation"] == "linear" {
		return 0, errors.New("the toy is refused")
	}
	return math.Log(believed(candidate) / believed(baseline)), nil
}

// toyVerdict is what an evaluation of a toy finds: always the same.
func toyVerdict(c *Campaign, j *Job) *Verdict {
	v := &Verdict{Schema: VerdictSchema, Rung: j.Rung, Class: Pass, Subject: Subject{ID: IDOf(j.Settings),
		Settings: j.Settings, BaselineID: IDOf(j.Against), Baseline: j.Against, Model: c.Model, Source: c.Source,
		Target: c.Target, Device: c.Device, Positions: c.PositionsOf(j), SameBits: c.SameBits}}
	fail := func(class Class, code *diag.Code, text string) {
		v.Class, v.Reason = class, diag.Errorf(code, "toy", "%s", text)
	}
	switch {
	case j.Settings["tiling.warps.down"] == "1":
		fail(Crash, codeVerdictLost, "the toy broke")
	case j.Settings["tiling.ring.run_ahead"] == "4":
		fail(Timeout, codeKilled, "the toy hangs")
	case j.Settings["page_allocation"] == "linear":
		fail(Rejected, codeOther, "the toy is refused")
	case j.Settings["tiling.warps.qkv"] == "1":
		fail(Fail, codeForged, "the toy is wrong")
	default:
		is, was := toyTime(j.Settings), toyTime(j.Against)
		i := Interval{is / was, is / was * 0.999, is / was * 1.001}
		v.Proof = &Proof{OK: true, Findings: diag.List{}}
		if v.Correctness = checked(); c.Device == DeviceCost {
			v.Class, v.Correctness = Unchecked, nil
		}
		v.Timing = &Timing{Ratio: i, Band: 0.003, Machine: "toy"}
		for _, pos := range v.Positions {
			v.At = append(v.At, At{Position: pos, Candidate: Times{is, is, is}, Baseline: Times{was, was, was},
				Ratio:   i,
				Ceiling: 60, Predicted: &Predicted{Candidate: believed(j.Settings), Baseline: believed(j.Against)}})
		}
	}
	c.Rules.Decide(v)
	toyKey.Sign(v)
	return v
}

// toyRunner has a clock that stands.
func toyRunner(j *Journal, trials int) *Runner {
	return &Runner{Budget: Budget{Trials: trials}, Describe: toyDescribe,
		Evaluate: func(_ context.Context, job *Job) (*Verdict, error) { return toyVerdict(j.Campaign, job), nil },
		Now:      func() time.Time { return time.Unix(0, 0) }}
}

// unsynced does without the disk.
type unsynced struct{ appender }

func (unsynced) Sync() error { return nil }

// ran is a campaign of a toy that has run.
func ran(t *testing.T, c *Campaign, trials int) (*Journal, string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, Create(dir, c))
	j, err := OpenJournal(dir)
	require.NoError(t, err)
	t.Cleanup(func() { j.Close() })
	j.out = unsynced{j.out} // what is killed has tests of its own
	stop, err := toyRunner(j, trials).Run(t.Context(), j)
	require.NoError(t, err)
	return j, stop
}
