package compiler

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/passes"
	"amkc/runtime/host"
)

// A build that leaves random matrices out of its weights has the others in its file, and is verified. The reference VM
// has the matrices as the host that loads the build makes them, whatever their formats.
func TestInventedWeights(t *testing.T) {
	const layers = 3
	for _, weights := range []string{"none", "int8", "int4", "int4:g32:sym", "fp8"} {
		seed, dtype := uint64(5), ir.BF16
		o := zooOptions("mixtral-window")
		o.RandomSeed, o.LeaveOut, o.DType = &seed, true, &dtype
		var err error
		o.Formats, err = passes.ParseWeightFormats(weights)
		require.NoError(t, err)
		dir := filepath.Join(t.TempDir(), "build")
		built, err := Compile(t.Context(), BuildOptions{Options: o, OutDir: dir, NoBuild: true, NoLauncher: true})
		require.NoError(t, err)
		m, err := readManifest(dir)
		require.NoError(t, err)
		places, size := ir.WeightArena(built.Program)
		file, err := os.Stat(filepath.Join(dir, host.WeightsFile))
		require.NoError(t, err)
		require.Equal(t, file.Size(), m.Weights.Bytes)
		require.Less(t, file.Size(), int64(size)-m.Facts.Invented.Bytes()+8192, "data and a header")

		b, err := OpenBuild(dir)
		require.NoError(t, err)
		matrices := 0
		for _, pl := range places {
			buf := &built.Program.Buffers[pl.Buffer]
			values, err := b.Floats(buf, pl.Index)
			require.NoError(t, err, pl.Name)
			made := m.Facts.Invented.Find(int64(pl.Offset))
			require.Equal(t, buf.Kind == ir.Weight && len(buf.Shape) > 1, made != nil, pl.Name)
			if made == nil {
				continue
			}
			matrices++
			packed := make([]byte, made.Bytes)
			m.Facts.Invented.Fill(packed, made, 0)
			want := make([]float32, len(values))
			_, cols := buf.Matrix()
			buf.Format().Unpack(want, packed, cols)
			require.Equal(t, want, values, pl.Name)
		}
		require.Equal(t, 2+5*layers, matrices, "embed, lm_head; qkv, o, router, experts_up and experts_down")
		require.NoError(t, b.Close())
		v, err := Verify(dir, nil)
		require.NoError(t, err)
		require.Empty(t, v.Findings, weights)

		// A matrix that is not one of the program is found.
		manifest := filepath.Join(dir, host.ManifestFile)
		text, err := os.ReadFile(manifest)
		require.NoError(t, err)
		forged := strings.Replace(string(text), `"pattern": 0`, `"pattern": -1`, 1)
		require.NoError(t, os.WriteFile(manifest, []byte(forged), 0o600))
		v, err = Verify(dir, nil)
		require.NoError(t, err)
		require.ErrorContains(t, v.Findings.Err(), "its facts differ")
		_, err = OpenBuild(dir)
		require.ErrorContains(t, err, "has other random matrices than this amkc makes")
	}
}

// A build with other random weights is not taken for one that has them.
func TestInventedWeightsHaveTheirKey(t *testing.T) {
	seed, keys := uint64(5), map[string]bool{}
	for _, out := range []bool{false, true} {
		o := zooOptions("mixtral-window")
		o.RandomSeed, o.LeaveOut = &seed, out
		l, err := RunPasses(o)
		require.NoError(t, err)
		digests, err := l.weightsKey(o.RandomSeed, nil)
		require.NoError(t, err)
		keys[digests.key] = true
		require.NoError(t, l.Close())
	}
	require.Len(t, keys, 2)
}

// K-quants are not made from a seed. A model of them alone has nothing to leave out.
func TestNothingToLeaveOut(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "configs", "llama-2048h-4l", host.ConfigFile))
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, json.Unmarshal(text, &config))
	types := map[string]string{"model.embed_tokens": "Q4_K", "lm_head": "Q4_K"}
	for _, module := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
		"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"} {
		types["model.layers.0."+module] = "Q4_K"
	}
	config["num_hidden_layers"], config["vocab_size"], config["intermediate_size"] = 1, 512, 512
	config["quantization_config"] = map[string]any{"quant_method": "gguf", "types": types}
	seed, dir := uint64(5), t.TempDir()
	o := Options{Model: dir, Name: "m", Target: ir.FindTarget("h200"), RandomSeed: &seed, LeaveOut: true}
	compile := func() error {
		text, err := json.Marshal(config)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, host.ConfigFile), text, 0o600))
		_, err = Compile(t.Context(), BuildOptions{Options: o, OutDir: filepath.Join(t.TempDir(), "build"),
			NoBuild: true, NoLauncher: true})
		return err
	}
	require.ErrorContains(t, compile(), "no matrix can be left out: all are K-quants of GGUF files")
	delete(types, "lm_head") // which is left out then
	require.NoError(t, compile())
}
