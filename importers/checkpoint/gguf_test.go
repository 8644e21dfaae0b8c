package checkpoint

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/infile"
)

const ggufModels = models + "/gguf/models/"

// A file is opened by its path, and by that of a directory that holds no other weights.
func TestOpenGGUF(t *testing.T) {
	folder := ggufModels + "llama-q8_0"
	dir, name, err := Locate(folder)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(folder, "llama-q8_0.gguf"), "llama-q8_0"}, []string{dir, name})
	c, err := Open(dir)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, "llama-q8_0.gguf, as config.json", c.Config.Model.Name)
	heads, _ := c.Config.Model.Get("num_attention_heads")
	require.EqualValues(t, "4", heads)
	down, ok := c.Tensor("model.layers.2.mlp.down_proj.weight")
	require.True(t, ok)
	require.Equal(t, DType("Q8_0"), down.DType)
	require.Equal(t, []int{64, 96}, down.Shape)
	require.True(t, down.HasValues() && down.InBlocks())
	require.Equal(t, []string{dir}, Files(dir))
	id, revision := Origin(dir)
	require.Equal(t, []string{"llama-q8_0.gguf", ""}, []string{id, revision})
}

func TestNamesOfGGUF(t *testing.T) {
	for path, want := range map[string]string{"a/Llama-3.2-1B.Q8_0.gguf": "Llama-3.2-1B-Q8_0", "m.GGUF": "m",
		"Qwen2.5-7B-00001-of-00003.gguf": "Qwen2.5-7B", "m-00001-of-3.gguf": "m-00001-of-3"} {
		require.Equal(t, want, nameOfGGUF(path))
	}
}

// Every element is the same however it is read, and bytes are those of the file in the order of the rows.
func TestRowsOfGGUF(t *testing.T) {
	for _, name := range []string{"llama-q4_1", "gemma2", "llama-biases"} {
		c, err := Open(ggufModels + name + "/" + name + ".gguf")
		require.NoError(t, err)
		file, err := os.ReadFile(ggufModels + name + "/" + name + ".gguf")
		require.NoError(t, err)
		for _, tensor := range c.Tensors() {
			n := tensor.Rows() * tensor.RowLen()
			all := make([]float32, n)
			require.NoError(t, tensor.ReadF32(all, 0))
			part := make([]float32, min(n, 45))
			for first := 0; first+len(part) <= n; first += 31 {
				require.NoError(t, tensor.ReadF32(part, first))
				require.Equal(t, all[first:first+len(part)], part, "%s from %d", tensor.Name, first)
			}
			raw, err := tensor.Raw()
			require.NoError(t, err)
			require.Len(t, raw, int(tensor.Size()))
			pieces := make([]byte, 4)
			require.NoError(t, tensor.ReadPieces(pieces, 1, 2, len(raw)-3))
			require.Equal(t, []byte{raw[1], raw[2], raw[len(raw)-2], raw[len(raw)-1]}, pieces)
			b := tensor.data.(blockRows)
			if b.minus != 0 {
				require.Equal(t, math.Float32bits(all[1]), binary.LittleEndian.Uint32(raw[4:]))
				require.Equal(t, all[1]+1, math.Float32frombits(binary.LittleEndian.Uint32(file[b.at+4:])))
				continue
			}
			if b.heads == 0 {
				require.Equal(t, file[b.at:b.at+tensor.Size()], raw)
				continue
			}
			size := len(raw) / b.rows
			half := b.rows / b.heads / 2
			require.Equal(t, file[b.at:][:size], raw[:size], "the first row stays")
			require.Equal(t, file[b.at:][size:2*size], raw[half*size:][:size], "the second begins the other half")
		}
		require.NoError(t, c.Close())
	}
}

// A region that is read with system calls gives the same values as a mapped one.
func TestGGUFWithoutMapping(t *testing.T) {
	c, err := Open(ggufModels + "llama-mixed/llama-mixed.gguf")
	require.NoError(t, err)
	defer c.Close()
	f, err := os.Open(ggufModels + "llama-mixed/llama-mixed.gguf")
	require.NoError(t, err)
	defer f.Close()
	for _, tensor := range c.Tensors() {
		b := tensor.data.(blockRows)
		want, got := make([]float32, tensor.Rows()*tensor.RowLen()), make([]float32, tensor.Rows()*tensor.RowLen())
		require.NoError(t, tensor.ReadF32(want, 0))
		for _, r := range []region{reader{f}, &chopped{reader{f}}} {
			b.region = r
			tensor.data = b
			require.NoError(t, tensor.ReadF32(got, 0))
			require.Equal(t, want, got, tensor.Name)
		}
	}
}

// A chopped region gives its bytes seven at a time, so that blocks are cut.
type chopped struct{ reader }

func (c *chopped) each(off, n int64, fn func([]byte)) error {
	return c.reader.each(off, n, func(block []byte) {
		for part := range slices.Chunk(block, 7) {
			fn(part)
		}
	})
}

// What a file stands for is read below its path, and nothing else is there.
func TestFilesOfGGUF(t *testing.T) {
	path := ggufModels + "qwen2/qwen2.gguf"
	_, err := OpenConfig(path)
	require.NoError(t, err)
	text, err := infile.Read(filepath.Join(path, "config.json"), infile.ModelConfig)
	require.NoError(t, err)
	require.Contains(t, string(text), `"model_type": "qwen2"`)
	_, err = infile.Read(filepath.Join(path, "special_tokens_map.json"), infile.ModelConfig)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = infile.Read(filepath.Join(path, "tokenizer.json"), infile.Tokenizer)
	require.ErrorIs(t, err, fs.ErrNotExist, "which says why there is none")
	require.ErrorContains(t, err, `tokenizer.ggml.model: error: is "none"`)
	_, err = infile.List(filepath.Join(path, "additional_chat_templates"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Parts of a split file, of which the first has the fields, are one model.
func TestSplitGGUF(t *testing.T) {
	for name, c := range map[string]struct {
		files      map[string][]byte
		open       string
		code, says string
	}{
		"whole": {files: map[string][]byte{"m-00001-of-00002.gguf": splitPart(0, 2, "token_embd.weight"),
			"m-00002-of-00002.gguf": splitPart(1, 2, "output_norm.weight")}, open: "m-00001-of-00002.gguf"},
		"the directory": {files: map[string][]byte{"m-00001-of-00002.gguf": splitPart(0, 2, "token_embd.weight"),
			"m-00002-of-00002.gguf": splitPart(1, 2, "output_norm.weight")}},
		"the second": {files: map[string][]byte{"m-00002-of-00002.gguf": splitPart(1, 2, "a")},
			open: "m-00002-of-00002.gguf", code: "AMK1055", says: "is part 2 of 2; give the first one"},
		"one is missing": {files: map[string][]byte{"m-00001-of-00002.gguf": splitPart(0, 2, "a")}, code: "AMK1055",
			says: "m-00002-of-00002.gguf is not there"},
		"another name": {files: map[string][]byte{"m.gguf": splitPart(0, 2, "a")}, code: "AMK1055",
			says: "has another name"},
		"of another file": {files: map[string][]byte{"m-00001-of-00002.gguf": splitPart(0, 2, "a"),
			"m-00002-of-00002.gguf": splitPart(2, 3, "b")}, code: "AMK1055", says: "is part 3 of 3; want part 2 of 2"},
		"of a file of more parts": {files: map[string][]byte{"m-00001-of-00002.gguf": splitPart(0, 2, "a"),
			"m-00002-of-00002.gguf": splitPart(1, 3, "b")}, code: "AMK1055", says: "is part 2 of 3; want part 2 of 2"},
		"too few tensors": {files: map[string][]byte{"m-00001-of-00003.gguf": splitPart(0, 3, "a"),
			"m-00002-of-00003.gguf": splitPart(1, 3, "b"), "m-00003-of-00003.gguf": splitPart(2, 3)},
			code: "AMK1055", says: "split.tensors.count is 3, and the parts have 2 tensors"},
		"a tensor in both": {files: map[string][]byte{"m-00001-of-00002.gguf": splitPart(0, 2, "a"),
			"m-00002-of-00002.gguf": splitPart(1, 2, "a")}, code: "AMK1013", says: "in another part too"},
		"several files": {files: map[string][]byte{"a.gguf": nil, "b.gguf": nil}, code: "AMK1003",
			says: "there are 2 GGUF files; give one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, contents := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), contents, 0o644))
			}
			path, name, err := Locate(filepath.Join(dir, c.open))
			if c.code != "" {
				requireCode(t, err, c.code, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "m", name)
			model, err := Open(path)
			require.NoError(t, err)
			defer model.Close()
			require.Equal(t, []string{"model.embed_tokens.weight", "model.norm.weight"}, names(model))
			require.Len(t, Files(path), 2)
			for _, tensor := range model.Tensors() {
				values := make([]float32, 8)
				require.NoError(t, tensor.ReadF32(values, 0))
				require.Equal(t, []float32{1, 1, 1, 1, 1, 1, 1, 1}, values)
			}
		})
	}
}

// splitPart is a part of a Llama with tensors of eight ones.
func splitPart(no, count uint16, tensors ...string) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(le.AppendUint64(le.AppendUint32([]byte("GGUF"), 3), uint64(len(tensors))), 11)
	key := func(s string, kind uint32) {
		b = le.AppendUint32(append(le.AppendUint64(b, uint64(len(s))), s...), kind)
	}
	for _, name := range []string{"block_count", "embedding_length", "feed_forward_length", "attention.head_count",
		"context_length"} {
		key("llama."+name, 4)
		b = le.AppendUint32(b, 4)
	}
	key("llama.attention.layer_norm_rms_epsilon", 6)
	b = le.AppendUint32(b, math.Float32bits(1e-5))
	key("general.architecture", 8)
	b = append(le.AppendUint64(b, 5), "llama"...)
	key("split.no", 2)
	b = le.AppendUint16(b, no)
	key("split.count", 2)
	b = le.AppendUint16(b, count)
	key("split.tensors.count", 5)
	b = le.AppendUint32(b, uint32(count))
	key("general.alignment", 4)
	b = le.AppendUint32(b, 32)
	for i, name := range tensors {
		b = append(le.AppendUint64(b, uint64(len(name))), name...)
		b = le.AppendUint64(le.AppendUint64(le.AppendUint32(b, 2), 4), 2)
		b = le.AppendUint64(le.AppendUint32(b, 0), uint64(32*i))
	}
	b = append(b, make([]byte, (32-len(b)%32)%32)...)
	return append(b, bytes.Repeat(le.AppendUint32(nil, math.Float32bits(1)), 8*len(tensors))...)
}
