package validate

import (
	"slices"

	"amkc/ir"
)

// own checks the owner of on-chip memory: shared memory belongs to one SM, registers to one task.
func (s *sweep) own(l *location, i int, a *access) {
	p, g := s.p, &l.segs[i]
	owner := int32(p.flat.Tasks[s.task].SM)
	if l.space == ir.Register {
		owner = s.task
	}
	switch {
	case owner < 0:
		s.report(l, i, a, CodeOwner, "touches %s in SMEM but runs on no SM", s.span(l, i, a)).
			Suggest("assign it to one")
	case g.owner == 0:
		g.owner = owner + 1
	case g.owner != owner+1 && l.space == ir.SMEM:
		s.report(l, i, a, CodeOwner, "touches %s from SM %d, but it is in the shared memory of SM %d", s.span(l, i, a),
			owner, g.owner-1).
			Suggest("run it on SM %d: give both stages the same distribution", g.owner-1)
	case g.owner != owner+1:
		s.report(l, i, a, CodeOwner, "touches %s in registers, which belong to %s", s.span(l, i, a), p.Who(g.owner-1)).
			Suggest("pass the value in SMEM or GLOBAL_SCRATCH")
	}
}

// checkCapacity: the pages in shared memory, which every SM keeps whole, and what an SM owns of other buffers there
// fit the shared memory that a block of the target can have.
func (p *Proof) checkCapacity() {
	t := p.flat.Target
	if t == nil {
		return
	}
	pages := 0
	for i := range p.flat.Pages {
		if pg := &p.flat.Pages[i]; pg.Space == ir.SMEM && pg.Bytes > t.SMemOptin-pages {
			p.Errorf(CodeCapacity, "page "+pg.Name,
				"the pages in shared memory up to this one take %d bytes, target %s has %d", pages+pg.Bytes, t.Name,
				t.SMemOptin).
				Suggest("put pages into GLOBAL_SCRATCH: %d bytes must go", pages+pg.Bytes-t.SMemOptin)
			return
		} else if pg.Space == ir.SMEM {
			pages += pg.Bytes
		}
	}
	if !slices.ContainsFunc(p.mem.locs, func(l location) bool { return l.space == ir.SMEM }) {
		return
	}
	bytes := make([]int, p.flat.SMs)
	for i := range p.mem.locs {
		l := &p.mem.locs[i]
		if l.space != ir.SMEM || l.paged || len(l.bufs) == 0 {
			continue
		}
		size := unit(&p.flat.Buffers[l.bufs[0]])
		for k := range l.segs {
			if owner := l.segs[k].owner; owner > 0 {
				bytes[owner-1] += (l.bounds[k+1] - l.bounds[k]) * size
			}
		}
	}
	for sm, n := range bytes {
		if n += pages; n > t.SMemOptin {
			p.Errorf(CodeCapacity, "", "SM %d keeps %d bytes of buffers in shared memory, target %s has %d", sm, n,
				t.Name, t.SMemOptin).
				Suggest("spread their rows over more SMs: %d bytes must go", n-t.SMemOptin)
			return
		}
	}
}
