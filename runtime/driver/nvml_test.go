package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func monitorOf(t *testing.T, gpu int, defines ...string) (*Monitor, error) {
	t.Helper()
	d, err := newFake(t).library(t).open(gpu)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.monitor(compileFake(t, "testdata/fakenvml.c", nvmlName, defines...))
}

func TestMonitor(t *testing.T) {
	m, err := monitorOf(t, 0)
	require.NoError(t, err)
	require.Equal(t, Settings{Driver: "580.1", MaxSMClockMHz: 1980, MaxMemoryClockMHz: 3201, PowerLimitW: 700,
		ECC: "on"}, m.Settings())
	s := m.State()
	require.Equal(t, State{SMClockMHz: 1755, MemoryClockMHz: 3201, PowerW: 512.5, TemperatureC: 61, Limits: 0x204,
		LimitsKnown: true}, s)
	require.Equal(t, []string{"sw_power_cap", "unknown_0x200"}, s.Limits.Names())
	require.NoError(t, m.Close())
	require.ErrorContains(t, m.Close(), "NVML error 1", "it was released once")
}

func TestMonitorOfAnOlderDriver(t *testing.T) {
	m, err := monitorOf(t, 0, "-DFAKE_OLD")
	require.NoError(t, err)
	require.Equal(t, []string{"sw_power_cap"}, m.State().Limits.Names())
	require.NoError(t, m.Close())
}

// What the library does not know or refuses is not told, and nothing else is lost.
func TestMonitorThatTellsLittle(t *testing.T) {
	m, err := monitorOf(t, 0, "-DFAKE_TERSE")
	require.NoError(t, err)
	require.Equal(t, Settings{Driver: "580.1"}, m.Settings())
	require.Equal(t, State{SMClockMHz: 1755, MemoryClockMHz: 3201}, m.State())
	require.NoError(t, m.Close())
}

func TestMonitorErrors(t *testing.T) {
	_, err := monitorOf(t, 1)
	require.ErrorIs(t, err, ErrNoMonitor)
	require.ErrorContains(t, err, "it does not know the GPU at 0000:0B:00.0")

	f := newFake(t)
	d := f.open(t, 4096)
	_, err = d.monitor("/nowhere/" + nvmlName)
	require.ErrorIs(t, err, ErrNoMonitor)
	require.ErrorContains(t, err, "/nowhere/libnvidia-ml.so.1 cannot be loaded")
	_, err = d.monitor(f.path) // a library, and not this one
	require.ErrorIs(t, err, ErrNoMonitor)
	require.ErrorContains(t, err, "has no nvmlInit_v2")
	f.fail("cuDeviceGetPCIBusId", 1, 0)
	_, err = d.monitor(nvmlName)
	require.ErrorContains(t, err, "cuDeviceGetPCIBusId: CUDA_ERROR_INVALID_VALUE")
}
