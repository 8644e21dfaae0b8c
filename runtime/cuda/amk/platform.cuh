// Switches, compile-time arithmetic and the runtime's ABI number.
// Every other header includes this one. It must not know a model, a schedule or a stage.
#pragma once

#include "hw/thread.cuh"

// Bumped whenever generated code and these headers must change together.
#define AMK_RUNTIME_ABI 11

// A generated project declares what its target can do; a fallback can be forced with
// -DAMK_BULK_COPY=0 and so on.
#if !defined(AMK_BULK_COPY) || !defined(AMK_ASYNC_COPY) || !defined(AMK_TENSOR_CORES)
#error "include schedule.h first: it says which hardware features the project uses"
#endif

// A project whose stages do not all fit side by side in shared memory declares it: they share one
// region (context.cuh).
#ifndef AMK_COMPACT_SCRATCH
#define AMK_COMPACT_SCRATCH 0
#endif

// A project for passes of several tokens declares whether warps reallocate registers (context.cuh).
#ifndef AMK_REGISTER_POOL
#define AMK_REGISTER_POOL 0
#endif

// A project declares whether the variant from kLongFrom on streams differently (schedule.h).
#ifndef AMK_LONG_STREAM
#define AMK_LONG_STREAM 0
#endif

// A project whose layers have experts declares it: what a router chooses is in the scratch.
#ifndef AMK_EXPERTS
#define AMK_EXPERTS 0
#endif

// A project for several GPUs declares it: each runs the kernel as one of kGPUs (schedule.h).
#ifndef AMK_RANKS
#define AMK_RANKS 0
#endif

// Prompts are multiplied by wgmma where the architecture has it.
#ifndef AMK_WGMMA
#define AMK_WGMMA 0
#endif

// Set by the sources of a kernel for prompts: their stages are those of the step, for many tokens.
#ifndef AMK_PROMPT
#define AMK_PROMPT 0
#endif
#ifndef AMK_PROMPT_SPANS
#define AMK_PROMPT_SPANS 0
#endif

// -DAMK_RACECHECK=1 spells synchronisation so that compute-sanitizer's racecheck can follow it: the
// same protocol, with every lane arriving on a barrier where one would do, and atomics for the
// words in which warps publish their progress.
#ifndef AMK_RACECHECK
#define AMK_RACECHECK 0
#endif

// -DAMK_EAGER_ABORT=1 makes every failed poll look for an abort, and those of block 0 read the word
// of the host, so that a cancelled launch aborts in the middle of a pass. It is for tests of the
// state after an abort. Without it such a launch runs to its end unless one of its waits expires.
#ifndef AMK_EAGER_ABORT
#define AMK_EAGER_ABORT 0
#endif

namespace amk {

#if !AMK_RANKS
constexpr int kGPUs = 1;
#endif

__host__ __device__ constexpr int ceil_div(int n, int d) { return (n + d - 1) / d; }
__host__ __device__ constexpr int round_up(int n, int m) { return ceil_div(n, m) * m; }

// Calls f with 0 to kCount - 1, each a constant: for values that must be known at compile time.
template <int kNumber>
struct Number {
  __device__ constexpr operator int() const { return kNumber; }
};
template <int kCount, int kFirst = 0, class F>
__device__ __forceinline__ void each(F&& f) {
  if constexpr (kFirst < kCount) {
    f(Number<kFirst>());
    each<kCount, kFirst + 1>(f);
  }
}

}  // namespace amk
