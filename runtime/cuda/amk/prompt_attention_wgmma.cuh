// Attention of a prompt's tokens by wgmma: each of two groups of four warps multiplies 64 columns
// by blocks of the cache that copying warps bring (prompt_ring.cuh), keys and values as they lie
// there. Scores of a slot's blocks are computed at once. With small heads so are the sums of the
// values of those that are of one share, unless a column does not see all of the rows or sums have
// to be scaled in between. Shares are joined in the order of a step. Needs schedule.h with
// AMK_WGMMA.
#pragma once

#include "prompt_shares.cuh"
#include "prompt_wgmma.cuh"

namespace amk {

// How a block of the GPU divides its work, and its shared memory: results of splits, queries, and
// slots of blocks of the cache, of which keys come before values. The stages of a pass's variants
// divide it alike, with splits or without: copies for one begin while another attends.
template <class S>
struct WideHeads {
  using H = HeadsOf<S>;
  // Both groups of warps have the same columns of a large head, and half of its values each.
  static constexpr int kParts = H::kPaddedHead > 128 ? 2 : 1;
  static constexpr int kDims = H::kPaddedHead / kParts;
  static constexpr int kGroupColumns = 64, kWarpColumns = 16;
  static constexpr int kBlockColumns = 2 * kGroupColumns / kParts;
  // Dims of values that a product has.
  static constexpr int kPieceDims = kDims % 128 == 0 ? 128 : kDims % 64 == 0 ? 64 : 32;
  static constexpr int kPieces = kDims / kPieceDims;
  // Blocks of a slot: scores of more would not fit in registers.
  static constexpr int kSlotBlocks = kDims > 64 ? 2 : 4;
  // Blocks whose values are added up at once: two of a large head were no faster on H200s.
  static constexpr int kAtOnce = kDims > 64 ? 1 : kSlotBlocks;

  // Whether a share begins with a slot. Short shares would leave most of a slot empty.
  __device__ static __forceinline__ bool begins_slots(const BlockWalk<S>& walk) {
    return kAtOnce > 1 && walk.has_long_shares();
  }
  static constexpr int kScores = kSlotBlocks * kCacheRows / 2;  // of a lane
  static constexpr int kKeptBytes = kBlockColumns * H::kPaddedHead * 4;
  static constexpr int kQueryBytes = kBlockColumns * H::kPaddedHead * 2;
  static constexpr int kSlotBytes = kSlotBlocks * H::kCacheBlockBytes;
  static constexpr int kFit = (kPromptRing - kKeptBytes - kQueryBytes) / kSlotBytes;
  static constexpr int kSlots = kFit < kPromptSlots ? kFit : kPromptSlots;
  static_assert(kSlots >= 2, "a slot is filled while another one is read");

  __device__ static __forceinline__ u8* slot(u32 number) {
    return block_ring() + kKeptBytes + kQueryBytes + number * kSlotBytes;
  }
};

template <class S>
using WideUnits = ColumnUnits<S, WideHeads<S>::kBlockColumns>;

// What a lane has of the products: results of two columns, of each two dims side by side of eight.
template <class S>
struct WideLane {
  static constexpr int kColumns = 2, kValues = WideHeads<S>::kDims / 4;
  int lane, first_dim;

  __device__ __forceinline__ int column(int c) const { return c * 8 + lane / 4; }
  __device__ __forceinline__ int dim(int n) const {
    return first_dim + n / 2 * 8 + (lane & 3) * 2 + n % 2;
  }
  // Where a result is among those of a product's sums, all pieces one after the other.
  __device__ static constexpr int sum(int c, int n) { return n / 2 * 4 + c * 2 + n % 2; }
};

// What a warp of a step has of a split, as HeadGroup (heads_mma.cuh) has it: of each column a lane
// has the rows of a block that two lanes have there.
template <class S>
struct WideShare {
  using Wide = WideHeads<S>;
  using H = HeadsOf<S>;
  static constexpr int kSums = Wide::kPieceDims / 2;
  float o[Wide::kPieces][kSums];  // nothing yet, if no block has been multiplied
  float base[2], max[2], sum[2][2];
  bool begun;

  __device__ __forceinline__ void forget() {
    begun = false;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      base[c] = max[c] = kNoScore;
      sum[c][0] = sum[c][1] = 0;
    }
  }
  __device__ __forceinline__ float of(int c, int n) const {
    const int i = WideLane<S>::sum(c, n);
    return o[i / kSums][i % kSums];
  }

  // As HeadGroup::raise.
  __device__ __forceinline__ void raise(float (&top)[2]) {
    if (!warp_any(top[0] > base[0] + kSlack | top[1] > base[1] + kSlack)) return;
    bool scales = false;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      top[c] = fmaxf(top[c], shuffle_xor(top[c], 1));
      top[c] = fmaxf(top[c], shuffle_xor(top[c], 2));
      if (!(top[c] > base[c] + kSlack)) top[c] = base[c];
      scales |= base[c] > kNoScore & top[c] > base[c];
    }
    if (warp_any(scales)) {
      const float keep[2] = {exp2_approximate(base[0] - top[0]),
                             exp2_approximate(base[1] - top[1])};
#pragma unroll
      for (int c = 0; c < 2; ++c) sum[c][0] *= keep[c], sum[c][1] *= keep[c];
#pragma unroll
      for (int i = 0; i < Wide::kPieces * kSums; ++i) o[i / kSums][i % kSums] *= keep[i / 2 % 2];
    }
    base[0] = top[0], base[1] = top[1];
  }

  // The largest of the lane's scores of a block with either column: those of rows r and r + 1 with
  // one and the other, and then of rows r + 8 and r + 9.
  __device__ static __forceinline__ void largest(float (&top)[2], const float* s) {
#pragma unroll
    for (int c = 0; c < 2; ++c)
      top[c] = fmaxf(fmaxf(s[2 * c], s[2 * c + 1]), fmaxf(s[2 * c + 4], s[2 * c + 5]));
  }
  // The probabilities of a block, of the rows that are seen; their sums are added.
  template <class IsSeen>
  __device__ __forceinline__ uint4 probabilities(const float* s, const IsSeen& is_seen) {
    float of[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      of[i] = is_seen(i) ? exp2_approximate(s[i] - base[i / 2 % 2]) : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i / 2][i % 2] = sum[i / 2][i % 2] + of[i] + of[i + 4];
    return make_uint4(pack2(of[0], of[1]), pack2(of[2], of[3]), pack2(of[4], of[5]),
                      pack2(of[6], of[7]));
  }
  // Adds the values of some blocks, weighed, one block after the other.
  template <int kBlocks>
  __device__ __forceinline__ void weigh(const uint4 (&p)[kBlocks], WideOperand values) {
    wgmma_begin();
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
#pragma unroll
      for (int i = 0; i < Wide::kPieces; ++i) {
        const u32 at = b * H::kHalfBlockBytes + i * (Wide::kPieceDims / 8) * kNextDims;
        Element::wgmma(o[i], p[b], further(values, at), b > 0 || begun);
      }
    }
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < Wide::kPieces; ++i) pin(o[i]);
    begun = true;
  }

  // Takes the scores of a block, of which only rows that are seen count.
  template <class IsSeen>
  __device__ __forceinline__ uint4 take(const float (&s)[Wide::kScores], const IsSeen& is_seen) {
    float of[8], top[2];
#pragma unroll
    for (int i = 0; i < 8; ++i) of[i] = is_seen(i) ? s[i] : kNoScore;
    largest(top, of);
#pragma unroll
    for (int c = 0; c < 2; ++c) max[c] = fmaxf(max[c], top[c]);
    raise(top);
    return probabilities(of, is_seen);
  }
  // Takes kBlocks blocks at once, if the columns of all warps of the group see all rows and no sum
  // has to be scaled after the first block. Otherwise returns false, and the caller takes one block
  // after the other: the largest scores and the base of the first one then stay as they are.
  template <int kBlocks>
  __device__ __forceinline__ bool take_all(const float (&s)[Wide::kScores], bool sees_all,
                                           int group, WideOperand values) {
    bool must_wait = !sees_all;
    if (sees_all) {
      float top[kBlocks][2], of_first[2];
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        largest(top[b], s + b * 8);
#pragma unroll
        for (int c = 0; c < 2; ++c) max[c] = fmaxf(max[c], top[b][c]);
      }
      of_first[0] = top[0][0], of_first[1] = top[0][1];
      raise(of_first);
#pragma unroll
      for (int b = 1; b < kBlocks; ++b)
        must_wait |= top[b][0] > base[0] + kSlack | top[b][1] > base[1] + kSlack;
    }
    if (named_barrier_any<kConsumers / 2>(4 + group, must_wait)) return false;
    uint4 p[kBlocks];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) p[b] = probabilities(s + b * 8, [](int) { return true; });
    weigh(p, values);
    return true;
  }

  // Joins the sums of all lanes, in the order of HeadGroup::join_lanes.
  __device__ __forceinline__ void join_lanes(float (&joined)[2]) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      joined[c] = sum[c][0] + sum[c][1];
#pragma unroll
      for (int offset = 1; offset < 4; offset <<= 1) {
        joined[c] += shuffle_xor(joined[c], offset);
        if constexpr (S::kSplits > 1) max[c] = fmaxf(max[c], shuffle_xor(max[c], offset));
      }
    }
  }
};

// The columns of a warp, from the first one of all tokens' on.
template <class S>
struct WideUnit : LaneColumns<S, WideLane<S>> {
  using Wide = WideHeads<S>;
  using H = HeadsOf<S>;
  using LaneColumns<S, WideLane<S>>::LaneColumns;

  // Puts the queries where products have them: of each eight columns 16 bytes after one another.
  __device__ __forceinline__ void put_queries(Prompt& c, u8* to, const u16* queries, int stride) {
    constexpr int kNext = Wide::kGroupColumns * 16;
    const int row = c.warp % 4 * Wide::kWarpColumns, quarter = (c.lane & 3) * 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int column = this->first_column + this->lane.column(i);
      u8* const at = to + (row + this->lane.column(i)) * 16 + quarter;
#pragma unroll
      for (int f = 0; f < H::kPaddedHead / 16; ++f) {
        const int dim = f * 16 + quarter;
        const bool real =
            column < this->columns && (H::kPaddedHead == H::kHeadDim || dim < H::kHeadDim);
        const uint2 four =
            real ? *reinterpret_cast<const uint2*>(queries + this->query(column, stride) + dim)
                 : make_uint2(0, 0);
        *reinterpret_cast<u32*>(at + f * 2 * kNext) = four.x;
        *reinterpret_cast<u32*>(at + (f * 2 + 1) * kNext) = four.y;
      }
    }
  }

  // Stores what has come out of all splits in the operand of stage To: a lane has of each quarter
  // of a quad what is side by side there (prompt_pairs.cuh).
  template <class To>
  __device__ __forceinline__ void store_operand(Prompt& c) const {
    using Lane = WideLane<S>;
    static_assert(PromptShape<To>::kFilled && H::kHeadDim == H::kPaddedHead &&
                      H::kHeadDim % 32 == 0,
                  "what codegen lets attention store so");
    u16* const operand = c.values<Element>(OperandPage<To>::kPage);
#pragma unroll
    for (int i = 0; i < Lane::kColumns; ++i) {
      const int column = this->first_column + this->lane.column(i), of = this->lane.lane % 4;
      if (column >= this->columns) continue;
      const int row = int(this->query(column, 0)) + this->lane.first_dim;
#pragma unroll
      for (int quarter = 0; quarter < Lane::kValues / 8; ++quarter) {
        u32 pairs[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int n = quarter * 8 + k * 2;
          pairs[k] = pack2(this->whole(i, n), this->whole(i, n + 1));
        }
        store_group<To>(operand, column / H::kGroupHeads, row + quarter * 32, of / 2, of % 2,
                        make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
      }
    }
  }

  // The scores of a slot's blocks.
  __device__ __forceinline__ void score(float (&s)[Wide::kScores], const u8* queries,
                                        const u8* keys) {
    constexpr int kFragments = H::kPaddedHead / 16;
    constexpr u32 kNext = Wide::kGroupColumns * 16;
    const WideOperand a = wide_operand<kNext, kMatrixBytes>(queries);
    const WideOperand b = wide_operand<kMatrixBytes, kNextKeys<H>>(keys);
    float odd[Wide::kScores];
    clear(s);
    clear(odd);
    wgmma_begin();
#pragma unroll
    for (int f = 0; f < kFragments; ++f)
      Element::wgmma(f % 2 ? odd : s, further(a, f * 2 * kNext), further(b, f * 2 * kMatrixBytes),
                     f > 1);
    wgmma_commit();
    wgmma_wait<0>();
    pin(s);
    pin(odd);
#pragma unroll
    for (int i = 0; i < Wide::kScores; ++i) s[i] = scaled_score<S>(s[i] + odd[i]);
  }

  // Whether all columns see all rows of the blocks `from` to `to`.
  __device__ __forceinline__ bool sees_all(int from, int to) const {
    return first_seen<S>(this->last) <= from * kCacheRows &&
           (to + 1) * kCacheRows <= this->first;
  }
  // Takes the first `blocks` of a slot at once. Returns false if it has not, as of a single block.
  template <int kBlocks>
  __device__ __forceinline__ bool take_all(WideShare<S>& share, const float (&s)[Wide::kScores],
                                           int blocks, bool sees_all, int group,
                                           WideOperand values) const {
    if constexpr (kBlocks > 1) {
      if (blocks == kBlocks)
        return share.template take_all<kBlocks>(s, sees_all, group, values);
      return take_all<kBlocks - 1>(share, s, blocks, sees_all, group, values);
    }
    return false;
  }
  // Takes a block.
  __device__ __forceinline__ void take(WideShare<S>& share, const float (&s)[Wide::kScores],
                                       int block, bool sees_all, WideOperand values) {
    uint4 p[1];
    if (sees_all) {
      p[0] = share.take(s, [](int) { return true; });
    } else {
      const int from = block * kCacheRows, in_block = (this->lane.lane & 3) * 2;
      SeenRows seen[2];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int c = i / 2 % 2, row = in_block + i / 4 * 8 + i % 2, own = this->position[c];
        seen[c] = {first_seen<S>(own) - from, own - from};
        if (row == seen[c].end) this->own[c] = s[i];
      }
      p[0] = share.take(
          s, [&](int i) { return seen[i / 2 % 2].has(in_block + i / 4 * 8 + i % 2); });
    }
    share.weigh(p, values);
  }
};

// Rows of a block of values that nobody has written must not matter: weights of 0 do not help
// against an infinity. All consumers of a block call it.
template <class H>
__device__ __forceinline__ void clear_values(u8* values, int rows, int tid) {
#pragma unroll 1
  for (int at = tid; at < H::kHalfBlockBytes / 4; at += kConsumers) {
    const int row = at / 32 % 2 * 8 + at % 4 * 2;  // the first of two
    u32* const two = reinterpret_cast<u32*>(values) + at;
    if (row + 1 >= rows) *two = row < rows ? load_partly_written(two) & 0xffff : 0;
  }
  fence_proxy_async_shared();
  consumer_barrier();
}

// Attention of a unit to all splits, by all warps of a block, for stage Top of the pass.
template <class Top, class Units, class Cache>
__device__ __forceinline__ void attend_wide(Prompt& c, const Units& units, int unit,
                                            const u16* queries, int stride, const Page out,
                                            const u8* sinks, Cache cache) {
  using S = typename Units::Stage;
  using H = HeadsOf<S>;
  using Wide = WideHeads<S>;
  using Lane = WideLane<S>;
  const int group = c.warp / 4;
  const int column = units.column(unit);
  const Lane lane{c.lane, Wide::kParts > 1 ? group * Wide::kDims : 0};
  const int warp_column = (Wide::kParts > 1 ? c.warp % 4 : c.warp) * Wide::kWarpColumns;
  WideUnit<S> u(c, units, cache, units.head(unit), lane, column + warp_column, Wide::kWarpColumns,
                reinterpret_cast<float*>(c.ring) +
                    c.warp * Lane::kColumns * Lane::kValues * 32 + c.lane);
  u8* const mine = c.ring + Wide::kKeptBytes +
                   (Wide::kParts > 1 ? 0 : group * Wide::kGroupColumns * H::kPaddedHead * 2);
  consumer_barrier();  // the queries before these are not read any more
  if (Wide::kParts == 1 || group == 0) u.put_queries(c, mine, queries, stride);
  fence_proxy_async_shared();
  consumer_barrier();

  const int end = c.origin + c.tokens;  // rows from there on are not those of a text
  WideShare<S> share;
#pragma unroll
  for (int i = 0; i < Wide::kPieces; ++i) clear(share.o[i]);
  share.forget();
  int split = 0;
  auto walk = units.walk(column);
  const bool begins_slots = Wide::begins_slots(walk);
  const auto end_splits = [&] {
#pragma unroll 1
    for (; split < walk.split; ++split)
      u.end_split(c, split, sinks, [&](int row) { return (c.lane & ~3) + row % 8 / 2; });
  };
  // Splits without a row in the window come first. Split 0 may have sinks all the same.
  if constexpr (S::kWindowRows > 0) end_splits();
#pragma unroll 1
  while (!walk.ends()) {
    const u32 slot = c.next.slot;
    while (!barrier_try_wait(&c.shared.full[slot], c.next.phase(), kCopyWarps)) {
    }
    u8* const keys = Wide::slot(slot);
    u8* values = keys + Wide::kSlotBlocks * H::kHalfBlockBytes;
    float s[Wide::kScores];
    u.score(s, mine, keys);
#pragma unroll 1
    for (int left = Wide::kSlotBlocks; left > 0 && !walk.ends();) {
      // As many as the slot has of the share.
      const int blocks = Wide::kAtOnce > 1 ? min(walk.left(), left) : 1;
      const int last = walk.block(blocks - 1);
      left -= blocks;
      if (end / kCacheRows == last && end % kCacheRows > 0)
        clear_values<H>(values + (blocks - 1) * H::kHalfBlockBytes, end % kCacheRows, c.tid);
      const WideOperand of_values =
          wide_operand<kMatrixBytes, kNextDims>(values + lane.first_dim / 8 * kNextDims);
      const bool sees_all = u.sees_all(walk.block(), last);
      const bool taken = u.template take_all<Wide::kAtOnce>(share, s, blocks, sees_all, group,
                                                            of_values);
#pragma unroll 1
      for (int i = 0; i < blocks; ++i) {
        if (!taken)
          u.take(share, s, walk.block(i), sees_all, further(of_values, i * H::kHalfBlockBytes));
#pragma unroll
        for (int k = 0; k + 8 < Wide::kScores; ++k) s[k] = s[k + 8];
      }
      values += blocks * H::kHalfBlockBytes;
      const int of_split = walk.split, of_warp = walk.warp;
      walk.advance(blocks);
      if (walk.is_in(of_split, of_warp)) continue;
      if (begins_slots) left = 0;
      float sum[2];
      share.join_lanes(sum);
      u.join_warp(share.base, share.max, sum, [&](int k, int n) { return share.of(k, n); });
      share.forget();
      end_splits();
    }
    if (c.lane == 0) barrier_arrive(&c.shared.empty[slot], 1);
    c.next.template advance<Wide::kSlots>();
  }
  using To = typename WritesOperand<Top>::Of;
  if constexpr (kSame<To, void>) u.template store<(Top::kSplits > 1)>(c, out);
  else u.template store_operand<To>(c);
}

// The blocks of the cache of all units of a block of the GPU: the first warp copies keys, and the
// second one values. A slot has blocks at its end that nobody reads if there are no more for it.
template <class S>
struct CacheCopies {
  template <class Cache>
  __device__ static __forceinline__ void copy(PromptCopies& c, Cache cache) {
    each_stage<S, WideUnits>(c.position, c.first, c.tokens, 0, [&](const auto& units) {
      units.each(block_index(), [&](int unit) { copy_unit(c, units, unit, cache); });
    });
  }

 private:
  template <class Units, class Cache>
  __device__ static __forceinline__ void copy_unit(PromptCopies& c, const Units& units, int unit,
                                                   Cache cache) {
    using Of = typename Units::Stage;
    using H = HeadsOf<Of>;
    using Wide = WideHeads<Of>;
    const u8* const head = c.cache + layer_cache<H>(cache) + c.warp * H::kHalfBlockBytes +
                           size_t(units.head(unit)) * H::kHeadCacheBytes;
    auto walk = units.walk(units.column(unit));
    const bool begins_slots = Wide::begins_slots(walk);
#pragma unroll 1
    while (!walk.ends()) {
      u64* const full = c.await_slot();
      if (c.warp > 1) {
        barrier_arrive(full, 1);
      } else {
        barrier_arrive_expect(full, Wide::kSlotBlocks * H::kHalfBlockBytes);
      }
      u8* to = Wide::slot(c.next.slot) + c.warp * Wide::kSlotBlocks * H::kHalfBlockBytes;
      const int of_split = walk.split, of_warp = walk.warp;
      int block = walk.block();
      bool more = true;
#pragma unroll 1
      for (int i = 0; i < Wide::kSlotBlocks; ++i) {
        if (c.warp < 2)
          copy_bulk(to, head + size_t(block) * H::kCacheBlockBytes, H::kHalfBlockBytes, full);
        to += H::kHalfBlockBytes;
        if (!more) continue;
        walk.advance();
        more = !walk.ends() && (!begins_slots || walk.is_in(of_split, of_warp));
        if (more) block = walk.block();
      }
      c.next.template advance<Wide::kSlots>();
    }
  }
};

}  // namespace amk
