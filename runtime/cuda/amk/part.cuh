// A part of a decode step, launched on its own. It measures what a kernel per layer, or per stage,
// would cost in place of one loop. The bodies are those of decode. A launch runs only its own
// stages: it starts at its exchange, by number, without walking to it. What decode keeps in shared
// memory from stage to stage is kept in global memory from launch to launch, and the words of an
// exchange are those of the previous launch. Used only by measurements. Needs a Context. Must not
// know what a stage computes.
#pragma once

#include "context.cuh"

namespace amk {

constexpr int kPartStages = 16;

// What such a launch is given, the launch first.
struct PartLaunch {
  Launch launch;
  float* residual;  // [SMs][kTokens * kResidualRows], of one step
  int* token;       // chosen by the step before
  u32 layer;        // of all of its stages that are a layer's
  u32 ended;        // exchanges of the step before its first stage
  u32 before;       // number of the stage that published the last of them
  u32 follows;      // not 0: a step has been done, whose token is the first
  u32 count;        // of its stages
  u32 stages[kPartStages];  // their numbers, in order
  u32 reserved;
};
static_assert(sizeof(PartLaunch) == sizeof(Launch) + 2 * 8 + (6 + kPartStages) * 4,
              "the launcher builds this struct byte by byte");

template <class C>
__device__ __forceinline__ const PartLaunch& part_of(const C& c) {
  return reinterpret_cast<const PartLaunch&>(c.launch);
}

// Begins a launch with the state of the previous one.
template <class C>
__device__ __forceinline__ void begin_part(C& c) {
  const PartLaunch& part = part_of(c);
  c.begin_step(0, part.ended);
  c.layer = part.layer;
}

// Called before a launch's stages that read or change the residual: loads it once from where the
// previous launch stored it. Threads see each other's rows after the block barrier between the
// products of such a stage and their sums. `has` is whether this launch has the residual.
template <class C>
__device__ __forceinline__ void take_residual(C& c, bool& has) {
  constexpr int kOwn = kTokens * kResidualRows;
  if (has) return;
  has = true;
  for (int i = c.tid; i < kOwn; i += kConsumers)
    c.shared.residual[i] = part_of(c).residual[c.sm * kOwn + i];
}

// Stores the residual for the next launch that needs it. An SM may have fewer rows than there is
// room for; the others were never written.
template <class C>
__device__ __forceinline__ void leave_residual(C& c) {
  constexpr int kOwn = kTokens * kResidualRows;
  consumer_barrier();
  for (int i = c.tid; i < kOwn; i += kConsumers)
    part_of(c).residual[c.sm * kOwn + i] = load_partly_written(&c.shared.residual[i]);
}

// At the beginning of a step: the token that the previous step has chosen.
template <class C>
__device__ __forceinline__ void take_token(C& c) {
  if (c.tid == 0 && part_of(c).follows) c.shared.token[0] = *part_of(c).token;
  consumer_barrier();
}

// At its end: stores the token that was chosen.
template <class C>
__device__ __forceinline__ void leave_token(C& c) {
  if (c.tid == 0 && c.sm == 0) *part_of(c).token = c.shared.token[0];
}

}  // namespace amk
