package codegen

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime"
	"amkc/templates"
)

// keywords are what CUDA adds to C++ and every file may use: a compiler without CUDA leaves them out, or has them as
// well. The functions of math.h, the vector types and rsqrtf are ordinary names.
var keywords = []string{"__device__", "__host__", "__global__", "__forceinline__", "__noinline__", "__launch_bounds__",
	"__grid_constant__", "__builtin_unreachable"}

// hardware matches the words that hw/*.cuh alone may use: assembly, and builtins, also those whose names do not begin
// with underscores.
var hardware = regexp.MustCompile(`^(__\w+|asm|volatile|shared_address|threadIdx|blockIdx|blockDim|gridDim|warpSize|` +
	`atomic[A-Z]\w*|clock64|cooperative_groups|(make_)?(half2|nv_bfloat16|bfloat16|nv_fp8)\w*|cuda\w+|` +
	`(u?int|float|double|longlong|half)_as_\w+|(float|double|u?int|half)2\w+_r[nduz]|u?mul(24|hi)|u?(ll)?sad|` +
	`saturate|fdivide\w*|syncthreads|threadfence\w*|brkpt|trap|prof_trigger|tex\w*[123]D\w*|surf[123]D\w*)$`)

// cxxToken matches comments, literals, words, includes of headers of the system, and what could make a word that does
// not stand in the source: raw strings and token pasting. Lines that are continued are joined first.
var (
	cxxToken = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|u?8?R"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|` +
		`#\s*include\s*<[^>\n]*>|##|[A-Za-z_]\w*|[0-9][\w.]*`)
	splicing   = regexp.MustCompile(`\\[ \t]*\r?\n`)
	rawStrings = regexp.MustCompile(`R"$`)
)

// hardwareWords lists what of a source belongs into hw/*.cuh, with its line: "3: threadIdx". Comments and strings do
// not count.
func hardwareWords(source string) (found []string) {
	source = splicing.ReplaceAllString(source, "")
	for _, at := range cxxToken.FindAllStringIndex(source, -1) {
		word := source[at[0]:at[1]]
		called := strings.HasPrefix(strings.TrimLeft(source[at[1]:], " \n"), "(")
		switch {
		case word == "clock" && called, rawStrings.MatchString(word), word == "##", strings.HasPrefix(word, "#"),
			hardware.MatchString(word) && !slices.Contains(keywords, word):
			found = append(found, fmt.Sprintf("%d: %s", 1+strings.Count(source[:at[0]], "\n"), word))
		}
	}
	return found
}

// Inline assembly and the builtins of CUDA are behind the primitives of hw/*.cuh: in no other header of the device
// runtime, in no template, and in nothing that is emitted.
func TestHardwareIsBehindItsPrimitives(t *testing.T) {
	sources := map[string]string{}
	primitives := 0
	for name, text := range runtime.DeviceSources() {
		if path.Dir(name) == "amk/hw" {
			primitives++
			require.NotEmpty(t, hardwareWords(string(text)), name)
		} else {
			sources[name] = string(text)
		}
	}
	require.Equal(t, 5, primitives)
	require.NoError(t, fs.WalkDir(templates.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".cu.tmpl") || strings.HasSuffix(name, ".h.tmpl") {
			text, err := templates.FS.ReadFile(name)
			sources["templates/"+name] = string(text)
			return err
		}
		return err
	}))
	graphs := goldenGraphs(t)
	for name, p := range goldenPrograms(t) {
		emitted, err := CUDA(p)
		require.NoError(t, err)
		emitted["reference.cu"], err = Reference(p, graphs[name])
		require.NoError(t, err)
		for file, text := range emitted {
			sources[name+"/"+file] = string(text)
		}
	}
	require.Greater(t, len(sources), 100)
	for name, text := range sources {
		require.Empty(t, hardwareWords(text), name)
	}
}

func TestHardwareWords(t *testing.T) {
	for source, want := range map[string][]string{
		`asm volatile("bar.sync 0;" ::: "memory");`:           {"1: asm", "1: volatile"},
		"int i;\nint lane = threadIdx.x % 32;":                {"2: threadIdx"},
		"v += __shfl_xor_sync(~0u, v, 1); __syncwarp();":      {"1: __shfl_xor_sync", "1: __syncwarp"},
		"/* a\n*/ // b\natomicAdd(p, 1); clock64(); // __ldg": {"3: atomicAdd", "3: clock64"},
		`f("//"); __shared__ float x[2];`:                     {"1: __shared__"},
		`c = '"'; blockDim.x; "`:                              {"1: blockDim"},
		"#include <cuda_fp16.h>\n#  include <cstddef>":        {"1: #include <cuda_fp16.h>", "2: #  include <cstddef>"},
		"__attribute__((always_inline)) a; __nv_bfloat162 b;": {"1: __attribute__", "1: __nv_bfloat162"},
		"as\\\nm(\"\");":         {"1: asm"},
		"now.clock = clock ();":  {"1: clock"},
		"#define X(a) thread##a": {"1: ##"},
		"R\"(\")\" threadIdx":    {"1: R\"", "1: threadIdx"},
		"#if defined(__CUDA_ARCH__) && !defined(__CUDACC__)": {"1: __CUDA_ARCH__", "1: __CUDACC__"},
		"half2 h; float_as_int(x); __ffs(i); umulhi(a, b)":   {"1: half2", "1: float_as_int", "1: __ffs", "1: umulhi"},

		"// asm, threadIdx.x and __ldg\n/* __syncthreads() */":                                                     nil,
		`static_assert(x, "no asm, no threadIdx");`:                                                                nil,
		"__device__ __forceinline__ float f(float x) { return fmaf(x, x, rsqrtf(x)); }\n#include \"amk/ring.cuh\"": nil,
		"__global__ void __launch_bounds__(1, 1) k(const __grid_constant__ int n) { block_sync(); }":               nil,
		"const u32 clocks = thread_index(); // x__y\nint halves_of = 0x1.8p23f, volatile_ = 1;":                    nil,
		"if (u32(tid) >= kConsumers) __builtin_unreachable();":                                                     nil,
	} {
		require.Equal(t, want, hardwareWords(source), source)
	}
}
