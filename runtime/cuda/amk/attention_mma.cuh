// Attention on tensor cores, over cache blocks in fragment order: K as A (16 rows by 16 dims) times Qᵀ as B (dims by 8
// heads), then Vᵀ as A (16 dims by 16 rows) times P as B, for which one movmatrix per 8 rows turns the scores around.
// Online softmax in fp32, probabilities rounded to the element type before the second product. A warp owns whole blocks;
// with more than 8 query heads a kv head, groups of 8 heads go to different warps.
// Needs schedule.h with AMK_TENSOR_CORES.
#pragma once

#include "attention.cuh"
#include "exchange_quads.cuh"
#include "mma.cuh"

namespace amk {

constexpr int kWarpHeads = 8;

__host__ __device__ constexpr int power_of_two_from(int n) { return n <= 1 ? 1 : 2 * power_of_two_from((n + 1) / 2); }

// Index in the qkv vector of the four consecutive words that a lane holds of fragment f of a head's row; -1 past the head.
__device__ __forceinline__ int head_quad(int row, int lane, int f) {
  static_assert(kHeadDim % 4 == 0, "four words are read at a time");
  const int dim = f * 16 + (lane & 3) * 4;
  return dim < kHeadDim ? row + dim : -1;
}

__device__ __forceinline__ u32 pack2(float lo, float hi) {
  return u32(Element::from_float(lo)) | u32(Element::from_float(hi)) << 16;
}
__device__ __forceinline__ float dot2(u32 a, u32 b) {
  return Element::to_float(u16(a)) * Element::to_float(u16(b)) + Element::to_float(u16(a >> 16)) * Element::to_float(u16(b >> 16));
}

// Mask of the two 16-bit values of rows `row` and `row` + 1 that keeps those below `rows`.
__device__ __forceinline__ u32 keep_rows(int row, int rows) {
  return (row < rows ? 0xffffu : 0u) | (row + 1 < rows ? 0xffff0000u : 0u);
}

template <class S, class C, class Cache = OfLayer>
__device__ __forceinline__ void attend(C& c, const Page in, const Page out, Cache cache = {}) {
  constexpr int kFragments = kPaddedHead / 16;
  constexpr int kHeadGroups = power_of_two_from(ceil_div(kGroupHeads, kWarpHeads));
  constexpr int kBlockWarps = kConsumerWarps / kHeadGroups;
  constexpr int kChunkBlocks = S::kShareRows / kCacheRows;
  static_assert(kHeadGroups <= kConsumerWarps, "at most 64 query heads a kv head");
  constexpr float kScale = S::kScale * kLog2e;
  const Tiles mine = units_of<S>(c.sm, c.layer);
  if (mine.count() > 0) await(c);

#pragma unroll 1
  for (int unit = mine.begin; unit < mine.end; ++unit) {
    const Unit<S> u{unit, c.position};
    const int group = c.warp % kHeadGroups, block_warp = c.warp / kHeadGroups;
    const int head = group * kWarpHeads + (c.lane >> 2);      // whose q this lane holds
    const int pair = (c.lane & 3) * 2;                        // the two heads of its group whose results it holds
    const bool real = head < kGroupHeads;

    // All that the unit reads of the exchange, in one round of polls. This step's row comes from there, never from the cache.
    const bool starts = u.owns_row() && block_warp == 0;  // this step's row starts the softmax of these warps
    auto q_poll = quad_poll<kFragments>(page_copy(c, in), [&](int f) {
      return real ? head_quad((u.head() * kGroupHeads + head) * kHeadDim, c.lane, f) : -1;
    });
    auto k_poll = quad_poll<kFragments>(page_copy(c, in), [&](int f) { return starts ? head_quad(k_row(u.head()), c.lane, f) : -1; });
    auto v_poll = word_poll<Element, 2 * kFragments>(page_copy(c, in), [&](int i) {
      const int dim = (c.lane >> 2) + i * 8;
      return starts && dim < kHeadDim ? v_row(u.head()) + dim : -1;
    });
    auto row = row_poll(c, in, u.head());
    poll_together(c, q_poll, k_poll, v_poll, row);
    __syncwarp();

    uint2 q[kFragments];
#pragma unroll
    for (int f = 0; f < kFragments; ++f) q[f] = q_poll.pairs(f);
    float o[kFragments][4] = {};
    float max0 = kNoScore, max1 = kNoScore, sum0 = 0, sum1 = 0;

    if (starts) {
      float score = 0;
#pragma unroll
      for (int f = 0; f < kFragments; ++f) {
        const uint2 k = k_poll.pairs(f);
        score += dot2(q[f].x, k.x) + dot2(q[f].y, k.y);
      }
      score += __shfl_xor_sync(~0u, score, 1);
      score += __shfl_xor_sync(~0u, score, 2);
      max0 = kScale * __shfl_sync(~0u, score, pair * 4);
      max1 = kScale * __shfl_sync(~0u, score, pair * 4 + 4);
      sum0 = sum1 = c.lane < 4 ? 1.0f : 0.0f;
#pragma unroll
      for (int f = 0; f < kFragments; ++f) {
        o[f][0] = o[f][1] = v_poll.value(2 * f);
        o[f][2] = o[f][3] = v_poll.value(2 * f + 1);
      }
    }

    u32 block = 0;  // of the unit, counted over its chunks
    const int chunks = u.chunks();
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int rows = u.rows(chunk);
      wait_full(c, c.slot, c.phase);
#pragma unroll 1
      for (int b = 0; b < kChunkBlocks; ++b, ++block) {
        if (block % kBlockWarps != block_warp || b * kCacheRows >= rows) continue;
        const u8* source = c.ring + c.slot * kSlotBytes + b * kCacheBlockBytes + c.lane * 16;
        float d[2][4] = {};
#pragma unroll
        for (int f = 0; f < kFragments; ++f) {
          const uint4 k = *reinterpret_cast<const uint4*>(source + f * 512);
          mma16816<Element>(d[f & 1], k.x, k.y, k.z, k.w, q[f].x, q[f].y);
        }
        // Rows lane/4 and lane/4 + 8 of the block, heads pair and pair + 1.
        const bool low = b * kCacheRows + (c.lane >> 2) < rows, high = b * kCacheRows + 8 + (c.lane >> 2) < rows;
        const float s0 = low ? (d[0][0] + d[1][0]) * kScale : kNoScore, s1 = low ? (d[0][1] + d[1][1]) * kScale : kNoScore;
        const float s2 = high ? (d[0][2] + d[1][2]) * kScale : kNoScore, s3 = high ? (d[0][3] + d[1][3]) * kScale : kNoScore;
        float top0 = fmaxf(s0, s2), top1 = fmaxf(s1, s3);
#pragma unroll
        for (int offset = 4; offset < 32; offset <<= 1) {
          top0 = fmaxf(top0, __shfl_xor_sync(~0u, top0, offset));
          top1 = fmaxf(top1, __shfl_xor_sync(~0u, top1, offset));
        }
        top0 = fmaxf(top0, max0);
        top1 = fmaxf(top1, max1);
        const float keep0 = exp2f(max0 - top0), keep1 = exp2f(max1 - top1);
        max0 = top0;
        max1 = top1;
        const float p0 = low ? exp2f(s0 - top0) : 0.0f, p1 = low ? exp2f(s1 - top1) : 0.0f;
        const float p2 = high ? exp2f(s2 - top0) : 0.0f, p3 = high ? exp2f(s3 - top1) : 0.0f;
        sum0 = sum0 * keep0 + p0 + p2;
        sum1 = sum1 * keep1 + p1 + p3;
        const u32 b0 = transpose8x8(pack2(p0, p1)), b1 = transpose8x8(pack2(p2, p3));
        // Rows past the last are masked in V too: probability 0 does not help against an infinity left by an earlier sequence.
        const u32 keep_low = keep_rows(b * kCacheRows + (c.lane & 3) * 2, rows);
        const u32 keep_high = keep_rows(b * kCacheRows + (c.lane & 3) * 2 + 8, rows);
#pragma unroll
        for (int f = 0; f < kFragments; ++f) {
          o[f][0] *= keep0;
          o[f][1] *= keep1;
          o[f][2] *= keep0;
          o[f][3] *= keep1;
          uint4 v = *reinterpret_cast<const uint4*>(source + kHalfBlockBytes + f * 512);
          if (b * kCacheRows + kCacheRows > rows) {
            v.x &= keep_low, v.y &= keep_low, v.z &= keep_high, v.w &= keep_high;
          }
          mma16816<Element>(o[f], v.x, v.y, v.z, v.w, b0, b1);
        }
      }
      release(c, c.slot, 1);
      advance_slot(c.slot, c.phase);
    }

#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1) {
      sum0 += __shfl_xor_sync(~0u, sum0, offset);
      sum1 += __shfl_xor_sync(~0u, sum1, offset);
    }
    float* mine_out = c.shared.attention + (c.warp * kWarpHeads + pair) * kPaddedHead;
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      const int dim = f * 16 + (c.lane >> 2);
      mine_out[dim] = o[f][0];
      mine_out[kPaddedHead + dim] = o[f][1];
      mine_out[dim + 8] = o[f][2];
      mine_out[kPaddedHead + dim + 8] = o[f][3];
    }
    if (c.lane < 4) {
      c.shared.attention_max[c.warp * kWarpHeads + pair] = max0;
      c.shared.attention_max[c.warp * kWarpHeads + pair + 1] = max1;
      c.shared.attention_sum[c.warp * kWarpHeads + pair] = sum0;
      c.shared.attention_sum[c.warp * kWarpHeads + pair + 1] = sum1;
    }
    consumer_barrier();
    merge_warps<S, kWarpHeads, kHeadGroups>(c, u, out);
    append_row(c, u, row, cache);
    consumer_barrier();  // the scratch is free for the next unit
  }
  if (mine.count() > 0) signal(c, mine.count());
  c.advance(S::kTasks);
}

}  // namespace amk
