package host

import (
	"context"
	"slices"
)

// checkPrompts returns the intervals of positions in which passes over prompts are compared with single tokens, as first
// and number: from the beginning of each variant, and across the end of it where that comes first. There are none
// without a kernel for prompts, or where a variant has too few positions for a pass.
func (s *Session) checkPrompts() [][2]int {
	if s.prompt == nil {
		return nil
	}
	var spans [][2]int
	first := 0
	for _, end := range s.info.VariantEnds {
		if n := min(checkPrompt+checkBehind, s.info.MaxSeq-first); n >= promptLeast+1+checkBehind {
			spans = append(spans, [2]int{first, n})
		}
		first = end
	}
	return spans
}

// comparePrompt decodes n positions from first on, all but the last few by passes without logits, and once more token by
// token. It compares the logits of those last few, which depend on all rows that the others left in the cache, and the
// tokens chosen.
func (s *Session) comparePrompt(ctx context.Context, first, n int, report *CheckReport) error {
	ids := CheckIDs(first, n, s.info.Vocab)
	var runs [2][][]float32
	for i, part := range [...]int{n - checkBehind, 1} {
		if err := s.setCache(first); err != nil {
			return err
		}
		s.position = first
		for known := range slices.Chunk(ids[:n-checkBehind], part) {
			if _, err := s.Feed(ctx, known, nil); err != nil {
				return err
			}
		}
		for _, id := range ids[n-checkBehind:] {
			if _, err := s.Feed(ctx, []int{id}, func(_ int, logits []float32) error {
				runs[i] = append(runs[i], slices.Clone(logits))
				return nil
			}); err != nil {
				return err
			}
		}
	}
	for i := range runs[0] {
		if !slices.EqualFunc(runs[0][i], runs[1][i], sameBits) {
			report.fail("position %d: the logits differ between %d positions before that were decoded by passes over "+
				"prompts and the same token by token", first+n-checkBehind+i, n-checkBehind)
			break
		}
	}
	return nil
}
