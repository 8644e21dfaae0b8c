// A stretch of a decode step, launched on its own: what a kernel for every layer, or for every
// stage, would cost in place of one loop. The bodies are those of decode, and a launch does its own
// stages alone: it begins at its exchange, counted and not walked to. What is in shared memory
// from stage to stage is in memory from launch to launch, and the words of an exchange are those
// that the launch before has left. Only a measurement launches it. Needs a Context. Must not know
// what a stage computes.
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

// Begins a launch where the ones before it have left the step.
template <class C>
__device__ __forceinline__ void begin_part(C& c) {
  const PartLaunch& part = part_of(c);
  c.begin_step(0, part.ended);
  c.layer = part.layer;
}

// Before a launch's stages that read or change the residual: takes it up where the launch before
// has left it, once. Threads see each other's rows after the block barrier that comes between the
// products of such a stage and their sums. `has` is whether this launch has the residual.
template <class C>
__device__ __forceinline__ void take_residual(C& c, bool& has) {
  constexpr int kOwn = kTokens * kResidualRows;
  if (has) return;
  has = true;
  for (int i = c.tid; i < kOwn; i += kConsumers)
    c.shared.residual[i] = part_of(c).residual[c.sm * kOwn + i];
}

// Leaves the residual for the next launch that takes it. An SM may have fewer rows than there is
// room for, and nobody has written the others.
template <class C>
__device__ __forceinline__ void leave_residual(C& c) {
  constexpr int kOwn = kTokens * kResidualRows;
  consumer_barrier();
  for (int i = c.tid; i < kOwn; i += kConsumers)
    part_of(c).residual[c.sm * kOwn + i] = load_partly_written(&c.shared.residual[i]);
}

// At the beginning of a step: the token that the step before has chosen.
template <class C>
__device__ __forceinline__ void take_token(C& c) {
  if (c.tid == 0 && part_of(c).follows) c.shared.token[0] = *part_of(c).token;
  consumer_barrier();
}

// At its end: leaves the token that was chosen.
template <class C>
__device__ __forceinline__ void leave_token(C& c) {
  if (c.tid == 0 && c.sm == 0) *part_of(c).token = c.shared.token[0];
}

}  // namespace amk
