package cli

import (
	"testing"

	builder "amkc/compiler"
)

// What the kernel makes of quantised matrices, compiled for the CPU, is the product with the elements that the plain
// kernels find: of each format and type of scales, with tensor cores and without them, and with and without an
// instruction that widens fp8.
func TestProductsOfTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, c := range []struct {
		dtype   string
		defines []string
	}{
		{"bf16", []string{"-DAMK_TENSOR_CORES=1", "-DAMK_FP8_CONVERT=1"}},
		{"fp16", []string{"-DAMK_TENSOR_CORES=1", "-DAMK_FP8_CONVERT=0"}},
		{"fp32", []string{"-DAMK_TENSOR_CORES=0"}},
	} {
		dir := emittedAs(t, c.dtype, "", builder.Options{Model: models + "quantised/models/llama-fp8-blocks"})
		runOnCPU(t, "products.cc", []string{dir}, c.defines...)
	}
}
