package importers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
)

// A numberField is a number that an importer reads, with its bounds and with what the config must have for them to be
// accepted.
type numberField struct {
	lo, hi  float64
	integer bool
	with    map[string]any
}

func sizeOf(fact string, with map[string]any) numberField {
	return numberField{1, float64(ir.ModelBound(fact).Hi), true, with}
}

func rotary(key string) numberField {
	return numberField{lo: ropeBounds[key].lo, hi: ropeBounds[key].hi}
}

// llamaNumbers are the numbers among the modelled fields of a Llama; llamaOthers are the other ones.
var (
	llamaNumbers = map[string]numberField{
		"hidden_size": sizeOf("hidden", nil), "intermediate_size": sizeOf("intermediate", nil),
		"num_hidden_layers":   sizeOf("layers", nil),
		"num_attention_heads": sizeOf("heads", nil),
		"num_key_value_heads": sizeOf("kv_heads", map[string]any{"num_attention_heads": 1 << 14}),
		"head_dim":            {2, 1024, true, nil}, "vocab_size": sizeOf("vocab", nil),
		"max_position_embeddings": sizeOf("max_seq", nil),
		"rms_norm_eps":            {lo: ir.MinSingle, hi: ir.MaxSingle}, "rope_theta": rotary("rope_theta"),
		"original_max_position_embeddings": {ropeBounds["original_max_position_embeddings"].lo,
			ropeBounds["original_max_position_embeddings"].hi, false, ropeWith("llama3", nil)},
	}
	llamaOthers = []string{"model_type", "architectures", "tie_word_embeddings", "hidden_act", "rope_scaling",
		"rope_parameters",
		"attention_bias", "mlp_bias", "torch_dtype", "dtype", "quantization_config", "quantization",
		"compression_config", "sliding_window",
		"use_sliding_window", "partial_rotary_factor", "layer_types"}
)

// importWith imports a small Llama with other values of some fields.
func importWith(t *testing.T, fields ...map[string]any) (*ir.Graph, error) {
	t.Helper()
	config := map[string]any{"model_type": "llama", "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 1,
		"head_dim":            8,
		"num_attention_heads": 4, "num_key_value_heads": 1, "vocab_size": 60, "max_position_embeddings": 64,
		"torch_dtype": "float32"}
	for _, more := range fields {
		for k, v := range more {
			config[k] = v
		}
	}
	text, err := json.Marshal(config)
	require.NoError(t, err)
	s, err := Import(Source{Name: "m", Config: modeltest.OpenConfig(t, string(text))})
	if err != nil {
		return nil, err
	}
	return s.Graph, nil
}

// beyond returns values just outside the bounds of a field, and far outside.
func (f numberField) beyond() []json.Number {
	out := []json.Number{"-1", "1e400", "-1e308"}
	if f.integer {
		return append(out, json.Number(fmt.Sprintf("%.0f", f.lo-1)), json.Number(fmt.Sprintf("%.0f", f.hi+1)),
			"9223372036854775808", "2.5", "1e3")
	}
	if f.lo > 0 {
		out = append(out, "0", "1e-46", number(f.lo*(1-1e-6)))
	}
	return append(out, "1e308", number(f.hi*(1+1e-6)))
}

func number(x float64) json.Number { return json.Number(fmt.Sprintf("%.17g", x)) }

// Every number that import reads is accepted at its bounds and refused beyond them. The fields are those of the
// importer's own tables: a new one must be listed here, as a number or as something else.
func TestEveryConfigNumberIsBounded(t *testing.T) {
	for _, field := range llamaModelled {
		f, isNumber := llamaNumbers[field]
		require.NotEqual(t, isNumber, slices.Contains(llamaOthers, field),
			"%s: say whether it is a number, and its bounds", field)
		if !isNumber {
			continue
		}
		for _, good := range []float64{f.lo, f.hi} {
			text := number(good)
			if f.integer {
				text = json.Number(fmt.Sprintf("%.0f", good))
			}
			_, err := importWith(t, f.with, map[string]any{field: text})
			require.NoError(t, err, "%s %s", field, text)
		}
		for _, bad := range f.beyond() {
			_, err := importWith(t, f.with, map[string]any{field: bad})
			require.ErrorContains(t, err, "config.json: "+field+": error: ", "%s", bad)
			require.ErrorContains(t, err, "; want ", "%s %s", field, bad)
		}
	}
}

// ropeWith is a rotary embedding of a type, with the keys that it needs and others.
func ropeWith(kind string, others map[string]any) map[string]any {
	needed := map[string]any{"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}
	rope := map[string]any{"rope_type": kind}
	for _, key := range ropeTypes[kind].needs {
		rope[key] = needed[key]
		if slices.Contains(ropeLists, key) {
			rope[key] = []int{1, 2, 3, 4} // of heads of 8
		}
	}
	maps.Copy(rope, others)
	return map[string]any{"rope_scaling": rope}
}

// ropeLists are keys that have a number for each pair.
var ropeLists = []string{"short_factor", "long_factor"}

// ropeNumbers are the numbers that a type reads.
func ropeNumbers(kind string) []string {
	t := ropeTypes[kind]
	return slices.DeleteFunc(slices.Concat(t.needs, t.may, []string{"rope_theta"}), func(key string) bool {
		return key == "truncate" || slices.Contains(ropeLists, key)
	})
}

// So is every number of a rotary embedding.
func TestEveryRotaryNumberIsBounded(t *testing.T) {
	for kind := range ropeTypes {
		_, err := importWith(t, ropeWith(kind, nil))
		require.NoError(t, err, kind)
		for _, key := range ropeNumbers(kind) {
			require.Contains(t, ropeBounds, key)
			f := rotary(key)
			for _, bad := range f.beyond() {
				_, err := importWith(t, ropeWith(kind, map[string]any{key: bad}))
				require.ErrorContains(t, err, "rope_scaling."+key+": error: ", "%s %s", kind, bad)
				require.ErrorContains(t, err, "; want a number from ", "%s %s", kind, bad)
			}
		}
	}
	for _, key := range ropeLists {
		f := rotary(key)
		for _, bad := range f.beyond() {
			_, err := importWith(t, ropeWith("longrope", map[string]any{key: []any{1, 1, bad, 1}}))
			require.ErrorContains(t, err, "rope_scaling."+key+": error: ", "%s", bad)
			require.ErrorContains(t, err, "; want a number from ", "%s", bad)
		}
	}
}

// Whatever numbers a rotary embedding has, it is refused, or all its frequencies are normal numbers of float32 of at
// most 1, or 2 of type longrope, or 0 of type proportional, and cos and sin are multiplied by one.
func TestFrequenciesAreNormal(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 4))
	within := func(key string) json.Number {
		b := ropeBounds[key]
		switch lo := max(b.lo, 1e-9); r.IntN(8) {
		case 0:
			return number(b.lo)
		case 1:
			return number(b.hi)
		default:
			return number(math.Exp(math.Log(lo) + r.Float64()*(math.Log(b.hi)-math.Log(lo))))
		}
	}
	accepted := 0
	n := 150
	if os.Getenv("AMKC_LONG") != "" {
		n = 600
	}
	kinds := slices.Sorted(maps.Keys(ropeTypes))
	for i := range n {
		kind, keys := kinds[i%len(kinds)], map[string]any{}
		for _, key := range ropeNumbers(kind) {
			if slices.Contains(ropeTypes[kind].needs, key) || r.IntN(2) == 0 {
				keys[key] = within(key)
			}
		}
		if kind == "llama3" && r.IntN(4) == 0 { // as close as float64 allows
			low, _ := within("low_freq_factor").Float64()
			keys["low_freq_factor"], keys["high_freq_factor"] = number(low), number(math.Nextafter(low, 2e6))
		}
		if kind == "yarn" {
			keys["truncate"] = r.IntN(2) == 0
		}
		pairs, most := 1+r.IntN(512), float32(1.001)
		if kind == "longrope" {
			for _, key := range ropeLists {
				list := make([]json.Number, pairs)
				for j := range list {
					list[j] = within(key)
				}
				keys[key] = list
			}
			most = 2.001 // a factor is at least 0.5
		}
		rope := ropeWith(kind, keys)
		g, err := importWith(t, rope, map[string]any{"head_dim": 2 * pairs})
		if err != nil {
			require.ErrorContains(t, err, "rope_scaling", "%v", rope)
			continue
		}
		accepted++
		require.True(t, g.Rope.Scale > 0 && ir.IsSingle(g.Rope.Scale), "%v gives %g", rope, g.Rope.Scale)
		for _, f := range g.Rope.InvFreq {
			rests := f == 0 && kind == "proportional"
			require.True(t, rests || f > 0 && f <= most && ir.IsSingle(float64(f)), "%v gives %g", rope, f)
		}
	}
	require.Greater(t, accepted, n/3)
}
