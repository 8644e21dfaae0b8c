package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/knobs"
)

// Operands of a pass over a prompt lie in the order in which the warps of a step go through the columns, whatever a
// chunk of the ring holds and however many warps share a tile.
func TestPlacesOfPromptOperands(t *testing.T) {
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	chunks := []int{4096, 16384}
	if os.Getenv("AMKC_LONG") != "" {
		chunks = append(chunks, 8192, 65536)
	}
	for _, chunk := range chunks {
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			var config ir.ScheduleConfig
			knobs.ChunkBytes.Set(&config, chunk)
			knobs.InFlight.Set(&config, 1)
			dir := emittedAs(t, "bf16", "", builder.Options{Model: models + "zoo/llama-gqa", Config: config})
			onCPU(t, dir)
			program := filepath.Join(dir, "prompt_shape")
			out, err := exec.Command(compiler, "-DAMK_TENSOR_CORES=1", "-std=c++17", "-O0", "-U_FORTIFY_SOURCE", "-w",
				"-I"+dir, "-o", program, "testdata/prompt_shape.cc").CombinedOutput()
			require.NoError(t, err, "%s", out)
			out, err = exec.Command(program).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}
