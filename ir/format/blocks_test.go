package format

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// formats that have scales.
func quantisedFormats() []blocks {
	var out []blocks
	for _, f := range all {
		if b, is := f.(blocks); is {
			out = append(out, b)
		}
	}
	return out
}

// e2m1 are floats of 4 bits, which no format has yet.
var e2m1 = number{"F4E2M1", 4, []int{32, 64, 128}, "", 6,
	&[256]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}, nil}

func init() { numbers = append(numbers, e2m1) }

// randomGroups makes rows of every value that the elements of a format have.
func randomGroups(rng *rand.Rand, b blocks, rows, cols, group int) Groups {
	g := Groups{Cols: cols, Group: group, Q: make([]byte, rows*cols)}
	for i := range g.Q {
		g.Q[i] = byte(rng.IntN(256))
		if b.bits == 4 {
			g.Q[i] = byte(rng.IntN(16)) - b.offset()
		}
		if b.dtype == "F8E4M3" && g.Q[i]&0x7f == 0x7f {
			g.Q[i] = 0
		}
	}
	g.Scale = make([]float32, rows*g.PerRow())
	for i := range g.Scale {
		g.Scale[i] = b.rounded(rng.Float32() + 0.5)
	}
	if b.zeros {
		g.Zero = make([]int8, len(g.Scale))
		for i := range g.Zero {
			g.Zero[i] = int8(rng.IntN(17) - 8)
		}
	}
	return g
}

// Groups that are packed come back as they were, lie where At says, and mean s * (q - z). Nothing else is in the bytes.
func TestBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	all := quantisedFormats()
	for _, f := range quantised(e2m1.dtype, e2m1.bits) {
		all = append(all, f.(blocks))
	}
	for _, b := range all {
		t.Run(b.DType()+" "+b.Layout(), func(t *testing.T) {
			for _, shape := range [][3]int{{1, 1, b.group}, {8, 128, b.group}, {9, 200, b.group}, {23, 300, 256}} {
				rows, cols, group := shape[0], shape[1], shape[2]
				rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
				g := randomGroups(rng, b, rows, cols, group)
				packed := b.PackGroups(nil, &g)
				require.Len(t, packed, b.Bytes(rows, cols))
				require.Len(t, packed, b.Geometry().Tiles(rows)*b.Geometry().TileBytes(cols))
				require.Zero(t, b.Geometry().BlockBytes%16, "bulk copies and loads are of 16 bytes")

				back := b.UnpackGroups(packed, rows, cols)
				require.Equal(t, g.Q, back.Q)
				values := make([]float32, rows*cols)
				b.Unpack(values, packed, cols)
				rest := append([]byte(nil), packed...)
				for i, v := range values {
					row, col := i/cols, i%cols
					of, own := row*g.PerRow()+col/group, row*back.PerRow()+col/b.group
					require.Equal(t, g.Scale[of], back.Scale[own])
					q, zero := int(int8(g.Q[i])), 0
					if b.zeros {
						zero = int(g.Zero[of])
						require.Equal(t, g.Zero[of], back.Zero[own])
					}
					want := g.Scale[of] * float32(q-zero)
					if b.float != nil {
						want = g.Scale[of] * b.float.values[g.Q[i]]
					}
					require.Equal(t, want, v)
					at := b.At(row, col, cols)
					if b.bits == 8 {
						require.Equal(t, g.Q[i], packed[at])
						rest[at] = 0
					} else if col%quantColumns >= quantColumns/2 {
						require.Equal(t, g.Q[i]+b.offset(), packed[at]>>4)
						rest[at] &= 15
					} else {
						require.Equal(t, g.Q[i]+b.offset(), packed[at]&15)
						rest[at] &= 0xf0
					}
				}
				again := b.PackGroups(nil, &back)
				require.Equal(t, packed, again)
				for i := range g.Q { // what is packed as zeros
					g.Q[i] = -b.offset()
				}
				require.Equal(t, rest, b.PackGroups(nil, &g), "elements lie where At says, and scales elsewhere")
			}
		})
	}
}

// The order that the kernel's loads and its integer mma rely on.
func TestBlockOrder(t *testing.T) {
	int8s := Find("tile8x128.g128.BF16", "I8").(blocks)
	for col, want := range map[int]int{0: 0, 3: 3, 4: 16, 15: 51, 16: 4, 32: 8, 48: 12, 64: 512, 127: 512 + 63} {
		require.Equal(t, want, int8s.At(0, col, 128), fmt.Sprint(col))
	}
	require.Equal(t, 64, int8s.At(1, 0, 128))
	require.Equal(t, 1040, int8s.At(0, 128, 256))
	int4s := Find("tile8x128.g128.BF16", "I4").(blocks)
	for col, want := range map[int]int{0: 0, 3: 3, 4: 16, 16: 4, 32: 8, 48: 12, 64: 0, 127: 63} {
		require.Equal(t, want, int4s.At(0, col, 128), fmt.Sprint(col))
	}
	require.Equal(t, 528, int4s.At(0, 128, 256))
}
