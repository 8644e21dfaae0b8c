package codegen

import "amkc/ir"

// WrittenLayers is how many layers the CUDA sources of a program have code for, each with bodies of its own, which nvcc
// compiles: a loop has those of its first iteration, however often it is repeated, and each layer in
// no loop has its own. Stages of no layer do not count.
func WrittenLayers(p *ir.Program) int {
	written := map[int]bool{}
	add := func(s *ir.Stage, index int) {
		if layer, ok := s.Layer.At(index); ok {
			written[layer] = true
		}
	}
	for i := range p.Variants {
		for _, n := range p.Variants[i].Body {
			switch n := n.(type) {
			case *ir.Stage:
				add(n, 0)
			case *ir.Loop:
				for _, s := range n.Body {
					add(s, n.First)
				}
			}
		}
	}
	return len(written)
}
