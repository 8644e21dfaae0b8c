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

const softCapMain = `
int main() {
  float x, cap;
  while (std::scanf("%f %f", &x, &cap) == 2) {
    float plain = x;
    soft_cap(&plain, cap, 1);
    std::printf("%.9g %.9g\n", soft_cap(x, cap), plain);
  }
}
`

// The functions of the kernel and of the reference, compiled for the host, are what float64 makes of a soft cap.
func TestSoftCapOfTheRuntime(t *testing.T) {
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	source := "#include <cmath>\n#include <cstdio>\n#define __device__\n#define __forceinline__ inline\n" +
		"inline int thread_index() { return 0; }\n"
	for _, header := range []string{"amk/finish.cuh", "amk/reference.cuh"} {
		text := runtime.DeviceSources()[header]
		function := regexp.MustCompile(`(?ms)^__device__ [^\n]*\bsoft_cap\(.*?^}\n`).FindAll(text, -1)
		require.Len(t, function, 1, header)
		source += string(function[0])
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cap.cc"), []byte(source+softCapMain), 0o600))
	out, err := exec.Command(compiler, "-std=c++17", "-O1", "-o", filepath.Join(dir, "cap"),
		filepath.Join(dir, "cap.cc")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var input bytes.Buffer
	var want []float64
	for _, bound := range []float32{0.001, 1, 30, 50} {
		for e := -100; e <= 100; e++ {
			for _, sign := range []float64{1, -1} {
				x := float32(math.Ldexp(sign*1.2345, e))
				fmt.Fprintf(&input, "%.9g %.9g\n", x, bound)
				want = append(want, float64(bound)*math.Tanh(float64(x)/float64(bound)))
			}
		}
	}
	cmd := exec.Command(filepath.Join(dir, "cap"))
	cmd.Stdin = &input
	out, err = cmd.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(want))
	for i, line := range lines {
		var finish, reference float64
		_, err := fmt.Sscan(line, &finish, &reference)
		require.NoError(t, err)
		require.InEpsilon(t, want[i], finish, 5e-7)
		require.Equal(t, finish, reference)
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
	require.Contains(t, string(files["stages.h"]), "    const float capped = soft_cap(y, 0x1.ep+04f);\n"+
		"    store_logit(c, r, capped);\n")
	compiles(t, p)
}
