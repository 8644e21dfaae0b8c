package codegen

import (
	"slices"

	"amkc/ir"
	"amkc/kernel"
	"amkc/runtime/host"
)

// exchangesOf lists what SMs publish to one another in a step of a variant, in the order of the ordinals that a traced
// kernel counts: one for every stage that ends an exchange.
func (b *builder) exchangesOf(v *ir.Variant) []host.Exchange {
	var list []host.Exchange
	add := func(s *ir.Stage, at site) {
		if !advances(s) {
			return
		}
		e := host.Exchange{Stage: s.Label(), Elements: b.handedOver(s, at), Scores: b.scores(v, s)}
		if parts, _ := b.splitK(s, at); parts > 1 {
			e.Parts = parts
		}
		if l := at.loop; l != nil {
			e.First, e.Layers, e.Loop = l.First, l.Count, at.number
			if s.Kind != 0 {
				e.Rounds = l.Iterations(s)
			}
			if l.Step > 1 {
				e.Step = l.Step
			}
		}
		list = append(list, e)
	}
	loops := 0
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			add(n, site{})
		case *ir.Loop:
			for _, s := range n.Body {
				add(s, site{n, loops})
			}
			loops++
		}
	}
	return list
}

// scores reports whether a router chooses by what a stage publishes.
func (b *builder) scores(v *ir.Variant, s *ir.Stage) (are bool) {
	v.Each(func(reader *ir.Stage, _ *ir.Loop) {
		are = are || kernel.Of(reader) == kernel.Route && reader.Kind == s.Kind && len(reader.Waits) == 1 &&
			reader.Waits[0].Counter == s.Signal
	})
	return are
}

// numberExchanges sets the numbers of the stages that publish, given the names of the numbers of the variant's stages,
// in order.
func (b *builder) numberExchanges(list []host.Exchange, v *ir.Variant, order []string) {
	v.Each(func(s *ir.Stage, _ *ir.Loop) {
		number := 0
		if kind, err := classify(s); err == nil && !kind.Unlisted {
			number = slices.IndexFunc(b.d.Stages, func(st *stage) bool { return st.Enum == order[0] })
			order = order[1:]
		}
		if advances(s) {
			list[0].Number, list = number, list[1:]
		}
	})
}

// handedOver is the length of the vector that a stage publishes. lm_head publishes its best pair, which no trace
// holds: 0.
func (b *builder) handedOver(s *ir.Stage, at site) int {
	if op(s, ir.SAMPLE).Out != nil {
		return 0
	}
	for _, o := range s.Ops {
		for _, out := range o.Out {
			if out.IsTemp() {
				continue
			}
			m, err := b.names.At(out.Buf, at.indicesOf(s)[0])
			if err != nil {
				continue
			}
			if buf := &b.p.Buffers[m.Declared]; buf.Layout.Words() {
				return b.pass.NumTokens() * buf.Numel()
			}
		}
	}
	return 0
}

// exchanges returns the number of exchanges a step of the longest variant has, and the length of the longest vector.
func (b *builder) exchanges() (count, longest int) {
	for i := range b.p.Variants {
		n := 0
		for _, e := range b.exchangesOf(&b.p.Variants[i]) {
			if n += max(1, e.Layers); e.Rounds != nil {
				n += len(e.Rounds) - e.Layers
			}
		}
		count = max(count, n)
	}
	for k := range b.p.Buffers {
		if buf := &b.p.Buffers[k]; buf.Layout.Words() {
			longest = max(longest, b.pass.NumTokens()*buf.Numel())
		}
	}
	return count, longest
}

// advances reports whether a stage ends an exchange: whether other stages wait for what it publishes within the step.
// A product that adds to the residual alone does not.
func advances(s *ir.Stage) bool {
	b, err := classify(s)
	return err == nil && !b.Unlisted && !b.Local && (!b.Emitted || s.Signal != "")
}

// flagged reports whether the exchanges are realised by flagged words. The counter of the best pairs always is, and
// says nothing of the others.
func (b *builder) flagged() bool {
	for i := range b.p.Variants {
		v := &b.p.Variants[i]
		best := bestCounters(v)
		for _, c := range v.Counters {
			if c.How == ir.Flagged && !best[c.Name] {
				return true
			}
		}
	}
	return false
}

// bestCounters are the counters that announce the best pairs of the SMs.
func bestCounters(v *ir.Variant) map[string]bool {
	out := map[string]bool{}
	for _, s := range sections(v) {
		for _, st := range s.stages {
			if choosesToken(st) {
				out[st.Signal] = true
			}
		}
	}
	return out
}
