// Where the matrices of a prompt's pass begin: the walk of the ring's producer over a step, without
// a ring. Needs schedule.h. Must not know the order of the stages: that is the generated kernel's.
#pragma once

#include "launch.cuh"
#include "weights.cuh"

namespace amk {

// Addresses of the matrices of a pass, in the order in which its stages read them.
constexpr int kMostMatrices = kLayers * 8 + 16;
constexpr int kMatrixBytes = round_up(kMostMatrices * 8, 1024);

// Stands in for the ring's producer in the walk over a step: notes where matrices begin.
struct MatrixList {
  struct {
    Launch launch;
    const u8** next;
    const u8** end;
  } c;
  bool stopped = false;

  __device__ __forceinline__ MatrixList(const Launch& launch, const u8** to)
      : c{launch, to, to + kMostMatrices} {
    c.launch.steps = 1;
  }
  __device__ __forceinline__ void drain() {}
};

// The lines of the walk that lie between two loops over stages, all of them at once.
struct Turns {
  bool first = true;

  __device__ __forceinline__ bool left() const { return first; }
  template <class S, class C>
  __device__ __forceinline__ void weights(C& c, const u8* matrix, int) {
    if (c.next < c.end) *c.next++ = matrix;
  }
  template <class S, class C>
  __device__ __forceinline__ void cache(C&, int, int, int = 0) {}
  template <class Sink>
  __device__ __forceinline__ void copy(Sink&, int) { first = false; }
};

}  // namespace amk
