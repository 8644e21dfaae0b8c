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
  for (int offset = 16; offset; offset /= 2) v += __shfl_xor_sync(~0u, v, offset);
  return v;
}

// Sum and maximum over the block, known to all its threads.
__device__ inline float block_sum(float v) {
  __shared__ float sums[kReferenceWarps];
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  float all = 0;
  for (int w = 0; w < kReferenceWarps; ++w) all += sums[w];
  __syncthreads();
  return all;
}
__device__ inline float block_max(float v) {
  __shared__ float tops[kReferenceWarps];
  for (int offset = 16; offset; offset /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, offset));
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = v;
  __syncthreads();
  float all = tops[0];
  for (int w = 1; w < kReferenceWarps; ++w) all = fmaxf(all, tops[w]);
  __syncthreads();
  return all;
}

// ---- threads ------------------------------------------------------------------------------------

__device__ inline int thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

}  // namespace amk
