package sampling

import (
	"context"
	"slices"
	"time"

	"amkc/text/draft"
)

// A Rewinder is a [Feeder] that can go back, and decodes up to PassRows ids at about the cost of one.
type Rewinder interface {
	Feeder
	Position() int
	Rewind(position int) error
	PassRows() int
}

// CompleteDrafted is [Complete] with drafts, unless d is nil: the last token and the guesses of d are decoded in one
// pass, and guesses are accepted as long as they equal the choices of s. The noise of a draw depends only on seed,
// position and token, so the text is the same. stats may be nil.
func CompleteDrafted(ctx context.Context, f Rewinder, s *Sampler, prompt []int, n int, stops []int, d draft.Drafter,
	stats *draft.Stats, emit func(Choice) error) (stopped bool, err error) {
	text := slices.Clone(prompt)
	if last := len(prompt) - 1; last > 0 {
		if _, err := f.Feed(ctx, prompt[:last], nil); err != nil {
			return false, err
		}
	}
	var pace draft.Pace
	for left := n; left > 0; {
		ids := text[len(text)-1:]
		if room := min(left, f.PassRows()) - 1; d != nil && room > 0 {
			guess := pace.Draft(d, text, room)
			if !slices.ContainsFunc(guess, func(id int) bool { return id < 0 || id >= s.vocab }) {
				ids = slices.Concat(ids, guess[:min(len(guess), room)])
			}
		}
		first, begun := f.Position(), time.Now()
		var choices []Choice
		_, err := f.Feed(ctx, ids, func(position int, logits []float32) error {
			i := position - first
			if i != len(choices) || i > 0 && (choices[i-1].ID != ids[i] || slices.Contains(stops, ids[i])) {
				return nil // the guess before it was wrong, or ends the text
			}
			c, err := s.Next(logits, nil)
			choices = append(choices, c)
			return err
		})
		if err != nil {
			return false, err
		}
		if err := f.Rewind(first + len(choices)); err != nil {
			return false, err
		}
		if drafted := len(ids) - 1; drafted > 0 {
			pace.Verified(len(choices)-1, time.Since(begun))
			if stats != nil {
				stats.Passes, stats.Drafted, stats.Accepted = stats.Passes+1, stats.Drafted+drafted,
					stats.Accepted+len(choices)-1
			}
		} else {
			pace.Decoded(1, time.Since(begun))
		}
		left -= len(choices)
		for _, c := range choices {
			text = append(text, c.ID)
			if err := emit(c); err != nil {
				return false, err
			}
			if slices.Contains(stops, c.ID) {
				return true, nil
			}
		}
	}
	return false, nil
}
