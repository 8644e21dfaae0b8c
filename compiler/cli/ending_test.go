package cli

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/runtime/shape"
	"amkc/text/sampling"
)

// Every SM comes to the token that the host's sampler chooses from the same logits, compiled for the CPU: with passes
// of one token, of rows, of sequences with settings and choices of their own, and of rows of each of these, drawn or
// greedily, with equal logits, with logits that no token may be drawn by, and with SMs that have no rows of the
// vocabulary.
func TestEndingOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	steps := 16
	if os.Getenv("AMKC_LONG") != "" {
		steps = 120
	}
	for _, c := range []struct {
		vocab, rows, sequences int
	}{{1003, 1, 1}, {35, 8, 1}, {517, 1, 4}, {211, 4, 2}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			model := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), fmt.Appendf(nil, `{
				"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "model_type": "llama",
				"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": %d,
				"max_position_embeddings": 160, "torch_dtype": "bfloat16"}`, c.vocab), 0o600))
			target := ir.ArchTarget(90, 6)
			o := builder.Options{Model: model, RandomSeed: new(uint64), Target: target}
			pass := shape.Pass{Rows: c.rows}
			if c.sequences > 1 {
				pass.Sequences, o.Passes = c.sequences, []ir.Pass{{Sequences: c.sequences}}
				if c.rows > 1 {
					o.Passes = append(o.Passes, ir.PassOf(c.sequences, c.rows))
				}
			} else if c.rows > 1 {
				o.Passes = []ir.Pass{{Rows: c.rows}}
			}
			dir := emittedAs(t, "bf16", "", o)
			program := onCPUProgram(t, "ending.cc", []string{filepath.Join(dir, pass.Dir()), dir})

			rng, tokens := rand.New(rand.NewPCG(uint64(c.vocab), uint64(c.rows))), c.rows*c.sequences
			var in bytes.Buffer
			var want []string
			for step := range steps {
				e := ending{t: t, rng: rng, number: step, vocab: c.vocab, tokens: tokens, sequences: c.sequences}
				e.makeUp()
				in.Write(e.request.Bytes())
				want = append(want, strings.Join(e.want, " "))
			}
			out := outputOnCPU(t, program, &in)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			require.Len(t, lines, steps*target.SMs)
			for i, line := range lines {
				require.Equal(t, want[i/target.SMs], line, "step %d of SM %d", i/target.SMs, i%target.SMs)
			}
		})
	}
}

// An ending is that of a step which is made up.
type ending struct {
	t                                *testing.T
	rng                              *rand.Rand
	number, vocab, tokens, sequences int

	request bytes.Buffer // as the program takes it
	want    []string     // the tokens that it has to print
}

// kernelChoice is amk::Choice, whose pointers say how long its tables are.
type kernelChoice struct {
	bias, uses, allowed, recent                 uint64
	repetition, frequency, presence, rest, minP float64
	topK, nRecent, counts, set                  int32
}

func (e *ending) put(v any) {
	e.t.Helper()
	require.NoError(e.t, binary.Write(&e.request, binary.LittleEndian, v))
}

// makeUp makes the settings and the logits of a step, and what comes of them. Every fourth step chooses the largest
// logits, every other one has choices, and in every sixth a logit of the first token is not a number.
func (e *ending) makeUp() {
	rng, rows := e.rng, e.tokens/e.sequences
	position, step := rng.Int32N(1<<20)+10_000, rng.Int32N(8)
	draws := []uint32{3, 1, 3, 0}[e.number%4]
	if rows > 1 {
		step = 0 // drafts are verified by one
	}
	options, masks := make([]sampling.Options, e.sequences), make([]sampling.Mask, e.sequences)
	outputs := make([][]int, e.sequences) // before the launch
	settings, choices := make([][2]uint64, shape.MaxTokens), make([]kernelChoice, shape.MaxTokens)
	var tables []any
	for s := range options {
		o := &options[s]
		*o = sampling.Greedy()
		if draws > 0 && (s == e.number%4 || rng.IntN(4) > 0) {
			o.Temperature, o.Seed = 2*math.Exp(rng.NormFloat64()), rng.Uint64()
			if rng.IntN(3) == 0 {
				o.Temperature = 1e-6 // then bounds of equal logits leave several tokens, whose sums are computed
			}
		}
		settings[s] = [2]uint64{math.Float64bits(o.Temperature), o.Seed}
		if draws == 3 && (s == 0 || rng.IntN(3) > 0) {
			if e.number%8 == 2 {
				*o = sampling.Greedy()
				settings[s] = [2]uint64{}
			}
			var of []any
			choices[s], of, masks[s], outputs[s] = e.choose(o)
			tables = append(tables, of...)
		}
	}
	if draws == 3 && !slices.ContainsFunc(options, func(o sampling.Options) bool {
		return o.TopK > 0 || o.TopP < 1 || o.MinP > 0
	}) {
		draws = 2 // without a place for rounds
	}
	chosen, decoded := make([]int32, 32*e.tokens), make([]int32, e.tokens) // in the launch
	for i := range chosen {
		chosen[i] = rng.Int32N(int32(e.vocab))
	}
	for i := range decoded {
		decoded[i] = rng.Int32N(int32(e.vocab))
	}
	logits := make([]float32, e.tokens*e.vocab)
	for token := range e.tokens {
		of, s := logits[token*e.vocab:][:e.vocab], token/rows
		for i := range of {
			of[i] = float32(math.Round(rng.NormFloat64()*6)) / 2 // some are equal
			if rng.IntN(9) == 0 {
				of[i] = float32(math.Inf(-1))
			}
		}
		if token == 0 && e.number%8 < 4 && e.number%2 == 1 { // with settings and without
			for i := range of {
				of[i] = float32(math.Inf(-1))
			}
			of[0] = float32(math.NaN())
		}
		broken := draws > 0 && e.number%6 == 5 && token == 0
		if broken {
			of[rng.IntN(e.vocab)] = float32([]float64{math.NaN(), math.Inf(1)}[rng.IntN(2)])
		}
		row := token % rows // of its sequence
		at := int(position) + 3*s + row
		text := outputs[s]
		if choices[s].counts != 0 {
			for i := range step {
				text = append(text, int(chosen[int(i)*e.tokens+token]))
			}
			if rows > 1 {
				for _, id := range decoded[s*rows+1:][:row] {
					text = append(text, int(id))
				}
			}
		}
		e.want = append(e.want, e.chosen(&options[s], of, masks[s], text, at+1, broken))
	}
	for _, v := range []any{position, step, draws, settings} {
		e.put(v)
	}
	for i := range choices {
		e.put(&choices[i])
	}
	for _, v := range append(tables, chosen, decoded, logits) {
		e.put(v)
	}
}

// choose makes a choice up, with its tables, and returns it once more as the host has it.
func (e *ending) choose(o *sampling.Options) (c kernelChoice, tables []any, mask sampling.Mask, output []int) {
	rng := e.rng
	c = kernelChoice{repetition: 1, set: 1, counts: int32(rng.IntN(2))}
	if rng.IntN(2) == 0 {
		o.Bias = map[int]float64{}
		bias := make([]float64, e.vocab)
		for range 1 + e.vocab/3 {
			id := rng.IntN(e.vocab)
			bias[id] = []float64{math.Inf(-1), -1, 2.25, rng.NormFloat64()}[rng.IntN(4)]
			o.Bias[id] = bias[id]
		}
		c.bias, tables = uint64(e.vocab), append(tables, bias)
	}
	if rng.IntN(2) == 0 {
		o.RepetitionPenalty, o.FrequencyPenalty, o.PresencePenalty = 1+rng.Float64(), rng.Float64(), rng.Float64()-0.5
		c.repetition, c.frequency, c.presence = o.RepetitionPenalty, o.FrequencyPenalty, o.PresencePenalty
		uses := make([]int32, e.vocab)
		for id := range uses {
			uses[id] = int32(max(rng.IntN(8)-5, -1))
			for range uses[id] {
				output = append(output, id)
			}
			if uses[id] == 0 {
				output = append(output, -1-id) // of the prompt
			}
		}
		recent := make([]int32, rng.IntN(20))
		for i := range recent {
			recent[i] = rng.Int32N(int32(e.vocab))
			output = append(output, int(recent[i]))
		}
		c.uses, c.recent, c.nRecent = uint64(e.vocab), uint64(len(recent)), int32(len(recent))
		tables = append(tables, uses)
		defer func() { tables = append(tables, recent) }()
	} else {
		c.counts = 0
	}
	if rng.IntN(3) == 0 {
		mask = make(sampling.Mask, (e.vocab+63)/64)
		for i := range mask {
			mask[i] = rng.Uint64() | rng.Uint64()
		}
		c.allowed, tables = uint64(len(mask)), append(tables, []uint64(mask))
	}
	if o.Temperature != 0 {
		o.TopK = []int{0, 1, 3, 20, e.vocab, 2 * e.vocab}[rng.IntN(6)]
		o.TopP = []float64{1, 1, 0, 0.5, 0.9, 0.999, math.Nextafter(1, 0)}[rng.IntN(7)]
		o.MinP = []float64{0, 0, 0.02, 0.3, 1}[rng.IntN(5)]
		c.topK, c.minP = int32(o.TopK), o.MinP
		if o.TopP < 1 {
			c.rest = 1 - o.TopP
		}
	}
	return c, tables, mask, output
}

// chosen is what the host's sampler chooses after a text of n ids, of which it is given those that count: ids of
// the prompt as -1 less them.
func (e *ending) chosen(o *sampling.Options, logits []float32, mask sampling.Mask, text []int, at int,
	broken bool) string {
	prompt, output := make([]int, 0, at), []int{}
	for _, id := range text {
		if id < 0 {
			prompt = append(prompt, -1-id)
		} else {
			output = append(output, id)
		}
	}
	for len(prompt)+len(output) < at {
		prompt = append(prompt, -1)
	}
	sampler, err := sampling.New(*o, e.vocab, prompt)
	require.NoError(e.t, err)
	for _, id := range output {
		sampler.Chose(id)
	}
	if !o.NeedLogits() && mask == nil { // no logit is looked at by a launch without settings
		for i, x := range logits {
			if x != x {
				logits = slices.Clone(logits)
				logits[i] = float32(math.Inf(-1))
			}
		}
		if slices.Contains(logits, float32(math.Inf(1))) {
			return strconv.Itoa(slices.Index(logits, float32(math.Inf(1))))
		}
		choice, err := sampler.Next(logits, mask)
		if err != nil {
			return "0"
		}
		return strconv.Itoa(choice.ID)
	}
	choice, err := sampler.Next(logits, mask)
	if broken || err != nil {
		require.Error(e.t, err)
		return strconv.Itoa(0x7ffffffe) // kNoToken
	}
	return strconv.Itoa(choice.ID)
}
