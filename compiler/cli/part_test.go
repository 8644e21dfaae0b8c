package cli

import (
	"testing"

	builder "amkc/compiler"
)

// The parts of a step copy what the step copies, at positions of both variants, and a stage that a part leaves out does
// nothing.
func TestPartsOfStep(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir := emittedAs(t, "bf16", "", builder.Options{Model: models + "pycoder-5m"})
	stages := func(attention string) string { return "kStageQkv," + attention + ",kStageO,kStageGateUp,kStageDown" }
	runOnCPU(t, "part.cc", []string{dir}, "-DAMK_PARTS=1", "-DAMK_LEAN=1", "-DSHORT_STAGES="+stages("kStageShortAttn"),
		"-DLONG_STAGES="+stages("kStageLongPart,kStageLongAttn"))
}
