package driver

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMissingLibrary(t *testing.T) {
	_, err := openLibrary(filepath.Join(t.TempDir(), "libcuda.so.1"))
	require.ErrorIs(t, err, ErrNoDriver)
	require.ErrorContains(t, err, "install the NVIDIA driver")
}

func TestNotALibrary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.WriteFile(path, []byte("not ELF"), 0o600))
	_, err := openLibrary(path)
	require.ErrorIs(t, err, ErrNoDriver)
}

// The library that Use names is that of Open and Count, and its other functions are bound. It is the only one: a second
// call, or one after the driver was needed, is refused.
func TestUse(t *testing.T) {
	require.Nil(t, system.lib, "another test has loaded the driver of this process")
	t.Cleanup(func() { system.lib = nil })
	f := newFake(t)
	var absent struct {
		None func() `cu:"fake_none"`
	}
	err := Use(f.path, &absent)
	require.ErrorIs(t, err, ErrDriverTooOld)
	require.ErrorContains(t, err, "fake_none")
	require.ErrorIs(t, Use(filepath.Join(t.TempDir(), "none.so"), nil), ErrNoDriver)
	var more struct {
		Devices func(n int32) `cu:"fake_devices"`
		None    func()        `cu:"fake_none,optional"`
	}
	require.NoError(t, Use(f.path, &more))
	require.Nil(t, more.None)
	more.Devices(1)
	n, err := Count()
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.ErrorIs(t, Use(f.path, nil), ErrUnavailable)
}

func TestDriverTooOld(t *testing.T) {
	for name, define := range map[string]string{"version": "-DFAKE_VERSION=11080",
		"missing entry point": "-DFAKE_NO_OCCUPANCY"} {
		t.Run(name, func(t *testing.T) {
			_, err := openLibrary(newFake(t, define).path)
			require.ErrorIs(t, err, ErrDriverTooOld)
			require.ErrorContains(t, err, "version 525 or newer")
		})
	}
}

func TestInitErrors(t *testing.T) {
	for _, c := range []struct {
		code result
		kind error
		text string
	}{
		{errNoDevice, ErrNoDevice, "CUDA_ERROR_NO_DEVICE"},
		{errStubLibrary, ErrNoDriver, "stub"},
		{errSystemDriverMismatch, ErrNoDriver, "reboot"},
		{errCompatNotSupported, ErrNoDriver, "compat"},
		{errOperatingSystem, ErrUnavailable, "/dev/nvidia*"},
		{errSystemNotReady, ErrUnavailable, "fabric manager"},
		{999, ErrUnavailable, "nvidia-smi"},
	} {
		t.Run(strconv.Itoa(int(c.code)), func(t *testing.T) {
			f := newFake(t)
			f.fail("cuInit", int32(c.code), 0)
			_, err := openLibrary(f.path)
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.text)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "cuInit", e.Call)
			require.Equal(t, int(c.code), e.Code)
		})
	}
}

func TestNoDevices(t *testing.T) {
	f := newFake(t)
	lib := f.library(t)
	f.devices(0)
	_, err := lib.count()
	require.ErrorIs(t, err, ErrNoDevice)
	_, err = lib.open(0)
	require.ErrorIs(t, err, ErrNoDevice)
}

func TestProbeReadsFactsWithoutContext(t *testing.T) {
	f := newFake(t)
	all, err := f.library(t).probe()
	require.NoError(t, err)
	require.Equal(t, Facts{
		Ordinal: 1, Name: "Fake B", Major: 9, SMs: 132, MaxThreads: 1024, SharedPerBlock: 227 << 10,
		SharedPerSM:    228 << 10,
		RegistersPerSM: 65536, L2Bytes: 50 << 20, TotalMemory: 4 << 30, BusWidthBits: 6144, ClockKHz: 1980000,
		MemoryClockKHz:    0, // the fake refuses it, which must not be an error
		CooperativeLaunch: true, DriverVersion: 13000,
	}, all[1])
	require.Len(t, all, 2)
	require.Equal(t, "sm_90", all[0].Arch())
	require.Zero(t, f.count(countRetained))
	require.NotContains(t, f.calls(), "cuDevicePrimaryCtxRetain")
}

func TestProbeReportsAttributeErrors(t *testing.T) {
	f := newFake(t)
	lib := f.library(t)
	f.fail("cuDeviceGetAttribute", 1, 2)
	_, err := lib.probe()
	require.EqualError(t, err, "attribute 16 of GPU 0: cuDeviceGetAttribute: CUDA_ERROR_INVALID_VALUE (1): "+
		"invalid argument")
}

// On a machine without a driver the public functions say so; on one with a driver this test has nothing to look at.
func TestSystemWithoutDriver(t *testing.T) {
	if _, err := dlopen(libraryName); err == nil {
		t.Skip("this machine has a driver; see TestLive")
	}
	_, err := Count()
	require.ErrorIs(t, err, ErrNoDriver)
	_, err = Probe()
	require.ErrorIs(t, err, ErrNoDriver)
	_, err = Open(0)
	require.ErrorIs(t, err, ErrNoDriver)
}

func TestFormatVersion(t *testing.T) {
	require.Equal(t, "13.0", FormatVersion(13000))
	require.Equal(t, "12.8", FormatVersion(12080))
	require.ErrorContains(t, tooOld(12080, 13000, nil),
		"supports CUDA 12.8, and CUDA 13.0 is needed; update the NVIDIA driver to version 580")
	require.ErrorContains(t, tooOld(13000, 14000, nil), "for CUDA 14.0")
}

// The package travels into every launcher, so what it imports must travel too.
func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imp := range file.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			if path != "github.com/ebitengine/purego" {
				first, _, _ := strings.Cut(path, "/")
				require.NotContains(t, first, ".", "%s imports %s", name, path)
				require.NotEqual(t, "amkc", first, "%s imports %s", name, path)
			}
		}
	}
}
