package ir_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"amkc/ir"
)

// TestTargets holds the table of GPUs together: sorted, each with the facts that the passes and the cost model divide
// by, and with what its architecture says of it.
func TestTargets(t *testing.T) {
	require.True(t, slices.IsSortedFunc(ir.Targets,
		func(a, b ir.Target) int { return strings.Compare(a.Name, b.Name) }))
	for _, target := range ir.Targets {
		name := target.Name
		require.NotEmpty(t, ir.Cards[name], "%s: which product is it?", name)
		require.Positive(t, target.L2Bytes, name)
		require.Positive(t, target.HBMGBs, name)
		require.GreaterOrEqual(t, target.HBMBytes, 16<<30, name)
		var cc int
		for _, known := range ir.Capabilities() {
			if ir.ArchTarget(known, 1).Arch == target.Arch {
				cc = known
			}
		}
		same := ir.ArchTarget(cc, target.SMs)
		require.NotNil(t, same, "%s: %s is not an architecture of the kernel", name, target.Arch)
		same.Name, same.L2Bytes, same.HBMBytes, same.HBMGBs = name, target.L2Bytes, target.HBMBytes, target.HBMGBs
		require.Equal(t, *same, target, "%s differs from its architecture", name)
	}
	require.Len(t, ir.Cards, len(ir.Targets))
}

func TestFindTarget(t *testing.T) {
	for _, spelling := range []string{"rtx4090", "RTX4090", "RTX 4090", "rtx-4090", "Rtx_4090"} {
		require.NotNil(t, ir.FindTarget(spelling), spelling)
		require.Equal(t, "rtx4090", ir.FindTarget(spelling).Name)
	}
	require.Equal(t, "jetson-orin", ir.FindTarget("Jetson Orin").Name)
	for _, unknown := range []string{"", "rtx409", "v100", "h200x"} {
		require.Nil(t, ir.FindTarget(unknown), unknown)
	}
	ir.FindTarget("h200").SMs = 1
	require.Equal(t, 132, ir.FindTarget("h200").SMs, "a copy")
}

func TestUnsupported(t *testing.T) {
	for name, want := range map[string]string{
		"V100":   "v100 is sm_70, which is below sm_75, the oldest architecture that the kernel supports",
		"sm_70":  "sm_70 is below sm_75, the oldest architecture that the kernel supports",
		"sm_101": "sm_101 is called sm_110 since CUDA 13",
	} {
		reason, known := ir.Unsupported(name)
		require.True(t, known, name)
		require.Equal(t, want, reason)
	}
	for _, name := range []string{"", "h200", "sm_90", "sm_", "sm_x", "mi300"} {
		_, known := ir.Unsupported(name)
		require.False(t, known, name)
	}
}
