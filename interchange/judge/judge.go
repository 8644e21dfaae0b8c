// Package judge judges programs of the AMK profile by running them, as package simulate does its own: for amkc
// simulate, and where validate is measured. A program of the profile is one step at one position; it is run as that
// step alone.
package judge

import (
	"fmt"
	"slices"

	"amkc/interchange"
	"amkc/ir"
	"amkc/simulate"
)

// Judge judges a program: its references, the capacities of the format's records and its pages, of which its flat form
// holds only what tasks touch, and then the flat form.
func Judge(p *interchange.Program, f *ir.Flat, fp *simulate.Footprints, e simulate.Effort) simulate.Verdict {
	if h := wrong(p); h != nil {
		return simulate.Verdict{Hazard: h, Complete: true}
	}
	return simulate.Flat(f, f.Target, fp, e)
}

func malformed(where string, id int, format string, args ...any) *simulate.Hazard {
	return &simulate.Hazard{Kind: simulate.Malformed, Where: fmt.Sprintf("%s %d", where, id),
		Detail: fmt.Sprintf(format, args...)}
}

// wrong looks for what is wrong whatever the order. It does not take the word of who has made the flat form.
func wrong(p *interchange.Program) *simulate.Hazard {
	buffers, counters := map[int]bool{}, map[int]bool{}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if buffers[b.ID] {
			return malformed("buffer", b.ID, "is there twice; want an id that no other has")
		}
		if len(b.Shape) > interchange.MaxRank {
			return malformed("buffer", b.ID, "has %d dimensions; want at most %d", len(b.Shape), interchange.MaxRank)
		}
		buffers[b.ID] = true
	}
	for i := range p.Counters {
		id := p.Counters[i].ID
		if counters[id] {
			return malformed("counter", id, "is there twice; want an id that no other has")
		}
		counters[id] = true
	}
	if h := wrongTask(p, buffers, counters); h != nil {
		return h
	}
	return overfull(p)
}

func wrongTask(p *interchange.Program, buffers, counters map[int]bool) *simulate.Hazard {
	tasks := map[int]bool{}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if tasks[t.ID] {
			return malformed("task", t.ID, "is there twice; want an id that no other has")
		}
		if len(t.Inputs) > interchange.MaxInputs || len(t.Outputs) > interchange.MaxOutputs ||
			len(t.Waits) > interchange.MaxWaits {
			return malformed("task", t.ID, "has %d inputs, %d outputs and %d waits; want at most %d, %d and %d",
				len(t.Inputs), len(t.Outputs), len(t.Waits), interchange.MaxInputs, interchange.MaxOutputs,
				interchange.MaxWaits)
		}
		tasks[t.ID] = true
		for _, b := range slices.Concat(t.Inputs, t.Outputs) {
			if !buffers[b] {
				return malformed("task", t.ID, "names buffer %d; want one that there is", b)
			}
		}
		if !counters[t.OutCounter] {
			return malformed("task", t.ID, "signals counter %d; want one that there is", t.OutCounter)
		}
		for _, w := range t.Waits {
			if !counters[w.Counter] {
				return malformed("task", t.ID, "waits on counter %d; want one that there is", w.Counter)
			}
		}
	}
	return nil
}

// overfull looks for more pages in shared memory than an SM of the target has room for, touched or not.
func overfull(p *interchange.Program) *simulate.Hazard {
	if p.Pages == nil || p.Target == nil {
		return nil
	}
	left := p.Target.SmemBytesPerBlockOptin
	for _, pg := range p.Pages.Pages {
		if pg.Space != ir.SMEM {
			continue
		}
		if pg.NBytes > left {
			return &simulate.Hazard{Kind: simulate.Capacity, Where: fmt.Sprint("page ", pg.ID),
				Detail: fmt.Sprintf("takes %d bytes of shared memory, and %d of the target's %d are left; want no "+
					"more than those", pg.NBytes, left, p.Target.SmemBytesPerBlockOptin)}
		}
		left -= pg.NBytes
	}
	return nil
}
