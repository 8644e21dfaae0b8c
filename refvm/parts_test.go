package refvm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A product in parts is to the bit what products with the columns of each part are, added in pairs: of matrices as they
// are, of integers and of floats of 8 bits. In one part it has other bits.
func TestPartsAreProductsOfTheirOwn(t *testing.T) {
	const rows, columns = 5, 1024
	for _, matrix := range []string{"F32 [5,1024] HBM tile8x32", "I4 [5,1024] HBM tile8x128.g64.BF16",
		"F8E4M3 [5,1024] HBM tile8x128.g128.F32"} {
		for parts, round := 2, None; parts <= 8; parts, round = parts*2, Device {
			var ops []string
			product := func(out string, lo, hi int, params string) {
				ops = append(ops, fmt.Sprintf("%s = GEMV_TILE(x[%d:%d], w[0:5,%d:%d])%s", out, lo, hi, lo, hi, params))
			}
			sums := make([]string, parts)
			for i := range sums {
				sums[i] = fmt.Sprintf("%%s%d", i)
				product(sums[i], i*columns/parts, (i+1)*columns/parts, "")
			}
			for ; len(sums) > 1; sums = sums[:len(sums)/2] {
				for i := range len(sums) / 2 {
					sum := sums[2*i] + "p"
					ops = append(ops, fmt.Sprintf("%s = ADD(%s, %s)", sum, sums[2*i], sums[2*i+1]))
					sums[i] = sum
				}
			}
			ops = append(ops, "pairs[0:5] = COPY("+sums[0]+")")
			product("parts[0:5]", 0, columns, fmt.Sprint(" parts=", parts))
			product("one[0:5]", 0, columns, "")
			buffers := "buffer x IO_INPUT F32 [1024] HBM rowmajor\nbuffer w WEIGHT " + matrix +
				"\nbuffer z ACTIVATION BF16 [1] HBM rowmajor"
			for _, name := range []string{"pairs", "parts", "one"} {
				buffers += "\nbuffer " + name + " ACTIVATION F32 [5] HBM rowmajor"
			}
			flat := unroll(t, parse(t, oneTask(buffers, strings.Join(ops, "\n"))))
			vm, err := New(flat, noise(4), Options{Round: round})
			require.NoError(t, err)
			x, _ := noise(5).Floats(&flat.Buffers[0], 0)
			require.NoError(t, vm.Write("x", x))
			require.NoError(t, vm.Step(0, -1, Order{}))
			read := func(name string) []uint32 {
				values, err := vm.Read(name)
				require.NoError(t, err)
				return bitsOf(values)
			}
			require.Equal(t, read("pairs"), read("parts"), "%d parts of %s", parts, matrix)
			require.NotEqual(t, read("one"), read("parts"), "%d parts of %s", parts, matrix)
		}
	}
}

// Parts are as many as a power of two, and equal.
func TestPartsThatAreRefused(t *testing.T) {
	buffers := "buffer x IO_INPUT F32 [12] HBM rowmajor\nbuffer w WEIGHT F32 [5,12] HBM rowmajor\n" +
		"buffer y ACTIVATION F32 [5] HBM rowmajor"
	for _, parts := range []int{3, 8} {
		product := fmt.Sprint("y[0:5] = GEMV_TILE(x[0:12], w[0:5,0:12]) parts=", parts)
		flat := unroll(t, parse(t, oneTask(buffers, product)))
		vm, err := New(flat, noise(4), Options{})
		if err == nil {
			err = vm.Step(0, -1, Order{})
		}
		require.ErrorContains(t, err, "parts")
	}
}
