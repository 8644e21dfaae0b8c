package passes

import (
	"slices"

	"amkc/ir"
)

// aliases returns the names that groups give to buffers.
func aliases(p *ir.Program) map[string]string {
	alias := map[string]string{}
	for i := range p.Groups {
		g := &p.Groups[i]
		for k, member := range g.Members {
			alias[resolved(g.Name, g.Index(k))] = member
		}
	}
	return alias
}

// takeApart makes every member of a family a buffer or a counter of its own, and drops the groups, whose names the
// stages no longer use: what belongs together in loops is found anew.
func takeApart(p *ir.Program) {
	var all []ir.Buffer
	for i := range p.Buffers {
		f := &p.Buffers[i]
		for k := range max(1, f.Count) {
			b := *f
			b.Name, b.First, b.Count, b.Step = resolved(f.Name, f.Index(k)), 0, 0, 0
			if len(f.Pages) > 1 {
				turn := f.Turn(k) % len(f.Pages)
				b.Pages = f.Pages[turn : turn+1]
			}
			if f.Count > 0 {
				b.Pieces = slices.Clone(f.Pieces)
				for q := range b.Pieces {
					if key, err := ir.ResolveKey(f.Pieces[q].Key, f.Index(k)); err == nil {
						b.Pieces[q].Key = key
					}
				}
			}
			all = append(all, b)
		}
	}
	p.Buffers, p.Groups = all, nil
	for i := range p.Variants {
		v := &p.Variants[i]
		var counters []ir.Counter
		for k := range v.Counters {
			f := &v.Counters[k]
			for n := range max(1, f.Count) {
				c := *f
				c.Name, c.First, c.Count, c.Step = resolved(f.Name, f.Index(n)), 0, 0, 0
				counters = append(counters, c)
			}
		}
		v.Counters = counters
	}
}
