package codegen

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/runtime"
)

// gates are the activations of gated ops, by the functions of the runtime.
var gates = map[string]func(float64) float64{
	"silu_mul": func(g float64) float64 { return g / (1 + math.Exp(-g)) },
	"gelu_tanh_mul": func(g float64) float64 {
		return g / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g)))
	},
}

const gateMain = `
int main() {
  float gate;
  while (std::scanf("%%f %%f", &gate, &up_row) == 2) {
    Bits plain;
    %[1]s(&plain, &gate, &up_row, 1);
    std::printf("%%.9g %%.9g\n", %[1]s(Row{0, 0, true}, gate), plain);
  }
}
`

// The functions of the kernel and of the reference, compiled for the host, are what float64 makes of a gate times up.
func TestGatesOfTheRuntime(t *testing.T) {
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	for _, spec := range ir.Ops {
		if spec.Gated() {
			require.Contains(t, gates, spec.Finisher.Func)
		}
	}
	for name, gate := range gates {
		t.Run(name, func(t *testing.T) {
			source := "#include <cmath>\n#include <cstdio>\n#define __device__\n#define __forceinline__ inline\n" +
				"using Bits = float;\nstruct Element { static constexpr int kBytes = 4; };\n" +
				"struct Row { int row, local; bool valid; };\nfloat up_row;\n" +
				"template <class E> float divide(float n, float d) { return n / d; }\n" +
				"inline float __expf(float x) { return expf(x); }\n" +
				"inline float __shfl_xor_sync(unsigned, float, int) { return up_row; }\n" +
				"inline int thread_index() { return 0; }\ninline void put(Bits* v, int i, float x) { v[i] = x; }\n"
			for header, functions := range map[string]string{"amk/finish.cuh": "gated|sigmoid_of|" + name,
				"amk/reference.cuh": name} {
				text := runtime.DeviceSources()[header]
				found := regexp.MustCompile(`(?ms)^(template <class Activation>\n)?__device__ [^\n]*\b(`+
					functions+`)\(.*?^}\n`).FindAll(text, -1)
				require.Len(t, found, 1+strings.Count(functions, "|"), header)
				source += string(bytes.Join(found, nil))
			}
			dir := t.TempDir()
			source += fmt.Sprintf(gateMain, name)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "gate.cc"), []byte(source), 0o600))
			out, err := exec.Command(compiler, "-std=c++17", "-O1", "-o", filepath.Join(dir, "gate"),
				filepath.Join(dir, "gate.cc")).CombinedOutput()
			require.NoError(t, err, "%s", out)
			var input bytes.Buffer
			var want, slack []float64
			for e := -60; e <= 60; e++ {
				for _, g := range []float32{float32(math.Ldexp(1.2345, e)), float32(math.Ldexp(-1.2345, e))} {
					const up = 1.5
					fmt.Fprintf(&input, "%.9g %g\n", g, up)
					want = append(want, gate(float64(g))*up)
					slack = append(slack, 1e-6*math.Min(math.Abs(float64(g)), 1))
				}
			}
			cmd := exec.Command(filepath.Join(dir, "gate"))
			cmd.Stdin = &input
			out, err = cmd.Output()
			require.NoError(t, err)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			require.Len(t, lines, len(want))
			for i, line := range lines {
				var finish, reference float64
				_, err := fmt.Sscan(line, &finish, &reference)
				require.NoError(t, err)
				require.InDelta(t, want[i], finish, slack[i]+1e-6*math.Abs(want[i]))
				require.InDelta(t, want[i], reference, slack[i]+1e-6*math.Abs(want[i]))
			}
		})
	}
}
