package cli

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/sbinet/npyio"
	"github.com/stretchr/testify/require"

	"amkc/internal/watch"
)

// npyFile is a NumPy file whose head and data are what a test says.
func npyFile(version byte, dict, data string) []byte {
	size := []byte{byte(len(dict)), byte(len(dict) >> 8)}
	if version > 1 {
		size = append(size, 0, 0)
	}
	return append(append(append([]byte("\x93NUMPY"), version, 0), size...), dict+data...)
}

func npyDict(descr, fortran, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }   \n", descr, fortran, shape)
}

func TestParseNPY(t *testing.T) {
	for _, c := range []struct {
		raw  []byte
		want []int
	}{
		{npyFile(1, npyDict("<i4", "False", "(2,)"), "\x01\x00\x00\x00\xff\x01\x00\x00"), []int{1, 511}},
		{npyFile(2, npyDict("<i8", "True", "(1,)"), "\x07\x00\x00\x00\x00\x00\x00\x00"), []int{7}},
		{npyFile(3, npyDict("<u2", "False", "(2, 2)"), "\x01\x00\x02\x00\x03\x00\xff\xff"), []int{1, 2, 3, 65535}},
		{npyFile(1, npyDict("|u1", "False", "(3,)"), "\x00\x80\xff"), []int{0, 128, 255}},
		{npyFile(1, npyDict("|i1", "False", "()"), "\x05"), []int{5}},
		{npyFile(1, npyDict("<i4", "False", "(0,)"), ""), []int{}},
		{npyFile(1, npyDict("<u4", "False", "(1,)"), "\xff\xff\xff\x7f"), []int{math.MaxInt32}},
	} {
		got, err := parseNPY(c.raw)
		require.NoError(t, err, "%q", c.raw)
		require.Equal(t, c.want, got)
	}
	for _, c := range []struct{ says, descr, fortran, shape, data string }{
		{`its elements are "<f4"; want little-endian integers, as <i4`, "<f4", "False", "(0,)", ""},
		{`its elements are ">i4"`, ">i4", "False", "(0,)", ""},
		{"its columns are stored one after the other; want numpy.ascontiguousarray of it", "|i1", "True", "(1, 2)",
			"\x01\x02"},
		{"it has 3 bytes of elements and says 2 of 2 bytes", "<i2", "False", "(2,)", "\x01\x02\x03"},
		{"element 1 is not an id; want integers from 0 to 2147483647", "|i1", "False", "(2,)", "\x01\xff"},
		{"element 0 is not an id", "<u8", "False", "(1,)", "\xff\xff\xff\xff\xff\xff\xff\xff"},
		{"it says that it has more elements than its 1 bytes hold", "|i1", "False", "(4294967296, 4294967296)", "\x01"},
		{"more elements than its 2 bytes hold", "|i1", "False", "(99999999999999999999,)", "\x01\x02"},
		{"the header of the file is damaged; want what numpy.save writes", "<i4", "Perhaps", "(1,)", "\x01"},
	} {
		ids, err := parseNPY(npyFile(1, npyDict(c.descr, c.fortran, c.shape), c.data))
		require.Nil(t, ids)
		require.ErrorContains(t, err, c.says)
	}
	_, err := parseNPY([]byte("1,2,3\nnot this one"))
	require.EqualError(t, err, "it is not a NumPy file; want what numpy.save writes")
	_, err = parseNPY(npyFile(1, npyDict("<i4", "False", "(2,)"), "")[:40])
	require.EqualError(t, err, "it ends in its header; want what numpy.save writes")
}

// What others write is read as they read it.
func TestParseNPYOfOthers(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, npyio.Write(&b, []int32{5, 6, 7}))
	ids, err := parseNPY(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, []int{5, 6, 7}, ids)

	path := models + "pycoder-5m/eval_ids.npy"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	ids, err = parseNPY(raw)
	require.NoError(t, err)
	want, _ := readNPY[int32](t, path)
	require.Len(t, ids, len(want))
	for i, id := range want {
		require.EqualValues(t, id, ids[i])
	}
}

// Any bytes are ids or an error, and no more ids than bytes.
func FuzzParseNPY(f *testing.F) {
	f.Add(npyFile(1, npyDict("<i4", "False", "(2,)"), "\x01\x00\x00\x00\xff\x01\x00\x00"))
	f.Add(npyFile(2, npyDict("|u1", "True", "(1, 0, 9223372036854775807)"), ""))
	f.Add([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		defer watch.Execution()()
		ids, err := parseNPY(raw)
		require.LessOrEqual(t, len(ids), len(raw))
		if err != nil {
			require.Nil(t, ids)
			require.False(t, strings.Contains(err.Error(), "%!"), err)
		}
	})
}
