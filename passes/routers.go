package passes

import (
	"slices"

	"amkc/ir"
	"amkc/passes/rewrite"
)

// routeOnEverySM lets every SM choose the experts of each token: all read the scores, and what an SM chooses stays in
// its shared memory, for the products that read it there. One task that published its choice would cost an exchange
// more.
func routeOnEverySM(p *ir.Program) {
	of, sms := tokensOf(p.Pass), p.Target.SMs
	var kept []string
	each := func(do func(st *ir.Stage)) {
		for i := range p.Variants {
			rewrite.EachStage(&p.Variants[i], func(st *ir.Stage, _ *ir.Loop) { do(st) })
		}
	}
	each(func(st *ir.Stage) {
		if !has(st, ir.TOPK) {
			return
		}
		st.Dist = ir.Dist{Kind: ir.Spread, Extent: sms, Grain: 1, SMs: sms}
		for _, op := range st.Ops {
			for _, o := range op.Out {
				if !o.IsTemp() && !slices.Contains(kept, o.Buf) {
					kept = append(kept, o.Buf)
				}
			}
		}
	})
	own := func(list []ir.Operand) []ir.Operand {
		list = slices.Clone(list)
		for i, o := range list {
			if slices.Contains(kept, o.Buf) {
				list[i].Dims = slices.Insert(slices.Clone(o.Dims), 0, ir.Index(onSM))
			}
		}
		return list
	}
	each(func(st *ir.Stage) {
		for k := range st.Ops {
			st.Ops[k].In, st.Ops[k].Out = own(st.Ops[k].In), own(st.Ops[k].Out)
		}
	})
	for i := range p.Buffers {
		if b := &p.Buffers[i]; slices.Contains(kept, b.Name) {
			b.Shape = withTokens(of, []int{sms, b.Shape[len(b.Shape)-1]}, 1, of.NumTokens())
			b.Space = ir.SMEM
		}
	}
}
