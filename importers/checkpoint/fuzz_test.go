package checkpoint

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// memoryBudget is what reading n hostile bytes may allocate: linear, and a constant for what else runs in the process.
func memoryBudget(n int) uint64 { return 400*uint64(n) + 4<<20 }

// Any bytes are a checked file or a diagnostic; what is accepted can be read to its last byte.
func FuzzSafetensors(f *testing.F) {
	seed, err := os.ReadFile(filepath.Join(models, "zoo/llama-sharded-fp16/model-00005-of-00005.safetensors"))
	require.NoError(f, err)
	f.Add(seed[:200])
	f.Add(container(`{}`, 0))
	f.Add(container(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}`, 12))
	f.Add(container(`{"b":{"dtype":"F4","shape":[2],"data_offsets":[1,2]},"a":{"dtype":"U8","shape":[],`+
		`"data_offsets":[0,1]}}  `, 2))
	f.Add(container(`{"a":{"dtype":"F64","shape":[4294967296,4294967296,0],"data_offsets":[9,3]}}`, 4))
	f.Fuzz(func(t *testing.T, contents []byte) {
		defer watch.Execution()()
		used := allocated(func() {
			file, err := newFile("f", &memory{data: contents, unmap: noUnmap}, int64(len(contents)))
			if err != nil {
				requireCode(t, err, err.Code)
				return
			}
			total := int64(0)
			for _, tensor := range file.Tensors() {
				raw, err := tensor.Raw()
				require.NoError(t, err)
				total += int64(len(raw))
			}
			require.Equal(t, int64(len(contents)), file.header.dataAt+total, "tensors cover the data")
		})
		require.LessOrEqual(t, used, memoryBudget(len(contents)))
	})
}

// Any bytes are an object with distinct keys or a diagnostic, for config.json and for the index.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"hidden_size": 256, "eos_token_id": [1, 2], "rms_norm_eps": 1e-05, "rope_parameters": ` +
		`{"rope_type": "default"}}`))
	f.Add([]byte(`{"metadata": {"total_size": 8}, "weight_map": {"a": "model-00001-of-00002.safetensors"}}`))
	f.Add([]byte(`{"a": [1, 2.5e-3, null, true, {"b": "\u0061"}], "a": -0}`))
	f.Add([]byte(`{"weight_map": {"a": "../s"}}`))
	f.Fuzz(func(t *testing.T, contents []byte) {
		defer watch.Execution()()
		used := allocated(func() {
			object, err := parseObject("c.json", contents)
			if err != nil {
				requireCode(t, err, err.Code)
				return
			}
			for _, key := range object.Keys() {
				_, ok := object.Get(key)
				require.True(t, ok)
			}
			if weightMap, err := parseIndex(object); err == nil {
				require.NotEmpty(t, weightMap)
			}
		})
		require.LessOrEqual(t, used, memoryBudget(len(contents)))
	})
}

// The shapes of input that cost the most a byte, at a size where anything more than linear would show.
func TestMemoryIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const n = 1 << 20
	repeat := func(open, unit, end string) []byte {
		return []byte(open + strings.TrimSuffix(strings.Repeat(unit, n/len(unit)), ",") + end)
	}
	var keys bytes.Buffer
	for i := 0; keys.Len() < n; i++ {
		keys.WriteString(`"` + string(rune('a'+i%26)) + strings.Repeat("k", i%7) + string(rune(0x100+i)) + `":{},`)
	}
	for name, text := range map[string][]byte{
		"numbers":  repeat(`{"a":[`, "1,", `]}`),
		"arrays":   repeat(`{"a":[`, "[],", `]}`),
		"objects":  repeat(`{"a":[`, "{},", `]}`),
		"strings":  repeat(`{"a":[`, `"",`, `]}`),
		"keys":     []byte("{" + strings.TrimSuffix(keys.String(), ",") + "}"),
		"spaces":   repeat(`{"a":1`, " ", `}`),
		"shape":    repeat(`{"a":{"shape":[`, "1,", `]}}`),
		"offsets":  repeat(`{"a":{"data_offsets":[`, "1,", `]}}`),
		"metadata": repeat(`{"__metadata__":{"a":"`, "x", `"}}`),
		"lengthy":  repeat(`{"a":`, "1", `}`),
		"broken":   repeat(`{"a":[`, "1,", `}`),
	} {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, allocated(func() { parseObject("c.json", text) }), memoryBudget(len(text)))
			file := container(string(text), 0)
			require.LessOrEqual(t, allocated(func() {
				newFile("f", &memory{data: file, unmap: noUnmap}, int64(len(file)))
			}), memoryBudget(len(file)))
		})
	}
}
