package refvm

import (
	"amkc/ir"
	ops "amkc/ir/op"
)

// A kernelTable says which kernel computes an op, by its declaration. Each file with kernels has one.
type kernelTable map[*ops.Spec]kernel

// kernels are the kernels of all files by opcode; nil for FUSED, which is listed as its ops. What they compute is
// theirs: the declarations say it in words.
var kernels = byCode(elementwise, finishers, embedding, norms, products, rotations, attending, selecting, sampling,
	stopping, expert, recurrent)

func byCode(tables ...kernelTable) []kernel {
	all := make([]kernel, len(ir.Ops))
	for _, table := range tables {
		for spec, k := range table {
			all[spec.Code] = k
		}
	}
	return all
}
