package passes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers"
	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/knobs"
	"amkc/refvm"
	"amkc/validate"
)

// severalModels differ in what several tokens meet: a bias, norms of heads, a window, layers of two kinds, norms after
// branches and soft caps, a rotary embedding for each kind, experts, convolutions, recurrent states,
// sinks.
var severalModels = map[string]string{
	"llama": `{"model_type": "llama", "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2,
		"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 37, "max_position_embeddings": 24,
		"tie_word_embeddings": true`,
	"bias": `{"model_type": "qwen2", "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 1,
		"num_attention_heads": 3, "num_key_value_heads": 1, "vocab_size": 17, "max_position_embeddings": 24`,
	"norms": `{"model_type": "qwen3", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 20,
		"max_position_embeddings": 24`,
	"window": `{"model_type": "mistral", "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2,
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "vocab_size": 19, "sliding_window": 5,
		"max_position_embeddings": 24`,
	"kinds": `{"model_type": "qwen3", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3,
		"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 20, "sliding_window": 4,
		"layer_types": ["full_attention", "sliding_attention", "sliding_attention"], "max_window_layers": 1,
		"use_sliding_window": true, "max_position_embeddings": 24`,
	"post norms": `{"model_type": "gemma2", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 20, "sliding_window": 4,
		"max_position_embeddings": 24`,
	"ropes": `{"model_type": "gemma3_text", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3,
		"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "vocab_size": 20, "sliding_window": 4,
		"sliding_window_pattern": 2, "max_position_embeddings": 24`,
	"splits": `{"model_type": "llama", "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2,
		"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 17,
		"max_position_embeddings": 80`,
	"splits of normed heads": `{"model_type": "qwen3", "hidden_size": 16, "intermediate_size": 24,
		"num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 20,
		"max_position_embeddings": 72`,
	fewAndMore: `{"model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
		"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 17,
		"max_position_embeddings": 80`,
	"experts": `{"model_type": "qwen2_moe", "hidden_size": 24, "intermediate_size": 20, "moe_intermediate_size": 12,
		"shared_expert_intermediate_size": 16, "num_experts": 5, "num_experts_per_tok": 2, "norm_topk_prob": true,
		"mlp_only_layers": [1], "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
		"vocab_size": 19, "max_position_embeddings": 24`,
	"convolutions": `{"model_type": "lfm2", "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 3,
		"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 19, "max_position_embeddings": 24,
		"layer_types": ["conv", "full_attention", "conv"], "conv_L_cache": 4, "conv_bias": true,
		"block_auto_adjust_ff_dim": false`,
	"states": `{"model_type": "qwen3_5_text", "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 3,
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 19,
		"max_position_embeddings": 24, "layer_types": ["linear_attention", "full_attention", "linear_attention"],
		"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 5, "linear_value_head_dim": 6`,
	"splits of a head with sinks": `{"model_type": "gpt_oss", "hidden_size": 16, "intermediate_size": 12,
		"num_local_experts": 4, "num_experts_per_tok": 3, "num_hidden_layers": 2, "num_attention_heads": 2,
		"num_key_value_heads": 1, "head_dim": 64, "vocab_size": 20, "sliding_window": 37,
		"rope_parameters": {"rope_type": "default", "rope_theta": 10000}, "max_position_embeddings": 72`,
	"splits of a window": `{"model_type": "mistral", "hidden_size": 24, "intermediate_size": 20,
		"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 19,
		"sliding_window": 37, "max_position_embeddings": 72`,
}

// fewAndMore has few splits of a context from some position on, and more from another one.
const fewAndMore = "few splits, and more"

// severalPasses are what passes of several tokens take, and one of one.
var severalPasses = []ir.Pass{{}, ir.PassOf(1, 4), ir.PassOf(3, 1), ir.PassOf(2, 3)}

// severalState is a model lowered for a pass, up to the pass named, with its counters realised.
func severalState(t testing.TB, model, dtype string, tokens ir.Pass, last string) *State {
	config := modeltest.OpenConfig(t, severalModels[model]+`, "torch_dtype": "`+dtype+`"}`)
	s := &State{Source: importers.Source{Name: model, Config: config}, Target: modeltest.ToyTarget(4), Pass: tokens,
		Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 20},
			"ring": {"chunk_bytes": 8192}}}}
	if model == fewAndMore {
		knobs.MiddleSplits.Set(&s.Config, 2)
		knobs.MiddleUntil.Set(&s.Config, 48)
	}
	lowered(t, s, last)
	require.NoError(t, Exchange.Run(s))
	require.NoError(t, ir.Check(s.Program).Err())
	return s
}

func severalSession(t testing.TB, s *State) *refvm.Session {
	report := validate.Program(s.Program)
	require.True(t, report.OK, "%v", report.Diags)
	round := refvm.None
	if s.Program.Model.Weights != ir.F32 {
		round = refvm.Device
	}
	session, err := refvm.NewSession(s.Program, randomWeights(t, s, checkpoint.F32), refvm.Options{Round: round})
	require.NoError(t, err)
	return session
}

// tokenAt is what stands at a position of a sequence.
func tokenAt(s, pos, vocab int) int { return (s*31 + pos*7 + pos*pos*3 + 5) % vocab }

// A pass of several tokens says nothing that the program of one token and the numbers of the pass do not.
func TestPassesAreOfOneToken(t *testing.T) {
	for model := range severalModels {
		for _, pass := range severalPasses {
			s := severalState(t, model, "bfloat16", pass, "pagecolor")
			one, err := ir.OneToken(s.Program)
			require.NoError(t, err, "%s %v", model, pass)
			require.Equal(t, 1, one.Pass.NumTokens())
			again, err := ir.ForTokens(one, pass)
			require.NoError(t, err)
			require.Equal(t, string(ir.Print(s.Program)), string(ir.Print(again)), "%s %v", model, pass)
		}
	}
}

// A token of a pass is, to the bit, what a step of one token is at its position: whatever the other rows are, wherever
// the other sequences are, and however many rows before it were rejected drafts. Without AMKC_LONG, float32 is asked of
// the last pass alone.
func TestRowsOfAPassAreSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for model := range severalModels {
		for _, dtype := range []string{"float32", "bfloat16"} {
			for _, last := range []string{"lower", "fuse", "tile", "assign", "pagecolor"} {
				if dtype == "float32" && last != "pagecolor" && os.Getenv("AMKC_LONG") == "" {
					continue
				}
				t.Run(model+" "+dtype+" "+last, func(t *testing.T) {
					one := severalState(t, model, dtype, ir.Pass{}, last)
					m := &one.Program.Model
					want := make([][][]float32, 3) // by sequence and position
					next := make([][]int, 3)
					for s := range want {
						session := severalSession(t, one)
						for pos := range m.MaxSeq {
							logits, chosen, err := session.Step(tokenAt(s, pos, m.Vocab))
							require.NoError(t, err)
							want[s], next[s] = append(want[s], slices.Clone(logits)), append(next[s], chosen)
						}
					}
					for _, pass := range severalPasses {
						compareRows(t, severalState(t, model, dtype, pass, last), want, next)
					}
				})
			}
		}
	}
}

// The text of a program of two sequences of two rows, as lower leaves it and scheduled.
func TestPassGoldens(t *testing.T) {
	for _, last := range []string{"lower", "pagecolor"} {
		text := ir.Print(severalState(t, "norms", "bfloat16", ir.PassOf(2, 2), last).Program)
		path := filepath.Join("testdata", "tokens", last+".amk")
		if *modeltest.Update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, text, 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), string(text), "%s; go test ./passes -update rewrites the goldens", path)
	}
}

// Random models scheduled for random passes are proved, whatever their target and configuration.
func TestRandomPassesAreProved(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s := sampled(t, rng)
		s.Pass = ir.PassOf(1+rng.IntN(4), 1+rng.IntN(4))
		for _, p := range pipeline {
			err := p.Run(s)
			if p.Name == "lower" && s.Graph.Model.MaxSeq < s.Pass.NumRows() {
				require.ErrorContains(t, err, ir.CodeVariants.ID)
				break
			}
			require.NoError(t, err, "%s, pass %v", p.Name, s.Pass)
			if s.Program != nil {
				require.NoError(t, ir.Check(s.Program).Err(), p.Name)
			}
			if p.Name == "exchange" {
				require.NoError(t, validate.Program(s.Program).Diags.Err(), "seed %d, pass %v", seed, s.Pass)
			}
		}
	}
}

// A session that goes back decodes as one that never went further, though a state is that of the last step alone.
func TestRewindOfStates(t *testing.T) {
	program := severalState(t, "states", "float32", ir.Pass{}, "pagecolor")
	vocab := program.Program.Model.Vocab
	fresh, s := severalSession(t, program), severalSession(t, program)
	rows := [][]float32{make([]float32, 24), make([]float32, 24)}
	for i := range 24 {
		rows[0][i], rows[1][i] = float32(i%5)-2, float32(i%7)-3
	}
	token := func(pos int) int {
		if pos == 2 {
			return vocab
		}
		return tokenAt(0, pos, vocab)
	}
	step := func(s *refvm.Session, row []float32, id int) []float32 {
		require.NoError(t, s.SetEmbedding(0, row))
		logits, _, err := s.Step(id)
		require.NoError(t, err)
		return slices.Clone(logits)
	}
	var want [][]float32
	for pos := range 12 {
		want = append(want, step(fresh, rows[0], token(pos)))
	}
	last := 0
	for _, back := range []int{0, 9, 8, 7, 7, 3, 1, 0} { // by none, by one, and by more steps
		require.NoError(t, s.Rewind(min(back, s.Pos())))
		require.Equal(t, min(back, last), s.Pos())
		for pos := s.Pos(); pos < 9; pos++ {
			requireSameBits(t, want[pos], step(s, rows[0], token(pos)), fmt.Sprintf("back to %d, at %d", back, pos))
		}
		last = s.Pos() + 1
		step(s, rows[1], (token(9)+1)%vocab)
	}
}

// compareRows decodes by passes. Of each sequence another number of rows is right and the others are drafts, and now
// and then one goes back. All are in one variant: who comes to its end waits there for the others.
func compareRows(t *testing.T, state *State, want [][][]float32, next [][]int) {
	session, pass, m := severalSession(t, state), state.Program.Pass, &state.Program.Model
	rows := pass.NumRows()
	// A state is of the positions of the last pass, and can begin again at 0.
	states := slices.ContainsFunc(state.Program.Buffers, func(b ir.Buffer) bool { return b.Kind == ir.Recurrent })
	at := make([]int, pass.NumSequences())
	for _, v := range state.Program.Variants {
		for s := range at {
			at[s] = v.Lo
		}
		for k, last := 0, false; !last; k++ {
			require.Less(t, k, 4*m.MaxSeq)
			last = slices.Min(at) == v.Hi
			right, tokens := make([]int, len(at)), []int{}
			for s, pos := range at {
				if right[s] = 1 + (k+s)%rows; last {
					right[s] = rows
				}
				for r := range rows {
					token := tokenAt(s, pos+r, m.Vocab)
					if r >= right[s] {
						token = (token + 1) % m.Vocab
					}
					tokens = append(tokens, token)
				}
			}
			logits, chosen, err := session.Pass(at, tokens)
			require.NoError(t, err)
			require.Len(t, logits, pass.NumTokens()*m.Vocab)
			for s, pos := range at {
				for r := range right[s] {
					row := s*rows + r
					requireSameBits(t, want[s][pos+r], logits[row*m.Vocab:(row+1)*m.Vocab],
						fmt.Sprintf("pass %v, row %d of sequence %d at %d", pass, r, s, pos+r))
					require.Equal(t, next[s][pos+r], chosen[row])
				}
				switch {
				case s == 1 && k%4 == 2: // it waits
				case s == 2 && k%5 == 3 && !states:
					at[s] = max(v.Lo, at[s]-2)
				case s == 2 && k == 3 && v.Lo == 0:
					at[s] = 0
				default:
					at[s] = min(at[s]+right[s], v.Hi)
				}
			}
		}
	}
}

func requireSameBits(t *testing.T, want, have []float32, what string) {
	t.Helper()
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(have[i]) {
			require.Equal(t, want[i], have[i], "%s, logit %d", what, i)
		}
	}
}

// A variant of fewer splits has room for a pass of the build.
func TestMiddleVariantOfRows(t *testing.T) {
	config := modeltest.OpenConfig(t, severalModels[fewAndMore]+`, "torch_dtype": "bfloat16"}`)
	run := func(until int) error {
		s := &State{Source: importers.Source{Name: "few", Config: config}, Target: modeltest.ToyTarget(4),
			Pass: ir.PassOf(1, 4),
			Config: ir.ScheduleConfig{Tiling: map[string]map[string]int{"attention": {"split_from": 21,
				"middle_splits": 2, "middle_until": until}}}}
		for _, p := range pipeline {
			if err := p.Run(s); err != nil {
				return err
			}
			if p.Name == "tile" {
				break
			}
		}
		require.Len(t, s.Program.Variants, 3)
		require.Equal(t, [2]int{21, until - 4}, [2]int{s.Program.Variants[1].Lo, s.Program.Variants[1].Hi})
		return nil
	}
	require.NoError(t, run(25))
	require.ErrorContains(t, run(24), "at positions 21 to 23, and 4 from there on to 79, and one of the two has no "+
		"room for a pass of 4 rows")
	require.ErrorContains(t, run(77), "at positions 21 to 76, and 4 from there on to 79")
	require.NoError(t, run(76))
}
