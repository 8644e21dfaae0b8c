// Package hosttest lets tests of the host packages and of emitted launchers run without a GPU: a fake CUDA driver
// with the kernels of a build in it, and build directories for them. It is for tests alone, and is not copied into
// launchers.
package hosttest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/host"
	"amkc/runtime/shape"
)

// fakeDir is the environment variable through which a test binary tells itself where the fake driver is.
const fakeDir = "AMK_TEST_FAKE_DRIVER"

// Main is for TestMain: it runs the tests in a process that finds the fake driver where others find libcuda.so.1. The
// loader reads its search path when a process starts, so that is a process of its own.
func Main(m *testing.M) {
	if os.Getenv(fakeDir) != "" {
		os.Exit(m.Run())
	}
	os.Exit(again(m))
}

func again(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	switch err := compile(dir); {
	case errors.Is(err, errNoDriver):
		fmt.Fprintln(os.Stderr, "tests that need the fake driver are skipped:", err)
		return m.Run()
	case err != nil: // tests that nobody runs must not pass
		fmt.Fprintln(os.Stderr, "the fake driver:", err)
		return 1
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), fakeDir+"="+dir, "LD_LIBRARY_PATH="+dir)
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// errNoDriver says that this machine cannot have a fake driver.
var errNoDriver = errors.New("the fake driver is a shared library of Linux, and a C compiler builds it")

// compile builds the fake driver and the fake NVML in dir.
func compile(dir string) error {
	if runtime.GOOS != "linux" {
		return errNoDriver
	}
	root, err := repository()
	if err != nil {
		return err
	}
	for library, source := range map[string]string{
		"libcuda.so.1":      filepath.Join(root, "runtime", "host", "hosttest", "testdata", "fakekernels.c"),
		"libnvidia-ml.so.1": filepath.Join(root, "runtime", "driver", "testdata", "fakenvml.c"),
	} {
		if err := compileC(filepath.Join(dir, library), source); err != nil {
			return err
		}
	}
	return nil
}

// repository is the folder above the one that the tests run in that has go.mod: a test binary need not know where its
// sources were.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		} else if filepath.Dir(dir) == dir {
			return "", err
		}
	}
}

func compileC(library, source string) error {
	for _, cc := range []string{"gcc", "cc", "clang", "g++"} {
		if _, err := exec.LookPath(cc); err != nil {
			continue
		}
		out, err := exec.Command(cc, "-x", "c", "-std=gnu11", "-Wall", "-Wno-unused", "-O1", "-shared", "-fPIC",
			"-ffp-contract=off", "-o", library, source, "-lm").CombinedOutput()
		if err != nil || len(out) > 0 {
			return fmt.Errorf("%s: %w\n%s", cc, err, out)
		}
		return nil
	}
	return fmt.Errorf("%w: want gcc, cc, clang or g++", errNoDriver)
}

// NeedDriver skips the test when there is no fake driver, and returns the folder that holds it.
func NeedDriver(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(fakeDir)
	if dir == "" {
		t.Skip("no fake driver")
	}
	return dir
}

// Facts are those of the fake build; they agree with the defaults of fakeimages.h.
func Facts() host.Facts {
	return host.Facts{
		Model: host.Model{Name: "fake", Architecture: "LlamaForCausalLM", DType: "BF16", Layers: 2, Hidden: 64,
			Intermediate: 128,
			Heads:        4, KVHeads: 2, HeadDim: 16, Vocab: 4096, MaxSeq: 128, CacheBlock: 512, Tied: true, Eps: 1e-5},
		Target: host.Target{Name: "fake", Arch: "sm_90a", SMs: 4},
		CUDA:   13000,
		Stages: []string{"embed", "L{i}.qkv", "L{i}.attn", "lm_head"},
		Variants: []host.Variant{{Name: "all", Lo: 0, Hi: 127, Exchanges: []host.Exchange{
			{Stage: "embed", Elements: 64}, {Stage: "L{i}.qkv", Number: 1, Elements: 128, Layers: 2},
			{Stage: "L{i}.attn", Number: 2, Elements: 64, Layers: 2},
			{Stage: "lm_head", Number: 3}}}},
		Traffic: host.Traffic{Weights: 4096, Cache: []host.CacheRows{{Bytes: 64}}},
	}
}

// AddPasses gives a build kernels for passes of several tokens, of the stages that it has.
func AddPasses(f *host.Facts, passes ...shape.Pass) {
	for _, p := range passes {
		f.Passes = append(f.Passes, host.PassFacts{Pass: p.Written(), Stages: f.Stages})
	}
}

// Build writes a build directory for the fake driver. settings is key=value pairs as in fakeimages.h; edit may change
// the facts, and nil leaves them.
func Build(t testing.TB, settings string, edit func(*host.Facts)) string {
	t.Helper()
	dir := t.TempDir()
	f := Facts()
	if edit != nil {
		edit(&f)
	}
	facts := map[string]any{"format": host.ManifestFormat, "facts": f, "amkc": "test"}
	manifest, err := json.MarshalIndent(facts, "", "  ")
	require.NoError(t, err)
	Write(t, dir, host.ManifestFile, manifest)
	Write(t, dir, host.FatbinFile, []byte("FAKE "+settings+" \x00"))
	Write(t, dir, host.MeasureFile, []byte("FAKE "+settings+" \x00"))
	for _, p := range f.Passes {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, p.Dir()), 0o700))
		kernel := "FAKE"
		if p.NumSequences() > 1 {
			kernel += fmt.Sprintf(" sequences=%d", p.NumSequences())
		}
		if p.NumRows() > 1 {
			kernel += fmt.Sprintf(" rows=%d", p.NumRows())
		}
		Write(t, dir, filepath.Join(p.Dir(), host.FatbinFile), []byte(kernel+" \x00"))
	}
	if f.Prompt > 0 {
		Write(t, dir, host.PromptFile, fmt.Appendf(nil, "FAKE prompt=%d \x00", f.Prompt))
	}
	Write(t, dir, host.ReferenceFile, []byte("FAKE REFERENCE \x00"))
	Write(t, dir, host.ConfigFile, []byte(`{"eos_token_id": 1}`))
	weights := Weights(4096)
	for range f.NumRanks() - 1 { // as many again for each further GPU
		weights = append(weights, weights[len(weights)-4096:]...)
	}
	Write(t, dir, host.WeightsFile, weights)
	return dir
}

// Weights is a safetensors file of n bytes of data that the fake kernels accept.
func Weights(n int) []byte {
	header := `{"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}`
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return slices.Concat(file, []byte(header), []byte("weights!"), make([]byte, n-8))
}

// Write writes one file of a build directory.
func Write(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
}
