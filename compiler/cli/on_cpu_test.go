package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// onCPU edits the headers of a build so that block.h can run them: what they have for CUDA is compiled.
func onCPU(t *testing.T, dir string) {
	t.Helper()
	headers, err := filepath.Glob(filepath.Join(dir, "amk", "hw", "*.cuh"))
	require.NoError(t, err)
	for _, header := range headers {
		text, err := os.ReadFile(header)
		require.NoError(t, err)
		for _, e := range instructions {
			text = e.is.ReplaceAll(text, []byte(e.on))
		}
		require.NoError(t, os.WriteFile(header, assembly.ReplaceAll(text, []byte(";")), 0o600))
	}
}

// assembly is inline assembly of the device runtime, which the CPU does not have.
var assembly = regexp.MustCompile(`(?s)\basm( volatile)?\(.*?\);`)

// instructions are those of which block.h has what they do; of others nothing is left.
var instructions = func() (list []struct {
	is *regexp.Regexp
	on string
}) {
	for _, e := range [][2]string{
		{`extern __shared__ __align__\(1024\)`, "extern"},
		{`asm volatile\("bar\.sync.*?\);`, "block_barrier();"},
		{`asm volatile\("ld\.relaxed\.gpu.*?\);`, "memcpy(&v, p, sizeof v);"},
		{`asm volatile\("st\.relaxed\.gpu.*?\);`, "*p = v;"},
		{`asm volatile\("ld\.acquire\.gpu.*?\);`, "next_block(); memcpy(&v, p, sizeof v);"},
		{`asm volatile\("red\.release\.gpu.*?\);`, "*p += v;"},
		{`asm\("fma\.rn\.(b?f16x2).*?\);`, "d = sums_of_$1(x, y, z);"},
		{`u32 done;(\s+asm volatile\()`, "u32 done = 1;$1"},
		{`asm\("ex2\.approx.*?\);`, "y = exp2f(x);"},
		{`asm\("rcp\.approx.*?\);`, "y = 1 / x;"},
		{`asm\("mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.(bf16|f16).*?"r"\(b1\)\);`,
			"product_of_$1(d, a0, a1, a2, a3, b0, b1);"},
		{`asm\("mma\.sync\.aligned\.m16n8k32\.row\.col\.s32\.(s8|u8).*?"r"\(b1\)\);`,
			"product_of_$1(d, a0, a1, a2, a3, make_uint2(b0, b1));"},
		{`asm\("\{ \.reg \.b16 low, high;.*?cvt\.rn\.f16x2\.e4m3x2.*?\);`,
			"halves = make_uint2(halves_of_e4m3(four), halves_of_e4m3(four >> 16));"},
		{`asm volatile\(\s+"\{\\n \.reg \.pred p;.*?@p ld\.shared\.v2.*?\);`,
			"if (wanted) memcpy(&to, from, sizeof to);"},
		{`asm volatile\("movmatrix.*?\);`, "d = transposed(a);"},
	} {
		list = append(list, struct {
			is *regexp.Regexp
			on string
		}{regexp.MustCompile(`(?s)` + e[0]), e[1]})
	}
	return list
}()

// onCPUProgram compiles a program of testdata with the headers of builds, those of the first directory before those of
// the others, and returns its path. Most of the time is the compiler's, and to optimise doubles it: only what AMKC_LONG
// asks for runs long enough to be worth it.
func onCPUProgram(t *testing.T, source string, headers []string, defines ...string) (path string) {
	t.Helper()
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	level := "-O0"
	if os.Getenv("AMKC_LONG") != "" {
		level = "-O1"
	}
	flags := append([]string{"-std=c++17", level, "-U_FORTIFY_SOURCE", "-w"}, defines...)
	for _, dir := range headers {
		flags = append(flags, "-I"+dir)
	}
	path = filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".cc"))
	out, err := exec.Command(compiler, append(flags, "-o", path, filepath.Join("testdata", source))...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// outputOnCPU is what such a program writes. One that finds a difference prints it and fails.
func outputOnCPU(t *testing.T, source string, headers []string, defines ...string) []byte {
	t.Helper()
	out, err := exec.Command(onCPUProgram(t, source, headers, defines...)).Output()
	require.NoError(t, err, "%s %s: %s", source, defines, out)
	return out
}

// structsWith lists the descriptors of a schedule that have a field.
func structsWith(t *testing.T, dir, field string) (names []string) {
	t.Helper()
	schedule, err := os.ReadFile(filepath.Join(dir, "schedule.h"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`struct (\w+) \{\n(?:  .*\n)*?  .* `+field+` `).FindAllSubmatch(schedule, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// stagesDefine lists the attention stages of a schedule for a program.
func stagesDefine(t *testing.T, dir string) string {
	t.Helper()
	stages := structsWith(t, dir, "kShareRows")
	require.NotEmpty(t, stages)
	return "-DSTAGES=" + strings.Join(stages, ",")
}
