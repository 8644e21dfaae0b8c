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
	numbers := regexp.MustCompile(`(?s)namespace amk \{.*?\n\}`).Find(measure)
	require.Contains(t, string(numbers), "kNumberOf<LmHead>")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "numbers.h"), numbers, 0o600))
	onCPU(t, dir)
	for _, position := range []int{3, 900} {
		outputOnCPU(t, "part.cc", []string{dir}, "-DFIRST=kStageQkv", "-DLAST=kStageDown",
			fmt.Sprint("-DPOSITION=", position))
	}
}
