// Package modeltest has small models for the tests of importers and of passes, and what tests of both share.
package modeltest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/diag"
	"amkc/knobs"
)

// Update reports whether goldens are rewritten.
var Update = flag.Bool("update", false, "rewrite the goldens")

// ToyTarget is small enough that a golden can be read.
func ToyTarget(sms int) *ir.Target {
	return &ir.Target{Name: "toy", Arch: "sm_90a", SMs: sms, SMemOptin: 232448, L2Bytes: 1 << 20, HBMBytes: 1 << 30,
		HBMGBs: 100, BulkCopy: true, AsyncCopy: true, TensorCores: true}
}

// OpenConfig returns the config.json with this text.
func OpenConfig(t testing.TB, config string) *checkpoint.Config {
	model, err := checkpoint.ParseDocument("config.json", []byte(config))
	require.NoError(t, err)
	return &checkpoint.Config{Model: model}
}

// TinyConfig has grouped heads and a tied head.
const TinyConfig = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32,
	"intermediate_size": 40,
	"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 60,
	"max_position_embeddings": 64, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}`

// PlainConfig has heads that are not grouped, a head that is not the embedding, and sizes that are not a multiple of a
// tile.
const PlainConfig = `{"model_type": "llama", "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 1,
	"num_attention_heads": 3, "num_key_value_heads": 3, "vocab_size": 17, "max_position_embeddings": 16,
	"torch_dtype": "float32"}`

// A sample is a random small model, target and schedule.
type Sample struct {
	Model  string // its config.json
	Target *ir.Target
	Config ir.ScheduleConfig
}

// NewSample draws one.
func NewSample(rng *rand.Rand) Sample {
	kv := 1 + rng.IntN(4)
	heads := kv * (1 + rng.IntN(4))
	pick := func(values ...int) int { return values[rng.IntN(len(values))] }
	config := fmt.Sprintf(`{"model_type": "llama", "hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": %d,
		"num_attention_heads": %d, "num_key_value_heads": %d, "head_dim": %d, "vocab_size": %d,
		"max_position_embeddings": %d,
		"tie_word_embeddings": %t, "torch_dtype": %q}`, 1+rng.IntN(200), 1+rng.IntN(300), 1+rng.IntN(5), heads, kv,
		pick(2, 6, 8, 12, 16, 24, 40, 64), 1+rng.IntN(400), pick(1, 17, 80, 200), rng.IntN(2) == 0,
		[]string{"float32", "float16", "bfloat16"}[rng.IntN(3)])
	var c ir.ScheduleConfig
	knobs.SplitFrom.Set(&c, pick(0, 16, 40))
	knobs.MaxSplits.Set(&c, pick(1, 3, 16))
	knobs.GrainRows.Set(&c, pick(8, 8, 16))
	knobs.Int(knobs.Flagged).Set(&c, rng.IntN(2))
	knobs.Copies.Set(&c, pick(1, 2))
	knobs.ChunkBytes.Set(&c, pick(4096, 16384))
	c.SMAssignment.Policy = []string{"contiguous", "load_balance", "round_robin"}[rng.IntN(3)]
	c.PageAllocation = []string{knobs.PagesByColour, knobs.PagesByFamily, knobs.PagesApart}[rng.IntN(3)]
	return Sample{config, ToyTarget(pick(1, 2, 5, 13, 32)), c}
}

// Samples is the number of random models for which a property is tested; 40 with AMKC_LONG.
func Samples() int {
	if os.Getenv("AMKC_LONG") != "" {
		return 40
	}
	return 16
}

// A Refusal is an input that must be refused; a golden has the message.
type Refusal struct {
	Name  string
	Input any
}

var codeInText = regexp.MustCompile(`AMK\d{4}`)

// CheckRefusals runs inputs that must be refused, and compares the messages with a golden.
func CheckRefusals(t *testing.T, golden string, refusals []Refusal, run func(any) error) {
	var b strings.Builder
	for _, r := range refusals {
		err := run(r.Input)
		require.Error(t, err, r.Name)
		b.WriteString("== " + r.Name + "\n" + err.Error() + "\n")
		for _, code := range codeInText.FindAllString(err.Error(), -1) {
			c := diag.Lookup(code)
			require.NotNil(t, c, code)
			require.NotEmpty(t, c.Doc, code)
		}
	}
	if *Update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "-update rewrites the goldens")
}

// A Stored is a tensor of a file that a test writes.
type Stored struct {
	DType string
	Shape []int
	Data  []byte
}

// F32Bytes are numbers as a file has them.
func F32Bytes(values ...float32) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, values)
	return b.Bytes()
}

// WriteModel writes a model directory with one safetensors file.
func WriteModel(t testing.TB, config string, tensors map[string]Stored) string {
	dir := t.TempDir()
	header, data := map[string]any{}, []byte{}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		v := tensors[name]
		header[name] = map[string]any{"dtype": v.DType, "shape": v.Shape,
			"data_offsets": []int{len(data), len(data) + len(v.Data)}}
		data = append(data, v.Data...)
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), append(append(file, text...), data...),
		0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644))
	return dir
}

// EachElement calls f for the index of every element of a view.
func EachElement(dims []ir.Range, pos int, f func([4]int)) {
	sets := [4][]int{{0}, {0}, {0}, {0}}
	for d, r := range dims {
		sets[d] = r.Elements(nil, pos)
	}
	for _, a := range sets[0] {
		for _, b := range sets[1] {
			for _, c := range sets[2] {
				for _, d := range sets[3] {
					f([4]int{a, b, c, d})
				}
			}
		}
	}
}

// StoredKinds lists the layers of each kind, with how their down_proj and o_proj are stored.
func StoredKinds(g *ir.Graph) []string {
	var out []string
	for k := range g.Kinds {
		text := fmt.Sprint(g.Of(k))
		for _, n := range g.Kinds[k].Nodes {
			if w := n.Weights; n.Name == "down_proj" || n.Name == "gate_proj" {
				text += " plain"
				if w[0].Storage != nil {
					text = strings.TrimSuffix(text, "plain") + w[0].Storage.DType.String()
				}
			}
		}
		out = append(out, text)
	}
	return out
}
