package validate

import (
	"amkc/ir"
	"amkc/ir/op"
	"amkc/validate/views"
)

// checkAliases: the views of one op do not overlap, because its threads read and write them in no order. The
// exceptions are an op that works element by element and reads exactly the elements that it writes, as ADD does on the
// residual, and what an op keeps for the next step.
func (p *Proof) checkAliases() {
	x, y := &p.mem.expanders[0], &p.mem.expanders[1]
	for t := range p.flat.Tasks {
		if p.work.over {
			return
		}
		ops := p.flat.Tasks[t].Ops
		all := p.mem.accesses[p.mem.first[t]:p.mem.first[t+1]]
		for i, writes := 0, 0; i < len(all); i++ {
			a := &all[i]
			for writes = max(writes, i); writes < len(all) && all[writes].op == a.op && !all[writes].write; writes++ {
			}
			for j := max(i+1, writes); j < len(all) && all[j].op == a.op; j++ { // two reads are no matter
				b := &all[j]
				if a.loc != b.loc {
					continue
				}
				if !p.spend(&p.work.visits, pairCost(a, b), maxVisits, "comparisons of memory ranges", a.task) {
					return
				}
				if a.buf == b.buf && a.write != b.write && inPlace(ops[a.op].Code, a, b) &&
					views.Same(a.dims(p.flat), b.dims(p.flat)) {
					continue
				}
				if a.buf == b.buf && p.apartAlways(a, b) || p.apart(a, b, x, y) {
					continue
				}
				if p.Full() || p.work.over {
					return
				}
				d := p.Errorf(CodeAlias, p.Task(a.task), "%s %s %s and writes %s, which overlap", ops[a.op].Code,
					does(a), p.view(a), p.view(b))
				d.Buffer = p.flat.Buffers[b.buf].Name
				d.Suggest("give the result memory of its own")
			}
		}
	}
}

// inPlace reports whether an op may write the elements that it reads: the view of one operand is that of the other.
func inPlace(code ir.Opcode, a, b *access) bool {
	spec, read := ir.Ops[code], a
	if a.write {
		read = b
	}
	return spec.Pointwise || spec.Role(int(read.arg)) == op.Kept
}

// pairCost is the number of visits that comparing two views of an op counts as: bounds that are not constants take
// longer.
func pairCost(a, b *access) int {
	if a.symbolic || b.symbolic {
		return 64
	}
	return 4
}

// apartAlways reports whether two views of one buffer are apart in one dimension at every position.
func (p *Proof) apartAlways(a, b *access) bool {
	of := &p.symbolic.pair
	of[0], of[1] = p.positions.Append(of[0][:0], a.dims(p.flat)), p.positions.Append(of[1][:0], b.dims(p.flat))
	return views.Disjoint(of[0], of[1])
}

// apart reports whether two views of one location share no address at any position.
func (p *Proof) apart(a, b *access, x, y *expander) bool {
	l := &p.mem.locs[a.loc]
	hi, what, limit := p.flat.Lo, &p.work.visits, maxVisits
	if s, _ := ir.Sequence(a.dims(p.flat)); s >= 0 {
		if other, _ := ir.Sequence(b.dims(p.flat)); other >= 0 && other != s {
			return false // there would be all combinations of positions to try
		}
	}
	if l.symbolic {
		hi, what, limit = p.flat.Hi, &p.work.evals, maxEvals
	}
	for pos := p.flat.Lo; pos <= hi; pos++ {
		ra := x.expand(&p.flat.Buffers[a.buf], a.dims(p.flat), pos, l.paged)
		rb := y.expand(&p.flat.Buffers[b.buf], b.dims(p.flat), pos, l.paged)
		if !p.spend(what, 1+len(ra)+len(rb), limit, "comparisons of memory ranges", a.task) ||
			!p.spend(&p.work.runs, x.dropped+y.dropped, maxRuns, "contiguous pieces of views", a.task) {
			return false
		}
		for i, j := 0, 0; i < len(ra) && j < len(rb); {
			switch {
			case ra[i].hi <= rb[j].lo:
				i++
			case rb[j].hi <= ra[i].lo:
				j++
			default:
				return false
			}
		}
	}
	return true
}

func does(a *access) string {
	if a.write {
		return "writes"
	}
	return "reads"
}

// view prints the view of an access under the name of its buffer.
func (p *Proof) view(a *access) string {
	b := &p.flat.Buffers[a.buf]
	on := ""
	if len(b.Pages) > 0 {
		on = " on page " + b.Pages[0]
	}
	return b.Name + views.String(a.dims(p.flat)) + on
}
