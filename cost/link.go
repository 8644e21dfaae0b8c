package cost

import (
	"amkc/ir"
	"amkc/ir/diag"
)

// Exchanges between GPUs. What a GPU pushes goes over its link to every peer, and its own SMs wait for what all of them
// have pushed.

// linkLatency and linkEach are the microseconds, and those for each GPU, from the last word of a vector that all push
// until all of it is added up. Design probes: exchanges of 2,048 to 8,192 floats over NVLink between H200, 1.3 µs on
// two and 1.8 to 2.1 on four, of which what grows with the floats is the bytes at linkGBs. Eight were never measured.
const linkLatency, linkEach = 0.72, 0.24

// linkGBs is what a GPU receives over its NVLink, in 10^9 bytes per second: half of what the data sheet has for both
// directions.
var linkGBs = map[string]float64{"a100": 300, "b200": 900, "gb200": 900, "h100": 450, CalibratedOn: 450}

// A Link is what a step of several GPUs exchanges over their links.
type Link struct {
	GPUs      int     `json:"gpus"`
	Exchanges int     `json:"exchanges"`
	Bytes     int64   `json:"bytes"` // that a GPU receives in a step
	GBs       float64 `json:"gbs"`   // at which it receives them
	Latency   float64 `json:"latency_us"`
}

// linkOf returns the link of the GPUs of a program; nil for one GPU. The error is a diagnostic.
func linkOf(p *ir.Program) (*Link, error) {
	n := p.NumRanks()
	if n == 1 {
		return nil, nil
	}
	rate, known := linkGBs[p.Target.Name]
	if !known {
		return nil, diag.Errorf(codeTarget, "target "+p.Target.Name, "is one of %d GPUs, and no link between them is "+
			"known; want a100, h100, h200, b200 or gb200", n)
	}
	return &Link{GPUs: n, GBs: rate, Latency: linkLatency + linkEach*float64(n)}, nil
}

// arrives is when n bytes of each of all GPUs are there, after the last word was stored.
func (l *Link) arrives(bytes float64) float64 { return l.Latency + l.received(bytes)/(l.GBs*1e3) }

// received is what of bytes that all GPUs push comes from the others.
func (l *Link) received(bytes float64) float64 { return bytes * float64(l.GPUs-1) / float64(l.GPUs) }

// pushed is how many bytes a stage reads of what GPUs push to each other: every SM some of them, or all of them each.
func (s *stage) pushed() float64 {
	sum, most := 0.0, 0.0
	for k := range s.tasks {
		sum, most = sum+s.tasks[k].pushed, max(most, s.tasks[k].pushed)
	}
	if len(s.tasks) > 0 && s.tasks[0].share == 1 {
		return most
	}
	return sum
}

// exchanged adds up what the stages of a step exchange.
func (l *Link) exchanged(stages []*stage) *Link {
	out := *l
	for _, s := range stages {
		if bytes := s.pushed(); bytes > 0 {
			out.Exchanges += len(s.indices())
			out.Bytes += int64(l.received(bytes)) * int64(len(s.indices()))
		}
	}
	return &out
}
