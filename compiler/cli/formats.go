package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"amkc/app/front"
	"amkc/compiler"
	"amkc/compiler/formats"
	"amkc/compiler/quality"
	"amkc/cost"
	"amkc/importers/checkpoint"
	"amkc/passes"
	"amkc/refvm"
)

// defaultMost is the divergence that formats allows: int8 costs a tenth of it in the trained model that is here, and
// int4 in all matrices several times as much (docs/quantisation.md).
const defaultMost = 0.01

// formatsFlags are the flags of formats.
type formatsFlags struct {
	model    modelFlags
	place    place
	source   idSource
	tried    []string
	most     float64
	position int
	window   int // 0: the default
	tokens   int // 0: all
}

func formatsVerb() verb {
	f := &formatsFlags{place: place{round: refvm.Device}}
	return verb{
		name: "formats", synopsis: "MODEL --text FILE [--format LIST] [--kl N] [--position N]", min: 1, max: 1,
		summary: "choose the format of each matrix, by quality on a text",
		details: `
Quantises each matrix of the layers, and the head, alone, and measures the KL divergence from the unquantised model on
the text. Then applies the formats that save the most predicted time for their divergence, one after another, while
the divergence of all together is at most --kl. Each of these configurations is measured as a whole. Times are
predicted by the cost model, for a step at --position (docs/cost-model.md). The last line is the value for --weights.`,
		flags: f.define,
		run:   f.run,
	}
}

func (f *formatsFlags) define(set *pflag.FlagSet) {
	set.Var(newFormatWords(&f.tried, "int8", "int4"), "format", "try the formats of `LIST` for each matrix, as "+
		"--weights has them; with commas")
	f.most = defaultMost
	set.Var(newAmount(&f.most), "kl", "allow a mean KL divergence of `N` nats")
	set.Var(front.NewCount(&f.position, 0, 0, math.MaxInt32), "position", "take the time of a step at position `N`")
	f.source.define(set)
	set.Var(front.NewCount(&f.tokens, 0, 2, math.MaxInt32), "tokens",
		"take `N` tokens of the text at most; default: all")
	set.Var(front.NewCount(&f.window, 0, 2, math.MaxInt32), "window", fmt.Sprintf("cut the text into windows of `N` "+
		"tokens, each a text of its own; default: %d, or what the model is compiled for where that is less",
		defaultWindow))
	f.place.define(set)
	f.model.define(set, defaultTarget)
}

// formatsResult is the result in JSON.
type formatsResult struct {
	Device   string  `json:"device"`
	Target   string  `json:"target"`
	Position int     `json:"position"`
	Most     float64 `json:"allowed_kl"`
	// Error is the RMS error of the ratio of two formats' predicted times, as a fraction, and Alike are changes of the
	// same matrices that it does not distinguish.
	Error float64     `json:"prediction_error"`
	Alike [][2]string `json:"not_told_apart"`
	*formats.Result
}

func (f *formatsFlags) run(c *call) error {
	if c.flags.Changed("weights") {
		return c.usage("--weights says what is stored how, and formats is to find that out; want --format for what " +
			"is tried")
	}
	if err := f.source.check(c); err != nil {
		return err
	}
	dir, _, err := checkpoint.Locate(c.args[0])
	if err != nil {
		return err
	}
	if isBuild(dir) {
		return c.usage("%s is a build, whose weights are packed; want the model that it was made of", c.args[0])
	}
	if err := f.model.checkDirectory(dir); err != nil {
		return err
	}
	text, err := f.source.read(c, dir, dir)
	if err != nil {
		return err
	}
	if f.tokens > 0 {
		text.IDs = text.IDs[:min(f.tokens, len(text.IDs))]
	}
	if f.place.device == "" {
		f.place.device = defaultDevice(c, f.place.gpu, dir, &f.model)
		f.place.note(c)
	}
	ctx, cancel := interruptible()
	defer cancel()
	s := &formatSearch{f: f, c: c, dir: dir, text: text}
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.against.Close()
	r, err := formats.Search(ctx, formats.Options{Stacks: s.stacks, Formats: f.tried, Most: f.most, Predict: s.predict,
		Measure: s.measure, Tell: s.tell})
	if err != nil {
		return err
	}
	c.payload = formatsResult{f.place.device, s.target, f.position, f.most, cost.FormatError, notToldApart(r.Alone), r}
	return c.printf("%s", formatsText(r, f))
}

// A formatSearch measures and predicts configurations of one model.
type formatSearch struct {
	f       *formatsFlags
	c       *call
	dir     string
	text    quality.Text
	target  string
	stacks  [][]string
	against *opened // the model as it is
}

// with are the flags of compiling with a configuration.
func (s *formatSearch) with(spec string) (modelFlags, error) {
	m := s.f.model
	m.weights = nil
	if spec == "" {
		m.calibrate = ""
		return m, nil
	}
	var err error
	m.weights, err = passes.ParseWeightFormats(spec)
	return m, err
}

// compile runs the passes over a configuration, for the target that is predicted for.
func (s *formatSearch) compile(spec string) (*compiler.Scheduled, error) {
	m, err := s.with(spec)
	if err != nil {
		return nil, err
	}
	m.configOnly = true
	opts, err := m.options(s.c, s.dir)
	if err != nil {
		return nil, err
	}
	return compiler.RunPasses(opts)
}

// open opens the model as it is, and finds its matrices.
func (s *formatSearch) open(ctx context.Context) error {
	l, err := s.compile("")
	if err != nil {
		return err
	}
	s.stacks, s.target = passes.Stacks(l.Graph), l.Program.Target.Name
	if err := l.Close(); err != nil {
		return err
	}
	m, err := s.with("")
	if err != nil {
		return err
	}
	if s.against, err = open(ctx, s.c, s.f.place, s.dir, &m); err != nil {
		return err
	}
	if err := s.checkText(); err != nil {
		return errors.Join(err, s.against.Close())
	}
	return nil
}

func (s *formatSearch) checkText() error {
	return checkIDs(s.f.source.flag(), append(append([]int{}, s.text.Lead...), s.text.IDs...), 0, s.against.vocab,
		math.MaxInt)
}

func (s *formatSearch) predict(spec string) (formats.Step, error) {
	l, err := s.compile(spec)
	if err != nil {
		return formats.Step{}, err
	}
	defer l.Close()
	m, err := cost.New(l.Program)
	if err != nil {
		return formats.Step{}, err
	}
	p, err := m.At(s.f.position)
	if err != nil {
		return formats.Step{}, err
	}
	return formats.Step{US: p.Latency, Bytes: p.BytesPerToken}, nil
}

func (s *formatSearch) measure(ctx context.Context, spec string) (*quality.Report, error) {
	m, err := s.with(spec)
	if err != nil {
		return nil, err
	}
	o, err := open(ctx, s.c, s.f.place, s.dir, &m)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	line := s.c.progress()
	defer line.Clear()
	side := func(o *opened, name string) quality.Side {
		return quality.Side{Decoder: o, Name: name, Vocab: o.vocab, MaxSeq: o.maxSeq}
	}
	s.against.Reset()
	return quality.Measure(ctx, side(o, spec), side(s.against, s.c.args[0]), s.text, quality.Options{
		Window: cmp.Or(s.f.window, min(defaultWindow, o.maxSeq)), Tell: line.Show})
}

func (s *formatSearch) tell(t formats.Tried) {
	s.c.note("%s: KL divergence %.3g, predicted %.1f µs", t.Weights, t.Divergence, t.US)
}

// notToldApart are the changes of the same matrices to different formats whose predicted times are as close as
// predictions are off.
func notToldApart(alone []formats.Tried) [][2]string {
	matrices := func(change string) string {
		var names []string
		for _, one := range strings.Split(change, ",") {
			name, _, _ := strings.Cut(one, "=")
			names = append(names, name)
		}
		return strings.Join(names, ",")
	}
	out := [][2]string{}
	for i, a := range alone {
		for _, b := range alone[i+1:] {
			if matrices(a.Change) == matrices(b.Change) && closeTimes(a.US, b.US) {
				out = append(out, [2]string{a.Change, b.Change})
			}
		}
	}
	return out
}

// closeTimes reports whether two predicted times are as close as predictions are off.
func closeTimes(a, b float64) bool { return math.Abs(math.Log(a/b)) < math.Log1p(cost.FormatError) }

func formatsText(r *formats.Result, f *formatsFlags) string {
	var b strings.Builder
	off := fmt.Sprintf("the ratio of two predicted times is off by %.1f %% (RMS of what was measured)\n",
		100*cost.FormatError)
	if len(r.Alone) == 0 {
		return "no format of any matrix is predicted to make a step shorter\n" + off
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(t formats.Tried, what string) {
		fmt.Fprintf(w, "  %.1f µs\t%.1f MB\tKL %.3g\tsame top token %.2f %%\tperplexity %.6g\t%s\n", t.US,
			float64(t.Bytes)/1e6, t.Divergence, 100*t.Agreement, t.Perplexity, what)
	}
	fmt.Fprintf(w, "on its own, predicted at position %d\n", f.position)
	row(r.AsIs, "as it is")
	for _, t := range r.Alone {
		row(t, t.Change)
	}
	fmt.Fprintf(w, "one after another\n")
	for _, t := range r.Together {
		what := t.Change
		if !t.Accepted {
			what += fmt.Sprintf(", left: above %.3g", f.most)
		}
		row(t, what)
	}
	w.Flush()
	b.WriteString(off)
	for _, pair := range notToldApart(r.Alone) {
		fmt.Fprintf(&b, "  not told apart: %s and %s\n", pair[0], pair[1])
	}
	if r.Best.Weights == "" {
		fmt.Fprintf(&b, "nothing costs as little as a divergence of %.3g\n", f.most)
		return b.String()
	}
	if closeTimes(r.Best.US, r.AsIs.US) {
		fmt.Fprintf(&b, "what is gained is less than that: compare both builds with amkc bench\n")
	}
	fmt.Fprintf(&b, "--weights '%s'\n", r.Best.Weights)
	return b.String()
}
