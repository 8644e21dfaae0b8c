package codegen

import (
	"slices"

	"amkc/ir"
	"amkc/ir/diag"
	"amkc/ir/format"
	"amkc/kernel"
)

const flushRows = 8 * kernel.FlushTiles // that an SM finishes at once

// checkReadAgain: in a pass of several tokens, a product whose columns are several slabs reads its vector once for each
// flush, and so again after rows have been published. The proof has it read before that (rule 1 of
// docs/memory-model.md). What reads rows of all SMs acts when all are published; a unit of attention reads those of
// its head alone, and one of a convolution those of its channels, and might write over the vector while another SM is
// still to read it. So nothing that units make may be on a page of that vector. Where tokens go by one after another,
// no unit comes before the stage that has read all that all SMs publish.
func (b *builder) checkReadAgain(s *ir.Stage, k *kernel.Stage, at site, f format.Format) error {
	columns := k.Columns
	several := columns > kernel.PlainSlabColumns
	if b.usesMMA() && columns%4 == 0 {
		several = b.cut(s, f, columns, 1).Slabs() > 1
	}
	most := 0
	for layer := range b.p.Model.Layers {
		for _, span := range s.Dist.Tasks(layer) {
			most = max(most, span.B-span.A)
		}
	}
	if b.pass.NumTokens() == 1 || k.ByExperts() || !several || most <= flushRows {
		return nil
	}
	in := b.buffer(s.Ops[0].In[0].Buf, at)
	if in == nil {
		return nil
	}
	var err error
	for i := range b.p.Variants {
		b.p.Variants[i].Each(func(other *ir.Stage, l *ir.Loop) {
			for _, o := range resultsOfUnits(other) {
				out := b.buffer(o.Buf, site{loop: l})
				if err != nil || out == nil {
					continue
				}
				k := slices.IndexFunc(out.Pages, func(page string) bool { return slices.Contains(in.Pages, page) })
				if k >= 0 {
					err = diag.Errorf(codeStage, "stage "+s.Name, "reads %s once for each %d of its up to %d rows on "+
						"an SM, and %s is on the same page %s, which units of attention or a convolution may "+
						"write before; want page_allocation of none, or passes of one token", in.Name, flushRows, most,
						out.Name, out.Pages[k])
				}
			}
		})
	}
	return err
}

// resultsOfUnits are the results of a stage whose units read rows of some SMs alone.
func resultsOfUnits(s *ir.Stage) (out []ir.Operand) {
	if slices.ContainsFunc(s.Ops, func(o ir.Op) bool {
		return slices.Contains([]ir.Opcode{ir.ATTENTION, ir.AttentionCombine, ir.ShortConv, ir.RECURRENCE}, o.Code)
	}) {
		for k := range s.Ops {
			out = append(out, s.Ops[k].Out...)
		}
	}
	return out
}
