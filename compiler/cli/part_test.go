package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
)

// The parts of a step copy what the step copies, at positions of both variants, and a stage that a part leaves out does
// nothing.
func TestPartsOfStep(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir := emittedAs(t, "bf16", "", builder.Options{Model: models + "pycoder-5m"})
	measure, err := os.ReadFile(filepath.Join(dir, "measure.cu"))
	require.NoError(t, err)
	parts := regexp.MustCompile(`(?s)namespace amk \{.*?\n\}  // namespace amk`).Find(measure)
	require.Contains(t, string(parts), "walk_part")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "parts.h"), parts, 0o600))
	onCPU(t, dir)
	for position, attention := range map[int]string{3: "kStageShortAttn", 900: "kStageLongPart,kStageLongAttn"} {
		outputOnCPU(t, "part.cc", []string{dir}, "-DAMK_PARTS=1", "-DSTAGES=kStageQkv,"+attention+
			",kStageO,kStageGateUp,kStageDown", fmt.Sprint("-DPOSITION=", position))
	}
}
