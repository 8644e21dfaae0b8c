package codegen

import (
	"strings"

	"amkc/ir"
	"amkc/runtime/host"
)

// exchangesOf lists what a step of a variant hands over from SM to SM, in the order of the ordinals that a traced kernel
// counts: one for every stage that ends an exchange.
func exchangesOf(p *ir.Program, v *ir.Variant) []host.Exchange {
	var list []host.Exchange
	add := func(s *ir.Stage, first, layers int) {
		if advances(s) {
			list = append(list, host.Exchange{Stage: s.Name, Elements: handedOver(p, s), First: first, Layers: layers})
		}
	}
	for _, n := range v.Body {
		switch n := n.(type) {
		case *ir.Stage:
			add(n, 0, 0)
		case *ir.Loop:
			for _, s := range n.Body {
				add(s, n.First, n.Count)
			}
		}
	}
	return list
}

// handedOver is the length of the vector that a stage publishes. lm_head hands over its best pair, which no trace holds: 0.
func handedOver(p *ir.Program, s *ir.Stage) int {
	if op(s, ir.ArgMax).Out != nil {
		return 0
	}
	for _, o := range s.Ops {
		for _, out := range o.Out {
			for i := range p.Buffers {
				if b := &p.Buffers[i]; b.Layout.Words() && stem(b.Name) == memberStem(out.Buf) {
					return b.Numel()
				}
			}
		}
	}
	return 0
}

// memberStem is the stem of a buffer's name, also of one whose layer is a number: L03.qkv -> qkv.
func memberStem(name string) string {
	if _, ok := layerOf(name); ok {
		_, rest, _ := strings.Cut(name, ".")
		return rest
	}
	return stem(name)
}
