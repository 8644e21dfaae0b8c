package quality

import (
	"context"
	"fmt"

	"amkc/ir/diag"
	"amkc/runtime/progress"
)

// A run takes both sides through the same tokens.
type run struct {
	model, against Side
	tell           progress.Func
	row            []float32 // the model's logits, while the other side makes its own
}

func (r *run) reset() {
	r.model.Reset()
	r.against.Reset()
}

// step feeds one token to both sides and returns what each chooses.
func (r *run) step(ctx context.Context, id int) (model, against int, err error) {
	if model, err = r.model.Feed(ctx, []int{id}, nil); err == nil {
		against, err = r.against.Feed(ctx, []int{id}, nil)
	}
	return model, against, err
}

// predict has both sides predict the tokens of each window from place first on.
func (r *run) predict(ctx context.Context, windows [][]int, first int) (*Report, error) {
	var found tally
	total, done := 0, 0
	for _, w := range windows {
		total += len(w) - 1
	}
	for n, w := range windows {
		r.reset()
		for i, id := range w[:len(w)-1] {
			r.tell.Report(progress.Step{Activity: "predicting", Done: int64(done), Total: int64(total), Unit: "tokens"})
			done++
			if i+1 < first {
				if _, _, err := r.step(ctx, id); err != nil {
					return nil, err
				}
				continue
			}
			if err := r.compare(ctx, id, w[i+1], &found); err != nil {
				return nil, fmt.Errorf("position %d of window %d: %w", i, n+1, err)
			}
		}
	}
	return found.report(), nil
}

// compare feeds one token to both sides and counts what they expect after it.
func (r *run) compare(ctx context.Context, id, next int, found *tally) error {
	check := func(s *Side, logits []float32) error {
		if bad, is := notFinite(logits); is {
			return diag.Errorf(codeFinite, s.Name, "the logit of id %d is %v after token %d; want finite numbers", bad,
				logits[bad], id)
		}
		return nil
	}
	_, err := r.model.Feed(ctx, []int{id}, func(_ int, logits []float32) error {
		copy(r.row, logits)
		return check(&r.model, logits)
	})
	if err != nil {
		return err
	}
	_, err = r.against.Feed(ctx, []int{id}, func(_ int, logits []float32) error {
		if err := check(&r.against, logits); err != nil {
			return err
		}
		found.add(r.row, logits, next)
		return nil
	})
	return err
}

// decode has both sides decode up to n tokens after each prompt, until they differ.
func (r *run) decode(ctx context.Context, prompts [][]int, n int) (*Greedy, error) {
	g := &Greedy{Prompts: len(prompts), Tokens: n, Min: n}
	for i, prompt := range prompts {
		alike, err := r.alike(ctx, prompt, n, func(k int) {
			r.tell.Report(progress.Step{Activity: "decoding greedily", Done: int64(i*n + k),
				Total: int64(len(prompts) * n), Unit: "tokens"})
		})
		if err != nil {
			return nil, err
		}
		g.Mean += float64(alike) / float64(len(prompts))
		g.Min = min(g.Min, alike)
	}
	return g, nil
}

// alike returns how many of the first n tokens after a prompt both sides choose before they differ.
func (r *run) alike(ctx context.Context, prompt []int, n int, tell func(k int)) (int, error) {
	r.reset()
	var model, against int
	var err error
	for _, id := range prompt {
		if model, against, err = r.step(ctx, id); err != nil {
			return 0, err
		}
	}
	for k := range n {
		if model != against {
			return k, nil
		}
		tell(k)
		if k+1 < n { // the last token is not decoded
			if model, against, err = r.step(ctx, model); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}
