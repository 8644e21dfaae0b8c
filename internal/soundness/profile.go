package soundness

import (
	"fmt"
	"slices"

	"amkc/compiler/amk"
	"amkc/simulate"
)

// runProfile judges a program of the AMK profile: its references and the capacities of the format's records, which its
// flat form cannot hold, then the flat form.
func runProfile(p *amk.Program, fp *simulate.Footprints, e simulate.Effort) simulate.Verdict {
	if h := profileHazard(p); h != "" {
		return malformed("%s", h)
	}
	f, diags := p.Flatten()
	if f == nil {
		return malformed("has no meaning: %v", diags)
	}
	return simulate.Flat(f, nil, fp, e)
}

func malformed(format string, args ...any) simulate.Verdict {
	return simulate.Verdict{Complete: true, Hazard: &simulate.Hazard{Kind: simulate.Malformed, Where: "profile",
		Detail: fmt.Sprintf(format, args...)}}
}

func profileHazard(p *amk.Program) string {
	buffers, counters, tasks := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if buffers[b.ID] || len(b.Shape) > amk.MaxRank {
			return fmt.Sprintf("buffer %d is there twice, or has %d dimensions", b.ID, len(b.Shape))
		}
		buffers[b.ID] = true
	}
	for i := range p.Counters {
		if counters[p.Counters[i].ID] {
			return fmt.Sprintf("counter %d is there twice", p.Counters[i].ID)
		}
		counters[p.Counters[i].ID] = true
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if tasks[t.ID] || len(t.Inputs) > amk.MaxInputs || len(t.Outputs) > amk.MaxOutputs ||
			len(t.Waits) > amk.MaxWaits || !counters[t.OutCounter] {
			return fmt.Sprintf("task %d is there twice, has too many operands or waits, or signals what is not there",
				t.ID)
		}
		tasks[t.ID] = true
		for _, b := range append(slices.Clone(t.Inputs), t.Outputs...) {
			if !buffers[b] {
				return fmt.Sprintf("task %d names buffer %d", t.ID, b)
			}
		}
		for _, w := range t.Waits {
			if !counters[w.Counter] {
				return fmt.Sprintf("task %d waits on counter %d", t.ID, w.Counter)
			}
		}
	}
	if p.Pages != nil && p.Target != nil {
		smem := 0
		for _, pg := range p.Pages.Pages {
			if pg.Space == amk.SMEM {
				smem += pg.NBytes
			}
		}
		if smem > p.Target.SmemBytesPerBlockOptin {
			return fmt.Sprintf("has %d bytes of pages in shared memory, the target %d", smem,
				p.Target.SmemBytesPerBlockOptin)
		}
	}
	return ""
}
