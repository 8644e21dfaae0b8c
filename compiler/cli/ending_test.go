package cli

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/runtime/host"
	"amkc/runtime/sampling"
)

// Every SM comes to the token that the host's sampler chooses from the same logits, compiled for the CPU: with passes
// of one token, of rows and of sequences with settings of their own, drawn or greedily, with equal logits, with logits
// that no token may be drawn by, and with SMs that have no rows of the vocabulary.
func TestEndingOfTheKernel(t *testing.T) {
	steps := 12
	if os.Getenv("AMKC_LONG") != "" {
		steps = 200
	}
	for _, c := range []struct {
		vocab, rows, sequences int
	}{{1003, 1, 1}, {35, 8, 1}, {517, 1, 4}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			model := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(model, "config.json"), fmt.Appendf(nil, `{
				"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "model_type": "llama",
				"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": %d,
				"max_position_embeddings": 160, "torch_dtype": "bfloat16"}`, c.vocab), 0o600))
			target := ir.ArchTarget(90, 6)
			o := builder.Options{Model: model, RandomSeed: new(uint64), Target: target}
			of := "."
			if c.rows > 1 {
				o.Rows, of = []int{c.rows}, fmt.Sprintf("rows%d", c.rows)
			}
			if c.sequences > 1 {
				o.Sequences, of = c.sequences, fmt.Sprintf("sequences%d", c.sequences)
			}
			dir := emittedAs(t, "bf16", "", o)
			onCPU(t, dir)
			program := onCPUProgram(t, "ending.cc", []string{filepath.Join(dir, of), dir}, "-ffp-contract=off")

			rng, tokens := rand.New(rand.NewPCG(uint64(c.vocab), uint64(c.rows))), c.rows*c.sequences
			var in bytes.Buffer
			var want []string
			for step := range steps {
				request, tokensOf := endingOf(t, rng, step, c.vocab, tokens, c.sequences)
				in.Write(request)
				want = append(want, tokensOf)
			}
			cmd := exec.Command(program)
			cmd.Stdin = &in
			out, err := cmd.Output()
			require.NoError(t, err)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			require.Len(t, lines, steps*target.SMs)
			for i, line := range lines {
				require.Equal(t, want[i/target.SMs], line, "step %d of SM %d", i/target.SMs, i%target.SMs)
			}
		})
	}
}

// endingOf makes the logits of a step up, and returns them as the program takes them, with the tokens that it has to
// print.
func endingOf(t *testing.T, rng *rand.Rand, step, vocab, tokens, sequences int) (request []byte, want string) {
	position, drawn := rng.Int32N(1<<20), uint32(1)
	if step%4 == 3 {
		drawn = 0
	}
	settings := make([]host.Sampling, host.MaxSequences)
	for s := range sequences {
		if drawn == 1 && (s == step%4 || rng.IntN(4) > 0) {
			settings[s] = host.Sampling{Temperature: 2 * math.Exp(rng.NormFloat64()), Seed: rng.Uint64()}
		}
	}
	logits, ids := make([]float32, tokens*vocab), make([]string, tokens)
	for token := range tokens {
		of, sequence := logits[token*vocab:][:vocab], token*sequences/tokens
		for i := range of {
			of[i] = float32(math.Round(rng.NormFloat64()*6)) / 2 // some are equal
			if rng.IntN(9) == 0 {
				of[i] = float32(math.Inf(-1))
			}
		}
		broken := drawn == 1 && step%6 == 5 && token == 0
		if broken {
			of[rng.IntN(vocab)] = float32([]float64{math.NaN(), math.Inf(1)}[rng.IntN(2)])
		}
		at := int(position) + token
		if sequences > 1 {
			at = int(position) + 3*sequence
		}
		o := sampling.Greedy()
		o.Temperature, o.Seed = settings[sequence].Temperature, settings[sequence].Seed
		sampler, err := sampling.New(o, vocab, make([]int, at+1))
		require.NoError(t, err)
		choice, err := sampler.Next(of, nil)
		if broken {
			require.Error(t, err)
			choice.ID = 0x7ffffffe // kNoToken
		} else {
			require.NoError(t, err)
		}
		ids[token] = strconv.Itoa(choice.ID)
	}
	var b bytes.Buffer
	for _, v := range []any{position, drawn, settings, logits} {
		require.NoError(t, binary.Write(&b, binary.LittleEndian, v))
	}
	return b.Bytes(), strings.Join(ids, " ")
}
