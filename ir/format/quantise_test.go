package format

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir/half"
)

// distributions that weights of groups may have.
var distributions = map[string]func(*rand.Rand) float64{
	"normal":      func(r *rand.Rand) float64 { return 0.02 * r.NormFloat64() },
	"heavy tails": func(r *rand.Rand) float64 { return 0.02 * r.NormFloat64() / math.Sqrt(r.Float64()) },
	"uniform":     func(r *rand.Rand) float64 { return 2*r.Float64() - 1 },
	"positive":    func(r *rand.Rand) float64 { return 3 + r.NormFloat64() },
	"sparse":      func(r *rand.Rand) float64 { return r.NormFloat64() * float64(r.IntN(20)/19) },
	"large":       func(r *rand.Rand) float64 { return 1e38 * r.NormFloat64() / 4 },
	"small":       func(r *rand.Rand) float64 { return 1e-37 * r.NormFloat64() },
	"denormal":    func(r *rand.Rand) float64 { return 1e-40 * r.NormFloat64() },
}

func draw(from func(*rand.Rand) float64, n int) []float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(from(rng))
	}
	return out
}

// there and back.
func through(f Format, values []float32, cols int) []float32 {
	back := make([]float32, len(values))
	f.Unpack(back, f.Pack(nil, values, cols), cols)
	return back
}

// nearest rounds a group over its whole range: the largest magnitude becomes the largest integer, or the range all of
// them.
func nearest(b blocks, group []float32) []float32 {
	low, high := float32(0), float32(0)
	for _, v := range group {
		low, high = min(low, v), max(high, v)
	}
	least, most, zero := -b.most()-1, b.most(), float32(0)
	scale := b.rounded(max(-low, high) / most)
	if b.zeros {
		scale = b.rounded(high/(most-least) - low/(most-least))
		zero = max(least, min(most, float32(math.RoundToEven(float64(-low/scale)))+least))
	}
	out := make([]float32, len(group))
	for i, v := range group {
		if scale != 0 {
			q := float32(math.RoundToEven(float64(v/scale))) + zero
			out[i] = scale * (max(least, min(most, q)) - zero)
		}
	}
	return out
}

func squared(a, b []float32) (sum float64) {
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return sum
}

// No group has a larger error than plain rounding, or than zeros, and 0 stays 0.
func TestQuantiseIsNoWorseThanRounding(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	const rows, cols = 16, 200
	for name, from := range distributions {
		values := draw(from, rows*cols)
		for _, b := range chosenFormats() {
			if name == "large" && b.scale.name == "F16" {
				continue // more than Largest
			}
			back := through(b, values, cols)
			for first := 0; first < len(values); {
				last := min(first+b.group, first-first%cols+cols)
				group, got := values[first:last], back[first:last]
				e, size := squared(group, got), squared(group, make([]float32, len(group)))
				require.LessOrEqual(t, e, size, "%s %s %s", b.dtype, b.Layout(), name)
				if b.float == nil && largest(group)*0x1p-10 > 0x1p-126 {
					most := squared(group, nearest(b, group))*(1+1e-3) + 1e-12*size // scales differ in their last bits
					require.LessOrEqual(t, e, most, "%s %s %s", b.dtype, b.Layout(), name)
				}
				first = last
			}
			for i, v := range values {
				require.False(t, v == 0 && back[i] != 0, "%s %s %s", b.dtype, b.Layout(), name)
				require.False(t, math.IsNaN(float64(back[i])), "%s %s %s", b.dtype, b.Layout(), name)
			}
		}
	}
}

// The errors of normally distributed weights, in percent (RMS), as studies of these methods have them.
func TestErrorsOfFormats(t *testing.T) {
	values := draw(distributions["normal"], 1<<17)
	size := squared(values, make([]float32, len(values)))
	for name, want := range map[string]float64{"I4 g32": 8.2, "I4 g64": 9.05, "I4 g128": 9.72, "I4 g32 zeros": 7.75,
		"I4 g64 zeros": 8.75, "I4 g128 zeros": 9.55, "I8 g32": 0.52, "I8 g64": 0.58, "I8 g128": 0.64,
		"I8 g32 zeros": 0.465,
		"I8 g64 zeros": 0.53, "I8 g128 zeros": 0.59, "F8E4M3 g128": 2.6, "F4E2M1 g32": 11.5} {
		for _, b := range chosenFormats() {
			of := fmt.Sprintf("%s g%d", b.dtype, b.group)
			if b.zeros {
				of += " zeros"
			}
			if of == name {
				got := 100 * math.Sqrt(squared(values, through(b, values, 1024))/size)
				require.InDelta(t, want, got, want/20, "%s %s", b.dtype, b.Layout())
			}
		}
	}
}

// Groups of one value keep it, but for what rounding the scale takes.
func TestQuantiseConstants(t *testing.T) {
	for _, b := range quantisedFormats() {
		for _, c := range []float32{0, 1, -1, 0.3, -0.017, 1000} {
			values := make([]float32, 300)
			for i := range values {
				values[i] = c
			}
			for _, got := range through(b, values, 300) {
				most := 1.0 / 200
				if b.dtype == "F4E2M1" { // of which the largest may become less, as no power of two is a scale for it
					most = 1.0 / 4
				}
				require.InDelta(t, c, got, most*math.Abs(float64(c)), "%s %s", b.dtype, b.Layout())
			}
		}
	}
}

// What a group becomes depends on nothing else.
func TestQuantiseByGroups(t *testing.T) {
	values := draw(distributions["heavy tails"], 4*512)
	for _, b := range chosenFormats() {
		all := through(b, values, 512)
		for first := 0; first < len(values); first += b.group {
			require.Equal(t, all[first:first+b.group], through(b, values[first:first+b.group], b.group))
		}
	}
}

// Values of up to Largest stay finite.
func TestQuantiseLargest(t *testing.T) {
	for _, b := range quantisedFormats() {
		most := b.Largest()
		for _, got := range through(b, []float32{most, -most}, 2) {
			off := 0.01
			if b.scale == e8m0 {
				off = 0.25
			}
			require.InEpsilon(t, 1, math.Abs(float64(got/most)), off, "%s %s", b.dtype, b.Layout())
		}
	}
}

// Every float is nearest to the number that it becomes; between two it is the even one.
func TestE4M3(t *testing.T) {
	for bits, want := range map[byte]float32{0: 0, 1: 0x1p-9, 8: 0x1p-6, 0x38: 1, 0x7e: 448, 0xb8: -1, 0x87: -0x7p-9} {
		require.Equal(t, want, fromE4M3[bits])
	}
	for bits := range byte(0x7e) {
		for _, sign := range []byte{0, 0x80} {
			here, next := fromE4M3[sign|bits], fromE4M3[sign|bits+1]
			middle := (here + next) / 2
			require.Equal(t, sign|bits, toE4M3(here))
			require.Equal(t, sign|(bits+1)&^1, toE4M3(middle))
			require.Equal(t, sign|bits, toE4M3(math.Nextafter32(middle, here)))
			require.Equal(t, sign|bits+1, toE4M3(math.Nextafter32(middle, next)))
		}
	}
	require.Equal(t, byte(0x7e), toE4M3(1e9))
	require.Equal(t, byte(0xfe), toE4M3(-465))
}

// The same of e2m1, whose scales are powers of two from the least float32 that is not 0 in their seven bits on.
func TestE2M1(t *testing.T) {
	for bits, want := range []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6} {
		require.Equal(t, want, fromE2M1[bits])
		require.Equal(t, -want, fromE2M1[bits|8])
		require.Equal(t, bits != 0, math.Signbit(float64(fromE2M1[bits|8])) && fromE2M1[bits|8] != 0)
	}
	require.True(t, math.Signbit(float64(fromE2M1[8])))
	for bits := range byte(7) {
		for _, sign := range []byte{0, 8} {
			here, next := fromE2M1[sign|bits], fromE2M1[sign|bits+1]
			middle := (here + next) / 2
			require.Equal(t, sign|bits, toE2M1(here))
			require.Equal(t, sign|(bits+1)&^1, toE2M1(middle))
			require.Equal(t, sign|bits, toE2M1(math.Nextafter32(middle, here)))
			require.Equal(t, sign|bits+1, toE2M1(math.Nextafter32(middle, next)))
		}
	}
	require.Equal(t, byte(7), toE2M1(1e9))
	require.Equal(t, byte(15), toE2M1(-7))
	for bits := range byte(255) {
		require.Equal(t, math.Ldexp(1, int(bits)-127), float64(half.FromE8M0(bits)))
		require.Equal(t, bits, half.ToE8M0(half.FromE8M0(bits)))
		if bits > 0 && bits < 254 {
			require.Equal(t, bits, half.ToE8M0(math.Nextafter32(half.FromE8M0(bits+1), 0)))
		}
	}
	require.True(t, math.IsNaN(float64(half.FromE8M0(255))))
}

func BenchmarkQuantise(b *testing.B) {
	values := draw(distributions["normal"], 1<<15)
	for _, f := range quantisedFormats() {
		if f.scale.name != "BF16" {
			continue
		}
		b.Run(f.dtype+" "+f.Layout(), func(b *testing.B) {
			var dst []byte
			for range b.N {
				dst = f.Pack(dst, values, 4096)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(values)), "ns/weight")
		})
	}
}
