package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	"amkc/compiler"
	"amkc/ir"
)

// The last two lines say what a build has and what comes next, for all that tools may have made of it.
func TestWhatComesNext(t *testing.T) {
	const path = "../../testdata/ir/tiny.amk"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	p, err := ir.Load(text, path)
	require.NoError(t, err)
	for _, c := range []struct {
		dir, nvcc   string
		files       []string
		build, next string
	}{
		{"my build", "", nil, "my build: sources and weights", "make -C 'my build'"},
		{"my build", "", []string{"tiny"}, "my build: sources and weights, executable", "make -C 'my build'"},
		{"b", "13.0", nil, "b: sources and weights, kernels", "amkc check b, on a machine with this GPU"},
		{"b", "13.0", []string{"tokenizer.json"}, "b: sources and weights, kernels",
			"amkc chat b, on a machine with this GPU"},
		{"b", "13.0", []string{"tiny", "tokenizer.json"}, "b: sources, weights, kernels and executable",
			"b/tiny chat, on a machine with this GPU"},
		{".", "13.0", []string{"tiny"}, ".: sources, weights, kernels and executable",
			"./tiny check, on a machine with this GPU"},
	} {
		b := &compiler.Build{Program: p, Files: c.files, Toolchain: codegen.Toolchain{NVCC: c.nvcc}}
		lines := strings.Split(strings.TrimSpace(summary(c.dir, b, nil, nil, nil)), "\n")
		require.Equal(t, []string{"build      " + c.build, "next       " + c.next}, lines[len(lines)-2:])
	}
}
