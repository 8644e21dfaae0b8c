package evaluate

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"amkc/compiler"
	"amkc/cost"
	"amkc/ir"
	"amkc/ir/format"
	"amkc/knobs"
	"amkc/search"
)

// NewDescriber returns a function that lowers and proves a candidate, and says what the cost model makes of it and of
// its baseline at positions, of the step or of a stage on its own, and by what they differ. Its error is
// why one of them is refused, or cannot be predicted. The baseline is kept from one call to the next.
func NewDescriber(o compiler.Options, positions []int, stage string) search.Describer {
	o.ConfigOnly = true
	var mu sync.Mutex
	var known string
	var last *prediction
	return func(candidate, baseline knobs.Settings) ([]search.Predicted, error) {
		mu.Lock()
		if id := search.IDOf(baseline); last == nil || id != known {
			p, err := predictionOf(o, baseline, positions)
			if err != nil {
				mu.Unlock()
				return nil, err
			}
			last, known = p, id
		}
		was := last
		mu.Unlock()
		is, err := predictionOf(o, candidate, positions)
		if err != nil {
			return nil, err
		}
		var all []search.Predicted
		for i := range positions {
			if stage == "" {
				all = append(all, relative(is, was, i))
				continue
			}
			one, err := predictAlone(is.at[i], was.at[i], stage)
			if err != nil {
				return nil, err
			}
			all = append(all, *one.Predicted)
		}
		return all, nil
	}
}

// A prediction is a proved program with what the cost model makes of it at positions.
type prediction struct {
	program *ir.Program
	at      []*cost.Prediction
}

func predictionOf(o compiler.Options, s knobs.Settings, positions []int) (*prediction, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	o.Config = config
	l, err := compiler.RunPasses(o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if proof := compiler.Prove(l.Program); !proof.OK {
		return nil, proof.Diags.Err()
	}
	return predictedAt(l.Program, positions)
}

// predictedAt asks the cost model of a program.
func predictedAt(p *ir.Program, positions []int) (*prediction, error) {
	m, err := cost.New(p)
	if err != nil {
		return nil, err
	}
	out := &prediction{program: p}
	for _, pos := range positions {
		at, err := m.At(pos)
		if err != nil {
			return nil, err
		}
		out.at = append(out.at, at)
	}
	return out, nil
}

// relative compares a candidate with its baseline, at one of their positions.
func relative(is, was *prediction, i int) search.Predicted {
	return search.Predicted{Candidate: is.at[i].Latency, Baseline: was.at[i].Latency,
		Traits: Traits(is.program, was.program, is.at[i], was.at[i])}
}

// Traits are numbers of a candidate relative to its baseline, by name: what may tell how far the cost model is off. One
// that is 0 is left out. Those of times are parts of a step or logarithms of ratios, and come again times the position
// and the target's record, on which their weight may depend; those of knobs are steps by a factor of 2, or 1 and -1 for
// words.
func Traits(candidate, baseline *ir.Program, is, was *cost.Prediction) map[string]float64 {
	x := map[string]float64{}
	set := func(name string, v float64) {
		if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
			x[name] = v
		}
	}
	ratio := func(a, b float64) float64 {
		if a <= 0 || b <= 0 {
			return 0
		}
		return math.Log(a / b)
	}
	times := map[string]float64{
		"latency":         ratio(is.Latency, was.Latency),
		"bytes_per_layer": ratio(streamed(is), streamed(was)),
		"drain_per_layer": ratio(is.Drain, was.Drain),
		"step_end":        is.StepEnd/is.Latency - was.StepEnd/was.Latency,
		"ring_full":       is.RingFull/is.Latency - was.RingFull/was.Latency,
		"ring_in_flight":  ratio(is.Ring.InFlight, was.Ring.InFlight),
		"ring_ahead":      ratio(1+is.Ring.Ahead, 1+was.Ring.Ahead),
	}
	a, b := parts(is), parts(was)
	times["instructions"], times["exchange"], times["stream"] = a.Instructions-b.Instructions, a.Exchange-b.Exchange,
		a.Stream-b.Stream
	far := math.Log2(1+float64(is.Position)/256) / 4
	for name, v := range times {
		set(name, v)
		set(name+"*position", v*far)
		set(name+"*sms", v*math.Log2(float64(candidate.Target.SMs)/132))
		set(name+"*gbs", v*math.Log2(candidate.Target.HBMGBs/4800))
	}
	c, d := shapeOf(candidate), shapeOf(baseline)
	set("tiles_per_sm", ratio(c.tiles, d.tiles))
	set("tiles_uneven", c.uneven-d.uneven)
	set("writers", ratio(c.writers, d.writers))
	set("quads_per_warp", ratio(c.quads, d.quads))
	axes := knobs.Axes()
	for i := range axes {
		knobTraits(&axes[i], candidate, baseline, set)
	}
	return x
}

// knobTraits are those of a knob.
func knobTraits(a *knobs.Axis, candidate, baseline *ir.Program, set func(string, float64)) {
	to, from := a.Of(&candidate.Config), a.Of(&baseline.Config)
	if to == from {
		return
	}
	m, wrong := strconv.Atoi(string(to))
	n, alsoWrong := strconv.Atoi(string(from))
	if wrong == nil && alsoWrong == nil && min(m, n) >= 0 {
		set(a.Path, math.Log2(float64(m+1)/float64(n+1)))
		return
	}
	set(a.Path+"="+string(to), 1)
	set(a.Path+"="+string(from), -1)
}

// streamed is what a step streams, in bytes.
func streamed(p *cost.Prediction) float64 {
	sum := 0.0
	for i := range p.Stages {
		sum += float64(p.Stages[i].Bytes)
	}
	return sum
}

// parts are the parts of a step that all stages spend.
func parts(p *cost.Prediction) cost.Parts {
	var all cost.Parts
	for i := range p.Stages {
		all.Instructions += p.Stages[i].Instructions / p.Latency
		all.Exchange += p.Stages[i].Exchange / p.Latency
		all.Stream += p.Stages[i].Stream / p.Latency
	}
	return all
}

// A shape is how the stages of a program are laid out on SMs and warps, as means over stages.
type shape struct {
	tiles   float64 // tasks' grains per SM
	uneven  float64 // the fullest SM's over the mean, less 1
	writers float64 // SMs that have a task
	quads   float64 // groups of 128 columns for each warp of a product
}

func shapeOf(p *ir.Program) shape {
	var s shape
	stages := 0.0
	for _, v := range p.Variants[:min(1, len(p.Variants))] {
		for _, stage := range stagesOf(v.Body) {
			tasks := stage.Dist.Tasks(0)
			grains, on, all := float64(max(1, stage.Dist.Grain)), map[int]float64{}, 0.0
			for _, t := range tasks {
				n := math.Ceil(float64(t.B-t.A) / grains)
				on[t.SM] += n
				all += n
			}
			if all == 0 || len(on) < 2 {
				continue
			}
			most := 0.0
			for _, n := range on {
				most = max(most, n)
			}
			stages++
			s.tiles += all / float64(len(on))
			s.uneven += most*float64(len(on))/all - 1
			s.writers += float64(len(on))
		}
	}
	m := &p.Model
	columns := map[string]int{"qkv": m.Hidden, "o": m.Heads * m.HeadDim, "gate_up": m.Hidden, "down": m.Intermediate,
		"lm_head": m.Hidden}
	for _, role := range slices.Sorted(maps.Keys(columns)) {
		quads := (columns[role] + format.QuadColumns - 1) / format.QuadColumns
		s.quads += float64(quads) / float64(knobs.Warps.Of(&p.Config, role)) / float64(len(columns))
	}
	if stages == 0 {
		return s
	}
	s.tiles, s.uneven, s.writers = s.tiles/stages, s.uneven/stages, s.writers/stages
	return s
}

// stagesOf lists the stages of a body, those of a loop once.
func stagesOf(body []ir.Node) []*ir.Stage {
	var all []*ir.Stage
	for _, n := range body {
		switch n := n.(type) {
		case *ir.Stage:
			all = append(all, n)
		case *ir.Loop:
			all = append(all, n.Body...)
		}
	}
	return all
}
