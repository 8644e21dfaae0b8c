package validate

import "amkc/ir"

// checkOutputs: every element of every output is written. Outputs with views that depend on pos are looked at position
// by position, in positions.go.
func (p *proof) checkOutputs() {
	for i := range p.flat.Buffers {
		if b := &p.flat.Buffers[i]; b.Kind == ir.Output {
			if l := &p.locs[p.locOf[i]]; !l.symbolic {
				p.checkWritten(b, l, "")
			}
		}
	}
}

// checkWritten reports the first gap, and whether there is none.
func (p *proof) checkWritten(b *ir.Buffer, l *location, at string) bool {
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
	p.errorf(CodeOutputGap, "buffer "+b.Name, "%s is never written%s; every element of an output must be", elements(b, end, gap), at)
	return false
}
