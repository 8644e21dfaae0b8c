package codegen

import "amkc/ir"

// WrittenLayers is the number of layers for which the CUDA sources of a program contain separate code, which nvcc
// compiles: a loop counts as the layers of its first iteration, and each layer outside loops counts. Stages without a
// layer do not count.
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
