package host

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/runtime/driver"
)

func TestClocksAreTheRangeOfAllSamples(t *testing.T) {
	require.Nil(t, clocksOf(nil))
	states := []driver.State{
		{SMClockMHz: 1980, MemoryClockMHz: 3201, PowerW: 400, TemperatureC: 50, LimitsKnown: true},
		{SMClockMHz: 1755, MemoryClockMHz: 3201, PowerW: 690.5, TemperatureC: 55, Limits: 0x4, LimitsKnown: true},
		{SMClockMHz: 1900, MemoryClockMHz: 3201, PowerW: 500, TemperatureC: 54, Limits: 0x20, LimitsKnown: true},
	}
	require.Equal(t, &Clocks{Samples: 3, SM: Range{1755, 1980}, Memory: Range{3201, 3201}, PowerW: Range{400, 690.5},
		Temperature: Range{50, 55}, LimitedBy: []string{"sw_power_cap", "sw_thermal_slowdown"}}, clocksOf(states))

	// Nothing holding the clocks back, and a driver that does not say, are not the same.
	limits := func(states []driver.State) string {
		text, err := json.Marshal(clocksOf(states).LimitedBy)
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, "[]", limits(states[:1]))
	require.Equal(t, "null", limits([]driver.State{states[0], {SMClockMHz: 1980}}))
}

func TestMachineSaysWhyThereAreNoClocks(t *testing.T) {
	facts := driver.Facts{Name: "GPU", Major: 9, SMs: 132, ClockKHz: 1980000, MemoryClockKHz: 3201000,
		DriverVersion: 13000}
	w := clockWatch{absent: errors.New("no NVML here")}
	w.look()
	require.Equal(t, Machine{GPU: "GPU", Arch: "sm_90", SMs: 132, CUDA: "13.0", MaxSMClockMHz: 1980,
		MaxMemoryClockMHz: 3201,
		ClocksAbsent:      "no NVML here"}, w.machine(facts))
	require.NoError(t, w.close())
}
