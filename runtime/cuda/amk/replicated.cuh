// The residual stream where every SM has all of it, because norms of branches are added to it (pass
// replicate): an SM reads a whole branch, normalises and adds, and hands nothing over. Stages read
// their SM's residual as it would be handed over, rounded. The stage that adds only notes what is
// to be added; the next one, which reads the residual, adds it once its first weights and gains are
// in registers: behind the add their loads would wait for memory once more. Needs schedule.h.
#pragma once

#include "exchange_quads.cuh"
#include "weights.cuh"

namespace amk {

// A thread has the same columns of the residual in every stage, so that sums need no barrier before
// they are written: groups of kTogether that are polled at once, every kConsumers-th of them.
constexpr int kTogether = Element::kBytes == 2 && kHidden % 4 == 0 ? 4 : 1;
constexpr int kOwnGroups = ceil_div(kHidden / kTogether, kConsumers);

// A group of the residual, which is read and written as one.
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
};
template <int kCount, class C, class Column>
__device__ __forceinline__ void poll_groups(C& c, const Page in, Group<4> (&to)[kCount],
                                            Column&& column) {
  auto quads = quad_poll<kCount>(page_copy(c, in), column);
  poll_all(c, quads);
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i].pairs = quads.pairs(i);
}
template <>
struct Group<1> {
  float only = 0;
  __device__ __forceinline__ float value(int) const { return only; }
  __device__ __forceinline__ void load(const u8* gain, int column) {
    only = load_weight(gain, column);
  }
};
template <int kCount, class C, class Column>
__device__ __forceinline__ void poll_groups(C& c, const Page in, Group<1> (&to)[kCount],
                                            Column&& column) {
  auto words = word_poll<Element, kCount>(page_copy(c, in), column);
  poll_all(c, words);
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i].only = words.value(i);
}

// Adds what is due. Every thread of the consumers comes here.
template <class C>
__device__ __forceinline__ void add_due(C& c) {
  if (!c.due.gain) return;
  const u32 stage = c.stage;
  c.stage = c.due.stage;
  static_assert(kOwnGroups * kBranchParts <= 32, "a bit for each group that is polled");
  Group<kTogether> gains[kOwnGroups], parts[kOwnGroups * kBranchParts];
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
    if (own_column(c.tid, i) >= 0) gains[i].load(c.due.gain, own_column(c.tid, i));
  }
  await(c);
  poll_groups(c, c.due.page, parts, [tid = c.tid, n = c.due.parts](int i) {
    const int part = i / kOwnGroups, column = own_column(tid, i % kOwnGroups);
    return part < n && column >= 0 ? part * kHidden + column : -1;
  });
  lap(c, Did::kExchangeWait);
  Columns branch[kOwnGroups];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      float v = parts[i].value(j);
#pragma unroll
      for (int k = 1; k < kBranchParts; ++k) v += parts[k * kOwnGroups + i].value(j);
      branch[i].of[j] = v;
      squares += v * v;
    }
  }
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) squares += __shfl_xor_sync(~0u, squares, offset);
  float* const sums = c.shared.squares[c.norms & 1];
  if (c.lane == 0) sums[c.warp] = squares;
  consumer_barrier();
  squares = 0;
#pragma unroll
  for (int w = 0; w < kConsumerWarps; ++w) squares += sums[w];
  const float inverse = rsqrtf(squares * (1.0f / kHidden) + c.due.eps);
  const float offset = c.due.unit_offset ? 1.0f : 0.0f;
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
    const int first = own_column(c.tid, i);
    if (first < 0) break;
    Columns sum = *reinterpret_cast<Columns*>(&c.shared.residual[first]);
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const float gain = offset + gains[i].value(j);
      sum.of[j] += rounded<Element>(branch[i].of[j] * inverse * gain);
    }
    *reinterpret_cast<Columns*>(&c.shared.residual[first]) = sum;
  }
  ++c.norms;
  c.due.gain = nullptr;
  consumer_barrier();  // all of the residual is there
  lap(c, Did::kCompute);
  c.stage = stage;
}

// How many parts a branch is the sum of: S::kParts, where the descriptor has it.
template <class S, class = void>
constexpr int kParts = 1;
template <class S>
constexpr int kParts<S, decltype(void(S::kParts))> = S::kParts;

// Leaves the norm of a branch to be added by the stage that reads the residual next.
template <class S, class C>
__device__ __forceinline__ void add_norm(C& c, const Page in, const u8* gain) {
  add_due(c);
  c.due = Branch{in, gain, kParts<S>, S::kNormEps, S::kUnitOffset, c.stage};
}

}  // namespace amk
