// What the plain kernels of a step are made of: values of one element type, and sums over the
// threads of a warp or a block. Needs model_config.h. Must not know what a value is used for.
#pragma once

#include "element.cuh"

namespace amk {

constexpr int kReferenceThreads = 256;  // of every block
constexpr int kReferenceWarps = kReferenceThreads / 32;

// ---- elements -----------------------------------------------------------------------------------

using Bits = Element::Bits;

__device__ inline float at(const Bits* v, size_t i) { return Element::to_float(v[i]); }
__device__ inline float at(const float* v, size_t i) { return v[i]; }
__device__ inline void put(Bits* v, int i, float x) { v[i] = Element::from_float(x); }
__device__ inline void put(float* v, int i, float x) { v[i] = x; }

// ---- sums ---------------------------------------------------------------------------------------

__device__ inline float warp_sum(float v) {
  for (int offset = 16; offset; offset /= 2) v += shuffle_xor(v, offset);
  return v;
}

// Sum and maximum over the block, known to all its threads.
__device__ inline float block_sum(float v) {
  struct Sums;
  auto& sums = shared_array<Sums, float, kReferenceWarps>();
  v = warp_sum(v);
  if (thread_index() % 32 == 0) sums[thread_index() / 32] = v;
  block_sync();
  float all = 0;
  for (int w = 0; w < kReferenceWarps; ++w) all += sums[w];
  block_sync();
  return all;
}
__device__ inline float block_max(float v) {
  struct Tops;
  auto& tops = shared_array<Tops, float, kReferenceWarps>();
  for (int offset = 16; offset; offset /= 2) v = fmaxf(v, shuffle_xor(v, offset));
  if (thread_index() % 32 == 0) tops[thread_index() / 32] = v;
  block_sync();
  float all = tops[0];
  for (int w = 1; w < kReferenceWarps; ++w) all = fmaxf(all, tops[w]);
  block_sync();
  return all;
}

// ---- threads ------------------------------------------------------------------------------------

__device__ inline int grid_index() { return block_index() * block_threads() + thread_index(); }

}  // namespace amk
