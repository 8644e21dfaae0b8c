// Attention of several rows of a sequence on the ordinary floating-point units: consecutive ones,
// all or some of which are a unit's. It takes its cache rows once for each of its tokens, and
// computes what the token computes alone (docs/passes.md): blocks of rows before its own, of which
// those of the pass are in shared memory as the cache will have them, and its own row. Needs
// schedule.h.
#pragma once

#include "heads_fma.cuh"

namespace amk {

static_assert(kSequenceRows <= kCacheRows, "the rows of a pass are a block at most");

// The rows of a block of which the first `cached` are in the cache, and those after them are the
// first ones of the pass; less than 0 of them leave out as many rows of the pass.
template <class H>
struct PassRows {
  BlockRows<H> cache, pass;
  int cached;

  __device__ __forceinline__ const u8* key(int row) const {
    return row < cached ? cache.key(row) : pass.key(in_pass(row));
  }
  __device__ __forceinline__ const u8* value(int row) const {
    return row < cached ? cache.value(row) : pass.value(in_pass(row));
  }
  __device__ __forceinline__ RowScales scales(int row) const {
    return row < cached ? cache.scales(row) : pass.scales(in_pass(row));
  }
  // Rows after those of the pass are not seen: any place will do.
  __device__ __forceinline__ int in_pass(int row) const {
    return min(row - cached, kSequenceRows - 1);
  }
};

template <class S, class C, class Heads, class Cache>
__device__ __forceinline__ void attend_rows(C& c, const Heads heads, const Page out,
                                            const u8* sink_scores, Cache cache) {
  using H = HeadsOf<S>;
  using Reader = UnitReader<S, Heads>;
  static_assert(kSequenceRows == 1 ||
                    kSequenceRows * H::kTokenFloats * int(sizeof(float)) + H::kCacheBlockBytes <=
                        kUnitFloats * int(sizeof(float)),
                "q, k and v of all tokens, and their rows, fit their scratch");
  const Tiles mine = begin_units<S>(c);
  if (mine.count() > 0) await(c);

#pragma unroll 1
  for (int unit = mine.begin; unit < mine.end; ++unit) {
    const Unit<S> u = unit_of_step<S>(c, unit);
    const Sinks<S> sinks(c, u, sink_scores);
    float* const floats = unit_floats(c.shared);
    u8* const own_rows = reinterpret_cast<u8*>(floats + kSequenceRows * H::kTokenFloats);
#pragma unroll 1
    for (int token = 0; token < kSequenceRows; ++token)
      Reader::fill(c, heads, u, u.sequence_token() + token, floats + token * H::kTokenFloats);
    consumer_barrier();
    lap(c, Did::kExchangeWait);
#pragma unroll 1
    for (int token = 0; token < kSequenceRows; ++token)
      put_row<H>(c, own_rows, token, floats + token * H::kTokenFloats + H::kUnitRow);
    consumer_barrier();

    const int chunks = u.chunks();
#pragma unroll 1
    for (int i = 0; i < kUnitRows<S>; ++i) {
      const int token = u.first_token() + i, position = u.position + token;
      PlainGroup<H> group(c, floats + token * H::kTokenFloats);
      group.begin();
      if (u.owns(position / kCacheRows) && c.warp == 0)
        group.template score_own<S>(c, group.q + H::kUnitRow);
      // Takes a block if it is the warp's and the token sees any of its rows.
      auto take = [&](int block, int number, const u8* in_ring) {
        const int row = block * kCacheRows;
        const int first = S::kWindowRows > 0 ? max(0, position + 1 - S::kWindowRows - row) : 0;
        const int end = min(kCacheRows, position - row);
        if (number % kConsumerWarps != c.warp || first >= end) return;
        group.template take<S>(PassRows<H>{{in_ring}, {own_rows}, u.position - row}, first, end);
      };
#pragma unroll 1
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const int blocks = ceil_div(u.rows(chunk), kCacheRows);
        const int first = (u.first_row(chunk) + u.skipped(chunk)) / kCacheRows;
        wait_full(c, c.slot, c.phase);
#pragma unroll 1
        for (int b = 0; b < blocks; ++b) {
          take(first + b, u.first_number(chunk) + b,
               c.ring + c.slot * kSlotBytes + b * H::kCacheBlockBytes);
        }
        release(c, c.slot, 1);
        advance_slot(c.slot, c.phase);
      }
      // A block that has rows of the pass alone is not in the ring.
      const int block = ceil_div(u.position, kCacheRows);
      if (u.owns(block)) take(block, u.number(block), own_rows);
      consumer_barrier();
      lap(c, Did::kCompute);
      merge_warps<S, 1>(c, u, out, OwnValue<H>(group.q + H::kUnitRow, c.lane), sinks,
                        H::kGroupHeads, i * H::kGroupHeads);
      consumer_barrier();  // the results are free for the next token
      lap(c, Did::kSignal);
    }
    if (C::kWaits) {
      u8* head = c.launch.cache + cache_of(u, cache_number(c, cache));
#pragma unroll 1
      for (int i = 0; i < kUnitRows<S>; ++i) {
        const int token = u.first_token() + i, row = u.position + token;
        if (appends(c, u, row / kCacheRows))
          put_row<H>(c, head, row, floats + token * H::kTokenFloats + H::kUnitRow);
      }
    }
    consumer_barrier();  // the scratch is free for the next unit
  }
  if (mine.count() > 0) signal(c, mine.count());
  c.advance(S::kTasks);
}

}  // namespace amk
