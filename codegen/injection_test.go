package codegen

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/internal/injection"
	"amkc/ir"
)

func goldenProgram(t *testing.T) *ir.Program { return builtProgram(t, "llama-gqa_t4_fp16_split") }

// builtProgram is the program in a directory of the golden builds.
func builtProgram(t *testing.T, dir string) *ir.Program {
	t.Helper()
	data, err := os.ReadFile("../testdata/golden/" + dir + "/program.json")
	require.NoError(t, err)
	p, diags := ir.LoadJSON(data, "program.json")
	require.NoError(t, diags.Err())
	return p
}

// Nothing is emitted from a program with a string that is not a name, even if nobody has checked it before.
func TestHostileTextIsNotEmitted(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	g := goldenGraphs(t)["llama-gqa_t4_fp16_split"]
	_, err := Project(goldenProgram(t), g, "demo")
	require.NoError(t, err)
	places := len(injection.Places(goldenProgram(t)))
	seen := map[string]bool{}
	for i := range places {
		p := goldenProgram(t)
		place := injection.Places(p)[i]
		if seen[place.Path] {
			continue // another element of a list
		}
		seen[place.Path] = true
		for _, hostile := range injection.Texts {
			place.Set(hostile)
			_, err := CUDA(p)
			require.Error(t, err, "%s: %q", place.Path, hostile)
			_, err = Project(p, g, "demo")
			require.Error(t, err, "%s: %q", place.Path, hostile)
		}
	}
	require.Greater(t, len(seen), 15)
	for _, hostile := range injection.Texts {
		_, err := Project(goldenProgram(t), g, hostile)
		require.Error(t, err, "%q", hostile)
	}
	p := goldenProgram(t)
	p.Target.Arch = "" // a program may leave it out, and nvcc may not
	_, err = CUDA(p)
	require.ErrorContains(t, err, "AMK4003")
}

// otherCompiler is what a header includes where nvcc does not compile it, up to what it has for nvcc.
var otherCompiler = regexp.MustCompile(`#ifndef __CUDACC__\n#include <amk_cpu/\w+\.h>\n#else\n`)

var include = regexp.MustCompile(`(?m)^\s*#\s*include\s*(["<])([^">]+)[">]`)

// Every include of a build leads to a file of the build, found from the file that includes it, or to a few headers of
// the toolchain: nvcc is told of no other place to look. What headers include for a compiler that is not nvcc is in
// no build.
func TestIncludesLeadNowhereElse(t *testing.T) {
	one, passes := builtProgram(t, "pycoder-5m_h200_bf16"), builtProgram(t, "pycoder-5m_h200_bf16/rows8")
	files, err := Project(one, goldenGraphs(t)["pycoder-5m_h200_bf16"], "demo", passes)
	require.NoError(t, err)
	require.Contains(t, files, "rows8/megakernel.cu")
	found := 0
	for name, text := range files {
		if !strings.HasSuffix(name, ".cu") && !strings.HasSuffix(name, ".h") && !strings.HasSuffix(name, ".cuh") {
			continue
		}
		without := otherCompiler.ReplaceAllString(string(text), "")
		require.Equal(t, path.Dir(name) == "amk/hw", without != string(text), name)
		for _, m := range include.FindAllStringSubmatch(without, -1) {
			found++
			if m[1] == "<" {
				known := []string{"cstddef", "cstdint", "cuda_bf16.h", "cuda_fp16.h"}
				if path.Ext(name) == ".h" && path.Base(name) == "amk.h" { // for C
					known = []string{"stddef.h", "stdint.h"}
				}
				require.Contains(t, known, m[2], name)
				continue
			}
			require.Contains(t, files, path.Join(path.Dir(name), m[2]), "%s includes %s", name, m[2])
		}
	}
	require.Greater(t, found, 20)
	require.NotContains(t, string(files["Makefile"]), "-I")
}
