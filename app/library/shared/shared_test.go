package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/host/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

const script = `
import amk, json, sys
model = amk.Model(sys.argv[1], library=sys.argv[2])
said = model.generate([5, 6, 7, 8], max_tokens=20, ignore_eos=True)
drawn = model.generate([5, 6, 7, 8], max_tokens=20, ignore_eos=True, temperature=1, seed=1, top_k=1)
print(json.dumps([said.ids, drawn.ids]))
try:
    amk.Model(sys.argv[1], library=sys.argv[2], gpu=9)
except amk.MachineError as e:
    print(json.dumps(str(e)))
`

// The library that builds have drives a GPU from a process that is not Go's: a fake one here. Building it takes a
// minute, so that AMKC_LONG asks for it.
func TestLibraryOnAGPU(t *testing.T) {
	if os.Getenv("AMKC_LONG") == "" {
		t.Skip("set AMKC_LONG to build the library")
	}
	hosttest.NeedDriver(t)
	for _, tool := range []string{"go", "gcc", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool)
		}
	}
	dir := hosttest.Build(t, "", nil)
	library := filepath.Join(t.TempDir(), "libamk.so")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", library, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	s, err := host.Open(t.Context(), dir, host.Options{})
	require.NoError(t, err)
	want, err := s.Complete(t.Context(), []int{5, 6, 7, 8}, 20, nil, nil)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	run := exec.Command("python3", "-B", "-c", script, dir, library)
	run.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "..", "python"))
	run.Stderr = os.Stderr
	out, err = run.Output()
	require.NoError(t, err)
	said := json.NewDecoder(bytes.NewReader(out))
	var ids [][]int
	require.NoError(t, said.Decode(&ids))
	require.Equal(t, [][]int{want.IDs, want.IDs}, ids)
	var refused string
	require.NoError(t, said.Decode(&refused))
	require.Contains(t, refused, "GPU 9")
}
