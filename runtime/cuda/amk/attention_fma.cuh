// Attention of one token of a sequence on the ordinary floating-point units, over cache blocks with
// plain rows. A warp owns whole blocks of 16 rows. Needs schedule.h.
#pragma once

#include "attention_rows_fma.cuh"

namespace amk {

template <class S, class C, class Heads, class Cache>
__device__ __forceinline__ void attend_token(C& c, const Heads heads, const Page out,
                                             const u8* sink_scores, Cache cache) {
  using H = HeadsOf<S>;
  constexpr int kChunkBlocks = S::kShareRows / kCacheRows;
  static_assert(H::kTokenFloats <= kUnitFloats, "q, k and v of a unit fit their scratch");
  const Tiles mine = begin_units<S>(c);
  if (mine.count() > 0) await(c);

#pragma unroll 1
  for (int unit = mine.begin; unit < mine.end; ++unit) {
    const Unit<S> u = unit_of_step<S>(c, unit);
    const Sinks<S> sinks(c, u, sink_scores);
    float* const floats = unit_floats(c.shared);
    UnitReader<S, Heads>::fill(c, heads, u, u.sequence(), floats);
    consumer_barrier();
    lap(c, Did::kExchangeWait);

    PlainGroup<H> group(c, floats);
    group.begin();
    if (u.owns_row() && c.warp == 0) group.template score_own<S>(c, floats + H::kUnitRow);
    const int chunks = u.chunks();
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int rows = u.rows(chunk);
      wait_full(c, c.slot, c.phase);
#pragma unroll 1
      for (int b = 0; b < kChunkBlocks; ++b) {
        const int here = rows - b * kCacheRows;
        const u32 block = u.first_number(chunk) + b;
        if (block % kConsumerWarps != c.warp || here <= 0) continue;
        const int hidden = S::kWindowRows > 0 && chunk == 0 && b == 0 ? u.hidden() : 0;
        const u8* at = c.ring + c.slot * kSlotBytes + b * H::kCacheBlockBytes;
        group.template take<S>(BlockRows<H>{at}, hidden, min(here, kCacheRows));
      }
      release(c, c.slot, 1);
      advance_slot(c.slot, c.phase);
    }
    consumer_barrier();
    lap(c, Did::kCompute);
    merge_warps<S, 1>(c, u, out, OwnValue<H>(floats + H::kUnitRow, c.lane), sinks);
    if (C::kWaits && appends(c, u, u.position / kCacheRows)) {
      u8* head = c.launch.cache + cache_of(u, cache_number(c, cache));
      put_row<H>(c, head, u.position, floats + H::kUnitRow);
    }
    consumer_barrier();  // the scratch is free for the next unit
    lap(c, Did::kSignal);
  }
  if (mine.count() > 0) signal(c, mine.count());
  c.advance(S::kTasks);
}

template <class S, class C, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(C& c, const Heads heads, const Page out, const u8* sinks,
                                       Cache cache = {}) {
  if constexpr (kSequenceRows > 1) attend_rows<S>(c, heads, out, sinks, cache);
  else attend_token<S>(c, heads, out, sinks, cache);
}
template <class S, class C, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(C& c, const Heads heads, const Page out, Cache cache = {}) {
  attend<S>(c, heads, out, static_cast<const u8*>(nullptr), cache);
}

}  // namespace amk
