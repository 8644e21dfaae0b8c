package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler/quality"
	"amkc/importers/checkpoint"
	"amkc/passes"
	"amkc/refvm"
)

const (
	defaultWindow = 512 // tokens, where both sides have positions for them
	defaultGreedy = 64
)

// qualityFlags are the flags of quality. Those of compiling are for both sides, but for a few: see sides.
type qualityFlags struct {
	model        modelFlags
	place        place
	against      string
	againstDType string
	againstForms passes.WeightFormats
	againstCache string
	source       idSource
	window       int // 0: the default
	tokens       int // 0: all
	greedy       int
}

func qualityVerb() verb {
	q := &qualityFlags{place: place{round: refvm.Device}}
	return verb{
		name: "quality", synopsis: "MODEL|DIR --against MODEL|DIR --text FILE [--dtype ...] [--against-dtype ...]",
		min: 1, max: 1,
		summary: "measure how much a model differs from another on a text",
		details: `
Prints the perplexities of both, the KL divergence of the first from the one after --against, how often both have the
same most probable token, how much their logits differ, and for how many tokens they decode the same text. The
reference VM rounds where the kernel rounds. --dtype, --weights, --calibrate, --cache, --config, --name and --dump-ir
apply to the first model, --against-dtype, --against-weights and --against-cache to the other, and all other flags of
compiling to both. On a GPU, a model is first built into a cache, and found there the next time.`,
		flags: q.define,
		run:   q.run,
	}
}

func (q *qualityFlags) define(f *pflag.FlagSet) {
	f.Var(front.NewWord(&q.against, ""), "against", "hold it against the model or the build in `DIR`")
	f.Var(newChoice(&q.againstDType, "", "bf16", "fp16", "fp32"), "against-dtype",
		"what --dtype is for the model after --against; default: that of its checkpoint")
	f.Var(&weightFormats{&q.againstForms}, "against-weights",
		"what --weights is for the model after --against: `SPEC`; default: in its dtype")
	f.Var(newChoice(&q.againstCache, "", "int8"), "against-cache",
		"what --cache is for the model after --against; default: in its dtype")
	q.source.define(f)
	f.Var(front.NewCount(&q.tokens, 0, 2, math.MaxInt32), "tokens", "take `N` tokens of the text at most; default: all")
	f.Var(front.NewCount(&q.window, 0, 2, math.MaxInt32), "window",
		fmt.Sprintf("cut the text into windows of `N` tokens, "+
			"each a text of its own; default: %d, or what both are compiled for where that is less", defaultWindow))
	f.Var(front.NewCount(&q.greedy, defaultGreedy, 0, math.MaxInt32), "greedy",
		"decode up to `N` tokens greedily after each of a few prompts from the text; 0: none")
	q.place.define(f)
	q.model.define(f, defaultTarget)
}

// A qualityResult is the result in JSON.
type qualityResult struct {
	Device       string `json:"device"`
	Build        string `json:"build,omitempty"`         // in the cache
	AgainstBuild string `json:"against_build,omitempty"` // likewise
	*quality.Report
}

func (q *qualityFlags) run(c *call) error {
	if q.against == "" {
		return c.usage("--against is missing; want a model or a build to hold the first against")
	}
	if err := q.source.check(c); err != nil {
		return err
	}
	dir, _, err := checkpoint.Locate(c.args[0])
	if err != nil {
		return err
	}
	against, _, err := checkpoint.Locate(q.against)
	if err != nil {
		return err
	}
	for _, d := range []string{dir, against} {
		if err := q.model.checkDirectory(d); err != nil {
			return err
		}
	}
	other, err := q.sides(c, dir, against)
	if err != nil {
		return err
	}
	text, err := q.source.read(c, dir, against)
	if err != nil {
		return err
	}
	if q.tokens > 0 {
		text.IDs = text.IDs[:min(q.tokens, len(text.IDs))]
	}
	ctx, cancel := interruptible()
	defer cancel()
	if q.place.device == "" {
		q.place.device = cmp.Or(q.refOnly(c, dir, &q.model), q.refOnly(c, against, other), deviceCUDA)
		q.place.note(c)
	}
	first, err := open(ctx, c, q.place, dir, &q.model)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := open(ctx, c, q.place, against, other)
	if err != nil {
		return err
	}
	defer second.Close()
	return q.measure(ctx, c, first, second, text)
}

// sides returns the flags of compiling for the side that is held against. Flags that neither side has use for are
// refused.
func (q *qualityFlags) sides(c *call, dir, against string) (*modelFlags, error) {
	if err := q.model.forModels(c, dir, against); err != nil {
		return nil, err
	}
	for _, own := range []string{"dtype", "weights", "calibrate", "cache", "config", "name", "dump-ir"} {
		if c.flags.Changed(own) && isBuild(dir) {
			return nil, c.builtAlready(own, dir)
		}
	}
	for _, own := range []string{"against-dtype", "against-weights", "against-cache"} {
		if c.flags.Changed(own) && isBuild(against) {
			return nil, c.builtAlready(own, against)
		}
	}
	other := q.model
	other.dtype, other.weights, other.calibrate, other.cache = q.againstDType, q.againstForms, "", q.againstCache
	other.config, other.name, other.dumpIR = "", "", ""
	return &other, nil
}

// refOnly is the reference VM if a side would run there by default, and else nothing: both run at one place.
func (q *qualityFlags) refOnly(c *call, dir string, m *modelFlags) string {
	if defaultDevice(c, q.place.gpu, dir, m) == deviceRef {
		return deviceRef
	}
	return ""
}

func (q *qualityFlags) measure(ctx context.Context, c *call, first, second *opened, text quality.Text) error {
	if first.vocab == second.vocab { // else Measure refuses the two
		ids := slices.Concat(text.Lead, text.IDs)
		if err := checkIDs(q.source.flag(), ids, 0, first.vocab, math.MaxInt); err != nil {
			return err
		}
	}
	maxSeq := min(first.maxSeq, second.maxSeq)
	o := quality.Options{Window: cmp.Or(q.window, min(defaultWindow, maxSeq)), Greedy: q.greedy}
	if !c.flags.Changed("greedy") {
		o.Greedy = max(0, min(o.Greedy, maxSeq-text.PromptLen(o.Window)+1))
	}
	line := c.progress()
	o.Tell = line.Show
	report, err := quality.Measure(ctx, q.side(first, c.args[0]), q.side(second, q.against), text, o)
	line.Clear()
	if err != nil {
		return err
	}
	c.payload = qualityResult{first.device, first.build, second.build, report}
	return c.printf("%s", qualityText(report))
}

func (q *qualityFlags) side(o *opened, name string) quality.Side {
	return quality.Side{Decoder: o, Name: name, Vocab: o.vocab, MaxSeq: o.maxSeq}
}

func qualityText(r *quality.Report) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "tokens predicted\t%d\n", r.Tokens)
	fmt.Fprintf(w, "windows\t%d, of at most %d tokens\n", r.Windows, r.Window)
	fmt.Fprintf(w, "perplexity\t%.6g, against %.6g (%+.3g %%)\n", r.Perplexity.Model, r.Perplexity.Against,
		100*(r.Perplexity.Model/r.Perplexity.Against-1))
	fmt.Fprintf(w, "KL divergence\tmean %.3g, p99 %.3g, max %.3g nats\n", r.KL.Mean, r.KL.P99, r.KL.Max)
	fmt.Fprintf(w, "same top token\t%.4g %%\n", 100*r.Agreement)
	fmt.Fprintf(w, "logits differ by\tmean %.3g, max %.3g\n", r.Logits.Mean, r.Logits.Max)
	if g := r.Greedy; g != nil {
		fmt.Fprintf(w, "decoded alike\tmean %.4g, min %d of %d tokens; prompts: %d\n", g.Mean, g.Min, g.Tokens,
			g.Prompts)
	}
	w.Flush()
	return b.String()
}
