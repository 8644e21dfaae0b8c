package kernels

import (
	"fmt"
	"slices"
	"strings"
)

// A kernelCase is how a model is compiled.
type kernelCase struct {
	target, model, dtype string
	config               string // of the schedule, in JSON
	weights, cache       string
	rows                 int  // of passes, and sequences: the kernels of these alone are compiled
	gpus                 int  // that share the model; 0: one
	prompt               bool // prompt.cu is compiled too, which takes as long as the rest of a case
	longPrompt           bool // that in make long alone
	long                 bool // in make long alone
}

// Configurations of schedules.
const (
	unrolled    = `{"tiling": {"loop": {"roll": 0}}}`
	barriers    = `{"tiling": {"loop": {"barrier": 1}}}`
	stock       = `{"tiling": {"ring": {"stock": 6, "in_flight_stocked": 2}}}`
	aheadOff    = `{"tiling": {"ring": {"run_ahead": 0}}}`
	noStock     = `{"tiling": {"ring": {"stock": 0}}}` // as models of a billion parameters and more have it
	counters    = `{"tiling": {"exchange": {"flagged": 0}}}`
	smallChunks = `{"tiling": {"ring": {"chunk_bytes": 4096}}}`
	smallBlock  = `{"smem_bytes_per_block": 20480}`    // of a compact scratch
	longVector  = `{"tiling": {"warps": {"down": 1}}}` // a warp has six quads of it: its digits are in shared memory
	pagesInTurn = `{"page_allocation": "none"}`
	splitWindow = `{"tiling": {"attention": {"split_from": 16, "max_splits": 4}, "ring": {"chunk_bytes": 4096}}}`
	// Of one kv head: lanes that join splits have four each. At first there are few.
	manySplits = `{"tiling": {"attention": {"split_from": 16, "middle_splits": 8, "middle_until": 256,
		"max_splits": 128}}}`
	// Variants that stream in ways of their own: with a stock in one of them, and running ahead in one of them.
	longStream = `{"tiling": {"attention": {"split_from": 16, "max_splits": 4}, "long": {"pace": 500, "stock": 0}}}`
	longAhead  = `{"tiling": {"attention": {"split_from": 16, "max_splits": 4}, "ring": {"run_ahead": 0},
		"long": {"run_ahead": 8}}}`
)

// Models that are compiled more than once.
const (
	pycoder = "pycoder-5m"
	llama   = "zoo/llama-gqa"
	odd     = "zoo/llama-odd-dims"
	window  = "zoo/mistral-window"

	layerHeads = "zoo/llama-layer-heads" // whose layers differ
)

// inGate are the architectures that `make kernels` compiles for: one with asynchronous copies, and Hopper, with bulk
// copies and wgmma. `make long` compiles for all.
var inGate = []string{"a100", "h200"}

// streams are the configurations whose measured forms `make kernels` compiles, besides those of the first case of an
// architecture: what is stocked ahead, and variants that stream in ways of their own.
var streams = []string{stock, longStream}

// cases have every architecture in the dtype that it is for, and every dtype on the oldest and on Hopper; what else the
// loop over layers can be, on each way of filling the ring; what else the stream can wait for; quantised weights;
// caches of integers, which bf16 and fp16 multiply in ways of their own; and passes. The kernel for prompts is compiled
// once for each architecture, and on Hopper for what its own code has several forms of: norms per head, all of q and k
// as one and a whole residual, LayerNorm and parallel branches, one kv head for many, many splits, and layers that
// differ in heads.
var cases = []kernelCase{
	{target: "t4", model: pycoder, dtype: "fp16"},
	{target: "t4", model: llama, dtype: "fp16", config: smallBlock},
	{target: "t4", model: "zoo/qwen3-odd-dims", dtype: "fp32"},
	{target: "t4", model: "zoo/nemotron-half", dtype: "fp32", config: counters},
	{target: "t4", model: "zoo/qwen3-odd-dims", dtype: "fp16", cache: "int8"},
	{target: "a100", model: pycoder, dtype: "bf16", prompt: true},
	{target: "a100", model: llama, dtype: "bf16", config: barriers},
	{target: "a100", model: pycoder, dtype: "fp16", weights: "int4:g64:sym,lm_head=int8,layers.0.*=none"},
	{target: "a10g", model: llama, dtype: "fp16", prompt: true},
	{target: "l4", model: odd, dtype: "bf16"},
	{target: "jetson-orin", model: llama, dtype: "bf16", prompt: true},
	{target: "h200", model: pycoder, dtype: "bf16"},
	{target: "h200", model: pycoder, dtype: "bf16", rows: 8},
	{target: "h200", model: llama, dtype: "bf16", gpus: 4},
	{target: "h200", model: "zoo/qwen3-qknorm", dtype: "bf16", prompt: true},
	{target: "h200", model: "zoo/gemma2-split-k", dtype: "bf16"},
	{target: "h200", model: "zoo/mistral-wide-group", dtype: "bf16", longPrompt: true},
	{target: "h200", model: "zoo/gpt-neox-parallel", dtype: "bf16", longPrompt: true},
	{target: "h200", model: "zoo/olmo2-plain", dtype: "bf16", longPrompt: true},
	{target: "h200", model: "quantised/models/llama-fp8-blocks", dtype: "bf16"},
	// layers of three kinds, by how they are stored
	{target: "h200", model: "quantised/models/llama-ct-int4-layers", dtype: "bf16"},
	// layers of three kinds, by their heads and widths
	{target: "h200", model: layerHeads, dtype: "bf16", prompt: true},
	// layers of two kinds, by the size of their heads, and values that are normalised
	{target: "h200", model: "zoo/gemma4-keys-serve", dtype: "bf16", prompt: true},
	{target: "h200", model: "zoo/mixtral-window", dtype: "bf16"},
	{target: "h200", model: "zoo/glm4-moe-groups", dtype: "bf16", rows: 8, long: true},
	{target: "t4", model: "zoo/gpt-oss-sinks", dtype: "fp16", rows: 4, long: true},
	{target: "h200", model: "zoo/gpt-oss-mxfp4", dtype: "bf16"},
	{target: "h200", model: "zoo/lfm2-biases", dtype: "bf16"},
	{target: "a100", model: "zoo/lfm2-former", dtype: "fp16", cache: "int8", rows: 4, long: true},
	{target: "t4", model: "zoo/lfm2-moe", dtype: "fp32", long: true},
	{target: "h200", model: "zoo/qwen3-5-text", dtype: "bf16"},
	{target: "t4", model: "zoo/qwen3-5-tied", dtype: "fp32", long: true},
	{target: "a100", model: "zoo/gpt-oss-sinks", dtype: "fp16", long: true},
	{target: "t4", model: "zoo/olmoe-plain", dtype: "fp16", long: true},
	{target: "t4", model: "zoo/gpt-oss-sinks", dtype: "fp32", long: true},
	{target: "a100", model: "zoo/granite-moe-scaled", dtype: "fp32", long: true},
	{target: "h200", model: pycoder, dtype: "fp16", config: longVector, weights: "int8"},
	{target: "h200", model: odd, dtype: "fp32", config: smallBlock},
	{target: "h200", model: llama, dtype: "bf16", config: stock, prompt: true},
	{target: "h200", model: llama, dtype: "bf16", config: longStream},
	{target: "h200", model: window, dtype: "bf16", config: splitWindow, cache: "int8"},
	{target: "h200", model: "zoo/gemma-tied", dtype: "bf16", config: manySplits, longPrompt: true},
	{target: "b200", model: pycoder, dtype: "bf16", prompt: true},
	{target: "sm_103", model: llama, dtype: "bf16", prompt: true},
	{target: "sm_110", model: llama, dtype: "bf16", prompt: true},
	{target: "rtx5090", model: llama, dtype: "bf16", config: aheadOff, prompt: true},
	{target: "sm_121", model: llama, dtype: "bf16", prompt: true},

	// The same in other combinations, and the code that other families have.
	{target: "h200", model: llama, dtype: "bf16", config: unrolled, long: true},
	{target: "h200", model: llama, dtype: "bf16", config: pagesInTurn, long: true},
	{target: "h200", model: "zoo/gemma-tied", dtype: "bf16", long: true},
	{target: "t4", model: odd, dtype: "bf16", long: true},
	{target: "t4", model: llama, dtype: "fp16", config: unrolled, long: true},
	{target: "t4", model: llama, dtype: "fp16", config: barriers, long: true},
	{target: "t4", model: "zoo/gemma-odd-dims", dtype: "fp16", long: true},
	{target: "t4", model: "zoo/gemma2-uncapped", dtype: "fp32", long: true},
	{target: "t4", model: window, dtype: "fp16", config: splitWindow, long: true},
	{target: "t4", model: "zoo/starcoder2-plain", dtype: "fp32", long: true},
	{target: "t4", model: "zoo/olmo3-windows", dtype: "fp32", long: true},
	{target: "t4", model: layerHeads, dtype: "fp16", long: true},
	{target: "t4", model: "quantised/models/llama-ct-fp8", dtype: "fp16", long: true},
	{target: "t4", model: pycoder, dtype: "fp16", config: smallChunks, rows: 4, long: true},
	{target: "a100", model: llama, dtype: "fp16", cache: "int8", long: true},
	// which has no instruction that widens e4m3
	{target: "a100", model: "quantised/models/llama-ct-fp8", dtype: "bf16", long: true},
	{target: "a100", model: pycoder, dtype: "bf16", rows: 8, cache: "int8", long: true},
	{target: "h200", model: "gguf/models/llama-mixed", dtype: "bf16", prompt: true, long: true},
	{target: "h200", model: "quantised/models/llama-ct-nvfp4", dtype: "bf16", prompt: true, long: true},
	{target: "h200", model: "quantised/models/llama-ct-mxfp4", dtype: "bf16", prompt: true, long: true},
	{target: "h200", model: "zoo/gemma3-tied", dtype: "bf16", long: true},
	{target: "h200", model: "zoo/gemma2-split-k", dtype: "fp32", long: true},
	{target: "h200", model: "zoo/llama-biases-yarn", dtype: "bf16", long: true},
	{target: "h200", model: "zoo/phi3-short", dtype: "bf16", long: true},
	{target: "h200", model: "zoo/starcoder2-tied", dtype: "bf16", long: true},
	{target: "h200", model: "zoo/exaone4-windows", dtype: "bf16", long: true},
	{target: "h200", model: "zoo/gpt2", dtype: "bf16", long: true},
	{target: "h200", model: "zoo/olmo-clipped", dtype: "bf16", long: true},
	{target: "h200", model: "zoo/apertus-llama3", dtype: "bf16", long: true},
	{target: "h200", model: "zoo/stablelm-head-norms", dtype: "bf16", long: true},
	{target: "h200", model: pycoder, dtype: "bf16", weights: "int4:g32:asym", long: true},
	{target: "h200", model: pycoder, dtype: "bf16", weights: "int4:g32:asym", rows: 8, long: true},
	{target: "h200", model: pycoder, dtype: "fp32", rows: 8, long: true},
	{target: "h200", model: pycoder, dtype: "bf16", config: longVector, weights: "int4:g64:sym", long: true},
	{target: "h200", model: pycoder, dtype: "bf16", config: barriers, long: true},
	{target: "h200", model: llama, dtype: "bf16", config: smallBlock, long: true},
	{target: "h200", model: llama, dtype: "bf16", config: noStock, long: true},
	{target: "h200", model: llama, dtype: "bf16", config: longAhead, long: true},
	{target: "h200", model: window, dtype: "bf16", config: splitWindow, long: true},
	{target: "h200", model: window, dtype: "fp32", config: splitWindow, long: true},
	{target: "h200", model: "zoo/olmo2-plain", dtype: "bf16", rows: 8, long: true},
}

// parts is the case whose measure.cu is compiled with the kernel of a step in parts.
var parts = kernelCase{target: "h200", model: pycoder, dtype: "bf16"}

// selected are the cases of `make kernels`, or all of them.
func selected(all bool) []kernelCase {
	return slices.DeleteFunc(slices.Clone(cases), func(c kernelCase) bool {
		return !all && (c.long || !slices.Contains(inGate, c.target))
	})
}

// name is unique among cases.
func (c *kernelCase) name() string {
	words := []string{c.target, c.model, c.dtype, strings.Join(strings.Fields(c.config), " ")}
	if c.weights != "" {
		words = append(words, "--weights "+c.weights)
	}
	if c.cache != "" {
		words = append(words, "--cache "+c.cache)
	}
	if c.rows > 0 {
		words = append(words, "passes")
	}
	if c.gpus > 0 {
		words = append(words, fmt.Sprint("--gpus ", c.gpus))
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}
