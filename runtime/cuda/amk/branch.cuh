// The norm of a branch that is added to the residual: how a block reads the branch, and in which
// order its squares are summed. The order is the same whether the block adds all of the branch
// (replicated.cuh) or its own rows of it (norm_rows.cuh). Needs schedule.h. Must not know where the
// residual is stored.
#pragma once

#include "exchange_quads.cuh"
#include "stage.cuh"

namespace amk {

// A thread has the same columns of every branch, and of a residual that the block holds in full, so
// sums need no barrier before they are written: every kConsumers-th group, kTogether groups polled
// at once.
constexpr int kTogether = Element::kBytes == 2 && kHidden % 4 == 0 ? 4 : 1;
constexpr int kOwnGroups = ceil_div(kHidden / kTogether, kConsumers);

// A group of a vector in fp32, which is read and written as one.
struct alignas(4 * kTogether) Columns {
  float of[kTogether];
};

// First column of the i-th group of a thread, or -1 if it has none.
__device__ __forceinline__ int own_column(int tid, int i) {
  const int column = (tid + i * kConsumers) * kTogether;
  return column < kHidden ? column : -1;
}

// A group of a vector that a thread has polled or loaded: four 16-bit elements in two registers, or
// one element as a float.
template <int kCount>
struct Group {
  uint2 pairs = {};
  __device__ __forceinline__ float value(int j) const {
    const u32 two = j < 2 ? pairs.x : pairs.y;
    return Element::to_float(Element::Bits(two >> j % 2 * 16));
  }
  __device__ __forceinline__ void load(const u8* gain, int column) {
    pairs = load_constant_8(gain + column * 2);
  }
  template <class Poll>
  __device__ __forceinline__ void take(const Poll& quads, int i) {
    pairs = quads.pairs(i);
  }
};
template <>
struct Group<1> {
  float only = 0;
  __device__ __forceinline__ float value(int) const { return only; }
  __device__ __forceinline__ void load(const u8* gain, int column) {
    only = load_weight(gain, column);
  }
  template <class Poll>
  __device__ __forceinline__ void take(const Poll& words, int i) {
    only = words.value(i);
  }
};

// A poll of groups of a vector: the i-th begins with word index_of(i), or does not exist.
template <int kCount, class C, class IndexOf>
__device__ __forceinline__ auto group_poll(C& c, const Page in, IndexOf index_of) {
  if constexpr (kTogether == 4) return quad_poll<kCount>(page_copy(c, in), index_of);
  else return word_poll<Element, kCount>(page_copy(c, in), index_of);
}

// The groups of all parts of a branch that a thread has, those of a part side by side.
constexpr int kBranchGroups = kOwnGroups * kBranchParts;

// First word of the i-th of them, for a branch that is the sum of n parts; -1 if it does not exist.
__device__ __forceinline__ int branch_column(int tid, int i, int n) {
  const int part = i / kOwnGroups, column = own_column(tid, i % kOwnGroups);
  return part < n && column >= 0 ? part * kHidden + column : -1;
}

// The sum of the parts of an element, in order: missing parts are 0.
template <class Part>
__device__ __forceinline__ float sum_of_parts(Part&& part) {
  float v = part(0);
#pragma unroll
  for (int k = 1; k < kBranchParts; ++k) v += part(k);
  return v;
}

// The sum of the squares of a warp's share of a branch, whose groups a poll has from the first one
// on. Stores the thread's share of the branch.
template <class Poll>
__device__ __forceinline__ float sum_of_squares(const Poll& poll, int first,
                                                Columns (&branch)[kOwnGroups]) {
  Group<kTogether> groups[kBranchGroups];
#pragma unroll
  for (int i = 0; i < kBranchGroups; ++i) groups[i].take(poll, first + i);
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const float v = sum_of_parts([&](int k) { return groups[k * kOwnGroups + i].value(j); });
      branch[i].of[j] = v;
      squares = fmaf(v, v, squares);
    }
  }
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) squares += shuffle_xor(squares, offset);
  return squares;
}

// 1 over the rms of a branch, from the sums of the warps in order.
__device__ __forceinline__ float inverse_of(const float* sums, float eps) {
  float squares = 0;
#pragma unroll
  for (int w = 0; w < kConsumerWarps; ++w) squares += sums[w];
  return rsqrtf(fmaf(squares, 1.0f / kHidden, eps));
}

// What is added to the residual: an element of the branch, normalised and rounded.
__device__ __forceinline__ float normed(float v, float inverse, float gain) {
  return rounded<Element>(v * inverse * gain);
}

}  // namespace amk
