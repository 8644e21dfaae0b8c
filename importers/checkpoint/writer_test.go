package checkpoint

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func filled(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }

var writerSpecs = []Spec{
	{"b", BF16, []int{4, 64}},   // 512 bytes
	{"empty", F32, []int{0}},    // none
	{"a<&>\"é", U8, []int{256}}, // 256
	{"empty too", F32, []int{3, 0}},
}

func writeSample(t *testing.T, path string) {
	t.Helper()
	w, err := NewWriter(path, writerSpecs, map[string]string{"z": "last", "format": "amkc", "e": "<é>"})
	require.NoError(t, err)
	defer w.Abort()
	require.NoError(t, w.Append("b", filled(100, 1)))
	require.NoError(t, w.Append("b", filled(412, 2)))
	require.NoError(t, w.Append("a<&>\"é", filled(256, 3)))
	require.NoError(t, w.Close())
	require.NoError(t, w.Close(), "closing twice is harmless")
}

func TestWriterRoundTrip(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w.safetensors")
	writeSample(t, path)
	require.Equal(t, "w.safetensors", listing(t, dir), "no temporary file is left")

	f, err := OpenFile(path)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, map[string]string{"z": "last", "format": "amkc", "e": "<é>"}, f.Metadata())
	require.Zero(t, f.header.dataAt%Align)
	tensors := f.Tensors()
	require.Len(t, tensors, 4)
	for _, want := range writerSpecs {
		got := find(t, f, want.Name)
		require.Equal(t, want.DType, got.DType)
		require.Equal(t, want.Shape, got.Shape)
		require.Zero(t, got.data.(stored).at%Align)
	}
	raw, err := find(t, f, "b").Raw()
	require.NoError(t, err)
	require.Equal(t, append(filled(100, 1), filled(412, 2)...), raw)
	raw, err = find(t, f, "a<&>\"é").Raw()
	require.NoError(t, err)
	require.Equal(t, filled(256, 3), raw)
}

// The literal is what the format's reference implementation accepts, and pins that the same input gives the same bytes.
func TestWriterBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	writeSample(t, path)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	header := `{"__metadata__":{"e":"<é>","format":"amkc","z":"last"},` +
		`"b":{"dtype":"BF16","shape":[4,64],"data_offsets":[0,512]},` +
		`"empty":{"dtype":"F32","shape":[0],"data_offsets":[512,512]},` +
		`"a<&>\"é":{"dtype":"U8","shape":[256],"data_offsets":[512,768]},` +
		`"empty too":{"dtype":"F32","shape":[3,0],"data_offsets":[768,768]}}`
	header += strings.Repeat(" ", 512-8-len(header))
	want := append(container(header, 0), filled(100, 1)...)
	want = append(append(want, filled(412, 2)...), filled(256, 3)...)
	require.Equal(t, string(want), string(got))
}

func TestWriterWithoutTensors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	w, err := NewWriter(path, []Spec{{"scalarless", U8, []int{0}}}, nil)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	w, err = NewWriter(path, nil, nil)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	f, err := OpenFile(path)
	require.NoError(t, err)
	require.Empty(t, f.Tensors())
	require.Nil(t, f.Metadata())
	require.NoError(t, f.Close())
}

func TestWriterHasOrdinaryPermissions(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, filepath.Join(dir, "w.safetensors"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), nil, 0o666))
	got, err := os.Stat(filepath.Join(dir, "w.safetensors"))
	require.NoError(t, err)
	want, err := os.Stat(filepath.Join(dir, "plain"))
	require.NoError(t, err)
	require.Equal(t, want.Mode(), got.Mode())
}

func TestWriterRefusesDeclarations(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, c := range []struct {
		name     string
		specs    []Spec
		metadata map[string]string
		code     string
		says     string
	}{
		{"size", []Spec{{"a", F32, []int{72}}}, nil, "AMK1026", "288 bytes; a multiple of 256"},
		{"twice", []Spec{{"a", U8, []int{256}}, {"a", U8, []int{256}}}, nil, "AMK1026", "declared twice"},
		{"no name", []Spec{{"", U8, []int{256}}}, nil, "AMK1026", "cannot be used"},
		{"reserved name", []Spec{{"__metadata__", U8, []int{256}}}, nil, "AMK1026", "cannot be used"},
		{"name not UTF-8", []Spec{{"\xff", U8, []int{256}}}, nil, "AMK1026", "cannot be used"},
		{"metadata not UTF-8", nil, map[string]string{"k": "\xff"}, "AMK1026", "not UTF-8"},
		{"dtype", []Spec{{"a", "bf16", []int{256}}}, nil, "AMK1014", "not known"},
		{"rank", []Spec{{"a", U8, make([]int, 9)}}, nil, "AMK1015", "at most 8"},
		{"total", []Spec{{"a", U8, []int{1 << 59}}, {"b", U8, []int{1 << 59}}, {"c", U8, []int{256, 1 << 59}}}, nil,
			"AMK1015", "overflows"},
		{"header", []Spec{{strings.Repeat("x", maxHeaderSize), U8, []int{256}}}, nil, "AMK1011", "header would have"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := NewWriter(filepath.Join(dir, "w"), c.specs, c.metadata)
			requireCode(t, err, c.code, c.says)
			require.Empty(t, listing(t, dir))
		})
	}
}

// Each case goes wrong after the target of an earlier run is in place, and must leave exactly that behind.
func TestWriterFailuresLeaveTheTargetAlone(t *testing.T) {
	specs := []Spec{{"a", U8, []int{512}}, {"b", U8, []int{256}}}
	write := func(w *Writer, name string, n int) error { return w.Append(name, make([]byte, n)) }
	for _, c := range []struct {
		name string
		run  func(w *Writer) error
		code string
		says string
	}{
		{"too many bytes", func(w *Writer) error { return write(w, "a", 513) }, "AMK1031",
			"513 bytes follow 0, of 512"},
		{"too many bytes at the end", func(w *Writer) error {
			require.NoError(t, write(w, "a", 512))
			require.NoError(t, write(w, "b", 256))
			return write(w, "b", 1)
		}, "AMK1031", "all tensors are complete"},
		{"too early", func(w *Writer) error {
			require.NoError(t, write(w, "a", 511))
			return write(w, "b", 1)
		}, "AMK1031", "turn of a, which has 511 of 512"},
		{"unknown", func(w *Writer) error { return write(w, "c", 1) }, "AMK1031", "turn of a"},
		{"incomplete", func(w *Writer) error {
			require.NoError(t, write(w, "a", 512))
			return w.Close()
		}, "AMK1031", "tensor b: error: 0 of 256 bytes"},
		{"given up", func(w *Writer) error {
			w.Abort()
			return w.Close()
		}, "AMK1030", "given up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "w")
			require.NoError(t, os.WriteFile(path, []byte("earlier"), 0o644))
			w, err := NewWriter(path, specs, nil)
			require.NoError(t, err)
			err = c.run(w)
			requireCode(t, err, c.code, c.says)
			require.Equal(t, err, w.Append("a", nil), "the error stays")
			require.Equal(t, err, w.Close(), "the error stays")
			w.Abort()
			requireIntact(t, dir)
		})
	}
}

func requireIntact(t *testing.T, dir string) {
	t.Helper()
	require.Equal(t, "w", listing(t, dir))
	contents, err := os.ReadFile(filepath.Join(dir, "w"))
	require.NoError(t, err)
	require.Equal(t, "earlier", string(contents))
}

// A fullDisk takes room bytes and then reports what a full disk does; sync reports what it is told to.
type fullDisk struct {
	sink
	room    int
	syncErr error
}

func (d *fullDisk) Write(p []byte) (int, error) {
	n, _ := d.sink.Write(p[:min(len(p), d.room)])
	d.room -= n
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (d *fullDisk) Sync() error { return d.syncErr }

func TestWriterFullDisk(t *testing.T) {
	const size = 3 << 20 // more than the buffer, so that Append meets the error as well as Close
	for _, c := range []struct {
		name string
		disk fullDisk
		says string
	}{
		{"in the header", fullDisk{room: 100}, "no space left"},
		{"in the data", fullDisk{room: 2 << 20}, "cannot write w: no space left"},
		{"in the last bytes", fullDisk{room: size}, "cannot finish the file: no space left"},
		{"when synced", fullDisk{room: 1 << 30, syncErr: syscall.EIO}, "input/output error"},
		{"of a quota, when synced", fullDisk{room: 1 << 30, syncErr: syscall.EDQUOT}, "quota"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "w")
			require.NoError(t, os.WriteFile(path, []byte("earlier"), 0o644))
			w, err := newWriter(path, []Spec{{"w", U8, []int{size}}}, nil, func(f sink) sink {
				c.disk.sink = f
				return &c.disk
			})
			require.NoError(t, err)
			for i := 0; i < size && err == nil; i += 4096 {
				err = w.Append("w", make([]byte, 4096))
			}
			if err == nil {
				err = w.Close()
			}
			requireCode(t, err, "AMK1030", c.says)
			requireIntact(t, dir)
		})
	}
}

func TestWriterCannotCreate(t *testing.T) {
	_, err := NewWriter(filepath.Join(t.TempDir(), "none", "w"), nil, nil)
	requireCode(t, err, "AMK1030", "cannot create")
}

func TestWriterCannotRename(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w")
	w, err := NewWriter(path, nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(path, "sub"), 0o755))
	requireCode(t, w.Close(), "AMK1030", "cannot finish")
	require.Equal(t, "w", listing(t, dir))
}
