package gguf_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/importers/gguf"
	"amkc/importers/modeltest"
	"amkc/internal/watch"
	"amkc/ir/diag"
)

func read(file []byte) (*gguf.Header, *diag.Diagnostic) {
	return gguf.Read("m.gguf", bytes.NewReader(file), int64(len(file)))
}

// What blocks mean is what gguf-py reads them back as, to the bit: one block, five rows of three, and three of seven.
func TestBlocks(t *testing.T) {
	const folder = "../../testdata/models/gguf/blocks/"
	file, err := os.ReadFile(folder + "blocks.gguf")
	require.NoError(t, err)
	text, err := os.ReadFile(folder + "blocks.json")
	require.NoError(t, err)
	var want map[string]string
	require.NoError(t, json.Unmarshal(text, &want))
	h, bad := read(file)
	require.Nil(t, bad)
	require.Len(t, h.Tensors, len(want))
	types := map[string]bool{}
	for _, tensor := range h.Tensors {
		values := make([]float32, tensor.Shape[0]*tensor.Shape[1])
		tensor.Type.Decode(values, file[tensor.At:tensor.At+tensor.Size])
		var raw []byte
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		sum := sha256.Sum256(raw)
		require.Equal(t, want[tensor.Name], hex.EncodeToString(sum[:]), tensor.Name)
		types[tensor.Type.Name] = true
	}
	require.Len(t, types, 13, "all types of blocks")
}

func f32(values ...float32) []byte { return modeltest.F32Bytes(values...) }

var small = []modeltest.GGUFTensor{{Name: "a", Type: 0, Shape: []int{2, 3}, Data: f32(1, 2, 3, 4, 5, 6)},
	{Name: "b", Type: 8, Shape: []int{32}, Data: make([]byte, 34)}}

func TestHeader(t *testing.T) {
	file := modeltest.GGUF([]modeltest.GGUFField{{Key: "u", Value: uint32(7)}, {Key: "i", Value: int32(-7)},
		{Key: "s", Value: "text"}, {Key: "f", Value: float32(1e-5)}, {Key: "t", Value: true},
		{Key: "large", Value: uint64(math.MaxUint64)}, {Key: "words", Value: []string{"a", "\xff"}},
		{Key: "numbers", Value: []int32{1, -2}}}, small)
	h, err := read(file)
	require.Nil(t, err)
	require.Equal(t, []any{int64(7), int64(-7), "text", float32(1e-5), true, uint64(math.MaxUint64)},
		[]any{h.Fields["u"], h.Fields["i"], h.Fields["s"], h.Fields["f"], h.Fields["t"], h.Fields["large"]})
	require.Equal(t, []string{"a", "\xff"}, h.Fields["words"].(*gguf.Array).Strings, "tokens need not be text")
	numbers := h.Fields["numbers"].(*gguf.Array)
	require.Equal(t, []any{2, int64(1), int64(-2)}, []any{numbers.Len(), numbers.At(0), numbers.At(1)})
	require.Equal(t, []int{2, 3}, h.Tensors[0].Shape)
	require.Equal(t, f32(1, 2, 3, 4, 5, 6), file[h.Tensors[0].At:][:h.Tensors[0].Size])
	require.Equal(t, int64(len(file)), h.Tensors[1].At+h.Tensors[1].Size)

	for range 20 { // writers pad the last tensor, or do not
		file = append(file, 0)
		_, err = read(file)
		require.Nil(t, err)
	}
}

// replaced returns a file with other bytes in place of the first that are old.
func replaced(t *testing.T, file []byte, old, with []byte) []byte {
	t.Helper()
	require.True(t, bytes.Contains(file, old))
	return bytes.Replace(file, old, with, 1)
}

func u64(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
func u32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

func TestHeaderRefuses(t *testing.T) {
	field := func(v any) []byte { return modeltest.GGUF([]modeltest.GGUFField{{Key: "key", Value: v}}, small) }
	good := modeltest.GGUF(nil, small)
	aligned := func(v any) []byte {
		return modeltest.GGUF([]modeltest.GGUFField{{Key: "general.alignment", Value: v}}, small)
	}
	at := func(i int, b ...byte) []byte {
		out := slices.Clone(good)
		copy(out[i:], b)
		return out
	}
	tensor := func(kind uint32, shape []int, data int) []byte {
		return modeltest.GGUF(nil, []modeltest.GGUFTensor{{Name: "a", Type: kind, Shape: shape,
			Data: make([]byte, data)}})
	}
	for name, c := range map[string]struct {
		file []byte
		code string
		says string
	}{
		"empty":              {nil, "AMK1050", "0 bytes long"},
		"another format":     {at(0, 'G', 'G', 'M', 'L'), "AMK1051", `begins with "GGML"`},
		"version 1":          {at(4, 1), "AMK1051", "has version 1; versions 2 and 3"},
		"big-endian":         {at(4, 0, 0, 0, 3), "AMK1051", "big-endian"},
		"cut in the header":  {good[:85], "AMK1050", "where the file ends"},
		"cut in the data":    {good[:len(good)-1], "AMK1050", `tensor "b": error: ends at byte`},
		"too long":           {append(slices.Clone(good), make([]byte, 40)...), "AMK1053", "the file at byte"},
		"a count of tensors": {at(8, u64(1<<63)...), "AMK1052", "9223372036854775808 tensors are said to begin"},
		"a count of fields":  {at(16, u64(1<<40)...), "AMK1052", "fields are said to begin"},
		"a key's length":     {at(24, u64(1<<62)...), "AMK1052", "bytes of the name of a tensor"},
		"a type of value":    {replaced(t, field("0123456789"), u32(8), u32(13)), "AMK1052", "has type 13"},
		"an array of arrays": {replaced(t, field([]bool{true, true, true}), append(u32(9), u32(7)...),
			append(u32(9), u32(9)...)),
			"AMK1052", "array of type 9"},
		"a boolean of 2": {replaced(t, field(true), []byte{7, 0, 0, 0, 1}, []byte{7, 0, 0, 0, 2}),
			"AMK1052", "boolean of 2"},
		"booleans of 2": {replaced(t, field([]bool{true, false, true}), []byte{1, 0, 1}, []byte{1, 2, 1}),
			"AMK1052", "boolean other than 0 and 1"},
		"a string's length": {replaced(t, field("0123456789"), u64(10), u64(1<<50)),
			"AMK1052", "bytes of the value"},
		"an array's length": {replaced(t, field([]int32{5, 6}), append(u32(5), u64(2)...),
			append(u32(5), u64(1<<61)...)),
			"AMK1052", "elements are said"},
		"strings' count": {replaced(t, field([]string{"x"}), append(u32(8), u64(1)...),
			append(u32(8), u64(1<<61)...)),
			"AMK1052", "strings are said"},
		"a key that is not text": {replaced(t, field(true), []byte("key"), []byte("k\xffy")),
			"AMK1052", "not UTF-8"},
		"a key twice": {modeltest.GGUF([]modeltest.GGUFField{{Key: "k", Value: true}, {Key: "k", Value: true}}, nil),
			"AMK1052", `"k" appears twice`},
		"a tensor twice": {modeltest.GGUF(nil, append(slices.Clone(small), small[0])),
			"AMK1052", `tensor "a" appears twice`},
		"no dimensions":    {tensor(0, nil, 4), "AMK1053", "0 dimensions"},
		"five dimensions":  {tensor(0, []int{1, 1, 1, 1, 1}, 4), "AMK1053", "5 dimensions"},
		"a dimension of 0": {tensor(0, []int{2, 0}, 0), "AMK1053", "dimension of 0"},
		"an overflowing shape": {tensor(0, []int{math.MaxInt32, math.MaxInt32, math.MaxInt32}, 4),
			"AMK1053", "overflows"},
		"half a block": {tensor(8, []int{2, 40}, 80),
			"AMK1053", "a multiple of the 32 of a block of Q8_0"},
		"a codebook": {tensor(16, []int{256}, 66),
			"AMK1054", "is of type IQ2_XXS; accepted: F32, F16, Q4_0"},
		"an unknown type":          {tensor(99, []int{256}, 66), "AMK1054", "99, which is not known"},
		"more elements than bytes": {tensor(0, []int{1 << 30}, 4), "AMK1050", "ends at byte 4294967"},
		"an offset within another": {replaced(t, good, append(u32(8), u64(32)...), append(u32(8), u64(16)...)),
			"AMK1053", "begins at byte 16 of the data; want 32"},
		"an offset after the file": {replaced(t, good, append(u32(8), u64(32)...), append(u32(8), u64(1<<63)...)),
			"AMK1053", "want 32"},
		"an alignment of 4": {aligned(uint32(4)),
			"AMK1052", "general.alignment is 4"},
		"an alignment in words": {aligned("32"),
			"AMK1052", `general.alignment is "32"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(c.file)
			require.NotNil(t, err)
			require.Equal(t, c.code, err.Code, err.Error())
			require.Contains(t, err.Error(), c.says)
			require.NotEmpty(t, diag.Lookup(err.Code).Doc)
		})
	}
}

// allocated is how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// memoryBudget is what reading n hostile bytes may allocate: linear, and a constant for what else runs in the process.
func memoryBudget(n int) uint64 { return 400*uint64(n) + 4<<20 }

// The shapes of headers that cost the most a byte, of 10 MB, get a verdict within a second of processor time.
func TestHeadersAreReadInLinearTime(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const n = 10 << 20
	header := func(tensors, fields uint64, rest []byte) []byte {
		return slices.Concat([]byte("GGUF"), u32(3), u64(tensors), u64(fields), rest)
	}
	var keys, tensors []byte
	fields := uint64(0)
	for ; len(keys) < n; fields++ {
		key := u32(uint32(fields))
		for i := range key {
			key[i] &= 0x7f
		}
		key[3] |= byte(fields>>21) & 0x7f
		keys = append(keys, slices.Concat(u64(4), key, u32(7), []byte{1})...)
	}
	count := uint64(0)
	for ; len(tensors) < n; count++ {
		tensors = append(tensors, slices.Concat(u64(4), fmt.Appendf(nil, "%04x", count%(1<<16)), u32(1), u64(1),
			u32(0), u64(count*32))...)
	}
	for name, file := range map[string][]byte{
		"keys":    header(0, fields, keys),
		"tensors": header(count, 0, tensors),
		"strings": header(0, 1, slices.Concat(u64(1), []byte("k"), u32(9), u32(8), u64(n/8), make([]byte, n))),
		"bytes":   header(0, 1, slices.Concat(u64(1), []byte("k"), u32(9), u32(0), u64(n), make([]byte, n))),
		"a text":  header(0, 1, slices.Concat(u64(1), []byte("k"), u32(8), u64(n), []byte(strings.Repeat("x", n)))),
	} {
		t.Run(name, func(t *testing.T) {
			defer watch.Execution()()
			require.LessOrEqual(t, allocated(func() { read(file) }), memoryBudget(len(file)))
		})
	}
}

// Any bytes are a header whose tensors are within the file, one after the other, or a diagnostic. What a header says
// of its model and its tokenizer is read or refused.
func FuzzGGUF(f *testing.F) {
	f.Add(modeltest.GGUF(nil, small))
	f.Add(fileOf(llama(), tensorsOf()))
	f.Add(fileOf(with(llama(), mixture()), tensorsOf(ofExperts(2, 16))))
	f.Add(fileOf(fieldsOf{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
		"tokenizer.ggml.tokens": []string{"a", "b", "ab"}, "tokenizer.ggml.merges": []string{"a b"}}, nil))
	f.Add(fileOf(fieldsOf{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{"<s>", "a", "aa"},
		"tokenizer.ggml.scores": []float32{0, -1, -2}, "tokenizer.ggml.token_type": []int32{3, 1, 1},
		"tokenizer.ggml.bos_token_id": uint32(0)}, nil))
	f.Add(modeltest.GGUF([]modeltest.GGUFField{{Key: "general.architecture", Value: "llama"},
		{Key: "general.alignment", Value: uint32(8)}, {Key: "w", Value: []string{"a"}},
		{Key: "n", Value: []float32{1}}}, small))
	f.Fuzz(func(t *testing.T, file []byte) {
		defer watch.Execution()()
		used := allocated(func() {
			h, err := read(file)
			if err != nil {
				require.NotEmpty(t, diag.Lookup(err.Code).Doc)
				return
			}
			end := int64(0)
			for _, tensor := range h.Tensors {
				require.LessOrEqual(t, end, tensor.At)
				end = tensor.At + tensor.Size
				require.LessOrEqual(t, end, int64(len(file)))
			}
			if m, err := h.Model(factors); err == nil {
				require.True(t, json.Valid(m.Config) && json.Valid(m.Generation))
			}
			if text, err := h.Tokenizer(); err == nil {
				require.True(t, json.Valid(text))
			}
			require.True(t, json.Valid(h.TokenizerConfig()))
		})
		require.LessOrEqual(t, used, memoryBudget(len(file)))
	})
}
