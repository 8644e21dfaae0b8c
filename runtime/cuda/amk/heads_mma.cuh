// What a warp computes of attention with one block of the cache, in fragment order, on tensor
// cores: K as A (16 rows by 16 dims) times Qᵀ as B (dims by 8 heads), then Vᵀ as A (16 dims by 16
// rows) times P as B, for which one movmatrix per 8 rows transposes the scores. Online softmax in
// fp32, probabilities rounded to the element type before the second product. Needs schedule.h with
// AMK_TENSOR_CORES. Must not know which blocks there are.
#pragma once

#include "hw/mma.cuh"
#include "unit_reader.cuh"

namespace amk {

// Whether a head may see no row of a block, and others do.
constexpr bool kMayMissAll = kSequenceRows > 1 || AMK_PROMPT;

// The blocks of a unit's share that a warp takes: those whose number is its own, modulo the warps
// of its set.
template <class S>
struct BlockTurns {
  using H = HeadsOf<S>;
  static constexpr int kWarps = kConsumerWarps / H::kWarpSets;  // of a set
  static constexpr int kChunkBlocks = Unit<S>::kChunkBlocks;
  // Chunks in progress at once. A warp waits for every kTurns-th chunk alone if all of its blocks
  // are there and the ring is long enough. A full barrier distinguishes a phase only from the next
  // one, so the previous chunk in the same slot must have landed before a warp waits. Chunks before
  // the last one waited for have landed; bulk copies may land out of order, so with them only
  // chunks older than the window have.
  static constexpr int kAtOnce = kWarps % kChunkBlocks == 0 ? kWarps / kChunkBlocks : 1;
  static constexpr int kTurns =
      kAtOnce + (AMK_BULK_COPY ? int(kWindow) : 0) <= int(kRingSlots) ? kAtOnce : 1;
  static constexpr bool kWindowed = S::kWindowRows > 0;
  const Unit<S>& u;
  int warp;  // of its set

  // The first chunk that the warp waits for.
  __device__ __forceinline__ int first_chunk() const {
    if constexpr (kTurns == 1) return 0;
    const int turn = warp / kChunkBlocks;
    if constexpr (!kWindowed) return turn;
    return u32(turn + u.first_number(0) / kChunkBlocks * (kTurns - 1)) % kTurns;
  }
  // Of the blocks copied of a chunk, the first that is the warp's.
  __device__ __forceinline__ int first_block(int chunk) const {
    if constexpr (kTurns * kChunkBlocks == kWarps && !kWindowed) return warp % kChunkBlocks;
    return u32(warp + u.first_number(chunk) * (kWarps - 1)) % kWarps;
  }
  // Whether this step's row, which comes after all blocks, is the warp's.
  __device__ __forceinline__ bool has_row() const {
    const int blocks = u.number(u.position / kCacheRows) + (u.position % kCacheRows != 0);
    return u.owns_row() && blocks % kWarps == warp;
  }
};

// Fragments `first` and the kBatch - 1 after it of the keys of a block, or of its values, as far as
// there are any: 16 dims each. Nobody may have written those of rows that are not seen.
constexpr int kBatch = 4;
constexpr int kLaneBytes = sizeof(CacheFragment);
template <class H, bool kValues>
__device__ __forceinline__ void load_fragments(CacheFragment (&into)[kBatch], const u8* block,
                                               int first, int lane) {
  constexpr int kFragments = H::kPaddedHead / 16;
  const u8* const half = block + kValues * H::kHalfBlockBytes;
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    const int f = first + i;
    if (f >= kFragments) break;
    if constexpr (!kCacheMatrices) {
      into[i] = load_partly_written(
          reinterpret_cast<const CacheFragment*>(half + (f * 32 + lane) * kLaneBytes));
    } else {
      constexpr int kNext = kValues ? kNextDims : kNextKeys<H>, kMatrices = kValues ? 4 : 2;
      into[i] = load_matrices_partly_written<kNext>(half + f * kMatrices * kMatrixBytes, lane);
    }
  }
}

// The rows of a block whose values a lane has: `row`, the next one, and the two that are 8 further,
// of which those from `first` on and below `rows` are seen. What an earlier sequence has left in
// others must not matter: probability 0 does not help against an infinity.
template <class H>
struct LaneRows {
  u32 low, high;  // masks of the values, or their scales as value_of takes them; of a pair of rows

  __device__ __forceinline__ LaneRows(const u8* block, int row, int first, int rows) {
    const auto pair = [&](int r) {
      const bool a = r >= first && r < rows, b = r + 1 >= first && r + 1 < rows;
      if constexpr (!kScalesValues) return (a ? 0xffffu : 0u) | (b ? 0xffff0000u : 0u);
      return pack2(a ? 64 * row_scales<H>(block, r).v : 0.0f,
                   b ? 64 * row_scales<H>(block, r + 1).v : 0.0f);
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

// How far a score may exceed the one that sums are relative to (in powers of two): a probability is
// 2^8 at most, which no type is too narrow for.
constexpr float kSlack = 8;

// Scores of a block, from two chains of products: of rows low and high, with two heads each.
template <class S>
__device__ __forceinline__ void scores_of(float (&scores)[4], const float (&d)[2][4],
                                          const RowScales& of_low, const RowScales& of_high) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float product = d[0][i] + d[1][i];
    const float scale = i < 2 ? of_low.k : of_high.k;
    scores[i] = scaled_score<S>(kQuantisedCache ? product * scale : product);
  }
}

// Whether the two heads of a lane see its rows of a block, row lane / 4 and the one 8 further.
struct Seen {
  bool low0, low1, high0, high1;
};

// A group of heads of a warp. A lane holds results of two of them, `pair` and the one after.
template <class H>
struct HeadGroup {
  static constexpr int kFragments = H::kPaddedHead / 16;
  uint2 q[kFragments];
  float o[kFragments][4] = {};
  float base0 = kNoScore, base1 = kNoScore, sum0 = 0, sum1 = 0;
  float max0 = kNoScore, max1 = kNoScore;  // of the lane's rows
  u32 p[2];  // probabilities of the block, of its rows up to 8 and from there on

  // Heads from `first_head` on, of `heads`.
  __device__ __forceinline__ void load(const u16* query, int first_head, int heads, int lane) {
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      const int head = first_head + (lane >> 2), dim = f * 16 + (lane & 3) * 4;
      const bool real = head < heads && (H::kPaddedHead == H::kHeadDim || dim < H::kHeadDim);
      q[f] = real ? *reinterpret_cast<const uint2*>(query + head * H::kQueryStride + dim)
                  : make_uint2(0, 0);
    }
  }

  // Starts over with the same queries.
  __device__ __forceinline__ void forget() {
    base0 = base1 = max0 = max1 = kNoScore;
    sum0 = sum1 = 0;
#pragma unroll
    for (int f = 0; f < kFragments; ++f) o[f][0] = o[f][1] = o[f][2] = o[f][3] = 0;
  }

  // Sums are relative to a score, the base, which no later one has exceeded by more than kSlack. A
  // block that has a larger one makes the largest of its own the base.
  __device__ __forceinline__ void raise(float top0, float top1) {
    const bool rises = top0 > base0 + kSlack | top1 > base1 + kSlack;
    if (!warp_any(rises)) return;
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1) {
      top0 = fmaxf(top0, shuffle_xor(top0, offset));
      top1 = fmaxf(top1, shuffle_xor(top1, offset));
    }
    if (!(top0 > base0 + kSlack)) top0 = base0;
    if (!(top1 > base1 + kSlack)) top1 = base1;
    // Not before the first scores, when sums are 0; one head of the pair may have some when the
    // other has none that is finite.
    if (warp_any(base0 > kNoScore & top0 > base0 | base1 > kNoScore & top1 > base1)) {
      const float keep0 = exp2_approximate(base0 - top0), keep1 = exp2_approximate(base1 - top1);
      sum0 *= keep0;
      sum1 *= keep1;
#pragma unroll
      for (int f = 0; f < kFragments; ++f) {
        o[f][0] *= keep0;
        o[f][1] *= keep1;
        o[f][2] *= keep0;
        o[f][3] *= keep1;
      }
    }
    base0 = top0;
    base1 = top1;
  }

  // Takes the scores of a block: of two rows, low and high, of which those that are not seen count
  // as kNoScore. With several rows a head may see none of them, and may have seen none before.
  __device__ __forceinline__ void take(const float (&score)[4], const Seen& seen,
                                       const RowScales& of_low, const RowScales& of_high) {
    const float s0 = seen.low0 ? score[0] : kNoScore;
    const float s1 = seen.low1 ? score[1] : kNoScore;
    const float s2 = seen.high0 ? score[2] : kNoScore;
    const float s3 = seen.high1 ? score[3] : kNoScore;
    const float top0 = fmaxf(s0, s2), top1 = fmaxf(s1, s3);
    max0 = fmaxf(max0, top0);
    max1 = fmaxf(max1, top1);
    raise(top0, top1);
    // Far below any score is 0 after exp2, so that rows that are not seen need no mask here.
    const auto probability = [](float difference, bool is_seen) {
      return !kMayMissAll || is_seen ? exp2_approximate(difference) : 0.0f;
    };
    const float p0 = probability(s0 - base0, seen.low0), p1 = probability(s1 - base1, seen.low1);
    const float p2 = probability(s2 - base0, seen.high0), p3 = probability(s3 - base1, seen.high1);
    sum0 = sum0 + p0 + p2;
    sum1 = sum1 + p1 + p3;
    // A head that does not see a row does not see its scale, which need not be finite.
    const auto weigh = [](float of_row, bool is_seen, const RowScales& scales) {
      return !kMayMissAll || is_seen ? weighed(of_row, scales) : 0.0f;
    };
    p[0] = transpose8x8(pack2(weigh(p0, seen.low0, of_low), weigh(p1, seen.low1, of_low)));
    p[1] = transpose8x8(pack2(weigh(p2, seen.high0, of_high), weigh(p3, seen.high1, of_high)));
  }

  // Joins the sums of all lanes, and where the largest score is published, those too.
  template <bool kMax>
  __device__ __forceinline__ void join_lanes() {
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1) {
      sum0 += shuffle_xor(sum0, offset);
      sum1 += shuffle_xor(sum1, offset);
      if constexpr (kMax) {
        max0 = fmaxf(max0, shuffle_xor(max0, offset));
        max1 = fmaxf(max1, shuffle_xor(max1, offset));
      }
    }
  }

  // Stores the results of its heads: `first` is the first of them among all that warps keep.
  template <class S, class C>
  __device__ __forceinline__ void store(C& c, int first) {
    const int pair = (c.lane & 3) * 2;
    join_lanes<(S::kSplits > 1)>();
    if (H::kWarpHeads < kMmaHeads && pair >= H::kWarpHeads) return;
    float* mine_out = c.shared.attention + (first + pair) * H::kHeadStride;
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      const int dim = f * 16 + (c.lane >> 2);
      mine_out[dim] = o[f][0];
      mine_out[H::kHeadStride + dim] = o[f][1];
      mine_out[dim + 8] = o[f][2];
      mine_out[H::kHeadStride + dim + 8] = o[f][3];
    }
    if (c.lane < 4) {
      c.shared.attention_base[first + pair] = base0;
      c.shared.attention_base[first + pair + 1] = base1;
      c.shared.attention_max[first + pair] = max0;
      c.shared.attention_max[first + pair + 1] = max1;
      c.shared.attention_sum[first + pair] = sum0;
      c.shared.attention_sum[first + pair + 1] = sum1;
    }
  }
};

}  // namespace amk
