package checkpoint

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func openBytes(t *testing.T, contents []byte) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.safetensors")
	require.NoError(t, os.WriteFile(path, contents, 0o644))
	return OpenFile(path)
}

func TestHeaderAccepts(t *testing.T) {
	for _, c := range []struct {
		name   string
		header string
		data   int
		want   string // NAME DTYPE SHAPE of each tensor in the order of the data
	}{
		{"no tensors", `{}`, 0, ""},
		{"only metadata", `{"__metadata__":{"format":"pt"}}`, 0, ""},
		{"padding", `{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}      `, 3, "a U8 3;"},
		{"fields in any order", `{"a":{"data_offsets":[0,4],"shape":[1,2],"dtype":"BF16"}}`, 4, "a BF16 1,2;"},
		{"scalar", `{"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}`, 8, "a I64 ;"},
		{"tensors in any order, an empty one between", `{
			"b":{"dtype":"F32","shape":[2],"data_offsets":[2,10]},
			"e":{"dtype":"F32","shape":[0,5],"data_offsets":[2,2]},
			"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 10, "a U8 2;e F32 0,5;b F32 2;"},
		{"packed dtype", `{"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}}`, 3, "a F4 3,2;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := openBytes(t, container(c.header, c.data))
			require.NoError(t, err)
			defer f.Close()
			var got strings.Builder
			for _, tensor := range f.Tensors() {
				var dims []string
				for _, d := range tensor.Shape {
					dims = append(dims, strconv.Itoa(d))
				}
				got.WriteString(tensor.Name + " " + string(tensor.DType) + " " + strings.Join(dims, ",") + ";")
			}
			require.Equal(t, c.want, got.String())
		})
	}
}

func TestHeaderMetadata(t *testing.T) {
	f, err := openBytes(t, container(`{"__metadata__":{"format":"pt","k":"v"}}`, 0))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"format": "pt", "k": "v"}, f.Metadata())
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "closing twice is harmless")
}

func TestHeaderRefuses(t *testing.T) {
	length := func(n uint64, rest string) []byte { return append(binary.LittleEndian.AppendUint64(nil, n), rest...) }
	one := func(entry string) []byte { return container(`{"a":{`+entry+`}}`, 8) }
	const sized = `"dtype":"F32","shape":[2],`
	for _, c := range []struct {
		name     string
		contents []byte
		code     string
		says     string
	}{
		{"empty file", nil, "AMK1010", "0 bytes long"},
		{"seven bytes", []byte("1234567"), "AMK1010", "7 bytes long"},
		{"a git-lfs pointer", []byte(pointer), "AMK1037", "git lfs pull"},
		{"nearly a pointer", []byte("version https://git-lfs.example.com/spec/v1\n"), "AMK1011", "said to have"},
		{"truncated header", length(100, `{"a":`), "AMK1010", "ends at byte 108, the file at byte 13"},
		{"header just too large", length(100_000_001, "{}"), "AMK1011", "100000001"},
		{"header length over 63 bits", length(1<<64-1, "{}"), "AMK1011", "18446744073709551615"},
		{"no JSON", container("{]", 0), "AMK1012", `found "]"; want a key in double quotes`},
		{"empty header", length(0, ""), "AMK1012", "the text ends too early"},
		{"not UTF-8", container("{\"\xff\":{}}", 0), "AMK1012", "UTF-8"},
		{"two values", container("{}{}", 0), "AMK1012", "not JSON"},
		{"zero padding", container("{}\x00\x00", 0), "AMK1012", "not JSON"},
		{"an array", container("[]", 0), "AMK1012", "an array; an object"},
		{"null", container("null", 0), "AMK1012", "null; an object"},
		{"deep nesting", container(strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000), 0), "AMK1012",
			"nested too deeply"},
		{"entry is a number", container(`{"a":1}`, 0), "AMK1012", `tensor "a": error: the entry is a number`},
		{"metadata is a list", container(`{"__metadata__":[]}`, 0), "AMK1012", "__metadata__ is an array"},
		{"metadata of numbers", container(`{"__metadata__":{"k":1}}`, 0), "AMK1012", `"k" is a number`},
		{"metadata key twice", container(`{"__metadata__":{"k":"1","k":"2"}}`, 0), "AMK1012", `"k" appears twice`},
		{"metadata twice", container(`{"__metadata__":{},"__metadata__":{}}`, 0), "AMK1013", "twice"},
		{"no dtype", one(`"shape":[2],"data_offsets":[0,8]`), "AMK1012", "dtype is missing"},
		{"no shape", one(`"dtype":"F32","data_offsets":[0,8]`), "AMK1012", "shape is missing"},
		{"no offsets", one(`"dtype":"F32","shape":[2]`), "AMK1012", "data_offsets is missing"},
		{"unknown field", one(sized + `"strides":[1],"data_offsets":[0,8]`), "AMK1012", `unknown field "strides"`},
		{"field twice", one(sized + `"data_offsets":[0,8],"data_offsets":[0,8]`), "AMK1012",
			"data_offsets appears twice"},
		{"dtype is a number", one(`"dtype":4`), "AMK1012", "dtype is a number"},
		{"shape is a string", one(`"shape":"2"`), "AMK1012", "shape is a string"},
		{"shape holds null", one(`"shape":[null]`), "AMK1012", "shape holds null"},
		{"shape holds an array", one(`"shape":[[2]]`), "AMK1012", "shape holds an array"},
		{"negative dimension", one(`"shape":[-2]`), "AMK1012", "-2"},
		{"fractional dimension", one(`"shape":[2.0]`), "AMK1012", "2.0"},
		{"dimension with exponent", one(`"shape":[1e3]`), "AMK1012", "1e3"},
		{"dimension of 2^63", one(`"shape":[9223372036854775808]`), "AMK1012", "9223372036854775808"},
		{"one offset", one(sized + `"data_offsets":[0]`), "AMK1012", "1 numbers"},
		{"three offsets", one(sized + `"data_offsets":[0,8,9]`), "AMK1012", "more than two"},
		{"name twice", container(`{"a":{`+sized+`"data_offsets":[0,8]},"a":{`+sized+`"data_offsets":[0,8]}}`, 8),
			"AMK1013", "twice"},
		{"name twice, escaped", container(`{"a":{`+sized+`"data_offsets":[0,8]},"\u0061":{`+sized+
			`"data_offsets":[0,8]}}`, 8), "AMK1013", "twice"},
		{"unknown dtype", one(`"dtype":"float32","shape":[2],"data_offsets":[0,8]`), "AMK1014", "BF16"},
		{"nine dimensions", one(`"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]`), "AMK1015",
			"8 dimensions"},
		{"product overflows", one(`"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]`), "AMK1015",
			"overflows"},
		{"bytes overflow", one(`"dtype":"F64","shape":[1152921504606846977],"data_offsets":[0,8]`), "AMK1015",
			"overflows"},
		{"overflow hidden by a zero", one(`"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,8]`),
			"AMK1015", "overflows"},
		{"half a byte", one(`"dtype":"F4","shape":[3],"data_offsets":[0,2]`), "AMK1016", "not a whole number"},
		{"too few bytes", one(`"dtype":"F32","shape":[3],"data_offsets":[0,8]`), "AMK1016", "takes 12 bytes"},
		{"too many bytes", one(`"dtype":"F32","shape":[1],"data_offsets":[0,8]`), "AMK1016", "takes 4 bytes"},
		{"backwards", one(sized + `"data_offsets":[8,0]`), "AMK1017", "backwards"},
		{"past the end", one(`"dtype":"F32","shape":[3],"data_offsets":[0,12]`), "AMK1017", "has 8 bytes"},
		{"far past the end", one(sized + `"data_offsets":[9223372036854775799,9223372036854775807]`), "AMK1017",
			"has 8 bytes"},
		{"overlap", container(`{"a":{`+sized+`"data_offsets":[0,8]},"b":{`+sized+`"data_offsets":[4,12]}}`, 12),
			"AMK1018", `tensor "a" ends at 8`},
		{"same bytes twice", container(`{"a":{`+sized+`"data_offsets":[0,8]},"b":{`+sized+`"data_offsets":[0,8]}}`, 8),
			"AMK1018", `"a" ends`},
		{"hole at the start", container(`{"a":{`+sized+`"data_offsets":[4,12]}}`, 12), "AMK1019", "begins at byte 4"},
		{"hole between", container(`{"a":{`+sized+`"data_offsets":[0,8]},"b":{`+sized+`"data_offsets":[9,17]}}`, 17),
			"AMK1019", "end at 8"},
		{"empty tensor off the grid", container(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[3,3]}}`, 8), "AMK1019",
			"begins at byte 3"},
		{"bytes at the end", container(`{"a":{`+sized+`"data_offsets":[0,8]}}`, 9), "AMK1019", "which has 9 bytes"},
		{"data without tensors", container(`{}`, 1), "AMK1019", "which has 1 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := openBytes(t, c.contents)
			d := requireCode(t, err, c.code, c.says)
			require.Contains(t, d.Pos, "f.safetensors")
		})
	}
}

func TestOpenFileRefusesWhatIsNoFile(t *testing.T) {
	_, err := OpenFile(t.TempDir())
	requireCode(t, err, "AMK1006", "want a regular file")
	_, err = OpenFile(filepath.Join(t.TempDir(), "none.safetensors"))
	requireCode(t, err, "AMK1006", "cannot open")
}

// A header may be cut anywhere: each prefix of a real file is refused, and quickly.
func TestEveryTruncationIsRefused(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(models, "zoo/llama-sharded-fp16/model-00005-of-00005.safetensors"))
	require.NoError(t, err)
	for n := 0; n < len(whole); n += 1 + n/20 {
		_, bad := newFile("f", &memory{data: bytes.Clone(whole[:n]), unmap: noUnmap}, int64(n))
		require.NotNil(t, bad, "%d bytes", n)
	}
}

func noUnmap([]byte) error { return nil }
