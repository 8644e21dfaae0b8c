// Package quality measures how much a model, or a build, differs from another one on a text: perplexities, the
// divergence of their predictions of the next token, their logits, and the number of tokens that they decode greedily
// before they differ.
//
// Both sides read the text token by token in lockstep, so that only one row of logits of each is in memory. Sums are in
// float64.
//
// It works on decoders and token ids; text, files and flags are left to the command line. It imports ir/diag and
// runtime/progress.
package quality

import (
	"context"
	"slices"

	"amkc/ir/diag"
	"amkc/runtime/progress"
)

// A Decoder decodes one sequence.
type Decoder interface {
	// Reset starts a new sequence at position 0.
	Reset()
	// Feed decodes ids, and gives the logits [vocab] after each to onLogits, if there is one; the slice is valid during
	// the call. It returns the token that is chosen after the last, greedily.
	Feed(ctx context.Context, ids []int, onLogits func(position int, logits []float32) error) (next int, err error)
}

// A Side is one of the two models.
type Side struct {
	Decoder
	Name   string // in errors
	Vocab  int
	MaxSeq int // positions
}

// A Text is token ids.
type Text struct {
	Lead []int // what every sequence begins with: the ids that a tokenizer puts in front of a text
	IDs  []int
}

// Options say how to measure.
type Options struct {
	Window int           // tokens of a sequence, those of Text.Lead included; at most the positions of both sides
	Greedy int           // tokens to decode after each prompt; 0: no prompts
	Tell   progress.Func // may be nil
}

// A Report has the results. Probabilities are those of softmax.
type Report struct {
	Tokens     int        `json:"tokens"`  // predicted: all of a window but its first and those of the lead
	Windows    int        `json:"windows"` // that the text was cut into
	Window     int        `json:"window"`  // tokens of each but the last
	Perplexity Perplexity `json:"perplexity"`
	KL         Divergence `json:"kl"`
	Agreement  float64    `json:"top1_agreement"` // share of the predictions with the same most probable token
	Logits     Difference `json:"logit_difference"`
	Greedy     *Greedy    `json:"greedy,omitempty"`
}

// Perplexity is exp of the mean -log p(next token).
type Perplexity struct {
	Model   float64 `json:"model"`
	Against float64 `json:"against"`
}

// Divergence is the Kullback-Leibler divergence Σ p log(p/q) of a prediction, in nats: p is the prediction of the side
// that is compared against, and q that of the model.
type Divergence struct {
	Mean float64 `json:"mean"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Difference is the magnitude of the difference of two logits of the same id.
type Difference struct {
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// Greedy is the number of tokens that both sides choose after a prompt before they first differ.
type Greedy struct {
	Prompts int     `json:"prompts"`
	Tokens  int     `json:"tokens"` // decoded after each at most
	Mean    float64 `json:"mean"`
	Min     int     `json:"min"`
}

// Prompts are taken from the text at equal distances.
const (
	mostPrompts  = 8
	promptTokens = 16 // of the text, as far as the window has room for them
)

// windows cuts a text into sequences of at most n tokens. What is left at the end and predicts nothing is left out.
func (t *Text) windows(n int) [][]int {
	var all [][]int
	for part := range slices.Chunk(t.IDs, max(1, n-len(t.Lead))) {
		if w := slices.Concat(t.Lead, part); t.first() < len(w) {
			all = append(all, w)
		}
	}
	return all
}

// first is the place in a window of the first token that is predicted.
func (t *Text) first() int { return max(1, len(t.Lead)) }

// PromptLen is the length of every prompt of a text if windows have n tokens.
func (t *Text) PromptLen(n int) int {
	return len(t.Lead) + max(0, min(promptTokens, n-len(t.Lead), len(t.IDs)))
}

// prompts returns the beginnings of stretches of the text, as many as it has room for.
func (t *Text) prompts(window int) [][]int {
	size := t.PromptLen(window) - len(t.Lead)
	n := min(mostPrompts, len(t.IDs)/size)
	all := make([][]int, n)
	for i := range all {
		at := i * len(t.IDs) / n
		all[i] = slices.Concat(t.Lead, t.IDs[at:at+size])
	}
	return all
}

// Measure compares a model with another one, on a text whose ids are in the vocabulary. The error is a diagnostic, a
// decoder's, or the cause of a cancelled context.
func Measure(ctx context.Context, model, against Side, text Text, o Options) (*Report, error) {
	if model.Vocab != against.Vocab {
		return nil, diag.Errorf(codeVocabularies, against.Name,
			"has a vocabulary of %d tokens, and %s has one of %d; want two models of the same vocabulary",
			against.Vocab, model.Name, model.Vocab)
	}
	for _, s := range []Side{model, against} {
		if o.Window > s.MaxSeq {
			return nil, diag.Errorf(codePositions, "--window", "%d tokens take as many positions, and %s is compiled "+
				"for %d; want at most %[3]d, or compile with --max-seq %[1]d", o.Window, s.Name, s.MaxSeq)
		}
		if n := text.PromptLen(o.Window) + o.Greedy - 1; o.Greedy > 0 && n > s.MaxSeq {
			return nil, diag.Errorf(codePositions, "--greedy", "%d tokens after a prompt of %d take %d positions, and "+
				"%s is compiled for %d; want fewer, or compile with --max-seq %[3]d", o.Greedy,
				text.PromptLen(o.Window), n, s.Name, s.MaxSeq)
		}
	}
	windows := text.windows(o.Window)
	if o.Window <= len(text.Lead) || len(windows) == 0 {
		return nil, diag.Errorf(codeShort, "the text", "no token of it follows another one in a window, so that "+
			"nothing can be predicted; want a longer text or longer windows (tokens of the text: %d, of a window: %d, "+
			"of these put there by the tokenizer: %d)", len(text.IDs), o.Window, len(text.Lead))
	}
	r := &run{model: model, against: against, tell: o.Tell, row: make([]float32, model.Vocab)}
	report, err := r.predict(ctx, windows, text.first())
	if err != nil {
		return nil, err
	}
	report.Windows, report.Window = len(windows), o.Window
	if o.Greedy > 0 {
		if report.Greedy, err = r.decode(ctx, text.prompts(o.Window), o.Greedy); err != nil {
			return nil, err
		}
	}
	return report, nil
}
