// Plain attention over the cache of the megakernel, whose layouts it works out on its own, one
// element at a time. Needs schedule.h, for the cache's layout, and model_config.h. Must not include
// the headers of the megakernel's stages.
#pragma once

#include "reference_values.cuh"
#include "reference_weights.cuh"

namespace amk {

// ---- the cache ----------------------------------------------------------------------------------

// A cache of integers has a scale for each row of K and of V.
constexpr bool kIntegers = kSame<CacheElement, Int8>;

// The heads of a layer: query heads, kv heads, and the elements of one. Where layers differ, the
// kernels say those of theirs.
template <int kQueries = kHeads, int kPairs = kKVHeads, int kElements = kHeadDim>
struct Heads {
  static constexpr int kHeads = kQueries, kKVHeads = kPairs, kHeadDim = kElements;
  static constexpr int kPadded = round_up(kHeadDim, 16);
};

// A layer's cache: the n-th of the arena, or where it begins if they are of several sizes. A block
// is 16 rows, all of K and then all of V, and of integers their scales. Layers begin at multiples
// of 256 bytes.
template <class H>
struct BlockOf {
  static constexpr int kBlocks = ceil_div(kMaxSeq, 16);
  static constexpr size_t kBytes =
      32 * H::kPadded * CacheElement::kBytes + (kIntegers ? 16 * 4 : 0);
  static constexpr size_t kLayer = (H::kKVHeads * kBlocks * kBytes + 255) / 256 * 256;
  __device__ static size_t first(int layer) { return layer * kLayer; }
  __device__ static size_t first(size_t at) { return at; }
};
template <class H, class Layer>
__device__ inline u8* cache_block(u8* cache, Layer layer, int head, int row) {
  using Block = BlockOf<H>;
  return cache + Block::first(layer) + (size_t(head) * Block::kBlocks + row / 16) * Block::kBytes;
}

// Place of an element of the cache: in plain rows, in matrices of 8 rows by 8 elements, or of
// integers in the order in which the lanes of an mma hold a 16 by 16 fragment.
template <class H, class Layer>
__device__ inline CacheElement::Bits& cache_at(u8* cache, Layer layer, int head, int row,
                                               bool is_value, int dim) {
  auto* half = reinterpret_cast<CacheElement::Bits*>(cache_block<H>(cache, layer, head, row)) +
               is_value * 16 * H::kPadded;
  const int r = row % 16, d = dim % 16;
  if (!kCacheFragments) return half[r * H::kPadded + dim];
  if (CacheElement::kBytes == 2) {
    // V: for each 8 dims a matrix of the first rows, and one of the others; its rows are dims. K:
    // all matrices of the first rows, and then of the others; of 16 dims the first has those whose
    // number has no bit 1.
    if (is_value) return half[(dim / 8 * 2 + r / 8) * 64 + d % 8 * 8 + r % 8];
    const int matrix = r / 8 * (H::kPadded / 8) + dim / 16 * 2 + (d >> 1 & 1);
    return half[matrix * 64 + r % 8 * 8 + d / 4 * 2 + d % 2];
  }
  auto* fragment = half + dim / 16 * 256;
  // K: rows are rows of the fragment, and a lane holds four dims side by side. V: turned, with dims
  // as rows.
  if (is_value) return fragment[(d % 8 * 4 + r % 8 / 2) * 8 + d / 8 * 2 + r / 8 * 4 + r % 2];
  return fragment[(r % 8 * 4 + d / 4) * 8 + r / 8 * 2 + d % 4 / 2 * 4 + d % 2];
}

// The scale of a row of integers, as a bf16.
template <class H, class Layer>
__device__ inline Bf16::Bits& cached_scale(u8* cache, Layer layer, int head, int row,
                                           bool is_value) {
  u8* scales = cache_block<H>(cache, layer, head, row) + 32 * H::kPadded * CacheElement::kBytes;
  return reinterpret_cast<Bf16::Bits*>(scales)[row % 16 * 2 + is_value];
}

// How a head's row becomes integers: its largest magnitude over 127 is the scale, as far as that
// has an inverse, and an element is rounded to a multiple of it. A row with an element that is not
// finite is NaN.
template <class H>
__device__ inline float scale_of(const Bits* row) {
  float largest = 0;
  for (int d = 0; d < H::kHeadDim; ++d) {
    const float x = fabsf(at(row, d));
    if (!isfinite(x)) return NAN;
    largest = fmaxf(largest, x);
  }
  const float scale = rounded<Bf16>(largest / 127);
  return scale < 0x1p-100f ? 0 : scale;
}
__device__ inline float integer_of(float x, float scale) {
  return scale > 0 ? rintf(x * (1 / scale)) : 0;
}

// ---- operations ---------------------------------------------------------------------------------

// Attention of one query head, a block each, over rows of the cache and this position's own, k and
// v, which do not come through it: the last `window` of them, or all if it is 0. A cap bounds the
// scores, if it is not 0. A sink of the head counts in the sum of the probabilities alone.
// Probabilities are rounded before they weigh rows of the cache. Of a cache of integers they are
// first multiplied by the scale of the row; in fp16 the elements are, and are then rounded
// themselves. This position's own row is what later ones will find.
template <class H = Heads<>, class Layer>
__device__ inline void attention(Bits* out, float* scores, const Bits* q, const Bits* k,
                                 const Bits* v, u8* cache, Layer layer, int position, float scale,
                                 int window = 0, float cap = 0,
                                 Packed sinks = {}) {
  const int head = block_index(), kv_head = head / (H::kHeads / H::kKVHeads);
  const int warp = thread_index() / 32, lane = thread_index() % 32;
  q += head * H::kHeadDim;
  k += kv_head * H::kHeadDim;
  v += kv_head * H::kHeadDim;
  float* p = scores + size_t(head) * kMaxSeq;
  const int first = window > 0 ? max(0, position - window + 1) : 0;
  const float own_scale[2] = {kIntegers ? scale_of<H>(k) : 1, kIntegers ? scale_of<H>(v) : 1};
  const auto scale_at = [&](int row, bool is_value) {
    if (!kIntegers || row == position) return own_scale[is_value];
    return Bf16::to_float(cached_scale<H>(cache, layer, kv_head, row, is_value));
  };
  const auto element = [&](int row, bool is_value, int d) {
    if (row < position)
      return CacheElement::to_float(cache_at<H>(cache, layer, kv_head, row, is_value, d));
    const float own = at(is_value ? v : k, d);
    return kIntegers ? integer_of(own, own_scale[is_value]) : own;
  };

  for (int row = first + warp; row <= position; row += kReferenceWarps) {
    float score = 0;
    for (int d = lane; d < H::kHeadDim; d += 32) score += at(q, d) * element(row, false, d);
    score = warp_sum(score);
    if (kIntegers) score *= scale_at(row, false);
    score *= scale;
    if (lane == 0) p[row] = cap > 0 ? cap * tanhf(score / cap) : score;
  }
  block_sync();

  constexpr bool kScalesElements = kIntegers && kSame<Element, Fp16>;
  float top = -INFINITY;
  for (int row = first + thread_index(); row <= position; row += block_threads())
    top = fmaxf(top, p[row]);
  top = block_max(top);
  const float sink = sinks.buffer ? weight_at(sinks, head) : -INFINITY;
  top = fmaxf(top, sink);
  float sum = thread_index() == 0 ? expf(sink - top) : 0.0f;
  for (int row = first + thread_index(); row <= position; row += block_threads()) {
    float weight = expf(p[row] - top);
    sum += weight;
    if (kIntegers && !kScalesElements) weight *= scale_at(row, true);
    p[row] = row < position ? rounded<Element>(weight) : weight;
  }
  sum = block_sum(sum);

  for (int d = thread_index(); d < H::kHeadDim; d += block_threads()) {
    float value = 0;
    for (int row = first; row <= position; ++row) {
      float x = element(row, true, d);
      if (kScalesElements)
        x = rounded<Element>(x / 64 * rounded<Element>(64 * scale_at(row, true)));
      value += p[row] * x;
    }
    put(out, head * H::kHeadDim + d, value / sum);
  }
}

// Puts k and v of this position, all heads of each, into the cache.
static_assert(kIntegers || kSame<CacheElement, Element>, "k and v go into the cache as they are");
template <class H = Heads<>, class Layer>
__device__ inline void append(u8* cache, Layer layer, int position, const Bits* k, const Bits* v) {
  constexpr int kRows = H::kKVHeads * H::kHeadDim;
  const int i = grid_index(), head = i / H::kHeadDim % H::kKVHeads, dim = i % H::kHeadDim;
  if (i >= 2 * kRows) return;
  const bool is_value = i >= kRows;
  const Bits* row = (is_value ? v : k) + head * H::kHeadDim;
  auto& to = cache_at<H>(cache, layer, head, position, is_value, dim);
  if constexpr (kIntegers) {
    const float scale = scale_of<H>(row);
    to = Int8::from_float(integer_of(at(row, dim), scale));
    if (dim == 0)
      cached_scale<H>(cache, layer, head, position, is_value) = Bf16::from_float(scale);
  } else {
    to = row[dim];
  }
}

// What the cache has for this position, k and then v, followed by what it should have.
template <class H = Heads<>, class Layer>
__device__ inline void cached_row(Bits* out, const Bits* k, const Bits* v, u8* cache, Layer layer,
                                  int position) {
  constexpr int kRows = H::kKVHeads * H::kHeadDim;
  const int i = grid_index(), head = i / H::kHeadDim % H::kKVHeads, dim = i % H::kHeadDim;
  if (i >= 2 * kRows) return;
  const bool is_value = i >= kRows;
  const Bits* row = (is_value ? v : k) + head * H::kHeadDim;
  float have = CacheElement::to_float(cache_at<H>(cache, layer, head, position, is_value, dim));
  float want = at(row, dim);
  if constexpr (kIntegers) {
    have *= Bf16::to_float(cached_scale<H>(cache, layer, head, position, is_value));
    want = integer_of(want, scale_of<H>(row)) * scale_of<H>(row);
  }
  put(out, i, have);
  put(out, 2 * kRows + i, want);
}

}  // namespace amk
