package compiler

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/ir"
)

// lowerWith compiles a small model in memory with other values of some fields of its config.
func lowerWith(t *testing.T, fields map[string]any) (*ir.Program, error) {
	t.Helper()
	config := map[string]any{"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1,
		"num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 64, "max_position_embeddings": 64,
		"torch_dtype": "bfloat16"}
	for k, v := range fields {
		config[k] = v
	}
	text, err := json.Marshal(config)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644))
	o := Options{Model: dir, Name: "m", Target: ir.FindTarget("h200"), ConfigOnly: true}
	if n, ok := fields["max_position_embeddings"].(int); ok {
		o.MaxSeq = n
	}
	l, err := RunPasses(o)
	if err != nil {
		return nil, err
	}
	return l.Program, l.Close()
}

// An eps that is accepted is read back out of the emitted headers as the float32 that it rounds to; another is refused
// before anything is emitted.
func TestEpsReadsBack(t *testing.T) {
	for _, eps := range []float64{ir.MinSingle, 1.2e-38, 1e-12, 1e-5, 1.0 / 3, 1, 12345.678, 1e30, ir.MaxSingle} {
		p, err := lowerWith(t, map[string]any{"rms_norm_eps": json.Number(fmt.Sprintf("%.17g", eps))})
		require.NoError(t, err, eps)
		read := readBackOf(t, p)
		n := 0
		for i := range read.Variants {
			require.NoError(t, eachStage(&read.Variants[i], func(s *ir.Stage, _ int) error {
				for k := range s.Ops {
					if s.Ops[k].Code == ir.RMSNORM {
						n++
						require.Equal(t, float64(float32(eps)), s.Ops[k].FloatOr("eps", 0))
					}
				}
				return nil
			}))
		}
		require.Positive(t, n)
	}
	for _, eps := range []string{"1e308", "3.5e38", "1e-46", "1e-39", "0", "-1e-6"} {
		_, err := lowerWith(t, map[string]any{"rms_norm_eps": json.Number(eps)})
		require.ErrorContains(t, err, "config.json: rms_norm_eps: error: is "+eps+"; want a number from 1.1754944e-38",
			eps)
	}
}

// A program whose numbers the types of the kernel cannot hold is refused, not emitted with other ones.
func TestNumbersThatDoNotFitTheKernel(t *testing.T) {
	p, err := lowerWith(t, map[string]any{"max_position_embeddings": 1 << 24, "head_dim": 16})
	require.NoError(t, err)
	_, err = codegen.CUDA(p)
	require.NoError(t, err)
	p, err = lowerWith(t, map[string]any{"max_position_embeddings": 1 << 24, "head_dim": 64})
	require.NoError(t, err)
	_, err = codegen.CUDA(p)
	require.ErrorContains(t, err, "at most 8388592 are supported for heads of 64 elements (--max-seq 8388592)")
	p, err = lowerWith(t, map[string]any{"max_position_embeddings": 8388592, "head_dim": 64})
	require.NoError(t, err)
	_, err = codegen.CUDA(p)
	require.NoError(t, err)

	for name, change := range map[string]func(p *ir.Program){
		"model.max_seq is 2147483648": func(p *ir.Program) { p.Model.MaxSeq = math.MaxInt32 + 1 },
		"kCounterOffset is ":          func(p *ir.Program) { p.Pages[0].Bytes = math.MaxUint32 },
		"kSharedLimit is ": func(p *ir.Program) {
			p.Target.SMemOptin, p.Config.SMemBytesPerBlock = 1<<33,
				0
		},
		"eps is +Inff in float32":    func(p *ir.Program) { p.Model.Eps = 1e308 },
		"kNormEps is 0x":             func(p *ir.Program) { setParams(t, p, "eps", 1e-40) },
		"kScale is -Inff in float32": func(p *ir.Program) { setParams(t, p, "scale", -1e300) },
	} {
		p, err := lowerWith(t, nil)
		require.NoError(t, err)
		change(p)
		_, err = codegen.CUDA(p)
		require.ErrorContains(t, err, name, name)
	}
}

// setParams sets a parameter of every op that has it.
func setParams(t *testing.T, p *ir.Program, key string, v float64) {
	t.Helper()
	for i := range p.Variants {
		require.NoError(t, eachStage(&p.Variants[i], func(s *ir.Stage, _ int) error {
			for k := range s.Ops {
				for n := range s.Ops[k].Params {
					if prm := &s.Ops[k].Params[n]; prm.Key == key {
						*prm = ir.FloatParam(key, v)
					}
				}
			}
			return nil
		}))
	}
}
