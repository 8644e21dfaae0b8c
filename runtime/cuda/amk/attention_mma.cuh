// Attention of one token of a sequence on tensor cores: a unit's cache rows, from the ring, and the
// token's own, which is a share of its own. A warp owns whole blocks; with more than 8 query heads
// per kv head, groups of 8 heads go to different warps, and with more than 64 each warp has two.
// Needs schedule.h with AMK_TENSOR_CORES.
#pragma once

#include "attention_rows_mma.cuh"

namespace amk {

// Scores of the first row of a block with the heads of a warp: of two heads in each of four lanes.
template <class S, class H, int kGroups, class C>
__device__ __forceinline__ void score_own(C& c, const HeadGroup<H> (&groups)[kGroups],
                                          const u8* block, int first_head) {
  constexpr int kFragments = HeadGroup<H>::kFragments;
  float d[kGroups][2][4] = {};
#pragma unroll
  for (int f = 0; f < kFragments; f += kBatch) {
    CacheFragment k[kBatch];
    load_fragments<H, false>(k, block, f, c.lane);
#pragma unroll
    for (int i = 0; i < kBatch && f + i < kFragments; ++i) {
      const uint4 keys = operand_of<Element>(k[i]);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const uint2 q = groups[g].q[f + i];
        Element::mma(d[g][i & 1], keys.x, keys.y, keys.z, keys.w, q.x, q.y);
      }
    }
  }
  const RowScales scales = row_scales<H>(block, 0);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int pair = g * kMmaHeads + c.lane * 2;
    if (c.lane >= 4 || pair >= H::kWarpHeads) continue;
    float scores[4];
    scores_of<S>(scores, d[g], scales, scales);
    c.shared.attention_own[first_head + pair] = scores[0];
    c.shared.attention_own[first_head + pair + 1] = scores[1];
  }
}

template <class S, class C, class Heads, class Cache>
__device__ __forceinline__ void attend_token(C& c, const Heads heads, const Page out,
                                             const u8* sink_scores, Cache cache) {
  using H = HeadsOf<S>;
  using Reader = UnitReader<S, Heads>;
  static_assert(kCacheFragments, "the cache is in fragment order");
  constexpr int kFragments = HeadGroup<H>::kFragments;
  using Turns = BlockTurns<S>;
  constexpr int kBlockWarps = Turns::kWarps, kTurns = Turns::kTurns;
  const Tiles mine = begin_units<S>(c);
  if (mine.count() > 0) await(c);
  u16* const query = reinterpret_cast<u16*>(c.shared.unit);
  // this step's row, as the first of a block
  u8* const row_block = c.shared.unit + H::kGroupHeads * H::kQueryStride * 2 + H::kGivenRowBytes;
  // and as it is published, where the cache is quantised: k and then v
  u16* const given = query + H::kGroupHeads * H::kQueryStride;

#pragma unroll 1
  for (int unit = mine.begin; unit < mine.end; ++unit) {
    const Unit<S> u = unit_of_step<S>(c, unit);
    const Sinks<S> sinks(c, u, sink_scores);
    Reader reader(c, heads, u);
    const int group = c.warp % H::kWarpSets;
    const Turns turns{u, c.warp / H::kWarpSets};

    // The cache's rows, a ring slot at a time.
    const int chunks = u.chunks(), turn = turns.first_chunk();
    u32 slot = c.slot, phase = c.phase;
    advance_slot(slot, phase, turn);
    // The first keys are in registers before the exchange is polled.
    CacheFragment k[kBatch];
    bool early = turn < chunks && turns.first_block(turn) * kCacheRows < u.rows(turn);
    if (early) {
      wait_full(c, slot, phase);
      load_fragments<H, false>(
          k, c.ring + slot * kSlotBytes + turns.first_block(turn) * H::kCacheBlockBytes, 0,
          c.lane);
      lap(c, Did::kCompute);
    }

    auto words = quad_poll<Reader::kQuads>(page_copy(c, heads.in), [&](int i) {
      const UnitQuad<H> q = Reader::quad(c.tid, i);
      return q.is_there() ? u.sequence() * H::kTokenRows + unit_word<H>(u.head(), q) : -1;
    });
    reader.poll(c, heads, u, words);
    lap(c, Did::kExchangeWait);
    reader.take(c, u, words);
#pragma unroll
    for (int i = 0; i < Reader::kQuads; ++i) {
      const UnitQuad<H> q = Reader::quad(c.tid, i);
      const u32 e = q.quad * 4, row = e - H::kGroupHeads * H::kHeadDim;
      if (!q.is_there()) continue;
      if (q.is_query()) {
        *reinterpret_cast<uint2*>(query + e / H::kHeadDim * H::kQueryStride + e % H::kHeadDim) =
            reader.values(words, i);
      } else if (kQuantisedCache) {
        *reinterpret_cast<uint2*>(given + row) = reader.values(words, i);
      } else {
        store_row<H>(row_block, 0, row % H::kHeadDim, row >= H::kHeadDim, reader.values(words, i));
      }
    }
    // what q's zeros are multiplied with
    if (!kQuantisedCache && H::kPaddedHead > H::kHeadDim && c.tid < H::kPaddedHead - H::kHeadDim) {
      *reinterpret_cast<u16*>(row_block + cache_offset<H>(0, H::kHeadDim + c.tid, false)) = 0;
    }
    consumer_barrier();
    // The warp that takes the row rounds it, when it comes to it; where several do, one for all.
    if constexpr (kQuantisedCache && H::kWarpSets > 1) {
      if (c.warp == 0 && u.owns_row()) quantise_row<H>(row_block, 0, given, c.lane);
      consumer_barrier();
    }

    HeadGroup<H> groups[H::kWarpGroups];
#pragma unroll
    for (int g = 0; g < H::kWarpGroups; ++g) {
      groups[g].load(query, (group * H::kWarpGroups + g) * kMmaHeads, H::kGroupHeads, c.lane);
    }

#pragma unroll 1
    for (int chunk = turn; chunk < chunks; chunk += kTurns) {
      int b = turns.first_block(chunk);
      const u8* source = c.ring + slot * kSlotBytes + b * H::kCacheBlockBytes;
      int rows = u.rows(chunk) - b * kCacheRows;  // left from the block on
      wait_full(c, slot, phase);
#pragma unroll 1
      for (; rows > 0 && b < Turns::kChunkBlocks;
           b += kBlockWarps, rows -= kBlockWarps * kCacheRows,
           source += kBlockWarps * H::kCacheBlockBytes) {
        const int hidden = S::kWindowRows > 0 && chunk == 0 && b == 0 ? u.hidden() : 0;
        float d[H::kWarpGroups][2][4] = {};
#pragma unroll
        for (int first = 0; first < kFragments; first += kBatch) {
          if (first > 0 || !early) load_fragments<H, false>(k, source, first, c.lane);
          early = early && first > 0;
#pragma unroll
          for (int i = 0; i < kBatch && first + i < kFragments; ++i) {
            const uint4 keys = operand_of<Element>(k[i]);
#pragma unroll
            for (int g = 0; g < H::kWarpGroups; ++g) {
              const uint2 q = groups[g].q[first + i];
              Element::mma(d[g][i & 1], keys.x, keys.y, keys.z, keys.w, q.x, q.y);
            }
          }
        }
        CacheFragment v[kBatch];
        load_fragments<H, true>(v, source, 0, c.lane);
        // Rows lane/4 and lane/4 + 8 of the block.
        const int row = c.lane >> 2;
        const bool low = row >= hidden && row < rows, high = row + 8 >= hidden && row + 8 < rows;
        const Seen seen{low, low, high, high};
        RowScales of_low = row_scales<H>(source, row), of_high = row_scales<H>(source, row + 8);
        if (!low) of_low = {0, 0};
        if (!high) of_high = {0, 0};
#pragma unroll
        for (int g = 0; g < H::kWarpGroups; ++g) {
          float scores[4];
          scores_of<S>(scores, d[g], of_low, of_high);
          groups[g].take(scores, seen, of_low, of_high);
        }
        // Rows of the values that a lane has.
        const LaneRows<H> mine_rows{source, (c.lane & 3) * 2, hidden, rows};
#pragma unroll
        for (int first = 0; first < kFragments; first += kBatch) {
          if (first > 0) load_fragments<H, true>(v, source, first, c.lane);
          if constexpr (!kQuantisedCache) {
            if (rows < kCacheRows || hidden > 0) mine_rows.keep_seen(v);
          }
#pragma unroll
          for (int i = 0; i < kBatch && first + i < kFragments; ++i) {
            const uint4 values = mine_rows.operand(v[i]);
#pragma unroll
            for (int g = 0; g < H::kWarpGroups; ++g) {
              HeadGroup<H>& h = groups[g];
              Element::mma(h.o[first + i], values.x, values.y, values.z, values.w, h.p[0],
                                h.p[1]);
            }
          }
        }
      }
      release(c, slot, kTurns);
      advance_slot(slot, phase, kTurns);
    }
    advance_slot(c.slot, c.phase, chunks);
    // This step's row is scored by the warp whose turn is next, and weighed as shares are joined.
    if (turns.has_row()) {
      if constexpr (kQuantisedCache && H::kWarpSets == 1)
        quantise_row<H>(row_block, 0, given, c.lane);
      score_own<S>(c, groups, row_block, group * H::kWarpHeads);
    }

#pragma unroll
    for (int g = 0; g < H::kWarpGroups; ++g)
      groups[g].template store<S>(c, c.warp * H::kWarpHeads + g * kMmaHeads);
    consumer_barrier();
    lap(c, Did::kCompute);
    const auto own_value = [=](int, int dim) { return whole_value<H>(row_block, 0, dim); };
    merge_warps<S, H::kWarpSets>(c, u, out, own_value, sinks);
    // The row goes into the cache last: after every warp has finished reading the unit's rows, and
    // off the path to the next stage.
    if (C::kWaits && appends(c, u, u.position / kCacheRows)) {
      u8* head = c.launch.cache + cache_of(u, cache_number(c, cache));
      if constexpr (kQuantisedCache) copy_row<H>(head, u.position, row_block, 0, c.tid);
#pragma unroll
      for (int i = 0; !kQuantisedCache && i < Reader::kQuads; ++i) {
        const UnitQuad<H> q = Reader::quad(c.tid, i);
        const u32 row = q.quad * 4 - H::kGroupHeads * H::kHeadDim;
        if (q.is_there() && !q.is_query())
          store_row<H>(head, u.position, row % H::kHeadDim, row >= H::kHeadDim,
                       reader.values(words, i));
      }
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
