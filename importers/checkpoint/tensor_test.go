package checkpoint

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// openBoth opens a file mapped and, as on systems without mapping, with system calls.
func openBoth(t *testing.T, path string) map[string]*File {
	t.Helper()
	mapped, err := OpenFile(path)
	require.NoError(t, err)
	t.Cleanup(func() { mapped.Close() })
	file, err := os.Open(path)
	require.NoError(t, err)
	info, err := file.Stat()
	require.NoError(t, err)
	read, bad := newFile(filepath.Base(path), reader{file}, info.Size())
	require.Nil(t, bad)
	t.Cleanup(func() { read.Close() })
	return map[string]*File{"mapped": mapped, "read": read}
}

func find(t *testing.T, f *File, name string) Tensor {
	t.Helper()
	for _, tensor := range f.Tensors() {
		if tensor.Name == name {
			return tensor
		}
	}
	require.FailNow(t, "no tensor "+name)
	return Tensor{}
}

// Pieces of rows are those of the file, in both ways of reading it, and of random weights; what is not there is an
// error.
func TestReadPieces(t *testing.T) {
	path := models + "/pycoder-5m/model.safetensors"
	files := openBoth(t, path)
	random, err := NewRandom(nil, 7, []Spec{{"model.embed_tokens.weight", BF16, []int{64, 33}}}, nil)
	require.NoError(t, err)
	tensors := map[string]Tensor{"random": random.tensors[0]}
	for kind, f := range files {
		tensors[kind] = find(t, f, "model.embed_tokens.weight")
	}
	for kind, e := range tensors {
		t.Run(kind, func(t *testing.T) {
			raw, err := e.Raw()
			require.NoError(t, err)
			row := 2 * e.RowLen()
			for _, c := range []struct{ off, size, stride, count int }{{0, row, row, 3}, {6, 10, row, 17}, {0, 1, 0, 4},
				{row, 2 * row, 0, 1}, {len(raw) - 4, 4, 1 << 40, 1}, {3, 5, 7, 100}, {len(raw) - 2*row, row, row, 2}} {
				want, got := []byte{}, make([]byte, c.size*c.count)
				for k := range c.count {
					want = append(want, raw[c.off+k*c.stride:][:c.size]...)
				}
				require.NoError(t, e.ReadPieces(got, c.off, c.size, c.stride))
				require.Equal(t, want, got, "%+v", c)
			}
			require.NoError(t, e.ReadPieces(nil, 0, 0, 0))
			for _, c := range []struct{ n, off, size, stride int }{{4, len(raw) - 3, 4, 0}, {8, 0, 4, len(raw) - 3},
				{4, -1, 4, 0}, {4, 0, 3, 0}, {4, 0, 0, 0}, {4, 0, 2, -1}, {4, math.MaxInt64 - 2, 2, 2}} {
				requireCode(t, e.ReadPieces(make([]byte, c.n), c.off, c.size, c.stride), "AMK1025")
			}
		})
	}
	for kind, f := range files {
		require.NoError(t, f.Close())
		requireCode(t, tensors[kind].ReadPieces(make([]byte, 8), 0, 4, 8), "AMK1006")
	}
}

// The embedding of pycoder is 2 MB, so that reading it takes many blocks; the decoding is held against the file's
// bytes.
func TestReadRowsF32(t *testing.T) {
	path := models + "/pycoder-5m/model.safetensors"
	contents, err := os.ReadFile(path)
	require.NoError(t, err)
	data := contents[8+binary.LittleEndian.Uint64(contents):]
	for kind, f := range openBoth(t, path) {
		t.Run(kind, func(t *testing.T) {
			e := find(t, f, "model.embed_tokens.weight")
			require.Equal(t, 4096, e.Rows())
			require.Equal(t, 256, e.RowLen())
			for _, rows := range [][2]int{{0, 1}, {0, 4096}, {4095, 4096}, {1000, 1777}, {5, 5}, {4096, 4096}} {
				n := (rows[1] - rows[0]) * 256
				got := make([]float32, n+1)
				got[n] = 42
				require.NoError(t, e.ReadRowsF32(got, rows[0], rows[1]))
				want := make([]float32, n+1)
				want[n] = 42 // nothing past the rows is written
				for i := range n {
					bits := binary.LittleEndian.Uint16(data[2*(rows[0]*256+i):])
					want[i] = math.Float32frombits(uint32(bits) << 16)
				}
				require.True(t, slices.Equal(want, got), "rows %v", rows)
			}
			raw, err := e.Raw()
			require.NoError(t, err)
			require.True(t, bytes.Equal(data[:2*4096*256], raw))
		})
	}
}

func TestReadRowsOfOtherShapes(t *testing.T) {
	f, err := openBytes(t, container(`{
		"scalar":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},
		"cube":{"dtype":"BF16","shape":[2,1,3],"data_offsets":[2,14]},
		"empty":{"dtype":"F16","shape":[0,7],"data_offsets":[14,14]},
		"vector":{"dtype":"F32","shape":[3],"data_offsets":[14,26]}}`, 26))
	require.NoError(t, err)
	defer f.Close()
	for _, c := range []struct {
		name         string
		rows, rowLen int
		row0, row1   int
		first        []byte // bytes of the first element read
	}{
		{"scalar", 1, 1, 0, 1, []byte{0, 1}},
		{"cube", 2, 3, 1, 2, []byte{8, 9}},
		{"vector", 3, 1, 2, 3, []byte{22, 23, 24, 25}},
		{"empty", 0, 7, 0, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tensor := find(t, f, c.name)
			require.Equal(t, c.rows, tensor.Rows())
			require.Equal(t, c.rowLen, tensor.RowLen())
			got := make([]float32, 8)
			require.NoError(t, tensor.ReadRowsF32(got, c.row0, c.row1))
			want := make([]float32, 8)
			decoders[tensor.DType].decode(want, c.first)
			require.Equal(t, want[0], got[0])
			_, err := tensor.Raw()
			require.NoError(t, err)
		})
	}
}

func TestReadRowsRefuses(t *testing.T) {
	f, err := openBytes(t, container(`{
		"w":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},
		"i":{"dtype":"I64","shape":[1],"data_offsets":[24,32]}}`, 32))
	require.NoError(t, err)
	defer f.Close()
	w, room := find(t, f, "w"), make([]float32, 64)
	for _, rows := range [][2]int{{-1, 1}, {0, 4}, {2, 1}, {4, 4}} {
		requireCode(t, w.ReadRowsF32(room, rows[0], rows[1]), "AMK1025", "of 3")
	}
	requireCode(t, w.ReadRowsF32(room[:3], 0, 2), "AMK1025", "have 4 elements, the buffer 3")
	requireCode(t, find(t, f, "i").ReadRowsF32(room, 0, 1), "AMK1024", "dtype I64")
	raw, err := find(t, f, "i").Raw()
	require.NoError(t, err, "bytes can be had of any dtype")
	require.Equal(t, []byte{24, 25, 26, 27, 28, 29, 30, 31}, raw)
}

func TestSameBits(t *testing.T) {
	const n = 100_000 // several blocks
	contents := container(`{
		"a":{"dtype":"U8","shape":[100000],"data_offsets":[0,100000]},
		"b":{"dtype":"U8","shape":[100000],"data_offsets":[100000,200000]},
		"flat":{"dtype":"U8","shape":[100,1000],"data_offsets":[200000,300000]},
		"signed":{"dtype":"I8","shape":[100000],"data_offsets":[300000,400000]}}`, 4*n)
	data := contents[len(contents)-4*n:]
	for i := range 3 {
		copy(data[(i+1)*n:], data[:n])
	}
	path := filepath.Join(t.TempDir(), "f.safetensors")
	compare := func(name string) map[string]bool {
		require.NoError(t, os.WriteFile(path, contents, 0o644))
		same := map[string]bool{}
		for kind, f := range openBoth(t, path) {
			equal, err := find(t, f, "a").SameBits(find(t, f, name))
			require.NoError(t, err)
			same[kind] = equal
		}
		return same
	}
	both := func(v bool) map[string]bool { return map[string]bool{"mapped": v, "read": v} }
	require.Equal(t, both(true), compare("b"))
	require.Equal(t, both(false), compare("flat"), "another shape")
	require.Equal(t, both(false), compare("signed"), "another dtype")
	data[2*n-1] ^= 1
	require.Equal(t, both(false), compare("b"), "the last bit")
}

func TestReadAfterClose(t *testing.T) {
	for kind, f := range openBoth(t, models+"/pycoder-5m/model.safetensors") {
		t.Run(kind, func(t *testing.T) {
			e := find(t, f, "model.embed_tokens.weight")
			require.NoError(t, f.Close())
			requireCode(t, e.ReadRowsF32(make([]float32, 256), 0, 1), "AMK1006", "closed")
			_, err := e.Raw()
			requireCode(t, err, "AMK1006", "closed")
			_, err = e.SameBits(e)
			requireCode(t, err, "AMK1006", "closed")
			require.NoError(t, f.Close())
		})
	}
}

// A file that is cut while it is open must be an error; on a mapping it is a fault first.
func TestTruncatedWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.safetensors")
	header := `{"w":{"dtype":"F32","shape":[1048576],"data_offsets":[0,4194304]}}`
	require.NoError(t, os.WriteFile(path, container(header, 4<<20), 0o644))
	for kind, f := range openBoth(t, path) {
		t.Run(kind, func(t *testing.T) {
			require.NoError(t, os.Truncate(path, 4096))
			w := find(t, f, "w")
			requireCode(t, w.ReadRowsF32(make([]float32, 1<<20), 0, 1<<20), "AMK1006", "f.safetensors")
			_, err := w.SameBits(w)
			requireCode(t, err, "AMK1006", "f.safetensors")
		})
	}
}

func TestConcurrentReads(t *testing.T) {
	for kind, f := range openBoth(t, models+"/pycoder-5m/model.safetensors") {
		t.Run(kind, func(t *testing.T) {
			e := find(t, f, "model.embed_tokens.weight")
			whole := make([]float32, 4096*256)
			require.NoError(t, e.ReadRowsF32(whole, 0, 4096))
			parts := make([]float32, len(whole))
			var wait sync.WaitGroup
			for i := range 8 {
				wait.Go(func() {
					if err := e.ReadRowsF32(parts[i*512*256:], i*512, (i+1)*512); err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
			require.True(t, slices.Equal(whole, parts))
		})
	}
}

// What reading a tensor allocates does not grow with it.
func TestReadingAllocatesABlockAtMost(t *testing.T) {
	for kind, f := range openBoth(t, models+"/pycoder-5m/model.safetensors") {
		t.Run(kind, func(t *testing.T) {
			e := find(t, f, "model.embed_tokens.weight")
			dst := make([]float32, 4096*256)
			require.Less(t, allocated(func() { require.NoError(t, e.ReadRowsF32(dst, 0, 4096)) }), uint64(2*blockBytes))
		})
	}
}

// allocated is the bytes that f allocates on the heap, including what is freed again.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func BenchmarkReadRowsF32(b *testing.B) {
	c, err := Open(models + "/pycoder-5m")
	require.NoError(b, err)
	defer c.Close()
	e, _ := c.Tensor("model.embed_tokens.weight")
	dst := make([]float32, 4096*256)
	b.SetBytes(e.Size())
	for b.Loop() {
		if err := e.ReadRowsF32(dst, 0, 4096); err != nil {
			b.Fatal(err)
		}
	}
}

func TestDecodersCoverTheirDTypes(t *testing.T) {
	for dtype, d := range decoders {
		require.Equal(t, dtypeBits[dtype], 8*d.size)
		encoded, decoded := make([]byte, d.size), make([]float32, 1)
		d.encode(encoded, []float32{math.Pi})
		d.decode(decoded, encoded)
		require.Equal(t, d.round(math.Pi), decoded[0], "%s", dtype)
	}
}
