package validate

import "amkc/ir"

// checkOutputs: every element of every output is written. Outputs with views that depend on pos are looked at position
// by position, in symbolic.go.
func (p *Proof) checkOutputs() {
	for i := range p.flat.Buffers {
		if b := &p.flat.Buffers[i]; b.Kind == ir.Output {
			if l := &p.mem.locs[p.mem.locOf[i]]; !l.symbolic {
				p.checkWritten(b, l, "")
			}
		}
	}
}

// checkWritten reports the first gap, and whether there is none.
func (p *Proof) checkWritten(b *ir.Buffer, l *location, at string) bool {
	end := 0
	for i := range l.segs {
		if l.bounds[i] != end || l.segs[i].writer < 0 {
			break
		}
		end = l.bounds[i+1]
	}
	if end >= b.Numel() {
		return true
	}
	gap := b.Numel()
	for i := range l.segs {
		if l.bounds[i] >= end && l.segs[i].writer >= 0 {
			gap = l.bounds[i]
			break
		}
	}
	d := p.Errorf(CodeOutputGap, "buffer "+b.Name, "%s is never written%s, and every element of an output must be",
		elements(b, end, gap), at)
	d.Elements = &[2]int{end, gap}
	if lo, hi, _, ok := bytesOf(b, end, gap); ok {
		d.Bytes = &[2]int{lo, hi}
	}
	if w := p.neighbour(l, end, gap); w >= 0 {
		d.Suggest("extend the view of %s, which ends next to the gap", p.Who(w))
		return false
	}
	d.Suggest("let a task write it")
	return false
}

// neighbour returns the task that writes up to a gap, or from its end on; -1 if there is neither.
func (p *Proof) neighbour(l *location, lo, hi int) int32 {
	after := int32(-1)
	for i := range l.segs {
		if l.segs[i].writer >= 0 && l.bounds[i+1] == lo {
			return l.segs[i].writer
		}
		if l.segs[i].writer >= 0 && l.bounds[i] == hi {
			after = l.segs[i].writer
		}
	}
	return after
}
