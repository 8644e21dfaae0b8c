// The two ends of a decode step. Begin: the embedding row of the token enters the residual stream
// and is handed over. End: every SM publishes its best logit, reads all of them, and so knows the
// next token and whether there is a next step; then all SMs join at the step counter, which orders
// everything of this step before the next (docs/memory-model.md, step end). Needs schedule.h.
#pragma once

#include "finish.cuh"
#include "ring.cuh"

namespace amk {

// A table of cos and sin of this position for every rotation pair, times a scale. The pairs of a
// head from kPairs on pass through: they are multiplied by 1 and 0, whatever the scale. Ends before
// the first qkv flush, whose block barrier makes it visible.
template <int kPairs = kHeadDim / 2, int kAngles = 0, class C>
__device__ __forceinline__ void rotate_setup(C& c, const float* inv_freq, float scale = 1) {
  for (int j = c.tid; j < kHeadDim / 2; j += kConsumers) {
    float sin = 0, cos = 1;
    if (j < kPairs) {
      sincosf(float(c.position) * load_constant(inv_freq + j), &sin, &cos);
      sin *= scale;
      cos *= scale;
    }
    c.shared.rotation[kAngles][j] = make_float2(cos, sin);
  }
}

// The join that ends a step, in two halves: an SM arrives when it has done all of it, and waits
// for the others once it has asked for that token's embedding. One thread does both, and asks for
// no embedding: its release has a fence in it, which takes microseconds while copies are under way,
// and during which the others go on. It arrives after a block barrier that follows everything this
// SM does in the step: its release covers the whole block. It waits before anything of the next
// step is handed over; its acquire is passed on by the block barrier after it and by acquired_step.
// Without the join an SM that has no early work in the next step could still be reading best words
// that others already overwrite.
constexpr int kJoiner = kConsumers - 1;

template <class C>
__device__ __forceinline__ bool is_last(C& c) {
  return c.step + 1 == c.launch.steps;
}

template <class C>
__device__ __forceinline__ u32* step_counter(C& c) {
  return reinterpret_cast<u32*>(c.launch.exchange + kCounterOffset) + kExchangesPerStep;
}

template <class C>
__device__ __forceinline__ void wait_joined(C& c) {
  if (c.step == 0) return;
  if (c.tid == kJoiner) {
    const u32 target = u32(c.launch.first_epoch + c.step) * kSMs;
    Spin spin;
    while (C::kWaits && int(load_acquire(step_counter(c)) - target) < 0) {
      if (spin.give_up(c, Wait::kStep, c.step, target)) break;
    }
    store_shared_release(&c.shared.acquired_step, u32(c.step));
  }
  consumer_barrier();
}

// What rows of the embedding are multiplied by: S::kScale, where the descriptor has it.
template <class S, class = void>
constexpr float kEmbedScale = 1.0f;
template <class S>
constexpr float kEmbedScale<S, decltype(void(S::kScale))> = S::kScale;

// This SM's rows of the token's embedding, to each of which `added` gives what is added for its
// column.
template <class S, class C, class Added>
__device__ __forceinline__ void embed_and_add(C& c, const u8* table, const Page out,
                                              Added&& added) {
  const Tiles mine = tiles_of<S>(c.sm, 0);
  const int token = c.shared.token;
  const int rows = min(mine.end * kTileRows, kHidden) - mine.begin * kTileRows;
  // The thread that adds to a row of the residual later is the one that writes it here.
  constexpr int kOwners = kTilesPerFlush * kTileRows;
  static_assert(kOwners <= kJoiner, "the thread that joins asks for no embedding");
  if (c.tid < kOwners) {
    for (int local = c.tid; local < rows; local += kOwners) {
      const int column = mine.begin * kTileRows + local;
      const float x = element_of<Matrix<S>>(table, kHidden, token, column) * kEmbedScale<S>;
      c.shared.residual[local] = added(column, x);
    }
  }
  lap(c, Did::kCompute);
  wait_joined(c);
  lap(c, Did::kExchangeWait);
  if (c.tid < kOwners) {
    for (int local = c.tid; local < rows; local += kOwners)
      publish<Element>(c, out, mine.begin * kTileRows + local, c.shared.residual[local]);
  }
  lap(c, Did::kSignal);
  if (rows > 0) signal(c);
  c.advance(S::kTasks);
}

template <class S, class C>
__device__ __forceinline__ void embed(C& c, const u8* table, const Page out) {
  embed_and_add<S>(c, table, out, [](int, float x) { return x; });
}

// Adds the position's row of a table too.
template <class S, class C>
__device__ __forceinline__ void embed(C& c, const u8* table, const u8* positions, const Page out) {
  const int row = c.position + S::kPositionOffset;
  embed_and_add<S>(c, table, out,
                   [&](int column, float x) {
                     using W = Elements<WeightElement>;
                     return x + element_of<W>(positions, kHidden, row, column);
                   });
}

// The token's whole embedding, where every SM has the whole residual: nothing is handed over.
template <class S, class C>
__device__ __forceinline__ void embed_replicated(C& c, const u8* table) {
  const int token = c.shared.token;
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
    const int first = own_column(c.tid, i);
    if (first < 0) break;
#pragma unroll
    for (int column = first; column < first + kTogether; ++column) {
      c.shared.residual[column] =
          element_of<Matrix<S>>(table, kHidden, token, column) * kEmbedScale<S>;
    }
  }
  lap(c, Did::kCompute);
  wait_joined(c);
  consumer_barrier();  // all of the residual is there
  lap(c, Did::kExchangeWait);
}

__device__ __forceinline__ Best reduce_warp(Best best) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) {
    const float value = __shfl_xor_sync(~0u, best.value, offset);
    const int index = __shfl_xor_sync(~0u, best.index, offset);
    best.offer(value, index);
  }
  return best;
}

// Best of the block, valid in every thread of warp 0.
template <class C>
__device__ __forceinline__ Best reduce_block(C& c, Best best) {
  best = reduce_warp(best);
  if (c.lane == 0) {
    c.shared.best_value[c.warp] = best.value;
    c.shared.best_index[c.warp] = best.index;
  }
  consumer_barrier();
  Best all;
  if (c.warp == 0 && c.lane < kConsumerWarps)
    all = Best{c.shared.best_value[c.lane], c.shared.best_index[c.lane]};
  if (c.warp == 0) all = reduce_warp(all);
  return all;
}

// Index of the best of an SM that has given up. With a value that nothing beats it wins everywhere,
// so that every SM learns that the step is void: what an aborted SM has handed over is garbage that
// looks fresh.
constexpr int kVoid = -1;

__device__ __forceinline__ bool has_aborted(Scratch& shared) {
  return *static_cast<volatile u32*>(&shared.aborted);
}

// Publishes this SM's best logit.
template <class C>
__device__ __forceinline__ void publish_best(C& c, Best best, const Page values,
                                             const Page indices) {
  best = reduce_block(c, best);
  if (c.tid == 0 && C::kWaits) {
    if (has_aborted(c.shared)) best = Best{INFINITY, kVoid};
    const u32 epoch = c.epoch;  // lm_head's own: its gemv has ended the exchange without a word
    store_relaxed(reinterpret_cast<u64*>(c.launch.exchange + values.offset) + c.sm,
                  WordOf<Fp32>::make(best.value, epoch));
    store_relaxed(reinterpret_cast<u64*>(c.launch.exchange + indices.offset) + c.sm,
                  u64(u32(best.index)) | u64(epoch) << 32);
  }
  lap(c, Did::kSignal);
}

// The stages that end a step know each other by what they leave in Scratch alone: sample leaves
// chosen and token, and stop leaves stop. Thread 0, which has the result of the reduction, does all
// that is small. Stop comes right behind sample: the compiler then makes one branch of both, and
// keeps chosen in a register between them. The join's block barrier shows the others what they
// left.

// Computes the next token: reads every SM's best, and takes the largest.
template <class C>
__device__ __forceinline__ void sample(C& c, const Page values, const Page indices) {
  const Launch& launch = c.launch;
  const bool last = is_last(c);
  int forced = -1;
  if (c.tid == 0 && launch.forced && !last) forced = load_constant(launch.forced + c.step + 1);
  Best best;
  if (C::kWaits) {
    Spin spin;
    for (int sm = c.tid; sm < kSMs; sm += kConsumers) {
      const u64* value_word = reinterpret_cast<const u64*>(launch.exchange + values.offset) + sm;
      const u64* index_word = reinterpret_cast<const u64*>(launch.exchange + indices.offset) + sm;
      u64 value, index;
      do {
        value = load_relaxed(value_word);
        index = load_relaxed(index_word);
      } while ((!WordOf<Fp32>::fresh(value, c.epoch) || !WordOf<Fp32>::fresh(index, c.epoch)) &&
               !spin.give_up(c, Wait::kExchange, sm, c.epoch));
      best.offer(WordOf<Fp32>::value(value), int(u32(index)));
    }
  }
  consumer_barrier();  // best_value and best_index are free again
  lap(c, Did::kExchangeWait);
  best = reduce_block(c, best);
  if (c.tid == 0) {
    // no finite logit at all: token 0
    const int chosen = u32(best.index) < kVocab ? best.index : 0;
    const bool aborted = has_aborted(c.shared) || best.index == kVoid;
    c.shared.chosen = aborted ? kVoid : chosen;
    c.shared.token = forced >= 0 ? forced : chosen;
  }
}

// Finds whether the launch ends with this step: it is the last one, or void, or has chosen one of
// the ids that end a launch. The ring's producer, which runs ahead, looks at what this leaves too.
template <class C>
__device__ __forceinline__ void stop(C& c) {
  if (c.tid == 0) {
    const Launch& launch = c.launch;
    const int chosen = c.shared.chosen;
    bool ends = is_last(c) || chosen == kVoid;
    for (int i = 0; i < launch.n_stop; ++i)
      ends = ends || load_constant(launch.stop_ids + i) == chosen;
    store_shared_release(&c.shared.stop, ends);
  }
}

// Writes the token out. The host finds it there when the launch has ended.
template <class C>
__device__ __forceinline__ void emit(C& c) {
  if (c.tid == 0 && c.sm == 0 && c.shared.chosen != kVoid && c.launch.tokens)
    c.launch.tokens[c.step] = u32(c.shared.chosen);
}

// The first half of the join that ends the step; the next one waits in embed.
template <class C>
__device__ __forceinline__ void join_step(C& c) {
  consumer_barrier();
  if (c.tid == kJoiner && C::kWaits) add_release(step_counter(c), 1);
}

// Stores the token where the host polls for it, after the arrival, which would wait for a store on
// its way to the host.
template <class C>
__device__ __forceinline__ void tell_host(C& c) {
  const Launch& launch = c.launch;
  if (c.tid == kJoiner && c.sm == 0 && launch.host_tokens && c.shared.chosen != kVoid)
    store_system(launch.host_tokens + c.step, u32(c.shared.chosen) + 1);
  lap(c, Did::kSignal);
}

// Whether the step that was joined ends the launch.
template <class C>
__device__ __forceinline__ bool stopped(C& c) {
  return c.shared.stop;
}

// Prepares a block's scratch. All threads call it, once.
__device__ __forceinline__ void init_scratch(const Launch& launch, Scratch& s) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < kRingSlots; ++i) {
      barrier_init(&s.full[i], 1);
      barrier_init(&s.empty[i], kSlotArrivals);
    }
    barriers_ready();
    const int forced = launch.forced ? load_constant(launch.forced) : -1;
    s.token = forced >= 0 ? forced : launch.token;
    s.chosen = kVoid;
    s.spin_limit_ns = launch.spin_limit_ns;
    s.abort = launch.abort;
    s.abort_device = launch.abort_device;
    s.stalls = launch.stalls;
    s.aborted = s.acquired_step = s.stop = s.issued = s.prefetches = 0;
  }
  __syncthreads();
}

}  // namespace amk
