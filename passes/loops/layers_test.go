package loops

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/modeltest"
	"amkc/ir"
	"amkc/passes/rewrite"
	"amkc/refvm"
	"amkc/validate"
)

// Assigned makes a program as passes up to assign leave it, and Finish takes it through those after loop. Package
// passes has them and imports this one: pipeline_test.go sets both.
var (
	Assigned func(t testing.TB, config string, target *ir.Target, c ir.ScheduleConfig) *ir.Program
	Finish   func(t testing.TB, p *ir.Program)
)

// rollAll rolls the loops of a program.
func rollAll(t testing.TB, p *ir.Program) Report {
	report, err := Roll(p)
	require.NoError(t, err)
	return report
}

// deep is a model of some layers, assigned.
func deep(t testing.TB, layers int, seed uint64) *ir.Program {
	rng := rand.New(rand.NewPCG(seed, 3))
	of := modeltest.NewSample(rng)
	of.Model = fmt.Sprintf(`{"model_type": "llama", "hidden_size": %d, "intermediate_size": %d,
		"num_hidden_layers": %d,
		"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "vocab_size": 33,
		"max_position_embeddings": 60,
		"torch_dtype": "bfloat16"}`, 24+8*rng.IntN(4), 40+8*rng.IntN(4), layers)
	return flattened(t, Assigned(t, of.Model, of.Target, of.Config))
}

// flattened writes out the loop over layers, its families, and the residual as the chain of sums that it is, for the
// pass to find them again.
func flattened(t testing.TB, p *ir.Program) *ir.Program {
	const residual = "residual"
	require.NoError(t, ir.Expand(p))
	at := slices.IndexFunc(p.Buffers, func(b ir.Buffer) bool { return b.Name == residual })
	sum := p.Buffers[at]
	p.Buffers = slices.Delete(p.Buffers, at, at+1)
	buffers := rewrite.NewBuffers(p)
	for i := range p.Variants {
		now := ""
		rewrite.EachStage(&p.Variants[i], func(st *ir.Stage, _ *ir.Loop) {
			for k := range st.Ops {
				op := &st.Ops[k]
				for j := range op.In {
					if op.In[j].Buf == residual {
						op.In[j].Buf = now
					}
				}
				if len(op.Out) == 0 || op.Out[0].Buf != residual {
					continue
				}
				now = strings.Replace(op.Out[1].Buf, ".x", ".residual", 1) // which layer's, its rounded copy tells
				now = strings.Replace(now, ".h", ".residual_mid", 1)
				op.Out[0].Buf = now
				own := sum
				own.Name = now
				buffers.Declare(own)
			}
		})
	}
	rewrite.Prune(p)
	return p
}

// alter makes the layers of a program differ: those of one kind have one eps.
func alter(p *ir.Program, kinds string) {
	for i := range p.Variants {
		alterVariant(&p.Variants[i], kinds)
	}
}

func alterVariant(v *ir.Variant, kinds string) {
	rewrite.EachStage(v, func(st *ir.Stage, _ *ir.Loop) {
		if layer, role := splitName(st.Name); role == "qkv" {
			st.Ops[0].Params[0].Float = float64(kinds[layer]-'a'+1) * 1e-5
		}
	})
}

// outline says what a variant consists of: stages outside of loops are left out.
func outline(v *ir.Variant) []string {
	var out []string
	for _, n := range v.Body {
		if l, ok := n.(*ir.Loop); ok {
			text := fmt.Sprintf("%s %d..%d", l.Name, l.First, l.Last())
			if l.Step > 1 {
				text += fmt.Sprintf(" by %d", l.Step)
			}
			text += ":"
			for _, st := range l.Body {
				if strings.HasSuffix(st.Name, "qkv") {
					text += " " + st.Name
				}
			}
			out = append(out, text)
		}
	}
	return out
}

// Layers may differ: the first, the last, every other. A letter is a layer, equal letters are equal layers.
func TestLoopsOfModelsWhoseLayersDiffer(t *testing.T) {
	one, two, three := " L{i}.qkv", " L{i}.qkv L{i+1}.qkv", " L{i}.qkv L{i+1}.qkv L{i+2}.qkv"
	seeds := 1
	if os.Getenv("AMKC_LONG") != "" {
		seeds = 4
	}
	for kinds, want := range map[string][]string{
		"a":          {"layers 0..0:" + one},
		"ab":         nil,
		"aa":         {"layers 0..1:" + one},
		"baaaa":      {"layers 1..4:" + one},
		"aaaab":      {"layers 0..3:" + one},
		"baaaac":     {"layers 1..4:" + one},
		"aaabaaa":    {"layers 0..2:" + one, "layers.1 4..6:" + one},
		"aaabbb":     {"layers 0..2:" + one, "layers.1 3..5:" + one},
		"ababab":     {"layers 0..4 by 2:" + two},
		"cababab":    {"layers 1..5 by 2:" + two},
		"ccabababdd": {"layers 0..1:" + one, "layers.1 2..6 by 2:" + two, "layers.2 8..9:" + one},
		"abcabcabc":  {"layers 0..6 by 3:" + three},
		"ababa":      {"layers 0..2 by 2:" + two},
		"aaaaba":     {"layers 0..3:" + one},
	} {
		t.Run(kinds, func(t *testing.T) {
			for seed := range uint64(seeds) {
				p := deep(t, len(kinds), seed)
				alter(p, kinds)
				flat := copyOf(t, p)
				rollAll(t, p)
				for i := range p.Variants {
					require.Equal(t, want, outline(&p.Variants[i]))
				}
				require.NoError(t, ir.Check(p).Err())
				requireUnrolls(t, flat, p)
				if seed == 0 {
					require.Equal(t, decode(t, p), decode(t, unrolled(t, flat)))
				}
			}
		})
	}
}

// Where kinds of layers alternate and their tensors differ, each kind has families of its own, by two; what is alike
// is one.
func TestFamiliesByTwo(t *testing.T) {
	p := deep(t, 7, 1)
	const kinds = "cababab"
	alter(p, kinds)
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if layer, role := splitName(b.Name); role == "input_norm.weight" && kinds[layer] == 'b' {
			b.DType = ir.F32
		}
	}
	flat := copyOf(t, p)
	rollAll(t, p)
	requireUnrolls(t, flat, p)
	var got []string
	for _, b := range p.Buffers {
		if layer, role := splitName(b.Name); strings.HasSuffix(b.Name, "norm.weight") && layer <= 0 &&
			role != "final_norm.weight" {
			got = append(got, fmt.Sprintf("%s %d..%d by %d %v", b.Name, b.First, b.Last(), max(1, b.Step), b.DType))
		}
	}
	require.Equal(t, []string{"L00.input_norm.weight 0..0 by 1 BF16", "L00.post_norm.weight 0..0 by 1 BF16",
		"L{i}.input_norm.weight 1..5 by 2 BF16",
		"L{i}.post_norm.weight 1..6 by 1 BF16", "L{i}.input_norm.weight 2..6 by 2 F32"}, got)
	for i := range p.Variants {
		require.Equal(t, []string{"layers 1..5 by 2: L{i}.qkv L{i+1}.qkv"}, outline(&p.Variants[i]))
	}
	require.Equal(t, decode(t, p), decode(t, unrolled(t, flat)))
}

// The variants share their buffers and not their loops: each rolls what it can.
func TestVariantsRollByThemselves(t *testing.T) {
	for _, c := range []struct {
		kinds    [2]string
		outlines [2][]string
	}{
		{[2]string{"baaaa", "aaaaa"}, [2][]string{{"layers 1..4: L{i}.qkv"}, {"layers 0..4: L{i}.qkv"}}},
		{[2]string{"aaaaaa", "ababab"}, [2][]string{{"layers 0..5: L{i}.qkv"},
			{"layers 0..4 by 2: L{i}.qkv L{i+1}.qkv"}}},
		{[2]string{"abcd", "aaab"}, [2][]string{nil, {"layers 0..2: L{i}.qkv"}}},
	} {
		p := deep(t, len(c.kinds[0]), 2)
		require.Len(t, p.Variants, 2)
		for i := range p.Variants {
			alterVariant(&p.Variants[i], c.kinds[i])
		}
		flat := copyOf(t, p)
		rollAll(t, p)
		for i := range p.Variants {
			require.Equal(t, c.outlines[i], outline(&p.Variants[i]))
		}
		requireUnrolls(t, flat, p)
		require.Equal(t, decode(t, p), decode(t, unrolled(t, flat)))
	}
}

// Whatever differs where, what comes out unrolls to what went in.
func TestLoopsOfRandomLayersUnroll(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 17))
		kinds := make([]byte, 1+rng.IntN(9))
		for i := range kinds {
			kinds[i] = byte('a' + rng.IntN(1+rng.IntN(3)))
		}
		p := deep(t, len(kinds), seed)
		alter(p, string(kinds))
		flat := copyOf(t, p)
		rollAll(t, p)
		require.NoError(t, ir.Check(p).Err(), "%s", kinds)
		requireUnrolls(t, flat, p)
	}
}

// unrolled is what the pass leaves of a flat program that it is told not to roll.
func unrolled(t testing.TB, flat *ir.Program) *ir.Program {
	p := copyOf(t, flat)
	p.Config.Tiling["loop"]["roll"] = 0
	rollAll(t, p)
	for i := range p.Variants {
		require.Nil(t, outline(&p.Variants[i]))
	}
	return p
}

// decode finishes a program, proves it, and returns the logits of some steps.
func decode(t *testing.T, p *ir.Program) [][]float32 {
	Finish(t, p)
	require.NoError(t, ir.Check(p).Err())
	report := validate.Program(p)
	require.True(t, report.OK, "%v", report.Diags)
	session, err := refvm.NewSession(p, byKey{}, refvm.Options{})
	require.NoError(t, err)
	var out [][]float32
	for token := range 20 {
		logits, _, err := session.Step(token)
		require.NoError(t, err)
		require.NotZero(t, logits[0])
		out = append(out, slices.Clone(logits))
	}
	return out
}

// byKey supplies weights that depend on the tensors' keys, so that a family whose members are mixed up shows.
type byKey struct{}

func (byKey) Floats(b *ir.Buffer, i int) ([]float32, error) {
	var keys []string
	for _, piece := range b.Pieces {
		key, err := ir.ResolveKey(piece.Key, i)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	rng := rand.New(rand.NewPCG(hashOf(keys...), 1))
	values := make([]float32, b.Numel())
	for k := range values {
		values[k] = rng.Float32() - 0.5
	}
	return values, nil
}

// share makes the layers of a program name one tensor for several: layer l has that of layer of[l].
func share(p *ir.Program, role string, of []int) {
	for i := range p.Variants {
		rewrite.EachStage(&p.Variants[i], func(st *ir.Stage, _ *ir.Loop) {
			for _, pl := range places([]*ir.Stage{st}) {
				o := pl.in([]*ir.Stage{st})
				if layer, r := splitName(o.Buf); r == role {
					o.Buf = fmt.Sprintf("L%02d.%s", of[layer], role)
				}
			}
		})
	}
	rewrite.Prune(p)
}

// Tensors that layers share stay what they are: one for all is a constant, one for several makes its group ragged.
func TestLoopsOverSharedTensors(t *testing.T) {
	const role = "gate_up.weight"
	for name, c := range map[string]struct {
		of     []int
		groups []string
		plain  int // buffers of the role that are not a family
	}{
		"one for all": {[]int{0, 0, 0, 0}, nil, 1},
		"one for two": {[]int{0, 0, 2, 2},
			[]string{"L00.gate_up.weight", "L00.gate_up.weight", "L02.gate_up.weight", "L02.gate_up.weight"}, 2},
		"in another order": {[]int{3, 2, 1, 0},
			[]string{"L03.gate_up.weight", "L02.gate_up.weight", "L01.gate_up.weight", "L00.gate_up.weight"}, 4},
		"one for two of four": {[]int{0, 1, 2, 1},
			[]string{"L00.gate_up.weight", "L01.gate_up.weight", "L02.gate_up.weight", "L01.gate_up.weight"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := deep(t, len(c.of), 1)
			share(p, role, c.of)
			flat := copyOf(t, p)
			rollAll(t, p)
			requireUnrolls(t, flat, p)
			require.Equal(t, decode(t, unrolled(t, flat)), decode(t, copyOf(t, p)))
			var members []string
			for _, g := range p.Groups {
				members = append(members, g.Members...)
			}
			require.Equal(t, c.groups, members)
			plain := slices.DeleteFunc(slices.Clone(p.Buffers),
				func(b ir.Buffer) bool { return !strings.HasSuffix(b.Name, role) || b.Count > 0 })
			require.Len(t, plain, c.plain)
		})
	}
}
