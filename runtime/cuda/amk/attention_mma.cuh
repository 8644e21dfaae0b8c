// Attention on tensor cores, over cache blocks in fragment order: K as A (16 rows by 16 dims) times
// Qᵀ as B (dims by 8 heads), then Vᵀ as A (16 dims by 16 rows) times P as B, for which one
// movmatrix per 8 rows transposes the scores. Online softmax in fp32, probabilities rounded to the
// element type before the second product. A warp owns whole blocks; with more than 8 query heads
// per kv head, groups of 8 heads go to different warps, and with more than 64 each warp has two.
// Needs schedule.h with AMK_TENSOR_CORES.
#pragma once

#include "mma.cuh"
#include "unit_reader.cuh"

namespace amk {

constexpr int kMmaHeads = 8;  // columns of the product with K
// groups of them that a warp has
constexpr int kWarpGroups = ceil_div(kGroupHeads, kConsumerWarps * kMmaHeads);
static_assert(kWarpGroups <= 2, "at most 128 query heads a kv head");
// heads whose results a warp keeps
constexpr int kWarpHeads =
    kGroupHeads < kMmaHeads ? round_up(kGroupHeads, 2) : kWarpGroups * kMmaHeads;
static_assert(kWarpHeads == kAttentionHeads, "the scratch has room for them");

// Fragments `first` and the kBatch - 1 after it, of `count`, of which a lane has 8 elements each.
constexpr int kBatch = 4;
constexpr int kLaneBytes = sizeof(CacheFragment);
__device__ __forceinline__ void load_fragments(CacheFragment (&into)[kBatch], const u8* at,
                                               int first, int count) {
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    if (first + i < count)
      into[i] = *reinterpret_cast<const CacheFragment*>(at + (first + i) * 32 * kLaneBytes);
  }
}

// The rows of a block whose values a lane has: `row`, the next one, and the two that are 8 further,
// of which those from `first` on and below `rows` are seen. What an earlier sequence has left in
// others must not matter: probability 0 does not help against an infinity.
struct LaneRows {
  u32 low, high;  // masks of the values, or their scales as value_of takes them; of a pair of rows

  __device__ __forceinline__ LaneRows(const u8* block, int row, int first, int rows) {
    const auto pair = [&](int r) {
      const bool a = r >= first && r < rows, b = r + 1 >= first && r + 1 < rows;
      if constexpr (!kScalesValues) return (a ? 0xffffu : 0u) | (b ? 0xffff0000u : 0u);
      return pack2(a ? 64 * row_scales(block, r).v : 0.0f,
                   b ? 64 * row_scales(block, r + 1).v : 0.0f);
    };
    low = pair(row);
    high = pair(row + 8);
  }
  template <class Fragment>
  __device__ __forceinline__ void keep_seen(Fragment (&v)[kBatch]) const {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) v[i].x &= low, v[i].y &= low, v[i].z &= high, v[i].w &= high;
  }
  // What a lane has of a fragment, as an operand.
  template <class Fragment>
  __device__ __forceinline__ uint4 operand(Fragment v) const {
    if constexpr (kScalesValues) return scaled_operand_of(v, low, high);
    else return operand_of<Element>(v);
  }
};

// A group of heads of a warp. A lane holds results of two of them, `pair` and the one after.
struct HeadGroup {
  static constexpr int kFragments = kPaddedHead / 16;
  uint2 q[kFragments];
  float o[kFragments][4] = {};
  float max0 = kNoScore, max1 = kNoScore, sum0 = 0, sum1 = 0;
  u32 p[2];  // probabilities of the block, of its rows up to 8 and from there on

  __device__ __forceinline__ void load(const u16* query, int first_head, int lane) {
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      const int head = first_head + (lane >> 2), dim = f * 16 + (lane & 3) * 4;
      const bool real = head < kGroupHeads && (kPaddedHead == kHeadDim || dim < kHeadDim);
      q[f] = real ? *reinterpret_cast<const uint2*>(query + head * kQueryStride + dim)
                  : make_uint2(0, 0);
    }
  }

  // Takes the products of a block: d of two rows, low and high, of which those that are not seen
  // have no score.
  template <class S>
  __device__ __forceinline__ void take(const float (&d)[2][4], bool low, bool high,
                                       const RowScales& of_low, const RowScales& of_high) {
    const auto score = [&d](int i, const RowScales& scales) {
      const float product = d[0][i] + d[1][i];
      return scaled_score<S>(kQuantisedCache ? product * scales.k : product);
    };
    const float s0 = low ? score(0, of_low) : kNoScore, s1 = low ? score(1, of_low) : kNoScore;
    const float s2 = high ? score(2, of_high) : kNoScore, s3 = high ? score(3, of_high) : kNoScore;
    float top0 = fmaxf(s0, s2), top1 = fmaxf(s1, s3);
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1) {
      top0 = fmaxf(top0, __shfl_xor_sync(~0u, top0, offset));
      top1 = fmaxf(top1, __shfl_xor_sync(~0u, top1, offset));
    }
    top0 = fmaxf(top0, max0);
    top1 = fmaxf(top1, max1);
    const float keep0 = exp2_approx(max0 - top0), keep1 = exp2_approx(max1 - top1);
    // Not before the first scores, when o is 0; one head of the pair may have some when the
    // other has none that is finite.
    const bool rises0 = max0 > kNoScore & top0 > max0, rises1 = max1 > kNoScore & top1 > max1;
    const bool rescale = __any_sync(~0u, rises0 | rises1);
    max0 = top0;
    max1 = top1;
    // Far below any score is 0 after exp2, so that rows that are not seen need no mask here.
    const float p0 = exp2_approx(s0 - top0), p1 = exp2_approx(s1 - top1);
    const float p2 = exp2_approx(s2 - top0), p3 = exp2_approx(s3 - top1);
    sum0 = sum0 * keep0 + p0 + p2;
    sum1 = sum1 * keep1 + p1 + p3;
    p[0] = transpose8x8(pack2(weighed(p0, of_low), weighed(p1, of_low)));
    p[1] = transpose8x8(pack2(weighed(p2, of_high), weighed(p3, of_high)));
    if (rescale) {
#pragma unroll
      for (int f = 0; f < kFragments; ++f) {
        o[f][0] *= keep0;
        o[f][1] *= keep1;
        o[f][2] *= keep0;
        o[f][3] *= keep1;
      }
    }
  }

  // Hands the results of its heads over: `first` is the first of them among all that warps keep.
  template <class C>
  __device__ __forceinline__ void store(C& c, int first) {
    const int pair = (c.lane & 3) * 2;
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1) {
      sum0 += __shfl_xor_sync(~0u, sum0, offset);
      sum1 += __shfl_xor_sync(~0u, sum1, offset);
    }
    if (kWarpHeads < kMmaHeads && pair >= kWarpHeads) return;
    float* mine_out = c.shared.attention + (first + pair) * kPaddedHead;
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      const int dim = f * 16 + (c.lane >> 2);
      mine_out[dim] = o[f][0];
      mine_out[kPaddedHead + dim] = o[f][1];
      mine_out[dim + 8] = o[f][2];
      mine_out[kPaddedHead + dim + 8] = o[f][3];
    }
    if (c.lane < 4) {
      c.shared.attention_max[first + pair] = max0;
      c.shared.attention_max[first + pair + 1] = max1;
      c.shared.attention_sum[first + pair] = sum0;
      c.shared.attention_sum[first + pair + 1] = sum1;
    }
  }
};

// ---- the loop over cache rows -------------------------------------------------------------------

template <class S, class C, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(C& c, const Heads heads, const Page out, Cache cache = {}) {
  using Reader = UnitReader<S, Heads>;
  static_assert(kCacheFragments, "the cache is in fragment order");
  constexpr int kFragments = HeadGroup::kFragments;
  constexpr int kHeadGroups = power_of_two_from(ceil_div(kGroupHeads, kWarpGroups * kMmaHeads));
  constexpr int kBlockWarps = kConsumerWarps / kHeadGroups;  // that deal out the blocks of 16 rows
  constexpr int kChunkBlocks = S::kShareRows / kCacheRows;
  // Chunks in progress at once. A warp waits for every kTurns-th chunk alone if all of its blocks
  // lie there and the ring is long enough. A full barrier distinguishes a phase only from the next
  // one, so the previous chunk in the same slot must have landed before a warp waits. Chunks before
  // the last one waited for have landed; bulk copies may land out of order, so with them only
  // chunks older than the window have.
  constexpr int kAtOnce = kBlockWarps % kChunkBlocks == 0 ? kBlockWarps / kChunkBlocks : 1;
  constexpr int kTurns = kAtOnce + (AMK_BULK_COPY ? kWindow : 0) <= kRingSlots ? kAtOnce : 1;
  const Tiles mine = units_of<S>(c.sm, c.layer);
  if (mine.count() > 0) await(c);
  u16* const query = reinterpret_cast<u16*>(c.shared.unit);
  // this step's row, as the first of a block
  u8* const row_block = c.shared.unit + kGroupHeads * kQueryStride * 2 + kGivenRowBytes;
  // and as it is handed over, where the cache is quantised: k and then v
  u16* const given = query + kGroupHeads * kQueryStride;

#pragma unroll 1
  for (int unit = mine.begin; unit < mine.end; ++unit) {
    const Unit<S> u = unit_of_step<S>(c, unit);
    Reader reader(c, heads, u);
    const int group = c.warp % kHeadGroups, block_warp = c.warp / kHeadGroups;

    // The cache's rows, a ring slot at a time, and after them this step's row, by the warp whose
    // turn is next.
    const int chunks = u.chunks();
    const int blocks =
        chunks > 0 ? (chunks - 1) * kChunkBlocks + ceil_div(u.rows(chunks - 1), kCacheRows) : 0;
    const bool has_row = u.owns_row() && blocks % kBlockWarps == block_warp;
    const int turn = kTurns > 1 ? block_warp / kChunkBlocks : 0;
    u32 slot = c.slot, phase = c.phase;
    advance_slot(slot, phase, turn);
    // Of a chunk, the first that is this warp's.
    auto first_block = [block_warp](int chunk) {
      return kTurns * kChunkBlocks == kBlockWarps
                 ? block_warp % kChunkBlocks
                 : int(u32(block_warp + chunk * (kBlockWarps - 1) * kChunkBlocks) % kBlockWarps);
    };
    // The first keys are in registers before the exchange is polled.
    CacheFragment k[kBatch];
    bool early = turn < chunks && first_block(turn) * kCacheRows < u.rows(turn);
    if (early) {
      wait_full(c, slot, phase);
      load_fragments(
          k, c.ring + slot * kSlotBytes + first_block(turn) * kCacheBlockBytes +
              c.lane * kLaneBytes,
          0, kFragments);
      lap(c, Did::kCompute);
    }

    auto words = quad_poll<Reader::kQuads>(page_copy(c, heads.in), [&](int i) {
      const int quad = Reader::quad(c.tid, i);
      return quad < kUnitQuads ? unit_word(u.head(), quad) : -1;
    });
    reader.poll(c, heads, words);
    lap(c, Did::kExchangeWait);
    reader.take(c, words);
#pragma unroll
    for (int i = 0; i < Reader::kQuads; ++i) {
      const int e = Reader::quad(c.tid, i) * 4, row = e - kGroupHeads * kHeadDim;
      if (row < 0) {
        *reinterpret_cast<uint2*>(query + e / kHeadDim * kQueryStride + e % kHeadDim) =
            reader.values(words, i);
      } else if (row < 2 * kHeadDim && kQuantisedCache) {
        *reinterpret_cast<uint2*>(given + row) = reader.values(words, i);
      } else if (row < 2 * kHeadDim) {
        store_row(row_block, 0, row % kHeadDim, row >= kHeadDim, reader.values(words, i));
      }
    }
    // what q's zeros are multiplied with
    if (!kQuantisedCache && kPaddedHead > kHeadDim && c.tid < kPaddedHead - kHeadDim) {
      *reinterpret_cast<u16*>(row_block + cache_offset(0, kHeadDim + c.tid, false)) = 0;
    }
    consumer_barrier();
    // The warp that takes the row rounds it, when it comes to it; where several do, one for all.
    if constexpr (kQuantisedCache && kHeadGroups > 1) {
      if (c.warp == 0 && u.owns_row()) quantise_row(row_block, given, c.lane);
      consumer_barrier();
    }

    HeadGroup groups[kWarpGroups];
#pragma unroll
    for (int g = 0; g < kWarpGroups; ++g) {
      groups[g].load(query, (group * kWarpGroups + g) * kMmaHeads, c.lane);
    }

#pragma unroll 1
    for (int chunk = turn; chunk < chunks || has_row; chunk += kTurns) {
      const bool in_ring = chunk < chunks;
      int b = first_block(chunk);
      const u8* source = c.ring + slot * kSlotBytes + b * kCacheBlockBytes;
      int rows = in_ring ? u.rows(chunk) - b * kCacheRows : 1;  // left from the block on
      if (in_ring) {
        wait_full(c, slot, phase);
      } else {
        source = row_block;
        b = 0;
        if constexpr (kQuantisedCache && kHeadGroups == 1) quantise_row(row_block, given, c.lane);
      }
#pragma unroll 1
      for (; rows > 0 && b < kChunkBlocks; b += kBlockWarps, rows -= kBlockWarps * kCacheRows,
                                           source += kBlockWarps * kCacheBlockBytes) {
        const u8* at = source + c.lane * kLaneBytes;
        const int hidden = S::kWindowRows > 0 && in_ring && chunk == 0 && b == 0 ? u.hidden() : 0;
        float d[kWarpGroups][2][4] = {};
#pragma unroll
        for (int first = 0; first < kFragments; first += kBatch) {
          if (first > 0 || !early) load_fragments(k, at, first, kFragments);
          early = early && first > 0;
#pragma unroll
          for (int i = 0; i < kBatch && first + i < kFragments; ++i) {
            const uint4 keys = operand_of<Element>(k[i]);
#pragma unroll
            for (int g = 0; g < kWarpGroups; ++g) {
              const uint2 q = groups[g].q[first + i];
              mma16816<Element>(d[g][i & 1], keys.x, keys.y, keys.z, keys.w, q.x, q.y);
            }
          }
        }
        CacheFragment v[kBatch];
        load_fragments(v, at + kHalfBlockBytes, 0, kFragments);
        // Rows lane/4 and lane/4 + 8 of the block.
        const int row = c.lane >> 2;
        const bool low = row >= hidden && row < rows, high = row + 8 >= hidden && row + 8 < rows;
        RowScales of_low = row_scales(source, row), of_high = row_scales(source, row + 8);
        if (!low) of_low = {0, 0};
        if (!high) of_high = {0, 0};
#pragma unroll
        for (int g = 0; g < kWarpGroups; ++g)
          groups[g].template take<S>(d[g], low, high, of_low, of_high);
        // Rows of the values that a lane has.
        const LaneRows mine_rows{source, (c.lane & 3) * 2, hidden, rows};
#pragma unroll
        for (int first = 0; first < kFragments; first += kBatch) {
          if (first > 0) load_fragments(v, at + kHalfBlockBytes, first, kFragments);
          if constexpr (!kQuantisedCache) {
            if (rows < kCacheRows || hidden > 0) mine_rows.keep_seen(v);
          }
#pragma unroll
          for (int i = 0; i < kBatch && first + i < kFragments; ++i) {
            const uint4 values = mine_rows.operand(v[i]);
#pragma unroll
            for (int g = 0; g < kWarpGroups; ++g) {
              HeadGroup& h = groups[g];
              mma16816<Element>(h.o[first + i], values.x, values.y, values.z, values.w, h.p[0],
                                h.p[1]);
            }
          }
        }
      }
      if (!in_ring) break;
      release(c, slot, kTurns);
      advance_slot(slot, phase, kTurns);
    }
    advance_slot(c.slot, c.phase, chunks);

#pragma unroll
    for (int g = 0; g < kWarpGroups; ++g) groups[g].store(c, c.warp * kWarpHeads + g * kMmaHeads);
    consumer_barrier();
    lap(c, Did::kCompute);
    merge_warps<S, kWarpHeads, kHeadGroups>(c, u, out);
    // The row goes into the cache last: after every warp has finished reading the unit's rows, and
    // off the path to the next stage.
    if (C::kWaits && u.owns_row()) {
      u8* head = c.launch.cache + cache_number(c, cache) * kLayerCacheBytes +
                 size_t(u.head()) * kHeadCacheBytes;
      if constexpr (kQuantisedCache) copy_row(head, c.position, row_block, c.tid);
#pragma unroll
      for (int i = 0; !kQuantisedCache && i < Reader::kQuads; ++i) {
        const int row = Reader::quad(c.tid, i) * 4 - kGroupHeads * kHeadDim;
        if (row >= 0 && row < 2 * kHeadDim)
          store_row(head, c.position, row % kHeadDim, row >= kHeadDim, reader.values(words, i));
      }
    }
    consumer_barrier();  // the scratch is free for the next unit
    lap(c, Did::kSignal);
  }
  if (mine.count() > 0) signal(c, mine.count());
  c.advance(S::kTasks);
}

}  // namespace amk
