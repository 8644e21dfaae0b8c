package validate

import (
	"slices"

	"amkc/ir"
)

// checkAliases: the views of one op do not overlap, because its threads read and write them in no order. The exception is
// an op that works element by element and reads exactly the elements that it writes, as ADD does on the residual.
func (p *proof) checkAliases() {
	x, y := &p.x[0], &p.x[1]
	for t := range p.flat.Tasks {
		ops := p.flat.Tasks[t].Ops
		all := p.accesses[p.first[t]:p.first[t+1]]
		for i, writes := 0, 0; i < len(all); i++ {
			a := &all[i]
			for writes = max(writes, i); writes < len(all) && all[writes].op == a.op && !all[writes].write; writes++ {
			}
			for j := max(i+1, writes); j < len(all) && all[j].op == a.op; j++ { // two reads are no matter
				b := &all[j]
				if a.loc != b.loc {
					continue
				}
				if a.buf == b.buf && a.write != b.write && pointwise(ops[a.op].Code) && sameView(a.dims(p.flat), b.dims(p.flat)) {
					continue
				}
				if a.buf == b.buf && p.disjoint(a.dims(p.flat), b.dims(p.flat)) || p.apart(a, b, x, y) {
					continue
				}
				if p.full() {
					return
				}
				d := p.errorf(CodeAlias, p.task(a.task), "%s %s %s and writes %s, which overlap", ops[a.op].Code, does(a), p.view(a), p.view(b))
				d.Buffer = p.flat.Buffers[b.buf].Name
				d.Suggest("give the result memory of its own")
			}
		}
	}
}

// apart reports whether two views of one location share no address at any position.
func (p *proof) apart(a, b *access, x, y *expander) bool {
	l := &p.locs[a.loc]
	hi := p.flat.Lo
	if l.symbolic {
		hi = p.flat.Hi
	}
	for pos := p.flat.Lo; pos <= hi; pos++ {
		ra := x.expand(&p.flat.Buffers[a.buf], a.dims(p.flat), pos, l.paged)
		rb := y.expand(&p.flat.Buffers[b.buf], b.dims(p.flat), pos, l.paged)
		if !p.spend(&p.work.visits, len(ra)+len(rb)+1, maxVisits, "comparisons of memory ranges", a.task) || x.dropped+y.dropped > 0 {
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

// pointwise: element i of the result depends on element i of each operand alone.
func pointwise(c ir.Opcode) bool {
	switch c {
	case ir.COPY, ir.GELU, ir.ADD, ir.MUL, ir.ALLREDUCE:
		return true
	}
	return false
}

func sameView(a, b []ir.Range) bool {
	return slices.EqualFunc(a, b, func(r, s ir.Range) bool { return sameRange(&r, &s) })
}

func does(a *access) string {
	if a.write {
		return "writes"
	}
	return "reads"
}

// view prints the view of an access under the name of its buffer.
func (p *proof) view(a *access) string {
	b := &p.flat.Buffers[a.buf]
	on := ""
	if len(b.Pages) > 0 {
		on = " on page " + b.Pages[0]
	}
	return b.Name + viewString(a.dims(p.flat)) + on
}
