package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"amkc/text/draft"
)

// predicted is how many times as fast a text would be with drafts, by n-grams and pace alone, if a pass took n
// steps, and a launch 1 % of a step of 5 ms; and how many drafts were accepted, of how many.
func predicted(t *draftText, pass float64) (c draftCounts) {
	const step, launch = 5 * time.Millisecond, 50 * time.Microsecond
	var pace draft.Pace
	var took time.Duration
	for text, left := slices.Concat(t.prompt, t.answer[:1]), t.answer[1:]; len(left) > 0; {
		n, begun := min(pace.Steps(), len(left)), took
		if ids := pace.Draft(draft.NGrams{}, text, min(8, len(left))-1); len(left) > 1 && len(ids) > 0 {
			right := 0
			for right < len(ids) && ids[right] == left[right] {
				right++
			}
			took += launch + time.Duration(pass*float64(step))
			pace.Verified(right, took-begun)
			n = right + 1
			c.Passes, c.Drafted, c.Accepted = c.Passes+1, c.Drafted+len(ids), c.Accepted+right
		} else {
			took += launch + time.Duration(n)*step
			pace.Decoded(n, took-begun)
		}
		text, left = append(text, left[:n]...), left[n:]
	}
	c.Tokens = len(t.answer) - 1
	c.plain, c.drafted = (time.Duration(c.Tokens) * step).Seconds(), took.Seconds()
	c.sum()
	return c
}

// On a GPU it is measured what drafts gain on the committed texts. What n-grams and pace would gain follows from the
// texts and from what a pass costs, and must be enough for that: 1.04 steps are those of 8B in bf16, 2.15 of int4.
func TestWhatLookUpWouldGain(t *testing.T) {
	texts, err := readDraftTexts(committedTexts, pycoder)
	require.NoError(t, err)
	for pass, least := range map[float64]map[string]float64{
		1.04: {"edit": 3, "quotes": 2.1, "fresh": 0.98},
		1.25: {"edit": 2.7, "quotes": 1.9, "fresh": 0.98},
		2.15: {"edit": 2, "quotes": 1.4, "fresh": 0.96},
	} {
		var times []draftTimes
		for _, x := range texts {
			c := predicted(&x, pass)
			t.Logf("%s: %d tokens after %d, %d of %d accepted in %d passes of %g steps: %.2f times as fast", x.name,
				c.Tokens, len(x.prompt), c.Accepted, c.Drafted, c.Passes, pass, c.Ratio)
			times = append(times, draftTimes{Name: x.name, Kind: x.kind, draftCounts: c})
		}
		for _, k := range kindsOfDrafts(times) {
			t.Logf("%s, passes of %g steps: %.2f times as fast, %.2f to %.2f, %.0f %% accepted, %.2f tokens a pass",
				k.Kind, pass, k.Ratio, k.Lowest, k.Most, 100*k.Acceptance, k.TokensPerPass)
			if require.NotZero(t, least[k.Kind]); k.Kind == "fresh" {
				require.Greater(t, k.Lowest, least[k.Kind])
			} else {
				require.Greater(t, k.Ratio, least[k.Kind], k.Kind)
			}
		}
	}
}
