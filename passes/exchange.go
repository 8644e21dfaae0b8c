package passes

import (
	"amkc/ir"
)

// Exchange is the pass that chooses how each counter is carried out. A counter whose waiters read nothing from its
// producers but words that carry their epoch can be flagged: the words announce themselves. Every other counter counts. The best
// logits of the SMs have no other form on the device than such words, whatever the configuration says.
var Exchange = Pass{
	Name:  "exchange",
	Doc:   "choose for each counter whether it counts or its words carry flags",
	After: []string{"assign", "pagecolor"},
	Run:   runExchange,
}

func runExchange(s *State) error {
	p := s.Program
	allowed := p.Config.Knob("exchange", "flagged", 0) == 1
	for i := range p.Variants {
		v := &p.Variants[i]
		plain, waited := announcedPlainly(p, v)
		for k := range v.Counters {
			c := &v.Counters[k]
			c.How, c.Scope = ir.ByCounter, ir.ScopeGPU
			if (allowed || c.Name == bestCounter) && waited[familyKey(c.Name)] && !plain[familyKey(c.Name)] {
				c.How = ir.Flagged
			}
		}
	}
	return nil
}

// familyKey is a name without its index: L{i}.x, L{i+1}.x and L00.x are of one family.
func familyKey(name string) string {
	if _, role := splitName(name); role != name {
		return "L." + role
	}
	if len(name) > 2 && name[:2] == "L{" {
		for i := range name {
			if name[i] == '}' {
				return "L" + name[i+1:]
			}
		}
	}
	return name
}

// announcedPlainly returns the counters through which a waiter learns of something that is not a word, and those that
// have waiters at all.
func announcedPlainly(p *ir.Program, v *ir.Variant) (plain, waited map[string]bool) {
	words := map[string]bool{}
	for i := range p.Buffers {
		words[familyKey(p.Buffers[i].Name)] = p.Buffers[i].Layout.Words()
	}
	written := map[string]map[string]bool{} // counter -> buffers its producers write
	eachStage(v, func(st *ir.Stage, _ *ir.Loop) {
		c := familyKey(st.Signal)
		if written[c] == nil {
			written[c] = map[string]bool{}
		}
		for _, op := range st.Ops {
			for _, o := range op.Out {
				if !o.IsTemp() {
					written[c][familyKey(o.Buf)] = true
				}
			}
		}
	})
	plain, waited = map[string]bool{}, map[string]bool{}
	eachStage(v, func(st *ir.Stage, _ *ir.Loop) {
		for _, w := range st.Waits {
			c := familyKey(w.Counter)
			waited[c] = true
			for _, op := range st.Ops {
				for _, o := range op.In {
					if b := familyKey(o.Buf); written[c][b] && !words[b] {
						plain[c] = true
					}
				}
			}
		}
	})
	return plain, waited
}
