package sampling

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The answers that the authors of Philox publish.
func TestPhilox(t *testing.T) {
	const all = math.MaxUint32
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		require.Equal(t, c.want, philox(c.counter, c.key))
	}
}

// A double is a float64 in the notation of Python's float.hex.
type double float64

func (d *double) UnmarshalJSON(data []byte) error {
	x, err := strconv.ParseFloat(string(data[1:len(data)-1]), 64)
	*d = double(x)
	return err
}

// draw.json is written by a program that shares nothing with this package but docs/sampling.md.
func TestDrawIsWhatItsSpecificationSays(t *testing.T) {
	var want struct {
		Noise []struct {
			Seed            uint64
			Position, Token int
			Noise           double
		}
		Exp, Ln []struct{ X, Y double }
		Draws   []struct {
			Logits      []float64
			Temperature float64
			Seed        uint64
			Position    int
			ID          int
		}
	}
	data, err := os.ReadFile("testdata/draw.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &want))
	require.NotEmpty(t, want.Noise)
	for _, c := range want.Noise {
		got := gumbel(uniform(noise(c.Seed, c.Position, c.Token>>1), c.Token))
		require.Equal(t, float64(c.Noise), got, "%+v", c)
	}
	require.NotEmpty(t, want.Exp)
	for _, c := range want.Exp {
		require.Equal(t, float64(c.Y), exp(float64(c.X)), "exp(%v)", c.X)
	}
	require.NotEmpty(t, want.Ln)
	for _, c := range want.Ln {
		require.Equal(t, float64(c.Y), ln(float64(c.X)), "ln(%v)", c.X)
	}
	require.NotEmpty(t, want.Draws)
	for _, c := range want.Draws {
		require.Equal(t, c.ID, pick(candidatesOf(c.Logits), c.Temperature, c.Seed, c.Position), "%+v", c)
	}
}

func candidatesOf(scores []float64) (c []candidate) {
	for id, x := range scores {
		c = append(c, candidate{id: id, x: x})
	}
	return c
}

// The last bits of exp and ln may be others than those of package math, and no more.
func TestExpAndLnAreClose(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		y := -rng.ExpFloat64() * 50
		require.InEpsilon(t, math.Exp(y), exp(y), 1e-15, "exp(%v)", y)
		x := math.Exp(rng.NormFloat64() * 20)
		require.InDelta(t, math.Log(x), ln(x), 1e-15*math.Abs(math.Log(x)), "ln(%v)", x)
		v := rng.Uint64N(1<<52)>>rng.IntN(52)<<1 | 1 // near 0 as often as not
		exact := -math.Log(-math.Log1p(-float64(v) * 0x1p-53))
		require.InDelta(t, exact, gumbel(v), 1e-14, "gumbel(%d)", v)
	}
	require.Equal(t, 1.0, exp(0))
	require.Zero(t, exp(-701))
	require.Zero(t, ln(1))
	for _, v := range []uint64{1, 1<<53 - 1} {
		require.False(t, math.IsInf(gumbel(v), 0), "the noise has no ends")
	}
}

// What pick skips cannot win.
func TestPickSkipsNoWinner(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		c := candidatesOf(make([]float64, 1+rng.IntN(40)))
		scale := math.Exp(rng.NormFloat64() * 4)
		for i := range c {
			c[i].x = rng.NormFloat64() * scale
		}
		seed, position, temperature := rng.Uint64(), rng.IntN(1<<40), math.Exp(rng.NormFloat64())
		id, best := -1, never
		for _, x := range c {
			if sum := x.x/temperature + gumbel(uniform(noise(seed, position, x.id>>1), x.id)); sum > best {
				id, best = x.id, sum
			}
		}
		require.Equal(t, id, pick(c, temperature, seed, position))
	}
	for bits := range 53 { // the ends of each step of the bound
		for _, v := range []uint64{1<<bits | 1, 1<<(bits+1) - 1} {
			require.Less(t, gumbel(v), float64(0.6932*float64(53-bits)), "v = %d", v)
		}
	}
}
