package format

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
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

// chosenFormats are those of which scales are searched for.
func chosenFormats() []blocks {
	return slices.DeleteFunc(quantisedFormats(), func(b blocks) bool { return b.mins || b.steps })
}

// randomGroups makes rows of every value that the elements of a format have.
func randomGroups(rng *rand.Rand, b blocks, rows, cols, group int) Groups {
	g := b.newGroups(rows, cols)
	g.Group = group
	for i := range g.Q {
		g.Q[i] = byte(rng.IntN(1<<b.bits)) - b.offset()
		if b.dtype == "F8E4M3" && g.Q[i]&0x7f == 0x7f {
			g.Q[i] = 0
		}
	}
	n := rows * g.PerRow()
	g.Scale, g.Min, g.Step, g.MinStep = g.Scale[:n], sliced(g.Min, 0, n), sliced(g.Step, 0, n), sliced(g.MinStep, 0, n)
	for i := range g.Scale {
		k := i % g.PerRow() % (max(1, quantColumns/group))
		if k == 0 || !b.steps {
			g.Scale[i] = b.rounded(rng.Float32() + 0.5)
		} else {
			g.Scale[i] = g.Scale[i-1]
		}
		if b.mins && (k == 0 || !b.steps) {
			g.Min[i] = b.rounded(-rng.Float32())
		} else if b.mins {
			g.Min[i] = g.Min[i-1]
		}
		if b.steps {
			g.Step[i] = int8(rng.IntN(256))
		}
		if b.steps && b.mins {
			g.MinStep[i] = int8(rng.IntN(256))
		}
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
	for _, b := range quantisedFormats() {
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
					if b.steps {
						require.Equal(t, g.Step[of], back.Step[own])
						want = g.Scale[of] * float32(g.Step[of]) * float32(q-zero)
					}
					if b.mins {
						require.Equal(t, g.Min[of], back.Min[own])
						least, scale := g.Min[of], g.Scale[of]
						if b.steps {
							least, scale = least*float32(g.MinStep[of]), scale*float32(g.Step[of])
						}
						want = float32(scale*float32(q+1<<(b.bits-1))) + least
					}
					if b.float != nil {
						want = g.Scale[of] * b.float.values[g.Q[i]]
					}
					require.Equal(t, want, v)
					at := b.At(row, col, cols)
					if b.bits == 8 {
						require.Equal(t, g.Q[i], packed[at])
						rest[at] = 0
					} else if second, _ := b.operand(col); second == 1 {
						require.Equal(t, (g.Q[i]+b.offset())&15, packed[at]>>4)
						rest[at] &= 15
					} else {
						require.Equal(t, (g.Q[i]+b.offset())&15, packed[at]&15)
						rest[at] &= 0xf0
					}
				}
				again := b.PackGroups(nil, &back)
				require.Equal(t, packed, again)
				for i := range g.Q { // what is packed as zeros
					g.Q[i] = -b.offset()
				}
				zeros := b.PackGroups(nil, &g)
				for at := lanes * unit; b.bits > 4 && b.bits < 8 && at < len(rest); at += b.size() {
					clear(rest[at : at+b.sharedAt()-lanes*unit]) // bits above the fourth
					clear(zeros[at : at+b.sharedAt()-lanes*unit])
				}
				require.True(t, bytes.Equal(rest, zeros), "elements lie where At says, and scales elsewhere")
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
	int6s := Find("tile8x128.g16.F16.steps", "I6").(blocks)
	for col, want := range map[int]int{0: 0, 3: 3, 4: 16, 15: 51, 16: 0, 32: 4, 48: 4, 64: 8, 127: 63} {
		require.Equal(t, want, int6s.At(0, col, 128), fmt.Sprint(col))
	}
	require.Equal(t, 848, int6s.At(0, 128, 256))
}

// What is packed in a format of files is near to what it was.
func TestAsStored(t *testing.T) {
	for _, f := range stored {
		b := f.(blocks)
		rng := rand.New(rand.NewPCG(1, 2))
		values := make([]float32, 16*320)
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		got := make([]float32, len(values))
		b.Unpack(got, b.Pack(nil, values, 320), 320)
		var squares, errors float64
		for i, v := range values {
			squares += float64(v) * float64(v)
			errors += float64(v-got[i]) * float64(v-got[i])
		}
		bound := map[int]float64{4: 0.1, 5: 0.06, 6: 0.025, 8: 0.02}[b.bits]
		require.Less(t, errors, bound*bound*squares, b.Layout())
	}
}
