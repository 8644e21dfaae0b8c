package format

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/half"
)

var rounded = map[string]func(float32) float32{"F32": func(f float32) float32 { return f }, "F16": half.RoundF16,
	"BF16": half.RoundBF16}

// What a format packs lies where it says, in as many bytes as it says, with zeros between, and comes back rounded;
// and blocks of tiles are packed alone as they are together.
func TestFormats(t *testing.T) {
	for _, f := range all {
		if _, quantised := f.(Quantised); quantised {
			continue
		}
		g := f.Geometry()
		for _, shape := range [][2]int{{1, 1}, {8, 32}, {9, 33}, {23, 100}, {64, 31}, {17, 128}} {
			t.Run(fmt.Sprint(f.Layout(), " ", f.DType(), shape), func(t *testing.T) {
				rows, cols := shape[0], shape[1]
				rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
				values := make([]float32, rows*cols)
				for i := range values {
					values[i] = rng.Float32()*8 - 4
				}
				packed := f.Pack(nil, values, cols)
				require.Len(t, packed, f.Bytes(rows, cols))
				require.Equal(t, len(packed), g.Tiles(rows)*g.TileBytes(cols), "tiles are what there is")
				dtype, dims := f.Tensor(rows, cols)
				n := 1
				for _, d := range dims {
					n *= d
				}
				require.Equal(t, f.DType(), dtype)
				require.Len(t, packed, n*map[string]int{"F32": 4, "F16": 2, "BF16": 2}[dtype])

				got := make([]float32, rows*cols)
				f.Unpack(got, packed, cols)
				for i, v := range values {
					require.Equal(t, rounded[f.DType()](v), got[i])
				}
				rest := append([]byte(nil), packed...)
				for i := range values {
					at := f.At(i/cols, i%cols, cols)
					one := Find("rowmajor", f.DType()).Pack(nil, values[i:i+1], 1)
					require.Equal(t, one, packed[at:at+len(one)])
					clear(rest[at : at+len(one)])
				}
				require.Equal(t, make([]byte, len(rest)), rest, "padding is zero")

				split := min(rows, (rows/2+g.Rows-1)/g.Rows*g.Rows)
				first := f.Pack(make([]byte, 3, 1<<16), values[:split*cols], cols)
				second := f.Pack(nil, values[split*cols:], cols)
				require.Equal(t, packed, append(first, second...))
			})
		}
	}
}

// The largest value stays finite, and the next one does not.
func TestLargest(t *testing.T) {
	for _, f := range all {
		if _, quantised := f.(Quantised); quantised {
			continue // scales make room
		}
		back := func(v float32) float64 {
			out := make([]float32, 1)
			f.Unpack(out, f.Pack(nil, []float32{v}, 1), 1)
			return float64(out[0])
		}
		for _, v := range []float32{f.Largest(), -f.Largest()} {
			require.False(t, math.IsInf(back(v), 0), "%s of %s", f.Layout(), f.DType())
			next := math.Nextafter32(v, v*float32(math.Inf(1)))
			require.True(t, math.IsInf(back(next), 0), "%s of %s", f.Layout(), f.DType())
		}
	}
}

// TestTileOrder pins the order that tensor cores rely on: a block is matrices of 8 rows by 16 bytes, of which the first
// has columns 0 and 1 of every 8, the second 2 and 3, and so on.
func TestTileOrder(t *testing.T) {
	f := Find("tile8x32", "BF16")
	at := func(row, col int) int { return f.At(row, col, 64) }
	for col := range 8 {
		require.Equal(t, col/2*128+col%2*2, at(0, col))
	}
	require.Equal(t, 4, at(0, 8))
	require.Equal(t, 12, at(0, 24))
	require.Equal(t, 16, at(1, 0))
	require.Equal(t, 512, at(0, 32))
	require.Equal(t, 1024, at(8, 0))
}

// TestPlaces pins where each format stores its elements. A build reuses weights that an earlier amkc packed if their
// keys are equal, so a change of this digest must come with new numbers of packedFormat and weightsKey in
// compiler/pack.go.
func TestPlaces(t *testing.T) {
	h := sha256.New()
	for _, f := range all {
		fmt.Fprintln(h, f.Layout(), f.DType(), f.Geometry())
		for row := range 16 {
			for col := range 256 {
				fmt.Fprintln(h, f.At(row, col, 256))
			}
		}
	}
	require.Equal(t, "58755b246b049fad340bdf357660d1fabc162356c686d950c9273ca06372bb8e",
		hex.EncodeToString(h.Sum(nil)))
}

func TestFind(t *testing.T) {
	for _, f := range all {
		require.Equal(t, f, Find(f.Layout(), f.DType()))
	}
	require.Nil(t, Find("tile8x32", "I8"))
	require.Nil(t, Find("tile8x128.g64.BF16", "F8E4M3"))
	require.Nil(t, Find("tile8x128.g32.BF16", "F4E2M1"))
	require.Nil(t, Find("tile8x128.g32.F8E8M0", "I4"))
	require.Len(t, all, 6+2*18+3+1+len(stored))
}
