package sampling

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernel returns a function that gives a request to the header of the kernel, compiled for the CPU.
func kernel(t *testing.T) func(what string, request, answer any) {
	t.Helper()
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	program := filepath.Join(t.TempDir(), "kernel")
	out, err := exec.Command(compiler, "-std=c++17", "-O2", "-ffp-contract=off", "-w", "-I../../runtime/cuda/amk",
		"-Itestdata", "-o", program, "testdata/kernel.cc").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return func(what string, request, answer any) {
		t.Helper()
		var in bytes.Buffer
		require.NoError(t, binary.Write(&in, binary.LittleEndian, request))
		cmd := exec.Command(program, what)
		cmd.Stdin = &in
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Len(t, out, binary.Size(answer))
		require.NoError(t, binary.Read(bytes.NewReader(out), binary.LittleEndian, answer))
	}
}

// The kernel's noise has the bits of this package's, of many seeds, positions and tokens. Its bounds of sums in float32
// hold, which the program looks at, however its logarithm is off.
func TestNoiseOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	ask, rng := kernel(t), rand.New(rand.NewPCG(7, 8))
	var request bytes.Buffer
	put := func(v any) { require.NoError(t, binary.Write(&request, binary.LittleEndian, v)) }
	const n = 100_000
	want, got := make([]float64, n), make([]float64, n)
	put(uint32(n))
	for i := range n {
		seed, position := rng.Uint64()>>rng.IntN(64), rng.Uint64()>>(1+rng.IntN(63))
		token := rng.Uint32() >> (1 + rng.IntN(31))
		put(seed)
		put(position)
		put(token)
		want[i] = gumbel(uniform(noise(seed, int(position), int(token>>1)), int(token)))
	}
	ask("noise", request.Bytes(), got)
	for i := range want {
		require.Equal(t, math.Float64bits(want[i]), math.Float64bits(got[i]), "%d: %v and %v", i, want[i], got[i])
	}
}

// What the kernel draws is what this package draws, token for token, and has the distribution of a softmax in float64:
// each token is a bin, those that fewer than 10 draws are expected of together. One half of the draws are of one seed
// at many positions, the other of many seeds at one position.
func TestDrawsOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	ask, rng := kernel(t), rand.New(rand.NewPCG(9, 10))
	worst, bins := 0.0, 0
	for i, temperature := range []float64{0.3, 0.7, 1, 1.5, 4} {
		logits, scores := make([]float32, 9+8*i), make([]float64, 9+8*i)
		for k := range logits {
			logits[k] = float32(rng.NormFloat64() * 2)
			if k == 5 {
				logits[k] = float32(math.Inf(-1))
			}
			scores[k] = float64(logits[k])
		}
		n, at := draws()/2, uint64(i+3)
		got := make([]int32, 2*n)
		var request bytes.Buffer
		for _, v := range []any{temperature, at, uint32(n), uint32(len(logits)), logits} {
			require.NoError(t, binary.Write(&request, binary.LittleEndian, v))
		}
		ask("draws", request.Bytes(), got)
		c := candidatesOf(scores)
		c = append(c[:5:5], c[6:]...) // -inf is not a candidate
		counts := make([]int, len(logits))
		for d := range n {
			require.Equal(t, pick(c, temperature, at, d), int(got[d]), "%v at %d", temperature, d)
			require.Equal(t, pick(c, temperature, uint64(d)<<20, int(at)), int(got[n+d]), "%v of seed %d", temperature,
				d)
			counts[got[d]]++
			counts[got[n+d]]++
		}
		z, b := chiSquared(counts, softmax(scores, temperature))
		require.Less(t, z, float64(outlier), "temperature %v, %d bins", temperature, b)
		worst, bins = max(worst, z), bins+b
	}
	t.Logf("%d draws of each of 5 temperatures, %d bins; the worst is %.2f standard deviations from its mean", draws(),
		bins, worst)
}
