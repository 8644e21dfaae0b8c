package evaluate

import (
	"amkc/cost"
	"amkc/runtime/host"
	"amkc/search"
)

// What a profile calls what is looked at here.
const (
	consumers    = "consumer"
	computing    = "compute"
	exchangeWait = "exchange wait"
)

// profiles reports whether the baseline is profiled: where it is judged in full against itself, as a campaign begins.
// What that says of the baseline tells the whole campaign where to look first. Of a stage on its own nothing is asked.
func (r *Request) profiles() bool {
	return r.Device == search.DeviceCUDA && r.Rung == search.Final && r.Stage == "" &&
		search.IDOf(r.Candidate) == search.IDOf(r.Baseline)
}

// sharesOfBaseline are those of its profile or, where there is none, of the cost model, or none where that has nothing
// to say of the target: they only tell where to look first. from is what a verdict says of where they come from.
func (e *evaluation) sharesOfBaseline(pos int, profile *host.Profile) (s search.Shares, from string) {
	if s := sharesOfProfile(profile); s != nil {
		return s, search.SharesOfProfile
	}
	m, err := cost.New(e.baseline.Program)
	if err != nil {
		return nil, ""
	}
	p, err := m.At(pos)
	if err != nil {
		return nil, ""
	}
	return sharesOfPrediction(p), ""
}

// sharesOfPrediction are parts of a predicted step.
func sharesOfPrediction(p *cost.Prediction) search.Shares {
	parts := make([]part, len(p.Stages))
	for i := range p.Stages {
		s := &p.Stages[i]
		parts[i] = part{s.Name, s.Total(), s.Stream, s.Exchange}
	}
	return sharesOf(p.Latency, parts)
}

// sharesOfProfile are parts of the time that the consumers of all SMs have spent, which follow one another without a
// gap. What they compute is taken for what streams: they wait for weights meanwhile, and nothing tells the two apart.
// There are none without a profile, and none of one that has lost spans: which ones, it does not say.
func sharesOfProfile(p *host.Profile) search.Shares {
	if p == nil || p.Dropped > 0 {
		return nil
	}
	var parts []part
	step := 0.0
	for i := range p.Spans {
		s := &p.Spans[i]
		if s.Role != consumers {
			continue
		}
		of := part{stage: s.Stage, total: s.End - s.Start}
		switch s.Kind {
		case computing:
			of.stream = of.total
		case exchangeWait:
			of.exchange = of.total
		}
		step += of.total
		parts = append(parts, of)
	}
	if step <= 0 {
		return nil
	}
	return sharesOf(step, parts)
}

// A part is some of the time of a step: all of it, what of it streams, and what of it waits for other SMs.
type part struct {
	stage                   string // its label
	total, stream, exchange float64
}

// sharesOf says which part of a step each region has a say in: stages their own, ring and placement what streams,
// exchange and layers what waits for other SMs.
func sharesOf(step float64, parts []part) search.Shares {
	s := search.Shares{attention: 0, "qkv": 0, "o": 0, "gate_up": 0, "down": 0, "lm_head": 0}
	for i := range parts {
		p := &parts[i]
		name := stageNamed(p.stage)
		if _, is := s[name]; is {
			s[name] += p.total / step
		}
		s["ring"] += p.stream / step
		s["exchange"] += p.exchange / step
	}
	s["placement"], s["layers"] = s["ring"], s["exchange"]
	return s
}
