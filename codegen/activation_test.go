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
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, spec := range ir.Ops {
		if spec.Gated() && spec != ir.Ops[ir.ClampedSiluMul] { // TestClampedGateOfTheRuntime
			require.Contains(t, gates, spec.Finisher.Func)
		}
	}
	for name, gate := range gates {
		t.Run(name, func(t *testing.T) {
			source := "using Bits = float;\nstruct Element { static constexpr int kBytes = 4; };\n" +
				"struct Row { int row, local; bool valid; };\nfloat up_row;\n" +
				"template <class E> float divide(float n, float d) { return n / d; }\n" +
				"inline float exp_fast(float x) { return expf(x); }\n" +
				"inline float shuffle_xor(float, int) { return up_row; }\n" +
				"inline int grid_index() { return 0; }\ninline void put(Bits* v, int i, float x) { v[i] = x; }\n"
			for header, functions := range map[string]string{"amk/finish.cuh": "gated|sigmoid_of|gelu_tanh|" + name,
				"amk/reference.cuh": name} {
				text := runtime.DeviceSources()[header]
				found := regexp.MustCompile(`(?ms)^(template <class Activation>\n)?__device__ [^\n]*\b(`+
					functions+`)\(.*?^}\n`).FindAll(text, -1)
				require.Len(t, found, 1+strings.Count(functions, "|"), header)
				source += string(bytes.Join(found, nil))
			}
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
			lines := onHost(t, source+fmt.Sprintf(gateMain, name), input.Bytes())
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

const clampedGateMain = `
int main() {
  float gate, up, cap, scale;
  while (std::scanf("%f %f %f %f", &gate, &up, &cap, &scale) == 4) {
    other_row = gate;
    const float above = clamped_silu_mul(Row{1, 1, true}, up, cap, scale);
    other_row = above;
    std::printf("%.9g %.9g\n", clamped_silu_mul(Row{0, 0, true}, gate, cap, scale),
                gate_of_expert(gate, up, cap, scale));
  }
}
`

// So are those of a gate within bounds, and what is not a number stays so.
func TestClampedGateOfTheRuntime(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	source := "struct Element { static constexpr int kBytes = 4; };\nstruct Row { int row, local; bool valid; };\n" +
		"float other_row;\ntemplate <class E> float divide(float n, float d) { return n / d; }\n" +
		"inline float exp_fast(float x) { return expf(x); }\n" +
		"inline float shuffle_xor(float, int) { return other_row; }\n"
	for header, functions := range map[string]string{"amk/finish.cuh": "gated|sigmoid_of|clip|clamped_silu_mul",
		"amk/reference_experts.cuh": "gate_of_expert"} {
		found := regexp.MustCompile(`(?ms)^(template <class Activation>\n)?__device__ [^\n]*\b(`+
			functions+`)\(.*?^}\n`).FindAll(runtime.DeviceSources()[header], -1)
		require.Len(t, found, 1+strings.Count(functions, "|"), header)
		source += string(bytes.Join(found, nil))
	}
	var input bytes.Buffer
	var want []float64
	values := []float64{-1000, -8, -7, -1.5, -0.001, 0, 0.25, 3, 6.99, 7, 7.5, 1000, math.NaN()}
	for _, gate := range values {
		for _, up := range values {
			for _, by := range [][2]float64{{7, 1.702}, {1.5, 0.5}} {
				fmt.Fprintf(&input, "%g %g %g %g\n", gate, up, by[0], by[1])
				g, u := min(gate, by[0]), max(-by[0], min(up, by[0]))
				want = append(want, g/(1+math.Exp(-by[1]*g))*(u+1))
			}
		}
	}
	lines := onHost(t, source+clampedGateMain, input.Bytes())
	require.Len(t, lines, len(want))
	for i, line := range lines {
		var finish, reference float64
		_, err := fmt.Sscan(line, &finish, &reference)
		require.NoError(t, err)
		if math.IsNaN(want[i]) {
			require.True(t, math.IsNaN(finish) && math.IsNaN(reference), line)
			continue
		}
		require.InDelta(t, want[i], finish, 1e-6*math.Abs(want[i])+1e-12, line)
		require.InDelta(t, want[i], reference, 1e-6*math.Abs(want[i])+1e-12, line)
	}
}

// onHost compiles functions of the runtime with the host's compiler, and returns the lines that they print.
func onHost(t *testing.T, source string, input []byte) []string {
	t.Helper()
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	dir := t.TempDir()
	const head = "#include <cmath>\n#include <cstdio>\n#define __device__\n#define __forceinline__ inline\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "host.cc"), []byte(head+source), 0o600))
	out, err := exec.Command(compiler, "-std=c++17", "-O1", "-o", filepath.Join(dir, "host"),
		filepath.Join(dir, "host.cc")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(filepath.Join(dir, "host"))
	cmd.Stdin = bytes.NewReader(input)
	out, err = cmd.Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// activations are those of MLPs without a gate, by the functions of the runtime.
var activations = map[string]func(float64) float64{
	"gelu": func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
	"gelu_tanh": func(x float64) float64 {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	},
	"relu":  func(x float64) float64 { return max(x, 0) },
	"relu2": func(x float64) float64 { return max(x, 0) * max(x, 0) },
	"xielu": func(x float64) float64 {
		softplus := func(v float64) float64 { return math.Log1p(math.Exp(v)) }
		if x > 0 {
			return softplus(xieluWeights[0])*x*x + xieluWeights[2]*x
		}
		return (xieluWeights[2]+softplus(xieluWeights[1]))*(math.Expm1(min(x, xieluWeights[3]))-x) + xieluWeights[2]*x
	},
}

// xieluWeights are p, n, beta and eps of the xIELU that is tried.
var xieluWeights = [4]float64{0.75, -1.5, 0.5, -0.125}

const activationMain = `
int main() {
  float x;
  while (std::scanf("%%f", &x) == 1) {
    Bits plain;
    %[1]s(&plain, &x, %[2]s1);
    std::printf("%%.9g %%.9g\n", %[1]s(x%[3]s), plain);
  }
}
`

// The functions of the kernel and of the reference, compiled for the host, are what float64 makes of an activation.
func TestActivationsOfTheRuntime(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for name, activation := range activations {
		t.Run(name, func(t *testing.T) {
			source := "using Bits = float;\nstruct Element { static constexpr int kBytes = 4; };\n" +
				"template <class E> float divide(float n, float d) { return n / d; }\n" +
				"inline float exp_fast(float x) { return expf(x); }\ninline int grid_index() { return 0; }\n" +
				"inline void put(Bits* v, int i, float x) { v[i] = x; }\n"
			source += fmt.Sprintf("using u8 = unsigned char;\nusing Packed = const float*;\n"+
				"inline float weight_at(Packed w, int i) { return w[i]; }\n"+
				"inline float load_weight(const u8* w, int i) { return reinterpret_cast<const float*>(w)[i]; }\n"+
				"const float weights[] = {%g, %g, %g, %g};\n", xieluWeights[0], xieluWeights[1], xieluWeights[2],
				xieluWeights[3])
			for header, functions := range map[string]string{
				"amk/finish.cuh": "sigmoid_of|gelu_tanh|gelu|relu|relu2|Xielu|xielu", "amk/reference.cuh": name} {
				found := regexp.MustCompile(`(?ms)^(struct Xielu \{|__device__ [^\n]*\b(`+functions+
					`)\().*?^}[^\n]*\n`).FindAll(runtime.DeviceSources()[header], -1)
				require.Len(t, found, 1+strings.Count(functions, "|"), header)
				source += string(bytes.Join(found, nil))
			}
			var input bytes.Buffer
			var xs []float64
			for e := -30; e <= 30; e++ {
				for _, sign := range []float64{1, -1} {
					xs = append(xs, float64(float32(math.Ldexp(1.2345*sign, e))))
					fmt.Fprintf(&input, "%.9g\n", xs[len(xs)-1])
				}
			}
			weights, shape := "", ""
			if name == "xielu" {
				weights, shape = "weights, ", ", Xielu(reinterpret_cast<const u8*>(weights))"
			}
			lines := onHost(t, source+fmt.Sprintf(activationMain, name, weights, shape), input.Bytes())
			require.Len(t, lines, len(xs))
			for i, line := range lines {
				var finish, reference float64
				_, err := fmt.Sscan(line, &finish, &reference)
				require.NoError(t, err)
				want := activation(xs[i])
				require.InDelta(t, want, finish, 1e-6*min(math.Abs(xs[i]), 1)+1e-6*math.Abs(want), "%g", xs[i])
				require.InDelta(t, want, reference, 1e-6*min(math.Abs(xs[i]), 1)+1e-6*math.Abs(want), "%g", xs[i])
			}
		})
	}
}
