// Attention of several rows of a sequence on tensor cores: consecutive ones, all or some of which
// are a unit's. A warp has heads of some tokens as columns of its products, and a unit takes its
// cache rows once for each part of its columns. What a token computes is what it computes alone
// (docs/passes.md): it sees the rows of the pass before its own in the block of their position, as
// rows of the cache, and its own row is a share of its own. Needs schedule.h with AMK_TENSOR_CORES.
#pragma once

#include "heads_mma.cuh"

namespace amk {

// The blocks of the cache that rows of a pass are in, of which a block keeps an image: all rows of
// the pass, and rows of the cache before them.
constexpr int kImages = ceil_div(kSequenceRows - 1, kCacheRows) + 1;
template <class H>
constexpr int kPassQueryBytes = kSequenceRows * H::kGroupHeads * H::kQueryStride * 2;
template <class H>
constexpr int kPassGivenBytes = kSequenceRows * H::kGivenRowBytes;

// Which rows of a block a token sees: from `first` on and below `end`.
struct SeenRows {
  int first, end;
  __device__ __forceinline__ bool has(int row) const { return row >= first && row < end; }
};

// The rows of a block before its own that a token at a row of it, or before or after it, sees.
template <class S>
__device__ __forceinline__ SeenRows rows_before(int row) {
  return {S::kWindowRows > 0 ? max(0, row + 1 - S::kWindowRows) : 0, min(row, kCacheRows)};
}

// The scores that the heads of a group have with their tokens' own rows. A lane has those of its
// two heads where it has the row.
struct OwnScores {
  float of[2];
  u32 found = 0;  // a bit for each
};

// Multiplies a block with some heads of a warp. columns[g] are the rows that the two heads of group
// g that a lane has see: the row at the end is the token's own, if it is in the block. Of the
// values, rows from `first` on and below `end` are looked at.
template <class S, class H, int kGroups>
__device__ __forceinline__ void attend_block(HeadGroup<H> (&groups)[kGroups], const u8* block,
                                             const SeenRows (&columns)[kGroups][2],
                                             OwnScores (&own)[kGroups], int first, int end,
                                             int lane) {
  constexpr int kFragments = HeadGroup<H>::kFragments;
  CacheFragment fragments[kBatch];
  float d[kGroups][2][4] = {};
#pragma unroll
  for (int f = 0; f < kFragments; f += kBatch) {
    load_fragments<H, false>(fragments, block, f, lane);
#pragma unroll
    for (int i = 0; i < kBatch && f + i < kFragments; ++i) {
      const uint4 keys = operand_of<Element>(fragments[i]);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const uint2 q = groups[g].q[f + i];
        Element::mma(d[g][i & 1], keys.x, keys.y, keys.z, keys.w, q.x, q.y);
      }
    }
  }
  const int row = lane >> 2;
  RowScales of_low = row_scales<H>(block, row), of_high = row_scales<H>(block, row + 8);
  if (row < first || row >= end) of_low = {0, 0};
  if (row + 8 < first || row + 8 >= end) of_high = {0, 0};
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const SeenRows(&of)[2] = columns[g];
    const Seen seen{of[0].has(row), of[1].has(row), of[0].has(row + 8), of[1].has(row + 8)};
    float scores[4];
    scores_of<S>(scores, d[g], of_low, of_high);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (row != of[k].end && row + 8 != of[k].end) continue;
      own[g].of[k] = row == of[k].end ? scores[k] : scores[k + 2];
      own[g].found |= 1u << k;
    }
    groups[g].take(scores, seen, of_low, of_high);
  }
  const LaneRows<H> rows{block, (lane & 3) * 2, first, end};
#pragma unroll
  for (int f = 0; f < kFragments; f += kBatch) {
    load_fragments<H, true>(fragments, block, f, lane);
    if constexpr (!kQuantisedCache) {
      if (end < kCacheRows || first > 0) rows.keep_seen(fragments);
    }
#pragma unroll
    for (int i = 0; i < kBatch && f + i < kFragments; ++i) {
      const uint4 values = rows.operand(fragments[i]);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        HeadGroup<H>& h = groups[g];
        Element::mma(h.o[f + i], values.x, values.y, values.z, values.w, h.p[0], h.p[1]);
      }
    }
  }
}

// Copies the first rows of a block of the ring to an image of it, which has others. A warp does it.
template <class H>
__device__ __forceinline__ void copy_rows(u8* image, const u8* block, int rows, int lane) {
  using Piece = LaneFragment<CacheElement::kBytes>::Type;
  constexpr int kWords = sizeof(Piece) / 4, kElements = 4 / CacheElement::kBytes;  // of a word
  constexpr int kPieces = H::kHalfBlockBytes / sizeof(Piece);
  struct alignas(Piece) Words {
    u32 of[kWords];
  };
  // Of the elements of a piece those of the first rows: row(i) is that of element i.
  const auto mask = [rows](const auto& row) {
    Words mask = {};
#pragma unroll
    for (int i = 0; i < kWords * kElements; ++i) {
      const u32 element = (CacheElement::kBytes == 1 ? 0xffu : 0xffffu)
                          << i % kElements * 8 * CacheElement::kBytes;
      if (row(i) < rows) mask.of[i / kElements] |= element;
    }
    return mask;
  };
  const auto mix = [](u8* to, const u8* from, const Words& mask) {
    const Words a = load_partly_written(reinterpret_cast<const Words*>(to));
    const Words b = load_partly_written(reinterpret_cast<const Words*>(from));
    Words both;
#pragma unroll
    for (int i = 0; i < kWords; ++i) both.of[i] = (a.of[i] & ~mask.of[i]) | (b.of[i] & mask.of[i]);
    *reinterpret_cast<Words*>(to) = both;
  };
  // Every 32 pieces a row of values is where it was.
  const Words values = mask([=](int i) {
    return kCacheMatrices ? lane / 8 % 2 * 8 + i : (lane & 3) * 2 + i % 2 + i / 4 * 8;
  });
#pragma unroll 4
  for (int piece = lane; piece < kPieces; piece += 32) {
    const int at = piece * sizeof(Piece);
    const Words keys = mask([=](int i) {
      return kCacheMatrices ? at / kNextKeys<H> * 8 + lane % 8 : lane / 4 + i / 2 % 2 * 8;
    });
    mix(image + at, block + at, keys);
    mix(image + H::kHalfBlockBytes + at, block + H::kHalfBlockBytes + at, values);
  }
  if (kQuantisedCache && lane < rows) {
    *reinterpret_cast<u32*>(image + scale_offset<H>(lane)) =
        *reinterpret_cast<const u32*>(block + scale_offset<H>(lane));
  }
}

template <class S, class C, class Heads, class Cache>
__device__ __forceinline__ void attend_rows(C& c, const Heads heads, const Page out,
                                            const u8* sink_scores, Cache cache) {
  using H = HeadsOf<S>;
  using Reader = UnitReader<S, Heads>;
  using Turns = BlockTurns<S>;
  static_assert(kSequenceRows == 1 || kCacheFragments, "what codegen admits");
  static_assert(kSequenceRows == 1 || kUnitScratch >= kPassQueryBytes<H> + kPassGivenBytes<H> +
                                                          kImages * H::kCacheBlockBytes,
                "q of all tokens, k and v where they are rounded to integers, and the images");
  constexpr int kSetHeads = kMmaHeads * H::kWarpSets;  // a group of each set
  // of a warp
  constexpr int kColumns = kUnitColumns<S>;
  constexpr int kPartGroups =
      ceil_div(H::kPartColumns < kColumns ? H::kPartColumns : kColumns, kSetHeads);
  constexpr int kBlockWarps = Turns::kWarps, kTurns = Turns::kTurns;
  const Tiles mine = begin_units<S>(c);
  if (mine.count() > 0) await(c);
  u16* const query = reinterpret_cast<u16*>(c.shared.unit);
  // k and then v of each token as they are published, where the cache is quantised
  u16* const given = query + kPassQueryBytes<H> / 2;
  u8* const images = c.shared.unit + kPassQueryBytes<H> + kPassGivenBytes<H>;
  // of the first row of the sequence
  int first_block = c.position / kCacheRows, cached = c.position % kCacheRows;

#pragma unroll 1
  for (int unit = mine.begin; unit < mine.end; ++unit) {
    const Unit<S> u = unit_of_step<S>(c, unit);
    const Sinks<S> sinks(c, u, sink_scores);
    const int set = c.warp % H::kWarpSets;
    const Turns turns{u, c.warp / H::kWarpSets};
    const int chunks = u.chunks();
    if constexpr (kSequences > 1)
      first_block = u.position / kCacheRows, cached = u.position % kCacheRows;
    const int first_token = u.first_token(), own = cached + first_token;  // in the first image

    Reader reader(c, heads, u);
    auto words = quad_poll<Reader::kQuads>(page_copy(c, heads.in), [&](int i) {
      const UnitQuad<H> q = Reader::quad(c.tid, i);
      return q.is_there() ? u.sequence_token() * H::kTokenRows + unit_word<H>(u.head(), q) : -1;
    });
    reader.poll(c, heads, u, words);
    lap(c, Did::kExchangeWait);
    reader.take(c, u, words);
#pragma unroll
    for (int i = 0; i < Reader::kQuads; ++i) {
      const UnitQuad<H> q = Reader::quad(c.tid, i);
      const u32 e = q.quad * 4, row = e - H::kGroupHeads * H::kHeadDim;
      if (!q.is_there()) continue;
      const uint2 four = reader.values(words, i);
      if (q.is_query()) {
        const u32 head = (q.token - first_token) * H::kGroupHeads + e / H::kHeadDim;
        if (kRowGroups<S> == 1 || head < u32(kColumns))
          *reinterpret_cast<uint2*>(query + head * H::kQueryStride + e % H::kHeadDim) = four;
      } else if constexpr (kQuantisedCache) {
        *reinterpret_cast<uint2*>(given + q.token * H::kGivenRowBytes / 2 + row) = four;
      } else {
        store_row<H>(images, cached + q.token, row % H::kHeadDim, row >= H::kHeadDim, four);
      }
    }
    // what q's zeros are multiplied with
    if constexpr (!kQuantisedCache && H::kPaddedHead > H::kHeadDim) {
      for (int e = c.tid; e < kSequenceRows * (H::kPaddedHead - H::kHeadDim); e += kConsumers) {
        const int dim = H::kHeadDim + e / kSequenceRows;
        const int at = cache_offset<H>(cached + e % kSequenceRows, dim, false);
        *reinterpret_cast<u16*>(images + at) = 0;
      }
    }
    consumer_barrier();
    if constexpr (kQuantisedCache) {
#pragma unroll 1
      for (int token = c.warp; token < kSequenceRows; token += kConsumerWarps)
        quantise_row<H>(images, cached + token, given + token * H::kGivenRowBytes / 2, c.lane);
      consumer_barrier();  // words that have rows of the cache too are mixed after that
    }

#pragma unroll 1
    for (int part = 0; part < kUnitPasses<S>; ++part) {
      const int first_column = part * H::kPartColumns;
      HeadGroup<H> groups[kPartGroups];
      OwnScores own_scores[kPartGroups];
      int row_of[kPartGroups][2];  // of the lane's two columns, in the first image
#pragma unroll
      for (int g = 0; g < kPartGroups; ++g) {
        const int first = first_column + g * kSetHeads + set * kMmaHeads;
        groups[g].load(query, first, kColumns, c.lane);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const int column = first + (c.lane & 3) * 2 + k;
          row_of[g][k] = column < kColumns ? own + column / H::kGroupHeads : -1;
        }
      }

      // First whole blocks of the cache, from the ring: all tokens see them, but for what lies
      // before their window. The rows of the last one, if it is not whole, go to its image. Then
      // what tokens see of the images. One loop has both, because code that a warp comes to for the
      // first time is three times as slow.
      int chunk = turns.first_chunk(), b = 0, rows = 0, look = 0;
      const u8* block = nullptr;
      bool open = false;
      u32 slot = c.slot, phase = c.phase;
      advance_slot(slot, phase, chunk);
#pragma unroll 1
      while (true) {
        SeenRows columns[kPartGroups][2];
        int first, end = kCacheRows;
        const u8* seen = block;
        if (chunk < chunks) {
          if (!open) {
            b = turns.first_block(chunk);
            rows = u.rows(chunk) - b * kCacheRows;  // left from the block on
            block = seen = c.ring + slot * kSlotBytes + b * H::kCacheBlockBytes;
            wait_full(c, slot, phase);
            open = true;
          }
          if (rows < kCacheRows || b >= Turns::kChunkBlocks) {
            if (rows > 0 && b < Turns::kChunkBlocks && part == 0 && set == 0)
              copy_rows<H>(images, block, rows, c.lane);
            release(c, slot, kTurns);
            advance_slot(slot, phase, kTurns);
            chunk += kTurns;
            open = false;
            continue;
          }
          // of the first image, from the block on
          const int image = first_block * kCacheRows - u.first_row(chunk) - u.skipped(chunk) -
                            b * kCacheRows;
#pragma unroll
          for (int g = 0; g < kPartGroups; ++g) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
              if (S::kWindowRows > 0) columns[g][k] = rows_before<S>(image + row_of[g][k]);
              else columns[g][k] = {0, kCacheRows};
              if (row_of[g][k] < 0) columns[g][k] = {0, -1};
            }
          }
          first = rows_before<S>(image + own).first;
          b += kBlockWarps;
          rows -= kBlockWarps * kCacheRows;
          block += kBlockWarps * H::kCacheBlockBytes;
        } else {
          if (look == kImages) break;
          if (look == 0 && part == 0) consumer_barrier();  // the first image has its cache rows
          const int image = look++, of_cache = first_block + image;
          const int first_row = own - image * kCacheRows;  // of the unit
          end = min(first_row + kUnitRows<S>, kCacheRows);
          if (!u.owns(of_cache) || u.number(of_cache) % kBlockWarps != turns.warp || end <= 0)
            continue;
#pragma unroll
          for (int g = 0; g < kPartGroups; ++g) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
              columns[g][k] = row_of[g][k] < 0 ? SeenRows{0, -1}
                                               : rows_before<S>(row_of[g][k] - image * kCacheRows);
            }
          }
          first = rows_before<S>(first_row).first;
          seen = images + image * H::kCacheBlockBytes;
        }
        attend_block<S>(groups, seen, columns, own_scores, first, end, c.lane);
      }
      advance_slot(c.slot, c.phase, chunks);

#pragma unroll
      for (int g = 0; g < kPartGroups; ++g) {
        const int first = first_column + g * kSetHeads;
        if (first >= kColumns) break;  // of the last part
        groups[g].template store<S>(c, c.warp * H::kWarpHeads);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          if (own_scores[g].found >> k & 1)
            c.shared.attention_own[set * kMmaHeads + (c.lane & 3) * 2 + k] = own_scores[g].of[k];
        }
        consumer_barrier();
        lap(c, Did::kCompute);
        const auto own_value = [&](int row, int dim) {
          return whole_value<H>(images, cached + row, dim);
        };
        merge_warps<S, H::kWarpSets>(c, u, out, own_value, sinks, min(kColumns - first, kSetHeads),
                                     first);
        consumer_barrier();
      }
    }
    // The rows go into the cache last: after every warp has finished reading the unit's rows, and
    // off the path to the next stage.
    if (C::kWaits) {
      u8* head = c.launch.cache + cache_of(u, cache_number(c, cache));
#pragma unroll 1
      for (int i = 0; i < kUnitRows<S>; ++i) {
        const int row = (kSequences > 1 ? u.position : c.position) + first_token + i;
        const int block = row / kCacheRows;
        if (appends(c, u, block))
          copy_row<H>(head, row, images + (block - first_block) * H::kCacheBlockBytes,
                   row % kCacheRows, c.tid);
      }
    }
    consumer_barrier();  // the scratch is free for the next unit
    lap(c, Did::kSignal);
  }
  if (mine.count() > 0) signal(c, mine.count());
  c.advance(S::kTasks);
}

}  // namespace amk
