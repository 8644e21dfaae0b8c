package cli

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/codegen"
	builder "amkc/compiler"
	"amkc/ir"
	"amkc/runtime"
)

// emitted writes the CUDA sources of a build, for an H200 unless another is asked for, those of passes too, and its
// weights, which is all that is compiled for the CPU, and returns the directory. A build in full has the launcher too,
// most of whose bytes are modules of others.
func emitted(t *testing.T, o builder.Options) (dir string) {
	t.Helper()
	if o.Target == nil {
		o.Target = ir.FindTarget("h200")
	}
	l, err := builder.RunPasses(o)
	require.NoError(t, err)
	defer l.Close()
	files, err := codegen.CUDA(l.Program)
	require.NoError(t, err)
	files["reference.cu"], err = codegen.Reference(l.Program, l.Graph)
	require.NoError(t, err)
	maps.Copy(files, runtime.DeviceSources())
	for _, p := range l.Passes {
		sources, err := codegen.CUDA(p)
		require.NoError(t, err)
		for name, text := range sources {
			files[p.Pass.Dir()+"/"+name] = text
		}
	}
	dir = t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	_, _, err = builder.Pack(t.Context(), l, filepath.Join(dir, "weights.safetensors"), nil)
	require.NoError(t, err)
	return dir
}

// emittedAs is emitted with what --dtype and --cache would say.
func emittedAs(t *testing.T, dtype, cache string, o builder.Options) (dir string) {
	t.Helper()
	kind := dtypes[dtype]
	o.DType = &kind
	if cache == "int8" {
		kind := ir.I8
		o.Cache = &kind
	}
	return emitted(t, o)
}
