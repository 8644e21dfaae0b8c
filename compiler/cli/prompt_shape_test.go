package cli

import (
	"fmt"
	"os"
	"testing"

	builder "amkc/compiler"
	"amkc/ir"
	"amkc/knobs"
)

// Operands of a pass over a prompt are in the order in which the warps of a step go through the columns, whatever a
// chunk of the ring holds and however many warps share a tile.
func TestPlacesOfPromptOperands(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
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
			runOnCPU(t, "prompt_shape.cc", []string{dir}, "-DAMK_TENSOR_CORES=1")
		})
	}
}

// The same of those that wgmma multiplies, and of the tiles of products.
func TestTilesOfPrompts(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, chunk := range []int{4096, 16384} {
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			var config ir.ScheduleConfig
			knobs.ChunkBytes.Set(&config, chunk)
			knobs.InFlight.Set(&config, 1)
			dir := emittedAs(t, "bf16", "", builder.Options{Model: models + "zoo/llama-gqa", Config: config})
			runOnCPU(t, "prompt_tiles.cc", []string{dir}, "-DAMK_TENSOR_CORES=1", "-DAMK_PROMPT=1", "-DAMK_WGMMA=1")
		})
	}
}
