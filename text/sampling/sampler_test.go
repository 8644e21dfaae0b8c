package sampling

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A case is one of testdata/processors.json.
type processorCase struct {
	Kind           string
	Logits         []*float64 // nil: -inf
	Prompt, Output []int
	Bias           [][2]float64
	Allowed        []int
	Options        struct {
		Temperature       *float64
		TopK              int      `json:"top_k"`
		TopP              *float64 `json:"top_p"`
		MinP              float64  `json:"min_p"`
		RepetitionPenalty *float64 `json:"repetition_penalty"`
		PresencePenalty   float64  `json:"presence_penalty"`
		FrequencyPenalty  float64  `json:"frequency_penalty"`
	}
	Kept          []int
	Probabilities []float64
}

func (c *processorCase) options() Options {
	o := Greedy()
	value := func(p *float64, def float64) float64 {
		if p == nil {
			return def
		}
		return *p
	}
	in := c.Options
	o.Temperature, o.TopP = value(in.Temperature, 1), value(in.TopP, 1)
	o.TopK, o.MinP = in.TopK, in.MinP
	o.RepetitionPenalty = value(in.RepetitionPenalty, 1)
	o.PresencePenalty, o.FrequencyPenalty = in.PresencePenalty, in.FrequencyPenalty
	o.Bias = map[int]float64{}
	for _, b := range c.Bias {
		o.Bias[int(b[0])] = b[1]
	}
	return o
}

func (c *processorCase) logits() []float32 {
	logits := make([]float32, len(c.Logits))
	for i, x := range c.Logits {
		if logits[i] = float32(math.Inf(-1)); x != nil {
			logits[i] = float32(*x)
		}
	}
	return logits
}

func (c *processorCase) mask() Mask {
	if c.Allowed == nil {
		return nil
	}
	return NewMask(len(c.Logits), c.Allowed...)
}

// sampler returns one that has chosen the output of the case.
func (c *processorCase) sampler(t *testing.T, o Options) *Sampler {
	s, err := New(o, len(c.Logits), c.Prompt)
	require.NoError(t, err)
	for _, id := range c.Output {
		s.seen[id]++
		s.position++
	}
	return s
}

func processorCases(t *testing.T) []processorCase {
	var file struct{ Cases []processorCase }
	data, err := os.ReadFile("testdata/processors.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &file))
	require.Len(t, file.Cases, 232)
	return file.Cases
}

// The tokens that transformers' processors keep are kept, ties included, with the probabilities that they give them.
func TestProcessorsOfTransformers(t *testing.T) {
	for i, c := range processorCases(t) {
		s := c.sampler(t, c.options())
		best := s.score(c.logits(), c.mask())
		s.filter(s.scores[best])
		var ids []int
		sum := 0.0
		for _, k := range s.kept {
			ids = append(ids, k.id)
			sum += math.Exp((k.x - s.scores[best]) / s.o.Temperature)
		}
		require.Equal(t, c.Kept, ids, "case %d", i)
		for j, k := range s.kept {
			p := math.Exp((k.x-s.scores[best])/s.o.Temperature) / sum
			require.InDelta(t, c.Probabilities[j], p, 1e-9*p+1e-12, "case %d, token %d", i, k.id)
		}
	}
}

// A choice depends on the seed, the position, and the ids before it: not on what was sampled before, nor on other
// samplers. Next counts what it chooses.
func TestAChoiceDependsOnNothingElse(t *testing.T) {
	const vocab, n = 50, 40
	rng := rand.New(rand.NewPCG(5, 6))
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = randomLogits(rng, vocab, 2)
	}
	o := Greedy()
	o.Temperature, o.TopK, o.RepetitionPenalty, o.PresencePenalty, o.Seed = 0.9, 30, 1.2, 0.1, 7
	prompt := []int{3, 1, 3}
	whole, err := New(o, vocab, prompt)
	require.NoError(t, err)
	ids := make([]int, n)
	for i, row := range rows {
		c, err := whole.Next(row, nil)
		require.NoError(t, err)
		ids[i] = c.ID
	}
	for i := range rows { // a sampler that takes over in the middle
		part, err := New(o, vocab, prompt)
		require.NoError(t, err)
		for _, id := range ids[:i] {
			part.seen[id]++
			part.position++
		}
		c, err := part.Next(rows[i], nil)
		require.NoError(t, err)
		require.Equal(t, ids[i], c.ID)
	}
	others := 0
	for seed := range uint64(20) {
		o.Seed = 100 + seed
		other, err := New(o, vocab, prompt)
		require.NoError(t, err)
		c, err := other.Next(rows[0], nil)
		require.NoError(t, err)
		if c.ID != ids[0] {
			others++
		}
	}
	require.Greater(t, others, 10, "another seed is another draw")
}

func randomLogits(rng *rand.Rand, vocab int, scale float64) []float32 {
	logits := make([]float32, vocab)
	for i := range logits {
		logits[i] = float32(math.Round(rng.NormFloat64()*scale*16) / 16) // ties, and sums without rounding
	}
	return logits
}

// keptOf returns the ids that options keep of logits.
func keptOf(t *testing.T, o Options, logits []float32) []int {
	s, err := New(o, len(logits), nil)
	require.NoError(t, err)
	s.filter(s.scores[s.score(logits, nil)])
	var ids []int
	for _, k := range s.kept {
		ids = append(ids, k.id)
	}
	return ids
}

func TestFilters(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 400 {
		logits := randomLogits(rng, 1+rng.IntN(300), math.Exp(rng.NormFloat64()))
		o := Greedy()
		o.Temperature = 0.2 + rng.Float64()
		o.TopK, o.TopP, o.MinP = rng.IntN(100), rng.Float64(), rng.Float64()*0.2
		kept := keptOf(t, o, logits)
		require.NotEmpty(t, kept)

		wider := o
		wider.TopK, wider.TopP = o.TopK+rng.IntN(5), o.TopP+(1-o.TopP)*rng.Float64()
		wider.MinP = o.MinP * rng.Float64()
		if o.TopK == 0 {
			wider.TopK = 0
		}
		// A wider top-k leaves more for top-p to take a share of, so each is widened on its own.
		for _, w := range []Options{
			{Temperature: o.Temperature, TopK: o.TopK, TopP: wider.TopP, MinP: o.MinP, RepetitionPenalty: 1},
			{Temperature: o.Temperature, TopK: o.TopK, TopP: o.TopP, MinP: wider.MinP, RepetitionPenalty: 1},
		} {
			require.Subset(t, keptOf(t, w, logits), kept)
		}
		onlyK, widerK := o, o
		onlyK.TopP, onlyK.MinP, widerK.TopP, widerK.MinP, widerK.TopK = 1, 0, 1, 0, wider.TopK
		require.Subset(t, keptOf(t, widerK, logits), keptOf(t, onlyK, logits))
		if o.TopK > 0 {
			require.GreaterOrEqual(t, len(keptOf(t, onlyK, logits)), min(o.TopK, len(logits)))
		}

		shifted := make([]float32, len(logits))
		for i, x := range logits {
			shifted[i] = x + 64
		}
		require.Equal(t, kept, keptOf(t, o, shifted), "only differences count")

		// In another order the same logits are kept; among equals the ids decide, so values are compared.
		order := rng.Perm(len(logits))
		permuted := make([]float32, len(logits))
		for to, from := range order {
			permuted[to] = logits[from]
		}
		require.Equal(t, valuesOf(logits, kept), valuesOf(permuted, keptOf(t, o, permuted)))
	}
}

func valuesOf(logits []float32, ids []int) []float32 {
	var values []float32
	for _, id := range ids {
		values = append(values, logits[id])
	}
	slices.Sort(values)
	return values
}

func TestGreedy(t *testing.T) {
	s, err := New(Greedy(), 4, nil)
	require.NoError(t, err)
	o := s.o
	require.False(t, o.NeedLogits())
	c, err := s.Next([]float32{1, 3, 3, 2}, nil)
	require.NoError(t, err)
	require.Equal(t, Choice{ID: 1}, c, "the lowest id among equals")
	c, err = s.Next([]float32{1, 3, 3, 2}, NewMask(4, 0, 3))
	require.NoError(t, err)
	require.Equal(t, 3, c.ID)
	for name, change := range map[string]func(*Options){
		"temperature": func(o *Options) { o.Temperature = 1 },
		"repetition":  func(o *Options) { o.RepetitionPenalty = 2 },
		"presence":    func(o *Options) { o.PresencePenalty = 1 },
		"frequency":   func(o *Options) { o.FrequencyPenalty = 1 },
		"bias":        func(o *Options) { o.Bias = map[int]float64{1: 1} },
		"logprobs":    func(o *Options) { o.LogProbs = 0 },
	} {
		o := Greedy()
		change(&o)
		require.True(t, o.NeedLogits(), name)
	}
}

// A temperature close to 0 chooses as 0 does.
func TestLowTemperature(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	o := Greedy()
	o.Temperature = 1 / limit
	for range 100 {
		logits := randomLogits(rng, 50, 3)
		best := slices.Max(logits)
		s, err := New(o, len(logits), nil)
		require.NoError(t, err)
		c, err := s.Next(logits, nil)
		require.NoError(t, err)
		require.Equal(t, best, logits[c.ID])
	}
}

func TestLogProbs(t *testing.T) {
	inf := float32(math.Inf(-1))
	logits := []float32{1, 2.5, inf, 2.5, -1, 0}
	norm := 0.0
	for _, x := range logits {
		norm += math.Exp(float64(x))
	}
	norm = math.Log(norm)
	o := Greedy()
	o.LogProbs, o.Temperature = 3, 5
	o.Bias = map[int]float64{4: 100} // of the model's own distribution, whatever is chosen
	s, err := New(o, len(logits), nil)
	require.NoError(t, err)
	c, err := s.Next(logits, nil)
	require.NoError(t, err)
	require.Equal(t, 4, c.ID)
	require.InDelta(t, -1-norm, c.LogProb, 1e-14)
	require.Len(t, c.Top, 3)
	for i, id := range []int{1, 3, 0} {
		require.Equal(t, id, c.Top[i].ID)
		require.InDelta(t, float64(logits[id])-norm, c.Top[i].LogProb, 1e-14)
	}
	s.o.LogProbs = len(logits)
	c, err = s.Next(logits, nil)
	require.NoError(t, err)
	require.Len(t, c.Top, 5, "what is impossible is left out")
}

func TestLogitsThatCannotBe(t *testing.T) {
	const none = "position 1: no token is left to choose: each has a logit or a bias of -inf, or is not allowed"
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	s, err := New(Greedy(), 2, []int{0})
	require.NoError(t, err)
	for _, c := range []struct {
		logits  []float32
		allowed Mask
		want    string
	}{
		{[]float32{1}, nil, "position 1: there are 1 logits; want 2"},
		{[]float32{1, nan}, nil, "position 1: the logit of token 1 is NaN; want a number, or -inf"},
		{[]float32{inf, 1}, nil, "position 1: the logit of token 0 is +Inf; want a number, or -inf"},
		{[]float32{-inf, -inf}, nil, none},
		{[]float32{1, 2}, NewMask(2), none},
	} {
		_, err := s.Next(c.logits, c.allowed)
		var fault *LogitsError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, c.want, err.Error())
	}
	require.Equal(t, 1, s.position, "nothing was counted")
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"temperature is -1; want 0, or a number from 1e-06 to 1e+06":    func(o *Options) { o.Temperature = -1 },
		"temperature is 1e-07; want 0, or a number from 1e-06 to 1e+06": func(o *Options) { o.Temperature = 1e-7 },
		"top-p is NaN; want a number from 0 to 1":                       func(o *Options) { o.TopP = math.NaN() },
		"min-p is 1.5; want a number from 0 to 1":                       func(o *Options) { o.MinP = 1.5 },
		"top-k is -1; want a whole number from 0 to 2147483647":         func(o *Options) { o.TopK = -1 },
		"repetition-penalty is 0; want a number from 1e-06 to 1e+06":    func(o *Options) { o.RepetitionPenalty = 0 },

		"logit-bias is for token 9; want ids from 0 to 8": func(o *Options) { o.Bias = map[int]float64{9: 1} },

		"logit-bias is +Inf for token 2; want a number from -1e+06 to 1e+06, or -inf": func(o *Options) {
			o.Bias = map[int]float64{2: math.Inf(1)}
		},
		"logprobs is 10; want at most 9, as many as the model has tokens": func(o *Options) { o.LogProbs = 10 },
	} {
		o := Greedy()
		change(&o)
		_, err := New(o, 9, nil)
		var fault *OptionError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, want, err.Error())
	}
	zero := Options{}
	require.Error(t, zero.Check(9), "nobody asked for anything")
}
