// Attention on the ordinary floating-point units, over cache blocks with plain rows. A warp owns
// whole blocks of 16 rows: for each head, lanes l and l + 16 share row l's dot product, then every
// lane updates the dims it owns. Online softmax in fp32, the state of each head in shared memory.
// Needs schedule.h.
#pragma once

#include "attention.cuh"
#include "weights.cuh"

namespace amk {

constexpr int kWarpHeads = kGroupHeads;

// Where a unit's q, k and v lie: a compact scratch keeps narrower values in `vector`, and has
// `unit` for them.
constexpr int kUnitFloats =
    AMK_COMPACT_SCRATCH ? kUnitScratch / int(sizeof(float)) : kVectorScratch;
__device__ __forceinline__ float* unit_floats(Scratch& shared) {
  void* at = shared.vector;
  if (AMK_COMPACT_SCRATCH) at = shared.unit;
  return static_cast<float*>(at);
}

__device__ __forceinline__ CacheElement::Bits cache_bits(const u8* row, int dim) {
  return reinterpret_cast<const CacheElement::Bits*>(row)[dim];
}

// How this step's k or v, a row of floats, becomes integers: by its largest magnitude. A warp asks.
__device__ __forceinline__ RowQuantiser quantiser_of(const float* row, int lane) {
  u32 own = 0;
  for (int d = lane; d < kHeadDim; d += 32) own = larger_magnitude(own, row[d]);
  return RowQuantiser(largest_of_warp(own));
}

// An element of this step's k, as it is multiplied, and of v, as it is weighed with 1: what later
// steps will find in the cache.
__device__ __forceinline__ float own_key(float k, const RowQuantiser& quantise) {
  return kQuantisedCache ? Int8::to_float(quantise(k)) : k;
}
__device__ __forceinline__ float own_value(float v, const RowQuantiser& quantise) {
  if constexpr (!kQuantisedCache) return v;
  else return weighed(1.0f, {1, quantise.scale}) * value_of(quantise(v), quantise.scale);
}

// Puts this step's k and v, which lie one after the other, where a head has a row. A block does it.
template <class C>
__device__ __forceinline__ void append_integers(C& c, u8* head, const float* k_new) {
  if (c.warp > 1) return;
  const bool is_value = c.warp == 1;
  const float* row = k_new + is_value * kHeadDim;
  const RowQuantiser quantise = quantiser_of(row, c.lane);
  for (int d = c.lane; d < kHeadDim; d += 32)
    head[cache_offset(c.position, d, is_value)] = quantise(row[d]);
  if (c.lane == 0) store_scale(head, c.position, is_value, quantise.scale);
}

// ---- what a unit reads of the exchange ----------------------------------------------------------

// A reader fills a unit's floats, [kGroupHeads + 2][kHeadDim]: q of the group, and k and v of this
// step where the row is the unit's own. Before the unit publishes anything it has read every word
// that it polls (a word that has been handed on may be overwritten by a later exchange on the same
// page); the row goes into the cache after every warp has finished reading the unit's rows. Every
// split of a head polls it, also those whose row it is not: which words a task polls must not
// depend on the position, because its polls are what tells others that their words have been seen.
template <class S, class Heads>
struct UnitReader;

// Rows of the cache that a unit appends to, of its head.
template <class S, class C, class Cache>
__device__ __forceinline__ u8* head_rows(C& c, const Unit<S> u, Cache cache) {
  return c.launch.cache + cache_number(c, cache) * kLayerCacheBytes +
         size_t(u.head()) * kHeadCacheBytes;
}

template <class S>
struct UnitReader<S, PlainHeads> {
  // This thread's elements of the k and v row on their way into the cache: of 2 * kHeadDim, k
  // first.
  static constexpr int kRowWords = ceil_div(2 * kHeadDim, kConsumers);

  template <class C>
  __device__ static __forceinline__ void fill(C& c, const PlainHeads heads, const Unit<S> u,
                                              float* q) {
    const int loads = kGroupHeads * kHeadDim + (u.owns_row() ? 2 * kHeadDim : 0);
#pragma unroll 1
    for (int i = c.tid; i < loads; i += kConsumers) {
      const int dim = i - kGroupHeads * kHeadDim;
      const int index = dim < 0 ? u.head() * kGroupHeads * kHeadDim + i
                      : dim < kHeadDim ? k_row(u.head()) + dim : v_row(u.head()) + dim - kHeadDim;
      q[i] = poll_word<Element>(c, heads.in, index);
    }
  }
  template <class C>
  __device__ static __forceinline__ auto row(C& c, const PlainHeads heads, int head, const float*) {
    return word_poll<Element, kRowWords>(page_copy(c, heads.in), [tid = c.tid, head](int i) {
      const int e = tid + i * kConsumers;
      return e < kHeadDim ? k_row(head) + e : e < 2 * kHeadDim ? v_row(head) + e - kHeadDim : -1;
    });
  }
  // Polls the row, before the unit publishes anything.
  template <class C, class Row>
  __device__ static __forceinline__ void poll(C& c, Row& row) { poll_all(c, row); }
  template <class C, class Row, class Cache>
  __device__ static __forceinline__ void append(C& c, const Unit<S> u, const Row& row,
                                                Cache cache) {
    if (!C::kWaits || !u.owns_row()) return;
    u8* head = head_rows(c, u, cache);
#pragma unroll
    for (int i = 0; i < kRowWords; ++i) {
      const int e = c.tid + i * kConsumers;
      if (e >= 2 * kHeadDim) break;
      const int at = cache_offset(c.position, e % kHeadDim, e >= kHeadDim);
      *reinterpret_cast<CacheElement::Bits*>(head + at) = CacheElement::from_float(row.value(i));
    }
  }
};

// A warp takes a head at a time, so that shuffles add up its squares and turn its rotation pairs,
// which are neighbouring lanes. The squares of all heads are the block's: every SM with a unit
// reads all of q and of k for them. The row is in the unit's floats whether it is the unit's own or
// not, and goes into the cache from there.
template <class S>
struct UnitReader<S, NormedHeads> {
  // What this thread has of the squares of all of q and of all of k.
  template <class C>
  __device__ static __forceinline__ OfBoth squares_of_all(C& c, const NormedHeads heads) {
    constexpr int kAtOnce = 8;
    OfBoth squares = {};
#pragma unroll 1
    for (int first = c.tid; first < kNormedRows; first += kAtOnce * kConsumers) {
      auto words = word_poll<Element, kAtOnce>(page_copy(c, heads.in), [first](int i) {
        const int row = first + i * kConsumers;
        return row < kNormedRows ? row : -1;
      });
      poll_all(c, words);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const bool is_query = first + i * kConsumers < kQueryRows;
        (is_query ? squares.q : squares.k) += words.value(i) * words.value(i);
      }
    }
    return squares;
  }

  // A sum over the lanes of a warp, which share a head.
  __device__ static __forceinline__ float sum_of_head(float own) {
#pragma unroll
    for (int offset = 16; offset; offset >>= 1) own += __shfl_xor_sync(~0u, own, offset);
    return own;
  }

  // 1/rms of what a head is normalised with: its own elements, of which a lane has these squares,
  // or those of all.
  __device__ static __forceinline__ float inverse_of(int head, float own, const OfBoth& all) {
    if constexpr (S::kWholeNorm) {
      return head < kGroupHeads ? all.q : all.k;
    } else {
      return inverse_rms<S, kHeadDim>(sum_of_head(own));
    }
  }

  template <class C>
  __device__ static __forceinline__ void fill(C& c, const NormedHeads heads, const Unit<S> u,
                                              float* q) {
    constexpr int kWords = ceil_div(kHeadDim, 32);
    OfBoth all = {};
    if constexpr (S::kWholeNorm) all = inverse_rms_of_block<S>(c, squares_of_all(c, heads));
#pragma unroll 1
    for (int h = c.warp; h < kGroupHeads + 2; h += kConsumerWarps) {
      const bool is_value = h > kGroupHeads;
      const int first = h < kGroupHeads ? (u.head() * kGroupHeads + h) * kHeadDim
                        : is_value      ? v_row(u.head())
                                        : k_row(u.head());
      const u8* gain = of_head<S>(heads.q_gain, heads.k_gain, u, h);
      const u8* bias = of_head<S>(heads.q_shift, heads.k_shift, u, h);
      auto words =
          word_poll<Element, kWords>(page_copy(c, heads.in), [lane = c.lane, first](int i) {
            const int d = lane + i * 32;
            return d < kHeadDim ? first + d : -1;
          });
      poll_all(c, words);
      float mean = 0, own = 0;
      if constexpr (S::kNormCentred) {
#pragma unroll
        for (int i = 0; i < kWords; ++i) mean += words.value(i);
        mean = sum_of_head(mean) * (1.0f / kHeadDim);
      }
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        const float v = words.value(i) - mean;
        own += !S::kNormCentred || c.lane + i * 32 < kHeadDim ? v * v : 0.0f;
      }
      const float inverse = inverse_of(h, own, all);
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        const int d = c.lane + i * 32;
        const bool real = d < kHeadDim;
        float v = 0;
        if (real && !is_value) {
          v = (words.value(i) - mean) * inverse * gain_of<S>(load_weight(gain, d));
          if constexpr (S::kNormShifted) v += load_weight(bias, d);
        }
        const float other = __shfl_xor_sync(~0u, v, 1);
        const float2 turn = real ? turn_of<S>(c, 0, d / 2) : make_float2(0, 0);
        const float turned = rotated(d & 1, v, other, turn.x, turn.y);
        if (real) q[h * kHeadDim + d] = is_value ? words.value(i) : rounded<Element>(turned);
      }
    }
  }
  template <class C>
  __device__ static __forceinline__ const float* row(C&, const NormedHeads, int,
                                                     const float* k_new) {
    return k_new;
  }
  template <class C>
  __device__ static __forceinline__ void poll(C&, const float*) {}  // fill has
  template <class C, class Cache>
  __device__ static __forceinline__ void append(C& c, const Unit<S> u, const float* k_new,
                                                Cache cache) {
    if (!C::kWaits || !u.owns_row()) return;
    u8* head = head_rows(c, u, cache);
    for (int e = c.tid; e < 2 * kHeadDim; e += kConsumers) {
      const int at = cache_offset(c.position, e % kHeadDim, e >= kHeadDim);
      *reinterpret_cast<CacheElement::Bits*>(head + at) = CacheElement::from_float(k_new[e]);
    }
  }
};

// ---- the loop over cache rows -------------------------------------------------------------------

template <class S, class C, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(C& c, const Heads heads, const Page out, Cache cache = {}) {
  if (!does(c)) return c.advance(S::kTasks);
  using Reader = UnitReader<S, Heads>;
  constexpr int kChunkBlocks = S::kShareRows / kCacheRows;
  static_assert((kGroupHeads + 2) * kHeadDim <= kUnitFloats,
                "q, k and v of a unit fit their scratch");
  const Tiles mine = units_of<S>(c.sm, c.layer);
  if (mine.count() > 0) await(c);

#pragma unroll 1
  for (int unit = mine.begin; unit < mine.end; ++unit) {
    const Unit<S> u = unit_of_step<S>(c, unit);
    float* q = unit_floats(c.shared);               // [kGroupHeads][kHeadDim]
    float* k_new = q + kGroupHeads * kHeadDim;      // [kHeadDim]
    float* v_new = k_new + kHeadDim;                // [kHeadDim]
    Reader::fill(c, heads, u, q);
    consumer_barrier();
    lap(c, Did::kExchangeWait);

    float* acc = c.shared.attention + c.warp * kWarpHeads * kPaddedHead;
    float* top = &c.shared.attention_max[c.warp * kWarpHeads];
    float* total = &c.shared.attention_sum[c.warp * kWarpHeads];
    // this step's row starts the softmax of warp 0
    const bool starts = u.owns_row() && c.warp == 0;
    RowQuantiser keys(0), values(0);
    if (kQuantisedCache && starts) {
      keys = quantiser_of(k_new, c.lane);
      values = quantiser_of(v_new, c.lane);
    }
    for (int h = 0; h < kGroupHeads; ++h) {
      float score = 0;
      if (starts) {
        for (int d = c.lane; d < kHeadDim; d += 32)
          score += q[h * kHeadDim + d] * own_key(k_new[d], keys);
#pragma unroll
        for (int offset = 16; offset; offset >>= 1) score += __shfl_xor_sync(~0u, score, offset);
        if (kQuantisedCache) score *= keys.scale;
      }
      for (int d = c.lane; d < kHeadDim; d += 32)
        acc[h * kPaddedHead + d] = starts ? own_value(v_new[d], values) : 0.0f;
      if (c.lane == 0) {
        top[h] = starts ? scaled_score<S>(score) : kNoScore;
        total[h] = starts ? 1.0f : 0.0f;
      }
    }
    __syncwarp();

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
        auto seen = [hidden](int row) { return S::kWindowRows == 0 || row >= hidden; };
        const u8* k = c.ring + c.slot * kSlotBytes + b * kCacheBlockBytes;
        const u8* v = k + kHalfBlockBytes;
        const int key = c.lane % 16, half = c.lane / 16;
        const bool real = key < here && seen(key);
        const RowScales scales = row_scales(k, key);
        for (int h = 0; h < kGroupHeads; ++h) {
          float score = 0;
          for (int d = half; d < kHeadDim; d += 2)
            score += q[h * kHeadDim + d] *
                     CacheElement::to_float(
                         cache_bits(k + key * kPaddedHead * CacheElement::kBytes, d));
          score += __shfl_xor_sync(~0u, score, 16);
          if (kQuantisedCache) score *= scales.k;
          score = real ? scaled_score<S>(score) : kNoScore;
          float peak = score;
#pragma unroll
          for (int offset = 8; offset; offset >>= 1)
            peak = fmaxf(peak, __shfl_xor_sync(~0u, peak, offset));
          peak = fmaxf(peak, top[h]);
          const float keep = exp2f(top[h] - peak);
          const float p = real ? exp2f(score - peak) : 0.0f;
          float sum = p;
#pragma unroll
          for (int offset = 8; offset; offset >>= 1) sum += __shfl_xor_sync(~0u, sum, offset);
          const float weight = rounded<Element>(weighed(p, scales));
          for (int d = c.lane; d < round_up(kHeadDim, 32); d += 32) {
            float value = 0;
            for (int r = 0; r < kCacheRows; ++r) {
              const float w = __shfl_sync(~0u, weight, r);
              const float scale = kScalesValues ? __shfl_sync(~0u, scales.v, r) : 1.0f;
              if (d < kHeadDim && r < here && seen(r))
                value += w * value_of(cache_bits(v + r * kPaddedHead * CacheElement::kBytes, d),
                                      scale);
            }
            if (d < kHeadDim) acc[h * kPaddedHead + d] = acc[h * kPaddedHead + d] * keep + value;
          }
          __syncwarp();
          if (c.lane == 0) top[h] = peak, total[h] = total[h] * keep + sum;
          __syncwarp();
        }
      }
      release(c, c.slot, 1);
      advance_slot(c.slot, c.phase);
    }
    auto row = Reader::row(c, heads, u.head(), k_new);
    Reader::poll(c, row);
    consumer_barrier();
    lap(c, Did::kCompute);
    merge_warps<S, kWarpHeads, 1>(c, u, out);
    if constexpr (kQuantisedCache) {
      if (C::kWaits && u.owns_row()) append_integers(c, head_rows(c, u, cache), k_new);
    } else {
      Reader::append(c, u, row, cache);
    }
    consumer_barrier();  // the scratch is free for the next unit
    lap(c, Did::kSignal);
  }
  if (mine.count() > 0) signal(c, mine.count());
  c.advance(S::kTasks);
}

}  // namespace amk
