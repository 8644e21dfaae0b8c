// The beginning of a decode step: the embedding rows of its tokens enter the residual stream and
// are published. Needs schedule.h.
#pragma once

#include "finish.cuh"
#include "ring.cuh"

namespace amk {

// A table of cos and sin of each token's position for every rotation pair, times a scale. The pairs
// of a head from kPairs on pass through: they are multiplied by 1 and 0, whatever the scale. Ends
// before the first qkv flush, whose block barrier makes it visible.
template <int kPairs = kHeadDim / 2, int kAngles = 0, class C>
__device__ __forceinline__ void rotate_setup(C& c, const float* inv_freq, float scale = 1) {
  for (int i = c.tid; i < kTokens * (kHeadDim / 2); i += kConsumers) {
    const int token = i / (kHeadDim / 2), j = i % (kHeadDim / 2);
    float sin = 0, cos = 1;
    if (j < kPairs) {
      sincosf(float(c.position_of(token)) * load_constant(inv_freq + j), &sin, &cos);
      sin *= scale;
      cos *= scale;
    }
    c.shared.rotation[kAngles][token][j] = make_float2(cos, sin);
  }
}

// The join that ends a step, in two halves: an SM arrives when it has done all of it, and waits for
// the others once it has loaded that token's embedding. One thread does both, and loads no
// embedding: its release contains a fence, which takes microseconds while copies are in flight; the
// other threads proceed meanwhile. It arrives after a block barrier that follows everything this SM
// does in the step: its release covers the whole block. It waits before anything of the next step
// is published; its acquire is passed on by the block barrier after it and by acquired_step.
// Without the join an SM that has no early work in the next step could still be reading best words
// that others already overwrite.
constexpr int kJoiner = kConsumers - 1;

template <class C>
__device__ __forceinline__ bool is_last(C& c) {
  return c.step + 1 == c.launch.steps;
}

constexpr int kAllSMs = kGPUs * kSMs;  // that join

// The counter of the step. Each rank has one, to which the SMs of all add.
__device__ __forceinline__ u32* step_counter(u8* exchange) {
  return reinterpret_cast<u32*>(exchange + kCounterOffset) + kExchangesPerStep;
}

template <class C>
__device__ __forceinline__ void wait_joined(C& c) {
  if (c.step == 0) return;
  if (c.tid == kJoiner) {
    const u32 target = u32(c.launch.first_epoch + c.step) * kAllSMs;
    Spin spin;
    const u32* counter = step_counter(c.launch.exchange);
    while (C::kWaits && int(load_acquire_ranks(counter) - target) < 0) {
      if (spin.cancelled(c, Wait::kStep, c.step, target)) break;
    }
    store_shared_release(&c.shared.acquired_step, u32(c.step));
  }
  consumer_barrier();
}

// The scale of embedding rows: S::kScale, where the descriptor has it.
template <class S, class = void>
constexpr float kEmbedScale = 1.0f;
template <class S>
constexpr float kEmbedScale<S, decltype(void(S::kScale))> = S::kScale;

// The token after the last one of the vocabulary: the host gives its input vector.
constexpr int kGiven = kVocab;

// An element of a token's input vector: of its embedding row, times the scale, or of what the host
// has given for its place in the launch.
template <class S, class C>
__device__ __forceinline__ float embedding(C& c, const u8* table, int id, int token, int column) {
  if (id == kGiven) {
    const size_t place = size_t(c.step) * kTokens + token;
    return load_constant(c.launch.embeddings + place * kHidden + column);
  }
  return element_of<Matrix<S>>(table, kHidden, id, column) * kEmbedScale<S>;
}

// This SM's rows of the tokens' embeddings; `added` returns what is added for a column and token.
template <class S, class C, class Added>
__device__ __forceinline__ void embed_and_add(C& c, const u8* table, const Page out,
                                              Added&& added) {
  const Tiles mine = tiles_of<S>(c.sm, 0);
  const int begin = mine.begin * kTileRows;
  const int rows = min(mine.end * kTileRows, kHidden) - begin;
  // With one token, the thread that later adds to a row of the residual is the one that writes it
  // here.
  static_assert(kFlushRows <= kJoiner, "the thread that joins asks for no embedding");
  const bool owns = c.tid < kFlushRows;
  if (owns) {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      for (int local = c.tid; local < rows; local += kFlushRows) {
        const int column = begin + local;
        const float x = embedding<S>(c, table, c.shared.token[token], token, column);
        c.shared.residual[token * kResidualRows + local] = added(column, token, x);
      }
    }
  }
  lap(c, Did::kCompute);
  wait_joined(c);
  lap(c, Did::kExchangeWait);
  if (owns) {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      for (int local = c.tid; local < rows; local += kFlushRows) {
        publish<Element>(c, out, token * kHidden + begin + local,
                         c.shared.residual[token * kResidualRows + local]);
      }
    }
  }
  lap(c, Did::kSignal);
  if (rows > 0) signal(c);
  c.advance(S::kTasks);
}

template <class S, class C>
__device__ __forceinline__ void embed(C& c, const u8* table, const Page out) {
  embed_and_add<S>(c, table, out, [](int, int, float x) { return x; });
}

// Adds the rows of the positions in a table too.
template <class S, class C>
__device__ __forceinline__ void embed(C& c, const u8* table, const u8* positions, const Page out) {
  embed_and_add<S>(c, table, out,
                   [&](int column, int token, float x) {
                     using W = Elements<WeightElement>;
                     const int row = c.position_of(token) + S::kPositionOffset;
                     return x + element_of<W>(positions, kHidden, row, column);
                   });
}

// The token's whole embedding, where every SM has the whole residual: nothing is published.
template <class S, class C>
__device__ __forceinline__ void embed_replicated(C& c, const u8* table) {
  const int token = c.shared.token[0];
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
    const int first = own_column(c.tid, i);
    if (first < 0) break;
#pragma unroll
    for (int column = first; column < first + kTogether; ++column) {
      c.shared.residual[column] = embedding<S>(c, table, token, 0, column);
    }
  }
  lap(c, Did::kCompute);
  wait_joined(c);
  consumer_barrier();  // all of the residual is there
  lap(c, Did::kExchangeWait);
}

// The index of a void best word. With a value that nothing beats it wins on every SM, so that all
// learn that the step is void: what an aborted SM has published is garbage that looks fresh.
constexpr int kVoid = -1;

// Registers where a wait that takes too long reports. One thread of the block calls it, once.
template <class Waits>
__device__ __forceinline__ void init_waits(const Launch& launch, Waits& w) {
  w.aborted = 0;
  w.spin_limit_ns = launch.spin_limit_ns;
  w.abort = launch.abort;
  w.abort_device = launch.abort_device;
  w.stalls = launch.stalls;
}

// Prepares a block's scratch. All threads call it, once.
__device__ __forceinline__ void init_scratch(const Launch& launch, Scratch& s) {
  if (thread_index() == 0) {
    for (int i = 0; i < kRingSlots; ++i) {
      barrier_init(&s.full[i], 1);
      barrier_init(&s.empty[i], kSlotArrivals);
    }
    barriers_ready();
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      const int forced = launch.forced ? load_constant(launch.forced + token) : -1;
      s.token[token] = forced >= 0 ? forced : launch.token;
      s.chosen[token] = kVoid;
    }
    init_waits(launch, s);
    s.acquired_step = s.stop = s.issued = s.prefetches = 0;
#if AMK_EXPERTS
    s.choices = 0;
    for (int token = 0; token < kTokens; ++token) {  // a kernel without waits has no others
      for (int i = 0; i < kMostChosen; ++i) s.experts[token][i] = 0, s.shares[token][i] = 0;
      s.gates[token] = 0;
    }
#endif
  }
  block_sync();
}

}  // namespace amk
