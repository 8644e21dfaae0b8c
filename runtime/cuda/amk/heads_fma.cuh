// What a warp computes of attention with one block of the cache, whose rows are plain, on the
// ordinary floating-point units: for each head, lanes l and l + 16 share row l's dot product, then
// every lane updates the dims it owns. Online softmax in fp32, the state of each head in shared
// memory. Needs schedule.h. Must not know which blocks there are.
#pragma once

#include "unit_reader_fma.cuh"

namespace amk {

// The rows of a block as the cache has them.
template <class H>
struct BlockRows {
  const u8* block;

  __device__ __forceinline__ const u8* key(int row) const {
    return block + row * H::kPaddedHead * CacheElement::kBytes;
  }
  __device__ __forceinline__ const u8* value(int row) const {
    return key(row) + H::kHalfBlockBytes;
  }
  __device__ __forceinline__ RowScales scales(int row) const { return row_scales<H>(block, row); }
};

// The values of a token's own row, as it is published: what later steps will read from the cache.
// All lanes of a warp make one.
template <class H>
struct OwnValue {
  const float* row;  // k and then v
  RowQuantiser values{0};

  __device__ __forceinline__ OwnValue(const float* row, int lane) : row(row) {
    if (kQuantisedCache) values = quantiser_of<H>(row + H::kHeadDim, lane);
  }
  __device__ __forceinline__ float operator()(int, int dim) const {
    const float v = row[H::kHeadDim + dim];
    if constexpr (kQuantisedCache) return whole_value(values(v), values.scale);
    else return v;
  }
};

// The heads of a warp: of each the largest score, the sum of the weights, and what they weigh.
template <class H>
struct PlainGroup {
  const float* q;  // [kGroupHeads][kHeadDim]
  float* top;
  float* total;
  float* acc;
  int lane;

  template <class C>
  __device__ __forceinline__ PlainGroup(C& c, const float* queries)
      : q(queries),
        top(&c.shared.attention_base[c.warp * H::kWarpHeads]),
        total(&c.shared.attention_sum[c.warp * H::kWarpHeads]),
        acc(c.shared.attention + c.warp * H::kWarpHeads * H::kHeadStride),
        lane(c.lane) {}

  __device__ __forceinline__ void begin() {
    for (int h = 0; h < H::kGroupHeads; ++h) {
      for (int d = lane; d < H::kHeadDim; d += 32) acc[h * H::kHeadStride + d] = 0;
      if (lane == 0) top[h] = kNoScore, total[h] = 0;
    }
    warp_sync();
  }

  // Scores of the token's own row, k as it is published.
  template <class S, class C>
  __device__ __forceinline__ void score_own(C& c, const float* row) {
    RowQuantiser keys(0);
    if (kQuantisedCache) keys = quantiser_of<H>(row, lane);
    for (int h = 0; h < H::kGroupHeads; ++h) {
      float score = 0;
      for (int d = lane; d < H::kHeadDim; d += 32)
        score = fmaf(q[h * H::kHeadDim + d], own_key(row[d], keys), score);
#pragma unroll
      for (int offset = 16; offset; offset >>= 1) score += shuffle_xor(score, offset);
      if (kQuantisedCache) score *= keys.scale;
      if (lane == 0) c.shared.attention_own[h] = scaled_score<S>(score);
    }
  }

  // Takes a block, of which rows from `first` on and below `end` are seen: one at least.
  template <class S, class Rows>
  __device__ __forceinline__ void take(const Rows& rows, int first, int end) {
    const auto seen = [first, end](int row) { return row >= first && row < end; };
    const int key = lane % 16, half = lane / 16;
    const bool real = seen(key);
    const RowScales scales = rows.scales(key);
    for (int h = 0; h < H::kGroupHeads; ++h) {
      float score = 0;
      for (int d = half; d < H::kHeadDim; d += 2) {
        const float k = CacheElement::to_float(cache_bits(rows.key(key), d));
        score = fmaf(q[h * H::kHeadDim + d], k, score);
      }
      score += shuffle_xor(score, 16);
      if (kQuantisedCache) score *= scales.k;
      score = real ? scaled_score<S>(score) : kNoScore;
      // Rounded before the largest is taken off, in every kernel: the two may not be fused.
      opaque(score);
      float peak = score;
#pragma unroll
      for (int offset = 8; offset; offset >>= 1)
        peak = fmaxf(peak, shuffle_xor(peak, offset));
      peak = fmaxf(peak, top[h]);
      const float keep = exp2f(top[h] - peak);
      const float p = real ? exp2f(score - peak) : 0.0f;
      float sum = p;
#pragma unroll
      for (int offset = 8; offset; offset >>= 1) sum += shuffle_xor(sum, offset);
      const float weight = rounded<Element>(weighed(p, scales));
      for (int d = lane; d < round_up(H::kHeadDim, 32); d += 32) {
        float value = 0;
        for (int r = 0; r < kCacheRows; ++r) {
          const float w = shuffle(weight, r);
          const float scale = kScalesValues ? shuffle(scales.v, r) : 1.0f;
          if (d < H::kHeadDim && seen(r))
            value = fmaf(w, value_of(cache_bits(rows.value(r), d), scale), value);
        }
        float& sums = acc[h * H::kHeadStride + d];
        if (d < H::kHeadDim) sums = fmaf(sums, keep, value);
      }
      warp_sync();
      if (lane == 0) top[h] = peak, total[h] = fmaf(total[h], keep, sum);
      warp_sync();
    }
  }
};

}  // namespace amk
