package passes

import (
	"amkc/ir"
	"amkc/knobs"
	"amkc/passes/rewrite"
)

// Exchange is the pass that chooses the realisation of each counter. A counter whose producers write words that carry
// their epoch, and whose waiters read only those words from them, can be flagged: a word shows by its epoch that it has
// arrived. Every other counter counts, including that of a barrier, which has no words. The best logits of the SMs are
// always flagged words on the device, whatever the configuration says.
var Exchange = Pass{
	Name:  "exchange",
	Doc:   "choose how each counter is kept: as a number in memory, or as flags in the words themselves",
	After: []string{"assign", "pagecolor"},
	Run:   runExchange,
}

func runExchange(s *State) error {
	p := s.Program
	allowed := knobs.Flagged.Of(&p.Config)
	for i := range p.Variants {
		v := &p.Variants[i]
		plain, flaggable, err := announcedPlainly(p, v)
		if err != nil {
			return err
		}
		best := map[string]bool{} // counters of the best logits
		rewrite.EachStage(v, func(st *ir.Stage, _ *ir.Loop) { best[st.Signal] = best[st.Signal] || findsBest(st) })
		for k := range v.Counters {
			c := &v.Counters[k]
			c.How = ir.ByCounter
			if (allowed || best[c.Name]) && flaggable[k] && !plain[k] {
				c.How = ir.Flagged
			}
		}
	}
	return nil
}

// announcedPlainly says of each counter or family of the variant whether a waiter learns through it of something that
// is not a word, and whether it has waiters and its producers write words at all. It looks at the unrolled form, in
// which a buffer has one name, and takes the members of a family together.
func announcedPlainly(p *ir.Program, v *ir.Variant) (plain, flaggable []bool, err error) {
	flat, diags := ir.UnrollRanks(p, eachStageOnce(v), 1)
	if err := diags.Err(); err != nil {
		return nil, nil, err
	}
	counters, buffers := ir.CounterDirectory(v).Members(), ir.BufferDirectory(p).Members()
	type announcement struct{ counter, buffer int }
	written := map[announcement]bool{} // buffers that are not words, by the counter of who writes them
	words := make([]bool, len(v.Counters))
	for i := range flat.Tasks {
		t := &flat.Tasks[i]
		for k := range t.Ops {
			for _, b := range t.Ops[k].OutBuf {
				switch {
				case b < 0 || t.Signal < 0:
				case flat.Buffers[b].Layout.Words():
					words[counters[t.Signal].Declared] = true
				default:
					written[announcement{counters[t.Signal].Declared, buffers[b].Declared}] = true
				}
			}
		}
	}
	plain, flaggable = make([]bool, len(v.Counters)), make([]bool, len(v.Counters))
	for i := range flat.Tasks {
		t := &flat.Tasks[i]
		for _, w := range t.Waits {
			c := counters[w.Counter].Declared
			flaggable[c] = words[c]
			for k := range t.Ops {
				for _, b := range t.Ops[k].InBuf {
					if b >= 0 && written[announcement{c, buffers[b].Declared}] {
						plain[c] = true
					}
				}
			}
		}
	}
	return plain, flaggable, nil
}

// eachStageOnce is the variant with one task for each stage. All tasks of a stage name the same buffers and counters,
// and a program has some hundred stages and tens of thousands of tasks.
func eachStageOnce(v *ir.Variant) *ir.Variant {
	out := *v
	out.Body = nil
	once := func(s *ir.Stage) *ir.Stage {
		own := *s
		own.Dist = whole(1)
		return &own
	}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			out.Body = append(out.Body, once(n))
		case *ir.Loop:
			own := *n
			own.Body = nil
			for _, s := range n.Body {
				own.Body = append(own.Body, once(s))
			}
			out.Body = append(out.Body, &own)
		}
	}
	return &out
}
