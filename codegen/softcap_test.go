package codegen

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/runtime"
)

// bounds are ops that keep rows between -cap and cap, by the functions of the runtime: what they make of one, and how
// the plain one is called.
var bounds = map[string]struct {
	of    func(x, bound float64) float64
	plain string
}{
	"soft_cap": {func(x, bound float64) float64 { return bound * math.Tanh(x/bound) }, "soft_cap(&plain, cap, 1)"},
	"clip":     {func(x, bound float64) float64 { return max(-bound, min(x, bound)) }, "clip(&plain, &x, cap, 1)"},
}

const boundMain = `
int main() {
  float x, cap;
  while (std::scanf("%%f %%f", &x, &cap) == 2) {
    float plain = x;
    %s;
    std::printf("%%.9g %%.9g\n", %s(x, cap), plain);
  }
}
`

// The functions of the kernel and of the reference, compiled for the host, are what float64 makes of a bound.
func TestBoundsOfTheRuntime(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for name, b := range bounds {
		t.Run(name, func(t *testing.T) {
			source := "inline int grid_index() { return 0; }\n" +
				"inline void put(float* v, int i, float x) { v[i] = x; }\n"
			for _, header := range []string{"amk/finish.cuh", "amk/reference.cuh"} {
				function := regexp.MustCompile(`(?ms)^(template <class Out>\n)?__device__ [^\n]*\b`+name+
					`\(.*?^}\n`).FindAll(runtime.DeviceSources()[header], -1)
				require.Len(t, function, 1, header)
				source += string(function[0])
			}
			var input bytes.Buffer
			var want []float64
			for _, bound := range []float32{0.001, 1, 30, 50} {
				for e := -100; e <= 100; e++ {
					for _, sign := range []float64{1, -1} {
						x := float32(math.Ldexp(sign*1.2345, e))
						fmt.Fprintf(&input, "%.9g %.9g\n", x, bound)
						want = append(want, b.of(float64(x), float64(bound)))
					}
				}
			}
			lines := onHost(t, source+fmt.Sprintf(boundMain, b.plain, name), input.Bytes())
			require.Len(t, lines, len(want))
			for i, line := range lines {
				var finish, reference float64
				_, err := fmt.Sscan(line, &finish, &reference)
				require.NoError(t, err)
				require.InEpsilon(t, want[i], finish, 5e-7)
				require.Equal(t, finish, reference)
			}
		})
	}
}

// nvcc takes a program whose logits are capped.
func TestSoftCapCompiles(t *testing.T) {
	text, err := os.ReadFile("../testdata/golden/pycoder-5m_h200_bf16/schedule.amk")
	require.NoError(t, err)
	p, err := ir.Parse(regexp.MustCompile(`(?m)^  logits\[a:b\] = (GEMV_TILE.*)$`).ReplaceAll(text,
		[]byte("  %y = $1\n  logits[a:b] = SOFTCAP(%y) cap=30.0")), "capped.amk")
	require.NoError(t, err)
	files, err := CUDA(p)
	require.NoError(t, err)
	require.Contains(t, string(files["stages.h"]), "    const auto capped = soft_cap(y, 0x1.ep+04f);\n"+
		"    store_logit(c, r, capped);\n")
	compiles(t, p)
}
