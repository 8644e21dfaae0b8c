package importers

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/checkpoint"
	"amkc/importers/modeltest"
	"amkc/internal/watch"
	"amkc/ir"
)

const ggufModels = "../testdata/models/gguf/models/"

// storages are how the matrices of a kind of layers, the embedding and the logits are stored, by their nodes.
func storages(g *ir.Graph) map[string]string {
	out := map[string]string{}
	for _, nodes := range [][]ir.GraphNode{g.Before, g.Kinds[0].Nodes, g.After} {
		for i := range nodes {
			if n := &nodes[i]; isMatrix(n) {
				out[n.Name] = "values"
				if s := n.Weights[0].Storage; s != nil {
					out[n.Name] = s.DType.String()
				}
			}
		}
	}
	return out
}

// Matrices in blocks that are a weight format are stored as they are where all that is streamed as one has a format in
// common, and others as their values; a warning says how many of which type there are. The config alone says the same.
func TestStorageOfGGUF(t *testing.T) {
	same := func(storage string) map[string]string {
		out := map[string]string{}
		for _, node := range []string{"embed", "lm_head", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj",
			"up_proj", "down_proj"} {
			out[node] = storage
		}
		return out
	}
	mixed := same("I8")
	mixed["down_proj"], mixed["embed"] = "I5", "I5"
	for name, c := range map[string]struct {
		want     map[string]string
		warnings []string
	}{
		"llama-q4_0":  {want: same("I4")},
		"llama-q8_0":  {want: same("I8")},
		"llama-q4_1":  {want: same("I4")},
		"llama-mixed": {want: mixed},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := importModel(t, ggufModels+name+"/"+name+".gguf")
			require.NoError(t, err)
			require.Equal(t, c.want, storages(s.Graph))
			require.Len(t, s.Warnings, len(c.warnings))
			for i, says := range c.warnings {
				require.Contains(t, s.Warnings[i].Error(), says)
			}
			require.Len(t, s.Consumed, len(s.source.Weights.Tensors()), "every tensor is accounted for")
			config, err := checkpoint.OpenConfig(ggufModels + name + "/" + name + ".gguf")
			require.NoError(t, err)
			alone, err := Import(Source{Config: config})
			require.NoError(t, err)
			require.Equal(t, storages(s.Graph), storages(alone.Graph))
		})
	}
}

// tinyGGUF is a file with a layer of 32 columns, its matrices in a type of which blocks of one or 32 elements take some
// bytes, but for some that are F32.
func tinyGGUF(arch string, kind uint32, bytes int, plain ...string) []byte {
	fields := []modeltest.GGUFField{{Key: "general.architecture", Value: arch}}
	for _, name := range []string{"block_count", "attention.head_count", "context_length", "attention.sliding_window"} {
		if name != "attention.sliding_window" || arch == "gemma3" {
			fields = append(fields, modeltest.GGUFField{Key: arch + "." + name, Value: uint32(1)})
		}
	}
	for _, name := range []string{"embedding_length", "feed_forward_length"} {
		fields = append(fields, modeltest.GGUFField{Key: arch + "." + name, Value: uint32(32)})
	}
	for _, name := range []string{"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon",
		"rope.freq_base", "logit_scale"} {
		if (name == "attention.layer_norm_epsilon" || name == "logit_scale") == (arch == "command-r") ||
			name == "rope.freq_base" {
			fields = append(fields, modeltest.GGUFField{Key: arch + "." + name, Value: float32(1)})
		}
	}
	var tensors []modeltest.GGUFTensor
	for _, name := range []string{"token_embd", "blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v", "blk.0.attn_output",
		"blk.0.ffn_gate", "blk.0.ffn_up", "blk.0.ffn_down"} {
		size := 32 * 32 * bytes
		if bytes > 4 {
			size = 32 * bytes
		}
		of := kind
		if slices.Contains(plain, name) {
			of, size = 0, 32*32*4
		}
		tensors = append(tensors, modeltest.GGUFTensor{Name: name + ".weight", Type: of, Shape: []int{32, 32},
			Data: make([]byte, size)})
	}
	for _, name := range []string{"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"} {
		tensors = append(tensors, modeltest.GGUFTensor{Name: name + ".weight", Shape: []int{32},
			Data: make([]byte, 128)})
	}
	return modeltest.GGUF(fields, tensors)
}

// Matrices that are streamed as one are stored as their values where no format has those of all.
func TestBlocksWithoutFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(path, tinyGGUF("llama", 2, 18, "blk.0.attn_k"), 0o644))
	s, err := importModel(t, path)
	require.NoError(t, err)
	require.Len(t, s.Warnings, 1)
	require.Contains(t, s.Warnings[0].Error(), "2 tensors stored as Q4_0, in a stage with matrices of types that no "+
		"format has in common")
	for node, want := range map[string]string{"q_proj": "values", "k_proj": "values", "v_proj": "values",
		"o_proj": "I4"} {
		require.Equal(t, want, storages(s.Graph)[node])
	}
}

// Whatever a GGUF file says, import answers with a graph or with diagnostics.
func FuzzImportGGUF(f *testing.F) {
	for _, arch := range []string{"llama", "gemma3", "command-r"} {
		f.Add(tinyGGUF(arch, 0, 4))
	}
	f.Add(tinyGGUF("llama", 2, 18))
	path := filepath.Join(f.TempDir(), "m.gguf")
	f.Fuzz(func(t *testing.T, file []byte) {
		defer watch.Execution()()
		require.NoError(t, os.WriteFile(path, file, 0o644))
		c, err := checkpoint.Open(path)
		if err != nil {
			require.Contains(t, err.Error(), "[AMK10")
			return
		}
		defer c.Close()
		if _, err = Import(Source{Name: "fuzz", Config: c.Config, Weights: c}); err != nil {
			require.Contains(t, err.Error(), "[AMK1")
		}
	})
}
