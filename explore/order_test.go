package explore_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The memory model: litmus programs over all their schedules, its rules one by one, and random programs against an
// oracle that keeps every access and whole vector clocks. With AMKC_LONG there are 200,000 of them.
func TestMemoryModel(t *testing.T) {
	t.Parallel()
	flags, programs := []string{"-O1", "-Wall", "-Wextra", "-Werror"}, 1000
	if !testing.Short() {
		flags = append(flags, "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover")
	}
	if os.Getenv("AMKC_LONG") != "" {
		programs = 200_000
	}
	model := filepath.Join(t.TempDir(), "order_test")
	program(t, model, flags, flags, "cpu/test/order_test.cc", "cpu/test/order_random.cc", "cpu/test/order_speed.cc",
		"cpu/machine/clock.cc", "cpu/machine/shadow.cc", "cpu/machine/plain.cc", "cpu/machine/strong.cc",
		"cpu/machine/history.cc", "cpu/machine/agents.cc", "cpu/machine/faults.cc", "cpu/machine/order.cc")
	out, err := exec.Command(model, strconv.Itoa(programs)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `^[0-9]+ random programs, [0-9]+ with a fault, [0-9.]+ steps each\nok\n$`, string(out))
	t.Logf("%s", out)
}
