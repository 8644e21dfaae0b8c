// The matrices and caches of a prompt's pass, in the order in which its stages read them: the walk
// of the ring's producer over a step. Needs schedule.h. Must not know
// the order of the stages: that is the generated kernel's.
#pragma once

#include "launch.cuh"
#include "weights.cuh"

namespace amk {

constexpr int kMostMatrices = kLayers * 8 + 16;

// Whether a stage offers logits to be chosen from: its product is left out unless these or the
// largest of the last token's are asked for.
template <class S>
constexpr bool kOffers = false;

// The position by which a pass chooses the stages of a variant. One that may have tokens of several
// takes the last variant, whose attention has those of the others do their tokens (Before).
__device__ __forceinline__ int variant_position(const Launch& launch) {
  return AMK_PROMPT_SPANS ? kMaxSeq - 1 : launch.position;
}

// What a walk knows of a launch: a pass is one step.
struct PassLaunch {
  const u8* weights;
  int position;
  int steps = 1;

  __device__ __forceinline__ explicit PassLaunch(const Launch& launch)
      : weights(launch.weights), position(variant_position(launch)) {}
};

// The lines of the walk that lie between two loops over stages, all of them at once.
struct Turns {
  bool first = true;

  __device__ __forceinline__ bool left() const { return first; }
  template <class S, class C>
  __device__ __forceinline__ void weights(C& c, const u8* matrix, int) {
    c.template take<S>(matrix);
  }
  template <class S, class C>
  __device__ __forceinline__ void experts(C& c, const u8* matrices, int, int) {
    c.template take<S>(matrices);
  }
  // Of a layer, which has the cache of its number unless the line says which.
  template <class S, class C, class Cache>
  __device__ __forceinline__ void cache(C& c, int layer, int, Cache cache) {
    c.template attend<S>(layer, cache);
  }
  template <class S, class C>
  __device__ __forceinline__ void cache(C& c, int layer, int) {
    c.template attend<S>(layer, layer);
  }
  template <class Sink>
  __device__ __forceinline__ void copy(Sink&, int) { first = false; }
};

// What goes over the matrices of a pass: take<S>(matrix) for each, and attend<S>(layer, cache)
// where a stage of attention is.
template <class C>
struct MatrixWalk {
  C& c;
  bool stopped = false;

  __device__ __forceinline__ explicit MatrixWalk(C& of) : c(of) {}
  __device__ __forceinline__ void drain() {}
};

}  // namespace amk
