package half

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// f16Value is binary16 by its definition, in float64 arithmetic: an independent formulation to hold FromF16 to.
func f16Value(h uint16) float64 {
	sign := 1.0
	if h>>15 == 1 {
		sign = -1
	}
	exponent, fraction := int(h>>10&31), float64(h&0x3ff)
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		return math.Inf(int(sign))
	case exponent == 0:
		return math.Copysign(math.Ldexp(fraction, -24), sign)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

func TestF16AllValues(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got, want := FromF16(h), f16Value(h)
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(float64(got)), "%#04x", h)
			require.Equal(t, h|0x200, ToF16(got), "%#04x: NaN keeps its payload and becomes quiet", h)
			continue
		}
		require.Equal(t, math.Float64bits(want), math.Float64bits(float64(got)), "%#04x", h)
		require.Equal(t, h, ToF16(got), "%#04x: round trip", h)
	}
}

// Narrowing is right everywhere if it is right at each tie between neighbours and one float32 to either side of it.
func TestF16EveryRoundingBoundary(t *testing.T) {
	for i := range 0x7c00 {
		lo, hi := uint16(i), uint16(i+1)
		above := f16Value(hi)
		if hi == 0x7c00 {
			above = 65536 // what the next value would be if the exponent went on
		}
		tie := float32((f16Value(lo) + above) / 2)
		require.Equal(t, (f16Value(lo)+above)/2, float64(tie), "the tie above %#04x is exact in float32", lo)
		even := lo + lo&1
		for _, sign := range []uint16{0, 0x8000} {
			s := float32(1)
			if sign != 0 {
				s = -1
			}
			require.Equal(t, sign|lo, ToF16(s*math.Nextafter32(tie, 0)), "below the tie above %#04x", lo)
			require.Equal(t, sign|even, ToF16(s*tie), "the tie above %#04x", lo)
			require.Equal(t, sign|hi, ToF16(s*math.Nextafter32(tie, math.MaxFloat32)), "above the tie above %#04x", lo)
		}
	}
}

func TestF16OutOfRange(t *testing.T) {
	for f, want := range map[float32]uint16{
		math.MaxFloat32: 0x7c00, -math.MaxFloat32: 0xfc00,
		float32(math.Inf(1)): 0x7c00, float32(math.Inf(-1)): 0xfc00,
		math.SmallestNonzeroFloat32: 0, -math.SmallestNonzeroFloat32: 0x8000,
	} {
		require.Equal(t, want, ToF16(f), "%g", f)
	}
	require.Equal(t, uint16(0x8000), ToF16(float32(math.Copysign(0, -1))))
}

func TestBF16AllValues(t *testing.T) {
	for i := range 1 << 16 {
		b := uint16(i)
		f := FromBF16(b)
		require.Equal(t, uint32(b)<<16, math.Float32bits(f))
		if f != f {
			require.Equal(t, b|0x40, ToBF16(f), "%#04x: NaN keeps its payload and becomes quiet", b)
			continue
		}
		require.Equal(t, b, ToBF16(f), "%#04x: round trip", b)
	}
}

// nearestBF16 picks the nearer of the two neighbours of f by exact arithmetic, the even one at a tie.
func nearestBF16(f float32) uint16 {
	down := uint16(math.Float32bits(f) >> 16) // truncation: towards zero
	up := down + 1
	value := func(b uint16) *big.Float {
		if b&0x7fff == 0x7f80 { // Inf stands at 2^128 for the purpose of rounding
			v := new(big.Float).SetMantExp(big.NewFloat(1), 128)
			if b>>15 == 1 {
				v.Neg(v)
			}
			return v
		}
		return big.NewFloat(float64(FromBF16(b)))
	}
	exact := big.NewFloat(float64(f))
	toDown, toUp := new(big.Float).Sub(exact, value(down)), new(big.Float).Sub(value(up), exact)
	switch toDown.Abs(toDown).Cmp(toUp.Abs(toUp)) {
	case -1:
		return down
	case 1:
		return up
	}
	return down + down&1
}

func TestBF16RoundsToNearestEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(bits uint32) {
		f := math.Float32frombits(bits)
		if f != f || math.IsInf(float64(f), 0) {
			return
		}
		require.Equal(t, nearestBF16(f), ToBF16(f), "%#08x", bits)
	}
	for range 50_000 {
		high := rng.Uint32() & 0xffff_0000
		check(high | rng.Uint32()&0xffff)
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			check(high | low)
		}
	}
	check(math.Float32bits(math.MaxFloat32))
	check(1) // the smallest subnormal
}

func TestBF16NaNNeverBecomesInf(t *testing.T) {
	for _, bits := range []uint32{0x7f80_0001, 0xff80_0001, 0x7fff_ffff, 0xffff_ffff, 0x7f80_8000} {
		got := ToBF16(math.Float32frombits(bits))
		require.True(t, got&0x7fff > 0x7f80, "%#08x became %#04x", bits, got)
		require.Equal(t, uint16(bits>>31), got>>15, "the sign stays")
	}
}

func TestRoundIsIdempotent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		f := float32(rng.NormFloat64())
		require.Equal(t, RoundBF16(f), RoundBF16(RoundBF16(f)))
		require.Equal(t, RoundF16(f), RoundF16(RoundF16(f)))
		require.InEpsilon(t, f, RoundBF16(f), 1.0/256)
		require.InDelta(t, f, RoundF16(f), math.Abs(float64(f))/2048+1.0/(1<<25))
	}
}

func TestSlices(t *testing.T) {
	values := []float32{0, 1, -2.5, 65504, float32(math.Inf(-1)), 0x1p-24}
	cases := []struct {
		name   string
		encode func([]byte, []float32)
		decode func([]float32, []byte)
		bytes  []byte
	}{
		{"F16", EncodeF16, DecodeF16, []byte{0, 0, 0, 0x3c, 0, 0xc1, 0xff, 0x7b, 0, 0xfc, 1, 0}},
		{"BF16", EncodeBF16, DecodeBF16, []byte{0, 0, 0x80, 0x3f, 0x20, 0xc0, 0x80, 0x47, 0x80, 0xff, 0x80, 0x33}},
		{"F32", EncodeF32, DecodeF32, []byte{
			0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 0, 0xe0, 0x7f, 0x47, 0, 0, 0x80, 0xff, 0, 0, 0x80, 0x33,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			encoded := make([]byte, len(c.bytes)+1)
			encoded[len(c.bytes)] = 0xaa
			c.encode(encoded, values)
			require.Equal(t, append(append([]byte{}, c.bytes...), 0xaa), encoded, "and not a byte further")

			decoded := make([]float32, len(values)+1)
			decoded[len(values)] = 42
			c.decode(decoded, c.bytes)
			want := append([]float32{}, values...)
			if c.name == "BF16" {
				want[3] = 65536 // 65504 is not a bfloat16
			}
			require.Equal(t, append(want, 42), decoded)
		})
	}
}

func BenchmarkDecodeF16(b *testing.B) {
	src, dst := make([]byte, 1<<16), make([]float32, 1<<15)
	for i := range src {
		src[i] = byte(i * 7)
	}
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		DecodeF16(dst, src)
	}
}

func BenchmarkEncodeBF16(b *testing.B) {
	src, dst := make([]float32, 1<<15), make([]byte, 1<<16)
	for i := range src {
		src[i] = float32(i) * 1.1
	}
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		EncodeBF16(dst, src)
	}
}
