package codegen

import (
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/kernel"
)

// Of several GPUs each runs the same kernel as one rank. What the ranks have in common are the words that they push to
// each other, the best logits among them, and the counter of the step.

// checkRanks refuses what the kernel does not do on several GPUs.
func (b *builder) checkRanks() error {
	n := b.p.NumRanks()
	if n == 1 {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return diag.Errorf(codeStructure, "program", "is for %d GPUs, and "+format, append([]any{n}, args...)...)
	}
	head := kernel.Facts{Vocab: b.p.Model.Vocab, Ranks: n}
	switch {
	case b.pass.NumTokens() > 1:
		return refuse("its passes have %d tokens; want one, whose sums the kernel adds up", b.pass.NumTokens())
	case !b.flagged():
		return refuse("counters announce its vectors; want tiling.exchange.flagged 1, for what GPUs push to each " +
			"other carries its epoch")
	case b.p.Model.Vocab%n != 0 || head.OwnVocab()%2 != 0:
		return refuse("each has a share of %d tokens; want an even number for each, which draws take two by two",
			b.p.Model.Vocab)
	case b.p.Model.Tied:
		return refuse("the matrix of its head is the embedding table, which each has whole; want one of its own")
	}
	for i := range b.p.Pages {
		if pg := &b.p.Pages[i]; pg.Space == ir.PeerScratch && pg.Layout.Copies > 1 {
			return diag.Errorf(codeStructure, "page "+pg.Name, "has %d copies of what GPUs push; want one on each",
				pg.Layout.Copies)
		}
	}
	return nil
}

// checkSums bounds what a thread reads of the sums of all ranks, as ranks.cuh counts: it has a bit for each. rows are
// those of an SM.
func (b *builder) checkSums(rows int) error {
	const bits, threads = 32, kernel.Warps * 32
	n := b.p.NumRanks()
	if most := bits / n * threads; n > 1 && rows > most {
		return diag.Errorf(codeLimit, "program", "an SM adds the sums of %d GPUs to %d rows of the residual; want at "+
			"most %d rows, by more SMs", n, rows, most)
	}
	return nil
}
