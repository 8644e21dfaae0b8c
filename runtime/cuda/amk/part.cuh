// A stretch of a decode step, launched by itself: what a kernel for every layer, or for every
// stage, would cost in place of one loop. The bodies are those of decode. What lies in shared
// memory from stage to stage lies in memory from launch to launch, and the words of an exchange are
// those that the launch before has left. Only a measurement launches it. Needs a Context. Must not
// know what a stage computes.
#pragma once

#include "launch.cuh"

namespace amk {

constexpr u32 kPlaceOfLayers = 1u << 10, kPlaceBehind = 1u << 24;

// What such a launch is given, the launch first. Places are those of place_of.
struct PartLaunch {
  Launch launch;
  float* residual;  // [SMs][kTokens * kResidualRows], of one step
  int* token;       // chosen by the step before
  u32 first;        // place of the first stage
  u32 end;          // place of the first stage that is not done
  u32 loop_first;   // numbers of the first and the last stage of a layer
  u32 loop_last;
  u32 follows;      // not 0: a step has been done, whose token is the first
  u32 rotates;      // not 0: a stage needs the angles
};
static_assert(sizeof(PartLaunch) == sizeof(Launch) + 2 * 8 + 6 * 4,
              "the launcher builds this struct byte by byte");

template <class C>
__device__ __forceinline__ const PartLaunch& part_of(const C& c) {
  return reinterpret_cast<const PartLaunch&>(c.launch);
}

// A number that grows from stage to stage in the order in which a step does them. Numbers of stages
// do so within a layer, and before and behind the layers.
__device__ __forceinline__ u32 place_of(const PartLaunch& part, u32 stage, int layer) {
  if (stage < part.loop_first) return stage;
  if (stage > part.loop_last) return kPlaceBehind + stage;
  return (u32(layer) + 1) * kPlaceOfLayers + stage;
}

// Whether a launch does a stage in a layer; all others do them all.
template <class C>
__device__ __forceinline__ bool does(const C& c, u32 stage, int layer) {
  if constexpr (C::kPart) {
    const u32 place = place_of(part_of(c), stage, layer);
    return place >= part_of(c).first && place < part_of(c).end;
  }
  return true;
}
template <class C>
__device__ __forceinline__ bool does(const C& c) {
  return does(c, c.stage, c.layer);
}

// Takes the residual up where the launch before has left it, and the token at the beginning of a
// step. Ends in a block barrier.
template <class C>
__device__ __forceinline__ void begin_part(C& c) {
  const PartLaunch& part = part_of(c);
  constexpr int kOwn = kTokens * kResidualRows;
  for (int i = c.tid; i < kOwn && part.first > 0; i += kConsumers)
    c.shared.residual[i] = part.residual[c.sm * kOwn + i];
  if (c.tid == 0 && part.first == 0 && part.follows) c.shared.token[0] = *part.token;
  consumer_barrier();
}

// Leaves the residual for the next launch, and behind the last stage the token that was chosen.
template <class C>
__device__ __forceinline__ void end_part(C& c) {
  const PartLaunch& part = part_of(c);
  constexpr int kOwn = kTokens * kResidualRows;
  consumer_barrier();
  for (int i = c.tid; i < kOwn; i += kConsumers)
    part.residual[c.sm * kOwn + i] = c.shared.residual[i];
  if (c.tid == 0 && c.sm == 0 && does(c)) *part.token = c.shared.token[0];
}

}  // namespace amk
