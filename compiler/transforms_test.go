package compiler

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/ir"
	"amkc/ir/transform"
	"amkc/passes"
	"amkc/refvm"
	"amkc/validate"
	"amkc/validate/kernel"
)

// The tests here keep one model in two checkpoints: with the tensors of a Llama, and as other families store them. The
// graph says how its nodes get what they take; everything after it is the same.

// stored is a tensor of such a checkpoint, in float32.
type stored struct {
	shape  []int
	values []float32
}

func (s stored) row(r int) []float32 { return s.values[r*s.shape[1] : (r+1)*s.shape[1]] }

// mapped is the tensor with other values.
func (s stored) mapped(f func(x float32) float32) stored {
	out := stored{s.shape, slices.Clone(s.values)}
	for i, x := range out.values {
		out.values[i] = f(x)
	}
	return out
}

// rows is a tensor of rows of others.
func rows(list ...[]float32) stored {
	return stored{[]int{len(list), len(list[0])}, slices.Concat(list...)}
}

func writeStored(t *testing.T, config []byte, tensors map[string]stored) *checkpoint.Checkpoint {
	t.Helper()
	header, data := map[string]any{}, []byte(nil)
	for name, s := range tensors {
		begin := len(data)
		for _, x := range s.values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		header[name] = map[string]any{"dtype": "F32", "shape": s.shape, "data_offsets": []int{begin, len(data)}}
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	text = append(text, bytes.Repeat([]byte(" "), (8-len(text)%8)%8)...)
	dir := t.TempDir()
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), append(text, data...)...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), file, 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o666))
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// asOthersStore returns the tensors as other families have them, and how to make what the nodes take, by the end of
// the key and the name of the layer: q, k and v fused head group by head group with the rotation of k interleaved,
// gate above up, o from the left, down halved, and norms less 1. Values are those that survive the way there and back.
func asOthersStore(plain map[string]stored, m *ir.Model) (fused map[string]stored, how map[string]ir.GraphWeight) {
	fused, how = map[string]stored{}, map[string]ir.GraphWeight{}
	hd, group := m.HeadDim, m.Heads/m.KVHeads
	block := (group + 2) * hd
	plus, times := transform.Transform{Kind: transform.Plus, By: 1}, transform.Transform{Kind: transform.Times, By: 2}
	for layer := range m.Layers {
		at := "model.layers." + string(rune('0'+layer)) + "."
		q, k, v := plain[at+"self_attn.q_proj.weight"], plain[at+"self_attn.k_proj.weight"],
			plain[at+"self_attn.v_proj.weight"]
		var qkv [][]float32
		for h := range m.KVHeads {
			for r := range group * hd {
				qkv = append(qkv, q.row(h*group*hd+r))
			}
			for j := range hd / 2 {
				qkv = append(qkv, k.row(h*hd+j), k.row(h*hd+hd/2+j))
			}
			for r := range hd {
				qkv = append(qkv, v.row(h*hd+r))
			}
		}
		fused[at+"attn.query_key_value.weight"] = rows(qkv...)
		gate, up := plain[at+"mlp.gate_proj.weight"], plain[at+"mlp.up_proj.weight"]
		fused[at+"mlp.gate_up_proj.weight"] = stored{[]int{2 * m.Intermediate, m.Hidden},
			slices.Concat(gate.values, up.values)}
		o := plain[at+"self_attn.o_proj.weight"]
		left := stored{[]int{o.shape[1], o.shape[0]}, make([]float32, len(o.values))}
		for r := range o.shape[0] {
			for c, x := range o.row(r) {
				left.values[c*o.shape[0]+r] = x
			}
		}
		fused[at+"attn.c_proj.weight"] = left
		fused[at+"mlp.down_proj.weight"] = plain[at+"mlp.down_proj.weight"].
			mapped(func(x float32) float32 { return x / 2 })
	}
	for key, s := range plain {
		switch {
		case strings.HasSuffix(key, "norm.weight"):
			fused[key] = s.mapped(func(x float32) float32 { return x - 1 })
			how[key] = ir.GraphWeight{Key: key, Chain: transform.Chain{plus}}
		case !strings.HasPrefix(key, "model.layers."):
			fused[key] = s
		}
	}
	one := func(from, to string, stored []int, c transform.Chain) {
		how["model.layers.{i}."+from+".weight"] = ir.GraphWeight{Key: "model.layers.{i}." + to + ".weight",
			Stored: stored, Chain: c}
	}
	all := []int{m.KVHeads * block, m.Hidden}
	one("self_attn.q_proj", "attn.query_key_value", all, transform.Of(transform.Rows, 0, group*hd, block))
	one("self_attn.k_proj", "attn.query_key_value", all, transform.Of(transform.Rows, group*hd, (group+1)*hd, block).
		Then(transform.Of(transform.Halves, hd)...))
	one("self_attn.v_proj", "attn.query_key_value", all, transform.Of(transform.Rows, (group+1)*hd, block, block))
	both := []int{2 * m.Intermediate, m.Hidden}
	one("mlp.gate_proj", "mlp.gate_up_proj", both, transform.Of(transform.Rows, 0, m.Intermediate))
	one("mlp.up_proj", "mlp.gate_up_proj", both, transform.Of(transform.Rows, m.Intermediate, 2*m.Intermediate))
	one("self_attn.o_proj", "attn.c_proj", []int{m.Heads * hd, m.Hidden}, transform.Of(transform.Transpose))
	one("mlp.down_proj", "mlp.down_proj", nil, transform.Chain{times})
	for _, norm := range []string{"input_layernorm", "post_attention_layernorm"} {
		one(norm, norm, nil, transform.Chain{plus})
	}
	return fused, how
}

// twoCheckpoints schedules zoo/llama-gqa from both.
func twoCheckpoints(t *testing.T) (plain, fused *Scheduled) {
	t.Helper()
	const dir = root + "/models/zoo/llama-gqa"
	original, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer original.Close()
	tensors := map[string]stored{}
	for _, x := range original.Tensors() {
		s := stored{slices.Clone(x.Shape), make([]float32, x.Rows()*x.RowLen())}
		require.NoError(t, x.ReadF32(s.values, 0))
		if strings.HasSuffix(x.Name, "norm.weight") {
			s = s.mapped(func(x float32) float32 { return x - 1 + 1 }) // what is left of it less 1
		}
		tensors[x.Name] = s
	}
	config, err := os.ReadFile(dir + "/config.json")
	require.NoError(t, err)
	schedule := func(c *checkpoint.Checkpoint, edit func(g *ir.Graph)) *Scheduled {
		dtype := ir.BF16
		s := newState(Options{Target: ir.FindTarget("h200"), Name: "llama-gqa", DType: &dtype, MaxSeq: 64})
		s.Source.Config = c.Config
		for i := range Passes {
			require.NoError(t, runPass(Options{Check: true}, i, s))
			if i == 0 {
				edit(s.Graph)
			}
		}
		return &Scheduled{Program: s.Program, Graph: s.Graph, Config: c.Config, checkpoint: c,
			Weights: passes.NewWeights(c, s.Graph, s.Matrices)}
	}
	plain = schedule(writeStored(t, config, tensors), func(*ir.Graph) {})
	others, how := asOthersStore(tensors, &plain.Graph.Model)
	fused = schedule(writeStored(t, config, others), func(g *ir.Graph) {
		for _, nodes := range [][]ir.GraphNode{g.Kinds[0].Nodes, g.After} {
			for i := range nodes {
				for k := range nodes[i].Weights {
					w := &nodes[i].Weights[k]
					if from, ok := how[w.Key]; ok {
						w.Key, w.Chain, w.Stored = from.Key, from.Chain, from.Stored
					}
				}
			}
		}
	})
	return plain, fused
}

// A model computes the same from tensors as another family stores them: its packed weights are the same bytes, the
// emitted code is the same, and so are the bits of its logits.
func TestTransformedCheckpoints(t *testing.T) {
	plain, fused := twoCheckpoints(t)
	from := regexp.MustCompile(`(?m) from .*$`)
	text := ir.Print(fused.Program)
	for _, want := range []string{"pairs:16(rows:0:32:64(model.layers.{i}.attn.query_key_value.weight))",
		"pairs:16(halves:16(rows:32:48:64(", " rows:48:64:64(", "even(rows:0:176(", "odd(rows:176:352(", "transpose(",
		"times:2(", "plus:1("} {
		require.Contains(t, string(text), want)
	}
	require.Equal(t, string(from.ReplaceAll(ir.Print(plain.Program), nil)), string(from.ReplaceAll(text, nil)))
	again, err := ir.Load(text, "fused.amk")
	require.NoError(t, err)
	require.Equal(t, string(text), string(ir.Print(again)))

	for i := range plain.Program.Buffers {
		b := &plain.Program.Buffers[i]
		if b.Kind != ir.Weight && b.Kind != ir.Const {
			continue
		}
		for k := range max(1, b.Count) {
			var want, got bytes.Buffer
			require.NoError(t, plain.Weights.Pack(&want, b, b.Index(k)))
			require.NoError(t, fused.Weights.Pack(&got, &fused.Program.Buffers[i], b.Index(k)))
			require.True(t, bytes.Equal(want.Bytes(), got.Bytes()), b.Name)
		}
	}
	one, err := plain.weightsKey(nil, nil)
	require.NoError(t, err)
	other, err := fused.weightsKey(nil, nil)
	require.NoError(t, err)
	require.NotEqual(t, one, other, "packed weights are kept by what they are made of")

	var sessions []*refvm.Session
	for _, l := range []*Scheduled{plain, fused} {
		require.True(t, validate.ProgramFor(kernel.Backend, l.Program).OK)
		s, err := refvm.NewSession(l.Program, l.Weights, refvm.Options{Round: refvm.Device})
		require.NoError(t, err)
		sessions = append(sessions, s)
	}
	for token := range 4 {
		want, _, err := sessions[0].Step(token)
		require.NoError(t, err)
		got, _, err := sessions[1].Step(token)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	want, err := sourcesOf(plain.Program, plain.Graph)
	require.NoError(t, err)
	got, err := sourcesOf(fused.Program, fused.Graph)
	require.NoError(t, err)
	for name := range want {
		require.Equal(t, string(want[name]), string(got[name]), name)
	}
}

// No edit of a buffer's source passes unseen: reference.cu compares it with the graph.
func TestEditsOfPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	_, l := twoCheckpoints(t)
	p, err := ir.Load(ir.Print(l.Program), "fused.amk") // which shares nothing with the graph
	require.NoError(t, err)
	original, err := sourcesOf(p, l.Graph)
	require.NoError(t, err)
	before, counts := textOf(p), map[string]int{}
	for _, e := range editsOf(p) {
		if !strings.Contains(e.path, ".Pieces") {
			continue
		}
		e.do()
		after := textOf(p)
		outcome, _ := tryEdit(p, l.Graph, original)
		e.undo()
		if !e.meansNothing(before, after, outcome == silent) {
			require.NotEqual(t, silent, outcome, "%s: %s", e.path, e.what)
			counts[outcome]++
		}
	}
	t.Log(counts)
	require.Greater(t, counts["refused as no program"], 50)
	require.Greater(t, counts["refused by the emission"], 50)
}
