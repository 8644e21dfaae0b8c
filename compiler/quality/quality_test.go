package quality

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/progress"
)

const vocab = 64

// A fake decoder expects, after id at a position, the logits that its function says. It takes down what it was fed.
type fake struct {
	logits func(position, id int) []float32
	fed    [][]int // by sequence
	log    *[]string
	name   string
}

func (f *fake) Reset() { f.fed = append(f.fed, nil) }

func (f *fake) Feed(ctx context.Context, ids []int, onLogits func(int, []float32) error) (next int, err error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	for _, id := range ids {
		last := len(f.fed) - 1
		at := len(f.fed[last])
		f.fed[last] = append(f.fed[last], id)
		if f.log != nil {
			*f.log = append(*f.log, f.name)
		}
		row := f.logits(at, id)
		if onLogits != nil {
			if err := onLogits(at, row); err != nil {
				return 0, err
			}
		}
		r := newRow(row)
		next = r.top
	}
	return next, nil
}

// after expects the id that is one larger most.
func after(strength float32) func(int, int) []float32 {
	return func(_, id int) []float32 {
		row := make([]float32, vocab)
		row[(id+1)%vocab] = strength
		return row
	}
}

func side(name string, logits func(int, int) []float32) (Side, *fake) {
	f := &fake{logits: logits, name: name}
	return Side{Decoder: f, Name: name, Vocab: vocab, MaxSeq: 100}, f
}

func count(from, n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = (from + i) % vocab
	}
	return ids
}

// All tokens of a window but its first are predicted, each window is a sequence of its own, and a remainder of one
// token is not one.
func TestWindows(t *testing.T) {
	for _, c := range []struct {
		lead, ids, window, tokens int
		windows                   [][]int
	}{
		{0, 9, 4, 6, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}},
		{0, 10, 4, 7, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}},
		{0, 3, 100, 2, [][]int{{0, 1, 2}}},
		{1, 5, 4, 5, [][]int{{60, 0, 1, 2}, {60, 3, 4}}},
		{1, 4, 4, 4, [][]int{{60, 0, 1, 2}, {60, 3}}},
		{2, 2, 3, 2, [][]int{{60, 61, 0}, {60, 61, 1}}},
	} {
		text := Text{Lead: count(60, c.lead), IDs: count(0, c.ids)}
		require.Equal(t, c.windows, text.windows(c.window))
		model, seen := side("model", after(1))
		against, alsoSeen := side("against", after(1))
		r, err := Measure(t.Context(), model, against, text, Options{Window: c.window})
		require.NoError(t, err)
		require.Equal(t, c.tokens, r.Tokens)
		require.Equal(t, len(c.windows), r.Windows)
		require.Nil(t, r.Greedy)
		var fed [][]int
		for _, w := range c.windows {
			fed = append(fed, w[:len(w)-1]) // nothing is asked after the last token
		}
		require.Equal(t, fed, seen.fed)
		require.Equal(t, fed, alsoSeen.fed)
	}
}

// Of a text that counts on, a model that expects that has the perplexity that follows from how sure it is.
func TestMeasure(t *testing.T) {
	const sure, unsure = 5, 2
	model, seen := side("model", after(unsure))
	against, other := side("against", after(sure))
	var order []string
	seen.log, other.log = &order, &order
	var steps []progress.Step
	r, err := Measure(t.Context(), model, against, Text{IDs: count(0, 21)},
		Options{Window: 7, Greedy: 10, Tell: func(s progress.Step) { steps = append(steps, s) }})
	require.NoError(t, err)
	perplexity := func(strength float64) float64 { return (math.Exp(strength) + vocab - 1) / math.Exp(strength) }
	require.InEpsilon(t, perplexity(unsure), r.Perplexity.Model, 1e-12)
	require.InEpsilon(t, perplexity(sure), r.Perplexity.Against, 1e-12)
	require.Equal(t, 18, r.Tokens)
	require.Equal(t, 1.0, r.Agreement)
	require.Equal(t, Difference{Mean: 3.0 / vocab, Max: 3}, r.Logits)
	require.Positive(t, r.KL.Mean)
	require.InDelta(t, r.KL.Max, r.KL.Mean, 1e-12, "all predictions are alike")
	require.Equal(t, &Greedy{Prompts: 3, Tokens: 10, Mean: 10, Min: 10}, r.Greedy)
	for i, who := range order {
		require.Equal(t, []string{"model", "against"}[i%2], who, "the sides go in lockstep")
	}
	require.Equal(t, progress.Step{Activity: "predicting", Done: 17, Total: 18, Unit: "tokens"}, steps[17])
	require.Equal(t, "decoding greedily", steps[len(steps)-1].Activity)
}

// Two that decode differently are alike for as many tokens as they choose the same.
func TestGreedy(t *testing.T) {
	const parting = 20 // the position after which the model counts otherwise
	model, seen := side("model", func(at, id int) []float32 {
		if at >= parting {
			id++
		}
		return after(1)(at, id)
	})
	against, _ := side("against", after(1))
	r, err := Measure(t.Context(), model, against, Text{Lead: []int{63}, IDs: count(0, 3*promptTokens+5)},
		Options{Window: 40, Greedy: 8})
	require.NoError(t, err)
	// A prompt has 17 tokens: positions 16 to 19 choose alike.
	require.Equal(t, &Greedy{Prompts: 3, Tokens: 8, Mean: 4, Min: 4}, r.Greedy)
	require.Equal(t, append([]int{63}, count(0, promptTokens)...), seen.fed[r.Windows][:17])
	require.Equal(t, append([]int{63}, count(17, promptTokens)...), seen.fed[r.Windows+1][:17], "at equal distances")

	again, err := Measure(t.Context(), model, against, Text{IDs: count(0, 2000)}, Options{Window: 50, Greedy: 4})
	require.NoError(t, err)
	require.Equal(t, &Greedy{Prompts: mostPrompts, Tokens: 4, Mean: 4, Min: 4}, again.Greedy)
	short, err := Measure(t.Context(), model, against, Text{IDs: count(0, 3)}, Options{Window: 50, Greedy: 98})
	require.NoError(t, err)
	require.Equal(t, &Greedy{Prompts: 1, Tokens: 98, Mean: 18, Min: 18}, short.Greedy)
}

func TestRefused(t *testing.T) {
	model, _ := side("model", after(1))
	against, _ := side("against", after(1))
	text := Text{IDs: count(0, 50)}
	other := against
	other.Vocab = 65
	small := against
	small.MaxSeq = 10
	lost, _ := side("lost", func(at, id int) []float32 {
		row := after(1)(at, id)
		if at == 3 {
			row[7] = float32(math.NaN())
		}
		return row
	})
	const ownTokens = ", of these put there by the tokenizer: "
	for _, c := range []struct {
		model, against Side
		text           Text
		o              Options
		says           string
	}{
		{model, other, text, Options{Window: 4}, "against: error: has a vocabulary of 65 tokens, and model has one " +
			"of 64; want two models of the same vocabulary [AMK1209]"},
		{model, small, text, Options{Window: 11}, "--window: error: 11 tokens take as many positions, and against is " +
			"compiled for 10; want at most 10, or compile with --max-seq 11 [AMK1213]"},
		{model, small, text, Options{Window: 8, Greedy: 4}, "--greedy: error: 4 tokens after a prompt of 8 take " +
			"11 positions, and against is compiled for 10; want fewer, or compile with --max-seq 11 [AMK1213]"},
		{model, against, Text{IDs: []int{1}}, Options{Window: 8, Greedy: 4},
			"(tokens of the text: 1, of a window: 8" + ownTokens + "0) [AMK1211]"},
		{model, against, Text{Lead: count(0, 2), IDs: count(0, 5)}, Options{Window: 2},
			"(tokens of the text: 5, of a window: 2" + ownTokens + "2) [AMK1211]"},
		{model, against, Text{Lead: []int{1}}, Options{Window: 8, Greedy: 1},
			"(tokens of the text: 0, of a window: 8" + ownTokens + "1) [AMK1211]"},
		{model, lost, text, Options{Window: 8}, "position 3 of window 1: lost: error: the logit of id 7 is NaN after " +
			"token 3; want finite numbers [AMK1212]"},
		{lost, model, text, Options{Window: 8}, "position 3 of window 1: lost: error: "},
	} {
		r, err := Measure(t.Context(), c.model, c.against, c.text, c.o)
		require.Nil(t, r)
		require.ErrorContains(t, err, c.says)
	}
	ok, err := Measure(t.Context(), model, small, text, Options{Window: 8, Greedy: 3})
	require.NoError(t, err, "the last token takes no position")
	require.Equal(t, 3, ok.Greedy.Min)
}

func TestInterrupted(t *testing.T) {
	model, _ := side("model", after(1))
	against, _ := side("against", after(1))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	_, err := Measure(ctx, model, against, Text{IDs: count(0, 50)}, Options{Window: 8, Tell: func(s progress.Step) {
		if s.Done == 20 {
			cancel(stop)
		}
	}})
	require.ErrorIs(t, err, stop)
	_, err = Measure(ctx, model, against, Text{IDs: count(0, 2)}, Options{Window: 8, Greedy: 2})
	require.ErrorIs(t, err, stop)
}
