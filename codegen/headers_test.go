package codegen

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
	"amkc/kernel"
)

// A build has the headers of the device runtime that its sources need, and no other.
func TestHeadersOfABuild(t *testing.T) {
	quoted := regexp.MustCompile(`#include "(.*)"`)
	for name, left := range map[string][]string{
		"pycoder-5m_h200_bf16":     {"barrier", "kinds", "norm_rows"},
		"llama-odd-dims_h200_fp32": {"barrier", "kinds", "norm_rows", "prompt", "prompt_gemm"},
		"gemma2-split-k_h200_bf16": {"barrier", "kinds", "part"},
	} {
		files, err := Project(builtProgram(t, name), goldenGraphs(t)[name], "demo")
		require.NoError(t, err)
		included := map[string]bool{}
		for file, text := range files {
			if strings.HasPrefix(file, "library/") || strings.HasPrefix(file, "launcher/") {
				continue
			}
			for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
				header := path.Join(path.Dir(file), m[1])
				require.Contains(t, files, header, "%s of %s includes it", file, name)
				included[header] = true
			}
		}
		for file := range files {
			require.True(t, included[file] || !strings.HasSuffix(file, ".cuh"), "%s has %s", name, file)
		}
		for _, header := range left {
			require.NotContains(t, files, "amk/"+header+".cuh", name)
		}
	}
}

// The page of a vector is a constant that nothing else of a build defines.
func TestConstantsOfVectorsAreTheirOwn(t *testing.T) {
	const name = "pycoder-5m_h200_bf16"
	files, err := Project(builtProgram(t, name), goldenGraphs(t)[name], "demo")
	require.NoError(t, err)
	constant, defined := regexp.MustCompile(`(?m)^constexpr \w+ (k\w+)`), map[string]string{}
	for file, text := range files {
		if strings.HasSuffix(file, "h") && file != "pages.h" {
			for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
				defined[m[1]] = file
			}
		}
	}
	require.Contains(t, defined, "kHeads")
	for _, v := range kernel.Vectors {
		_, rest := ir.InLayer(v.Name)
		require.Empty(t, defined["k"+identifier(rest)], "%s is k%s, which this file defines", v.Name, identifier(rest))
	}
}
