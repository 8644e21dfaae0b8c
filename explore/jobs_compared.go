package explore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"amkc/compiler"
	"amkc/runtime/host"
	"amkc/text/sampling"
)

// drawn are the settings by which the kernel draws: a temperature alone, and each filter. At the lower temperature what
// a filter leaves out would often have been drawn. The top-k of the last one keeps all tokens.
func drawn() map[string]sampling.Options {
	with := func(temperature float64, edit func(o *sampling.Options)) sampling.Options {
		o := sampling.Greedy()
		o.Temperature, o.Seed = temperature, 7
		edit(&o)
		return o
	}
	return map[string]sampling.Options{
		"a temperature": with(0.8, func(*sampling.Options) {}),
		"top-k":         with(0.8, func(o *sampling.Options) { o.TopK = 5 }),
		"top-p":         with(0.05, func(o *sampling.Options) { o.TopP = 0.3 }),
		"min-p and a penalty": with(0.05, func(o *sampling.Options) {
			o.MinP, o.RepetitionPenalty, o.TopK = 0.5, 1.2, math.MaxInt32
		}),
	}
}

// drawnBy are those that the kernel of a build draws by: on several GPUs it leaves no tokens out by their probability,
// for the rounds of that join the SMs of one.
func (a *attempt) drawnBy() map[string]sampling.Options {
	all := drawn()
	if a.facts.NumRanks() == 1 {
		return all
	}
	penalty := all["a temperature"]
	penalty.RepetitionPenalty, penalty.FrequencyPenalty = 1.2, 0.5
	return map[string]sampling.Options{"a temperature": all["a temperature"], "penalties": penalty}
}

// drawings has the kernel draw tokens, and the host from the logits of the same text.
func (a *attempt) drawings() error {
	settings := a.drawnBy()
	for _, name := range sorted(settings) {
		// the first token, and the others in one launch, whose second step counts what the first has chosen
		if err := a.drawing(name, settings[name], chosenTokens); err != nil {
			return err
		}
	}
	return a.ties()
}

// drawnAfter is the prompt that tokens are drawn after.
func (a *attempt) drawnAfter() []int { return a.ids(0, 2) }

func (a *attempt) drawing(name string, o sampling.Options, n int) error {
	prompt := a.drawnAfter()
	return a.open(host.Options{}, func(s *host.Session) error {
		s.Choose(&o, sampling.Text{Prompt: prompt})
		got, err := s.Complete(a.ctx, prompt, n, nil, nil)
		if err != nil {
			return err
		}
		a.own("tokens drawn by "+name, fmt.Append(nil, got.IDs))
		want, err := a.drawOnHost(s, &o, prompt, len(got.IDs))
		if err != nil {
			return err
		}
		if !slices.Equal(got.IDs, want) {
			a.found("difference", "by %s the kernel drew %v, and the host draws %v from the same logits", name,
				got.IDs, want)
		}
		return nil
	})
}

// ties has the kernel draw where the sums of two tokens are so close that bounds in float32 do not tell which is the
// larger: two tokens that share random words, which one thread compares, and two tokens of different SMs.
func (a *attempt) ties() error {
	var logits []float32
	err := a.open(host.Options{}, func(s *host.Session) error {
		_, err := s.Feed(a.ctx, a.drawnAfter(), func(_ int, l []float32) error {
			logits = slices.Clone(l)
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	ofThread := func(x, y int) bool { return x/2 == y/2 }
	ofSMs := func(x, y int) bool { return (x < len(logits)/2) != (y < len(logits)/2) }
	for _, t := range []struct {
		name string
		minP float64 // leaves out next to nothing, but is looked at
		are  func(x, y int) bool
	}{{"a tie of a thread", 0, ofThread}, {"a tie of SMs", 0, ofSMs}, {"a tie of SMs and a filter", 1e-9, ofSMs}} {
		if t.minP > 0 && a.facts.NumRanks() > 1 {
			continue
		}
		o, found, err := a.tie(logits, t.minP, t.are)
		if err == nil && found {
			err = a.drawing(t.name, o, 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mostSums bounds the search for a tie. That of a thread takes about as many seeds as there are pairs of tokens, so
// that it is found where there are a few hundred tokens.
const mostSums = 1 << 23

// tie looks for settings by which the sums of two tokens, of which something is so, are the largest and nearly equal.
// Where another token is drawn at a higher temperature than at a lower one, there is a temperature between them at
// which the drawn token changes.
func (a *attempt) tie(logits []float32, minP float64, are func(x, y int) bool) (o sampling.Options, found bool,
	err error) {
	o = sampling.Greedy()
	o.MinP = minP
	draw := func(temperature float64) (int, error) {
		o.Temperature = temperature
		sampler, err := sampling.New(o, a.facts.Model.Vocab, a.drawnAfter())
		if err != nil {
			return 0, err
		}
		c, err := sampler.Next(logits, nil)
		return c.ID, err
	}
	for sums := 0; sums < mostSums; o.Seed++ {
		low, high := 1e-3, 1e3
		first, err := draw(low)
		last := first
		for err == nil && high-low > low*0x1p-40 {
			var id int
			middle := (low + high) / 2
			if id, err = draw(middle); id == first {
				low = middle
			} else {
				high, last = middle, id
			}
			sums += len(logits)
		}
		if err != nil {
			return o, false, err
		}
		if last != first && are(first, last) {
			o.Temperature = low
			return o, true, nil
		}
	}
	return o, false, nil
}

// drawOnHost draws what follows a prompt.
func (a *attempt) drawOnHost(s *host.Session, o *sampling.Options, prompt []int, n int) (all []int, err error) {
	greedy := sampling.Greedy()
	s.Choose(&greedy, sampling.Text{})
	sampler, err := sampling.New(*o, a.facts.Model.Vocab, prompt)
	if err != nil {
		return nil, err
	}
	if err := s.Rewind(0); err != nil {
		return nil, err
	}
	_, err = sampling.Complete(a.ctx, s, sampler, prompt, n, nil, func(c sampling.Choice) error {
		all = append(all, c.ID)
		return nil
	})
	return all, err
}

// ends compares with the plain kernels of reference.cu, at the first and at the last position of each variant. The last
// positions of all are decoded by the widest pass, which sees the longest context then.
func (a *attempt) ends() error {
	return a.open(host.Options{}, func(s *host.Session) error {
		at := []int{0}
		for _, end := range s.Info().VariantEnds {
			at = append(at, end-1, end)
		}
		at = at[:len(at)-2] // nothing follows the last variant
		widest := 1
		for _, p := range a.facts.Passes {
			if p.NumSequences() == 1 {
				widest = max(widest, p.NumRows())
			}
		}
		for position := max(at[len(at)-1]+1, s.Info().MaxSeq-widest); position < s.Info().MaxSeq; position++ {
			at = append(at, position)
		}
		for first := 0; first < len(at); {
			n := 1
			for first+n < len(at) && at[first+n] == at[first]+n {
				n++
			}
			report, err := s.CheckFrom(a.ctx, at[first], n)
			if err != nil {
				return err
			}
			for _, failure := range report.Failures {
				a.found("bound", "against the plain kernels: %s", failure)
			}
			first += n
		}
		return nil
	})
}

// referenceTokens is the number of positions at which stages are compared with the reference VM: with prompts, those of
// their text, so that their logits are compared as well.
func (a *attempt) referenceTokens() int {
	if a.facts.Prompt > 0 {
		return a.tokensOf(textTokens)
	}
	return a.tokensOf(3)
}

// reference holds what stages publish to the reference VM, each to its bound, and notes it.
func (a *attempt) reference() error {
	a.dir = filepath.Join(a.dir, tracedDir)
	b, err := a.packed()
	if err != nil {
		return err
	}
	return a.open(host.Options{}, func(s *host.Session) error {
		report, err := compiler.Hold(a.ctx, b, &noting{a, s}, a.referenceTokens())
		if err != nil {
			return err
		}
		a.bodies = report.Bodies
		for _, beyond := range report.Beyond {
			a.found("bound", "%v", &beyond)
		}
		return nil
	})
}

// noting is a session whose traces are noted.
type noting struct {
	a *attempt
	s *host.Session
}

// Trace implements [compiler.Tracer].
func (n *noting) Trace(ctx context.Context, ids []int) (*host.Trace, error) {
	t, err := n.s.Trace(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, v := range t.Vectors {
		n.a.own(fmt.Sprintf("%s at position %d", v.Stage, t.Position), bitsOf(v.Values))
	}
	if len(t.Vectors) == 0 {
		return t, nil
	}
	// The logits come last. All jobs that decode the text have the same, and so are compared with the reference VM.
	o, logits := n.a.outputs(), t.Vectors[len(t.Vectors)-1].Values
	if largest := slices.Index(logits, slices.Max(logits)); t.Chosen != largest {
		n.a.found("difference", "position %d: the kernel chose token %d, and the largest logit is that of %d",
			t.Position,
			t.Chosen, largest)
	}
	return t, errors.Join(o.Logits(t.Position, logits), o.Hidden(t.Position, t.Hidden))
}
