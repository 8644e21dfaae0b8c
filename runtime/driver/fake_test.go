package driver

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
)

// A fake is a private copy of testdata/fakecuda.c: its own state, and switches to make it fail.
type fake struct {
	path    string
	fail    func(call string, code int32, after int32)
	sticky  func(code int32)
	devices func(n int32)
	peers   func(how int32)
	log     func() string
	clear   func()
	count   func(what int32) int
	launch  func(bytes *byte, shape *uint32) uintptr
}

// fakes holds the libraries built so far, by their source and -D flags.
var fakes = map[string][]byte{}

// What fake.count counts.
const (
	countThread = iota
	countForeign
	countAllocations
	countPinned
	countStreams
	countEvents
	countRetained
)

// newFake compiles the fake driver with the given -D flags and loads it. Each call gets a file of its own, because
// loading one file twice would share its state.
func newFake(t *testing.T, defines ...string) *fake {
	t.Helper()
	path := compileFake(t, "testdata/fakecuda.c", libraryName, defines...)
	handle, err := dlopen(path)
	require.NoError(t, err)
	f := &fake{path: path}
	for name, into := range map[string]any{
		"fake_fail": &f.fail, "fake_sticky": &f.sticky, "fake_devices": &f.devices, "fake_peers": &f.peers,
		"fake_log": &f.log, "fake_clear_log": &f.clear, "fake_count": &f.count, "fake_launch": &f.launch,
	} {
		purego.RegisterLibFunc(into, handle, name)
	}
	return f
}

// compileFake builds a shared library in a folder of its own, and skips the test where that is impossible.
func compileFake(t *testing.T, source, name string, defines ...string) (path string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the fake driver is a Linux shared library")
	}
	cc := ""
	for _, name := range []string{"gcc", "cc", "clang", "g++"} {
		if path, err := exec.LookPath(name); err == nil {
			cc = path
			break
		}
	}
	if cc == "" {
		t.Skip("no C compiler (gcc, cc, clang or g++) to build the fake driver with")
	}
	path = filepath.Join(t.TempDir(), name)
	key := strings.Join(append(defines, source), " ")
	if built, ok := fakes[key]; ok {
		require.NoError(t, os.WriteFile(path, built, 0o700))
	} else {
		args := append([]string{"-x", "c", "-std=gnu11", "-Wall", "-shared", "-fPIC", "-o", path}, defines...)
		out, err := exec.Command(cc, append(args, source)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Empty(t, string(out))
		fakes[key], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	return path
}

func (f *fake) library(t *testing.T) *library {
	t.Helper()
	lib, err := openLibrary(f.path)
	require.NoError(t, err)
	return lib
}

// open returns an open device with staging buffers of the given size, closed at the end of the test, when everything
// must have run on one thread.
func (f *fake) open(t *testing.T, staging int) *Device {
	t.Helper()
	d, err := f.library(t).open(0)
	require.NoError(t, err)
	d.stage.size = staging
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.Zero(t, f.count(countForeign), "calls from a thread that does not own the context")
	})
	return d
}

// calls returns the entry points called since the last clear, in order.
func (f *fake) calls() []string { return strings.Fields(f.log()) }

// lastLaunch returns the argument bytes of the last launch, its grid, block and shared bytes, and whether it was
// cooperative.
func (f *fake) lastLaunch() (args []byte, shape []int, cooperative bool) {
	buf, words := make([]byte, 4096), make([]uint32, 8)
	n := f.launch(&buf[0], &words[0])
	for _, w := range words[:7] {
		shape = append(shape, int(w))
	}
	return buf[:n], shape, words[7] == 1
}

// hostView returns the memory at a device address of the fake.
func hostView(p Ptr, n int) []byte {
	addr := uintptr(p &^ (1 << 62))
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n)
}
