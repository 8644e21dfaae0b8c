package report_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"amkc/app/report"
	"amkc/runtime/host"
)

// stageShape is how long an SM works at a stage, in µs.
type stageShape struct {
	name    string
	compute float64
	units   int // SMs that have work; the others only pass through
}

var layerShape = []stageShape{{"qkv", 2.2, 132}, {"attn", 1.6, 8}, {"o", 1.4, 128}, {"gate_up", 9.6, 132},
	{"down", 5.0, 128}}

// A synthesis invents a profile: every stage begins when the slowest SM has published the one before.
type synthesis struct {
	*rand.Rand
	p    *host.Profile
	free []float64 // when each SM's consumers are done
	ring []float64 // when each SM's producer may copy again
}

// synthetic returns a profile of a Llama of the size of Llama-3.2-1B: the same for the same arguments.
func synthetic(sms, layers, steps int) *host.Profile {
	s := &synthesis{rand.New(rand.NewPCG(1, 2)),
		&host.Profile{Position: 128, Steps: steps, SMs: sms, Latency: 603.4, Plain: 594.3},
		make([]float64, sms), make([]float64, sms)}
	for step := range steps {
		s.stage(step, "embed", 0.9, sms)
		for l := range layers {
			for _, shape := range layerShape {
				s.stage(step, fmt.Sprintf("L%02d.%s", l, shape.name), shape.compute, shape.units)
			}
		}
		s.stage(step, "lm_head", 112, sms)
	}
	slices.SortStableFunc(s.p.Spans, func(a, b host.Span) int {
		if a.SM != b.SM {
			return a.SM - b.SM
		}
		if a.Role != b.Role {
			return map[bool]int{true: -1, false: 1}[a.Role < b.Role]
		}
		return map[bool]int{true: -1, false: 1}[a.Start < b.Start]
	})
	return s.p
}

// stage lets every SM wait, work and publish, and its producer run into a full ring meanwhile.
func (s *synthesis) stage(step int, name string, compute float64, units int) {
	ready := slices.Max(s.free)
	first := s.IntN(len(s.free)) // the stage's rotation
	for sm := range s.free {
		from := s.free[sm]
		arrived := ready + 0.6 + 0.5*s.ExpFloat64()*0.6
		if name == "embed" && step == 0 {
			arrived = from + 0.2*s.Float64()
		}
		work := 0.15 + 0.1*s.Float64()
		if (sm-first+len(s.free))%len(s.free) < units {
			work = compute * (0.94 + 0.12*s.Float64())
		}
		done := arrived + work
		after := done + 0.18 + 0.15*s.Float64()
		s.add(sm, "consumer", "exchange wait", name, step, from, arrived)
		s.add(sm, "consumer", "compute", name, step, arrived, done)
		s.add(sm, "consumer", "signal", name, step, done, after)
		s.free[sm] = after + 0.05
		if begin := max(s.ring[sm], from+0.8*(arrived-from)); begin < arrived {
			s.add(sm, "producer", "slot wait", name, step, begin, arrived+0.1*work)
			s.ring[sm] = arrived + 0.1*work
		}
	}
}

func (s *synthesis) add(sm int, role, kind, stage string, step int, from, to float64) {
	s.p.Spans = append(s.p.Spans, host.Span{SM: sm, Role: role, Kind: kind, Stage: stage, Step: step, Start: from,
		End: to})
}

// samplesAround invents latencies with the long tail to one side that launches have.
func samplesAround(median, spread float64, n int, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 3))
	all := make([]float64, n)
	for i := range all {
		all[i] = float64(int(1000*(median+spread*(r.NormFloat64()+0.4*r.ExpFloat64())))) / 1000
	}
	return all
}

// measured returns a page of a 1B model on an H200, as bench would fill it in.
func measured(p *host.Profile) report.Page {
	seed := uint64(1)
	decode, ceiling := samplesAround(594.0, 0.7, 100, 5), samplesAround(547.2, 0.5, 100, 6)
	decode[77] = 611.25
	b := &host.BenchReport{Device: "NVIDIA H200", Position: 128, StepsPerLaunch: 16, Launches: 100, WarmUp: 10,
		Latency: quantiles(decode), Ceiling: quantiles(ceiling),
		Drain: host.Quantiles{Median: 214.3, P10: 213.9, P90: 215.2}, ReadGBs: 4561.3,
		BytesPerToken: 2476068864, Samples: host.Samples{Decode: decode, Ceiling: ceiling},
		Machine: host.Machine{GPU: "NVIDIA H200", Arch: "sm_90", SMs: 132, MemoryBytes: 150754820096, L2Bytes: 62914560,
			CUDA: "13.0", Driver: "580.159.04", MaxSMClockMHz: 1980,
			MaxMemoryClockMHz: 3201, PowerLimitW: 700, ECC: "on",
			Clocks: &host.Clocks{Samples: 13, SM: host.Range{Min: 1965, Max: 1980},
				Memory: host.Range{Min: 3201, Max: 3201}, PowerW: host.Range{Min: 488.1, Max: 521.7},
				Temperature: host.Range{Min: 41, Max: 44}, LimitedBy: []string{}}}}
	b.GBs, b.CeilingGBs = b.BytesPerToken/b.Latency.Median/1000, b.BytesPerToken/b.Ceiling.Median/1000
	b.Share = b.Ceiling.Median / b.Latency.Median
	return report.Page{
		Facts: host.Facts{
			Model: host.Model{Name: "llama-3.2-1b", Architecture: "LlamaForCausalLM", DType: "BF16", Layers: 16,
				Hidden: 2048, Intermediate: 8192, Heads: 32,
				KVHeads: 8, HeadDim: 64, Vocab: 128256, MaxSeq: 2048, Tied: true, Eps: 1e-5},
			Target: host.Target{Name: "h200", Arch: "sm_90a", SMs: 132}, CUDA: 13000,
			Traffic: host.Traffic{Weights: 2471628800, Cache: []host.CacheRows{{Bytes: 32768}}}},
		Build: host.Provenance{AMKC: "1.0", NVCC: "13.0.88", Go: "go1.26", RandomSeed: &seed,
			Weights: "5b1ff8ea33a7a4ab2b8b4f9d4bd8f1c0",
			Program: "0a9c5f77d1a5e1cd94b7b3f1fc0d0e55",
			Knobs: []host.Knob{{Name: "pipelining_depth", Value: "3"}, {Name: "sm_assignment", Value: "load_balance"},
				{Name: "tiling.ring.chunk_bytes", Value: "16384"}, {Name: "tiling.ring.run_ahead", Value: "8"}}},
		Command: "llama-3.2-1b bench --position 128 --steps-per-launch 16 --launches 100 --warm-up 10",
		Check: &host.CheckReport{Passed: true, Tolerance: host.Tolerance{RMS: 6e-2, Max: 1e-1}, Spans: []host.CheckSpan{
			{First: 0, Last: 31, RMS: 1.1e-2, Max: 1.6e-2, Deterministic: true},
			{First: 2040, Last: 2047, RMS: 2.2e-2, Max: 3.1e-2, Deterministic: true}}},
		Bench: b, Profile: p,
	}
}

func quantiles(samples []float64) host.Quantiles {
	sorted := slices.Sorted(slices.Values(samples))
	at := func(q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }
	return host.Quantiles{Median: at(0.5), P10: at(0.1), P90: at(0.9)}
}
