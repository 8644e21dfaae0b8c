// Plain kernels, one operation each, on the packed weights and the cache of the megakernel: what
// the megakernel is held to. They round where it rounds and share none of its machinery: no ring,
// no exchange, no tensor cores, and indices worked out one element at a time from the layouts
// (docs/ir.md). A launch is one operation; the stream is the only order. Needs schedule.h, for the
// cache's layout, and model_config.h. Must not include the headers of the megakernel's stages.
#pragma once

#include "element.cuh"

namespace amk {

constexpr int kReferenceThreads = 256;  // of every block
constexpr int kReferenceWarps = kReferenceThreads / 32;

// ---- what the host reads and hands over: mirrored by the launcher's host packages ---------------

// Argument of every kernel.
struct Reference {
  const u8* weights;  // the data section of weights.safetensors
  u8* cache;          // KV cache, kCacheBytes
  u8* scratch;        // a Vectors
  int layer;
  int position;
  int token;
  int reserved;
};
static_assert(sizeof(Reference) == 3 * 8 + 4 * 4, "the launcher builds this struct byte by byte");

// The value of a whole stage.
struct Result {
  char stage[32];  // IR name; empty inside a stage
  u32 offset;      // bytes into the scratch memory
  u32 elements;
  u32 bytes;       // of an element: Element::kBytes, or 4 for fp32
};

// One launch of the step. Those of a layer lie side by side.
struct Operation {
  char kernel[32];
  u32 blocks;
  u32 repeats;
  Result result;
};
static_assert(sizeof(Operation) == 32 + 2 * 4 + 32 + 3 * 4,
              "the launcher reads this struct byte by byte");

// Operation::repeats. What observes is no part of the step: it looks at what the megakernel has
// left in the cache.
constexpr u32 kOnce = 0, kEachLayer = 1, kObserves = 2;

struct ReferenceInfo {
  u32 abi;
  u32 threads;  // of every block
  u32 layers;
  u32 vocab;
  u64 scratch_bytes;
};
static_assert(sizeof(ReferenceInfo) == 4 * 4 + 8, "the launcher reads this struct byte by byte");

constexpr u32 blocks_for(int threads) { return ceil_div(threads, kReferenceThreads); }
// a warp per row
constexpr u32 blocks_for_rows(int rows) { return ceil_div(rows, kReferenceWarps); }

// ---- elements -----------------------------------------------------------------------------------

using Bits = Element::Bits;

__device__ inline float at(const Bits* v, int i) { return Element::to_float(v[i]); }

// Element of a packed matrix: tiles of 8 rows, in them blocks of 32 columns, in them 8 columns of
// one row, in the order 0 1 4 5 2 3 6 7.
__device__ inline float weight_at(const u8* matrix, int columns, int row, int column) {
  const size_t block = size_t(row / 8) * ceil_div(columns, 32) + column / 32;
  const int group = row % 8 * 4 + column % 32 / 8;
  const int place = column % 2 + column % 4 / 2 * 4 + column % 8 / 4 * 2;
  return Element::to_float(reinterpret_cast<const Bits*>(matrix)[(block * 32 + group) * 8 + place]);
}

// Place of an element of the cache: blocks of 16 rows, all of K and then all of V, in plain rows or
// in the order in which the lanes of an mma hold a 16 by 16 fragment.
__device__ inline Bits& cache_at(u8* cache, int layer, int head, int row, bool is_value, int dim) {
  constexpr int kHeadPadded = round_up(kHeadDim, 16), kBlocks = ceil_div(kMaxSeq, 16);
  const size_t half_block = ((size_t(layer) * kKVHeads + head) * kBlocks + row / 16) * 2 + is_value;
  Bits* half = reinterpret_cast<Bits*>(cache) + half_block * (16 * kHeadPadded);
  const int r = row % 16, d = dim % 16;
  if (!kCacheFragments) return half[r * kHeadPadded + dim];
  Bits* fragment = half + dim / 16 * 256;
  // K: rows are rows of the fragment, and a lane holds four dims side by side. V: turned, with dims
  // as rows.
  if (is_value) return fragment[(d % 8 * 4 + r % 8 / 2) * 8 + d / 8 * 2 + r / 8 * 4 + r % 2];
  return fragment[(r % 8 * 4 + d / 4) * 8 + r / 8 * 2 + d % 4 / 2 * 4 + d % 2];
}

// ---- sums ---------------------------------------------------------------------------------------

__device__ inline float warp_sum(float v) {
  for (int offset = 16; offset; offset /= 2) v += __shfl_xor_sync(~0u, v, offset);
  return v;
}

// Sum and maximum over the block, known to all its threads.
__device__ inline float block_sum(float v) {
  __shared__ float sums[kReferenceWarps];
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  float all = 0;
  for (int w = 0; w < kReferenceWarps; ++w) all += sums[w];
  __syncthreads();
  return all;
}
__device__ inline float block_max(float v) {
  __shared__ float tops[kReferenceWarps];
  for (int offset = 16; offset; offset /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, offset));
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = v;
  __syncthreads();
  float all = tops[0];
  for (int w = 1; w < kReferenceWarps; ++w) all = fmaxf(all, tops[w]);
  __syncthreads();
  return all;
}

// ---- operations ---------------------------------------------------------------------------------

__device__ inline int thread_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Row `token` of the embedding starts the residual stream.
__device__ inline void embed(float* residual, Bits* x, const u8* table, int token) {
  const int i = thread_index();
  if (i >= kHidden) return;
  residual[i] = weight_at(table, kHidden, token, i);
  x[i] = Element::from_float(residual[i]);
}

// n = x * g, rounded; the scale by 1/rms of x comes after the product with n, so it is left as a
// number. One block.
__device__ inline void rmsnorm(Bits* n, float* scale, const Bits* x, const u8* g, float eps) {
  float squares = 0;
  for (int i = threadIdx.x; i < kHidden; i += blockDim.x) {
    squares += at(x, i) * at(x, i);
    n[i] = Element::from_float(at(x, i) * at(reinterpret_cast<const Bits*>(g), i));
  }
  squares = block_sum(squares);
  if (threadIdx.x == 0) *scale = rsqrtf(squares / kHidden + eps);
}

// y = matrix · x * scale in fp32, a warp per row. Without a scale, 1.
__device__ inline void matvec(float* y, const u8* matrix, const Bits* x, const float* scale,
                              int rows, int columns) {
  const int row = thread_index() / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int column = threadIdx.x % 32; column < columns; column += 32) {
    sum += weight_at(matrix, columns, row, column) * at(x, column);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) y[row] = scale ? sum * *scale : sum;
}

// y + w, in fp32: a bias.
__device__ inline void add_weights(float* y, const u8* w, int rows) {
  const int row = thread_index();
  if (row < rows) y[row] += at(reinterpret_cast<const Bits*>(w), row);
}

// The rows of q, k and v as they are handed over, where they are neither normalised nor rotated
// before.
__device__ inline void round_rows(Bits* out, const float* y, int rows) {
  const int row = thread_index();
  if (row < rows) out[row] = Element::from_float(y[row]);
}

// Normalises each head of q and k by itself, a block each; the heads of v pass through.
__device__ inline void norm_heads(float* y, const Bits* qkv, const u8* q_gain, const u8* k_gain,
                                  float eps) {
  const int head = blockIdx.x;
  const Bits* gain = reinterpret_cast<const Bits*>(head < kHeads ? q_gain : k_gain);
  const Bits* x = qkv + head * kHeadDim;
  float squares = 0;
  for (int d = threadIdx.x; d < kHeadDim; d += blockDim.x) squares += at(x, d) * at(x, d);
  const float inverse = rsqrtf(block_sum(squares) / kHeadDim + eps);
  for (int d = threadIdx.x; d < kHeadDim; d += blockDim.x) {
    y[head * kHeadDim + d] = head < kHeads + kKVHeads ? at(x, d) * inverse * at(gain, d) : at(x, d);
  }
}

// Rotates q and k and rounds all rows. In a head of q or k, rows 2j and 2j+1 are the pair that
// turns by angle j.
__device__ inline void rope(Bits* qkv, const float* y, const float* inv_freq, int position) {
  const int row = thread_index();
  if (row >= (kHeads + 2 * kKVHeads) * kHeadDim) return;
  float v = y[row];
  if (row < (kHeads + kKVHeads) * kHeadDim) {
    const float angle = float(position) * inv_freq[row % kHeadDim / 2];
    const float even = y[row & ~1], odd = y[row | 1];
    v = row % 2 == 0 ? even * cosf(angle) - odd * sinf(angle)
                     : odd * cosf(angle) + even * sinf(angle);
  }
  qkv[row] = Element::from_float(v);
}

// Copies k and v of this position into the cache, or back out of it: kv is k of all heads, then v
// of all heads.
__device__ inline void append(u8* cache, int layer, int position, const Bits* kv) {
  const int i = thread_index(), head = i / kHeadDim;
  if (head < 2 * kKVHeads)
    cache_at(cache, layer, head % kKVHeads, position, head >= kKVHeads, i % kHeadDim) = kv[i];
}
__device__ inline void cached_row(Bits* kv, u8* cache, int layer, int position) {
  const int i = thread_index(), head = i / kHeadDim;
  if (head < 2 * kKVHeads)
    kv[i] = cache_at(cache, layer, head % kKVHeads, position, head >= kKVHeads, i % kHeadDim);
}

// Attention of one query head, a block each, over the rows up to and including the position's own:
// the last `window` of them, or all if it is 0. Probabilities are rounded before they weigh the
// rows, but for that of the position's own, which does not come through the cache.
__device__ inline void attention(Bits* out, float* scores, const Bits* q, u8* cache, int layer,
                                 int position, float scale, int window = 0) {
  const int head = blockIdx.x, kv_head = head / (kHeads / kKVHeads);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  q += head * kHeadDim;
  float* p = scores + size_t(head) * kMaxSeq;
  const int first = window > 0 ? max(0, position - window + 1) : 0;

  for (int row = first + warp; row <= position; row += kReferenceWarps) {
    float score = 0;
    for (int d = lane; d < kHeadDim; d += 32)
      score += at(q, d) * Element::to_float(cache_at(cache, layer, kv_head, row, false, d));
    score = warp_sum(score);
    if (lane == 0) p[row] = score * scale;
  }
  __syncthreads();

  float top = -INFINITY;
  for (int row = first + threadIdx.x; row <= position; row += blockDim.x) top = fmaxf(top, p[row]);
  top = block_max(top);
  float sum = 0;
  for (int row = first + threadIdx.x; row <= position; row += blockDim.x) {
    const float probability = expf(p[row] - top);
    sum += probability;
    p[row] = row < position ? rounded<Element>(probability) : probability;
  }
  sum = block_sum(sum);

  for (int d = threadIdx.x; d < kHeadDim; d += blockDim.x) {
    float value = 0;
    for (int row = first; row <= position; ++row)
      value += p[row] * Element::to_float(cache_at(cache, layer, kv_head, row, true, d));
    out[head * kHeadDim + d] = Element::from_float(value / sum);
  }
}

// The residual stream stays in fp32; what is read from it is rounded.
__device__ inline void add(float* residual, Bits* x, const float* y) {
  const int i = thread_index();
  if (i >= kHidden) return;
  residual[i] += y[i];
  x[i] = Element::from_float(residual[i]);
}

// Rows 2i and 2i+1 of y are gate and up.
__device__ inline void silu_mul(Bits* out, const float* y, int rows = kIntermediate) {
  const int i = thread_index();
  if (i >= rows) return;
  const float gate = y[2 * i], up = y[2 * i + 1];
  out[i] = Element::from_float(gate / (1.0f + expf(-gate)) * up);
}

// Keeps rows between -cap and cap.
__device__ inline void soft_cap(float* y, float cap, int rows) {
  const int row = thread_index();
  if (row < rows) y[row] = cap * tanhf(y[row] / cap);
}

}  // namespace amk
