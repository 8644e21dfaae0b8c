// The residual stream where every SM has all of it, because norms of branches are added to it (pass
// replicate): an SM reads a whole branch, normalises and adds, and hands nothing over. Stages read
// their SM's residual as it would be handed over, rounded. Needs schedule.h.
#pragma once

#include "exchange_quads.cuh"
#include "step.cuh"

namespace amk {

// A thread has the same columns of the residual in every stage, so that sums need no barrier before
// they are written: groups of kTogether that are polled at once, every kConsumers-th of them.
constexpr int kTogether = Element::kBytes == 2 && kHidden % 4 == 0 ? 4 : 1;
constexpr int kOwnGroups = ceil_div(kHidden / kTogether, kConsumers);
static_assert(kOwnGroups <= 32, "a bit for each group that is polled");

// First column of the i-th group of a thread, or -1 if it has none.
__device__ __forceinline__ int own_column(int tid, int i) {
  const int column = (tid + i * kConsumers) * kTogether;
  return column < kHidden ? column : -1;
}

// The token's whole embedding.
template <class S, class C>
__device__ __forceinline__ void embed_replicated(C& c, const u8* table) {
  const int token = c.shared.token;
  const u8* row = table + size_t(token / kTileRows) * tile_bytes(kHidden);
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
    const int first = own_column(c.tid, i);
    if (first < 0) break;
#pragma unroll
    for (int column = first; column < first + kTogether; ++column) {
      const int lane = token % kTileRows * 4 + column % 32 / 8;
      const int at = (column / 32 * 32 + lane) * 8 + tile_column(column % 8);
      c.shared.residual[column] = load_weight(row, at) * kEmbedScale<S>;
    }
  }
  lap(c, Did::kCompute);
  wait_joined(c);
  consumer_barrier();  // all of the residual is there
  lap(c, Did::kExchangeWait);
}

// A value for each column of a thread.
struct OwnColumns {
  float value[kOwnGroups][kTogether];
};

__device__ __forceinline__ void unpack(float (&to)[kTogether], uint2 pairs) {
  const u32 both[2] = {pairs.x, pairs.y};
#pragma unroll
  for (int j = 0; j < kTogether; ++j)
    to[j] = Element::to_float(Element::Bits(both[j / 2] >> j % 2 * 16));
}

template <class C>
__device__ __forceinline__ OwnColumns own_gains(C& c, const u8* gain) {
  OwnColumns g;
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
    const int column = own_column(c.tid, i);
    if constexpr (kTogether == 4) {
      unpack(g.value[i], column < 0 ? make_uint2(0, 0) : load_constant_8(gain + column * 2));
    } else {
      g.value[i][0] = column < 0 ? 0.0f : load_weight(gain, column);
    }
  }
  return g;
}

template <class C>
__device__ __forceinline__ OwnColumns poll_own(C& c, const Page in) {
  OwnColumns branch;
  auto column = [tid = c.tid](int i) { return own_column(tid, i); };
  if constexpr (kTogether == 4) {
    auto quads = quad_poll<kOwnGroups>(page_copy(c, in), column);
    poll_all(c, quads);
#pragma unroll
    for (int i = 0; i < kOwnGroups; ++i) unpack(branch.value[i], quads.pairs(i));
  } else {
    auto words = word_poll<Element, kOwnGroups>(page_copy(c, in), column);
    poll_all(c, words);
#pragma unroll
    for (int i = 0; i < kOwnGroups; ++i) branch.value[i][0] = words.value(i);
  }
  return branch;
}

// Adds the norm of a branch: a whole vector that has been handed over, times a gain, or times 1 +
// it, over its rms.
template <class S, class C>
__device__ __forceinline__ void add_norm(C& c, const Page in, const u8* gain) {
  const OwnColumns g = own_gains(c, gain);
  await(c);
  const OwnColumns branch = poll_own(c, in);
  lap(c, Did::kExchangeWait);
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
#pragma unroll
    for (int j = 0; j < kTogether; ++j) squares += branch.value[i][j] * branch.value[i][j];
  }
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) squares += __shfl_xor_sync(~0u, squares, offset);
  float* const sums = c.shared.squares[c.norms & 1];
  if (c.lane == 0) sums[c.warp] = squares;
  consumer_barrier();
  squares = 0;
#pragma unroll
  for (int w = 0; w < kConsumerWarps; ++w) squares += sums[w];
  const float inverse = rsqrtf(squares * (1.0f / kHidden) + S::kNormEps);
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
    const int first = own_column(c.tid, i);
    if (first < 0) break;
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const float times = S::kUnitOffset ? 1.0f + g.value[i][j] : g.value[i][j];
      c.shared.residual[first + j] += rounded<Element>(branch.value[i][j] * inverse * times);
    }
  }
  ++c.norms;
  consumer_barrier();  // all of the residual is there
  lap(c, Did::kSignal);
}

}  // namespace amk
