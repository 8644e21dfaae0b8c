// What an attention unit reads of the exchange, on the ordinary floating-point units, and how its
// rows go into the cache. Needs schedule.h.
#pragma once

#include "attention.cuh"
#include "weights.cuh"

namespace amk {

// Where a unit's q, k and v are stored: a compact scratch keeps narrower values in `vector`, and
// has `unit` for them.
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

// How this step's k or v, a row of floats, is quantised: by its largest magnitude. A warp calls it.
template <class H>
__device__ __forceinline__ RowQuantiser quantiser_of(const float* row, int lane) {
  u32 own = 0;
  for (int d = lane; d < H::kHeadDim; d += 32) own = larger_magnitude(own, row[d]);
  return RowQuantiser(largest_of_warp(own));
}

// An element of this step's k, as it is multiplied: what later steps will read from the cache.
__device__ __forceinline__ float own_key(float k, const RowQuantiser& quantise) {
  return kQuantisedCache ? Int8::to_float(quantise(k)) : k;
}

// Puts k and v, floats that are one after the other, where a head or a block has a row. A block
// does it.
template <class H, class C>
__device__ __forceinline__ void put_row(C& c, u8* head, int row, const float* k_new) {
  if constexpr (kQuantisedCache) {
    if (c.warp > 1) return;
    const bool is_value = c.warp == 1;
    const float* from = k_new + is_value * H::kHeadDim;
    const RowQuantiser quantise = quantiser_of<H>(from, c.lane);
    for (int d = c.lane; d < H::kHeadDim; d += 32)
      head[cache_offset<H>(row, d, is_value)] = quantise(from[d]);
    if (c.lane == 0) store_scale<H>(head, row, is_value, quantise.scale);
  } else {
    for (int e = c.tid; e < 2 * H::kHeadDim; e += kConsumers) {
      const int at = cache_offset<H>(row, e % H::kHeadDim, e >= H::kHeadDim);
      *reinterpret_cast<CacheElement::Bits*>(head + at) = CacheElement::from_float(k_new[e]);
    }
  }
}

// A reader fills a unit's floats of a token of the pass, kTokenFloats of them: q of the group, and
// its k and v. Before the unit publishes anything it has read every word that it polls (a word that
// has been handed on may be overwritten by a later exchange on the same page). Every split of a
// head polls k and v, also those whose row it is not: which words a task polls must not depend on
// the position, because its polls are what tells others that their words have been seen.
template <class S, class Heads>
struct UnitReader;

template <class S>
struct UnitReader<S, PlainHeads> {
  using H = HeadsOf<S>;
  template <class C>
  __device__ static __forceinline__ void fill(C& c, const PlainHeads heads, const Unit<S> u,
                                              int token, float* q) {
    constexpr int kAtOnce = ceil_div(H::kTokenFloats, kConsumers) < 8
                                ? ceil_div(H::kTokenFloats, kConsumers)
                                : 8;
    const int head = u.head(), before = token * H::kTokenRows;
#pragma unroll 1
    for (int first = c.tid; first < H::kTokenFloats; first += kAtOnce * kConsumers) {
      auto words = word_poll<Element, kAtOnce>(page_copy(c, heads.in), [=](int i) {
        const int e = first + i * kConsumers, row = e - H::kUnitRow;
        if (e >= H::kTokenFloats) return -1;
        return before + (row < 0          ? head * H::kUnitRow + e
                         : row < H::kHeadDim ? H::k_row(head) + row
                                          : H::v_row(head) + row - H::kHeadDim);
      });
      poll_all(c, words);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int e = first + i * kConsumers;
        if (e < H::kTokenFloats) q[e] = words.value(i);
      }
    }
  }
};

// A warp takes a head at a time, so that shuffles add up its squares and turn its rotation pairs,
// which are neighbouring lanes. The squares of all heads are the block's: every SM with a unit
// reads all of q and of k for them. What is rounded is said here and not left to the compiler:
// kernels for one token and for several agree.
template <class S>
struct UnitReader<S, NormedHeads> {
  using H = HeadsOf<S>;
  // What this thread has of the squares of all of q and of all of k.
  template <class C>
  __device__ static __forceinline__ OfBoth squares_of_all(C& c, const NormedHeads heads,
                                                       int token) {
    constexpr int kAtOnce = 8;
    OfBoth squares = {};
#pragma unroll 1
    for (int first = c.tid; first < H::kNormedRows; first += kAtOnce * kConsumers) {
      auto words = word_poll<Element, kAtOnce>(page_copy(c, heads.in), [first, token](int i) {
        const int row = first + i * kConsumers;
        return row < H::kNormedRows ? token * H::kTokenRows + row : -1;
      });
      poll_all(c, words);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const bool is_query = first + i * kConsumers < H::kQueryRows;
        float& of = is_query ? squares.q : squares.k;
        of = fmaf(words.value(i), words.value(i), of);
      }
    }
    return squares;
  }

  // A sum over the lanes of a warp, which share a head.
  __device__ static __forceinline__ float sum_of_head(float own) {
#pragma unroll
    for (int offset = 16; offset; offset >>= 1) own += shuffle_xor(own, offset);
    return own;
  }

  // 1/rms of what a head is normalised with: its own elements, of which a lane has these squares,
  // or those of all.
  __device__ static __forceinline__ float inverse_of(int head, float own, const OfBoth& all) {
    if constexpr (S::kWholeNorm) {
      return head < H::kGroupHeads ? all.q : all.k;
    } else {
      return inverse_rms<S, H::kHeadDim>(sum_of_head(own));
    }
  }

  template <class C>
  __device__ static __forceinline__ void fill(C& c, const NormedHeads heads, const Unit<S> u,
                                              int token, float* q) {
    constexpr int kWords = ceil_div(H::kHeadDim, 32);
    OfBoth all = {};
    if constexpr (S::kWholeNorm) all = inverse_rms_of_block<S>(c, squares_of_all(c, heads, token));
#pragma unroll 1
    for (int h = c.warp; h < H::kGroupHeads + 2; h += kConsumerWarps) {
      const bool is_value = h > H::kGroupHeads;
      const int first = h < H::kGroupHeads ? (u.head() * H::kGroupHeads + h) * H::kHeadDim
                        : is_value      ? H::v_row(u.head())
                                        : H::k_row(u.head());
      const u8* gain = of_head<S>(heads.q_gain, heads.k_gain, u, h);
      const u8* bias = of_head<S>(heads.q_shift, heads.k_shift, u, h);
      auto words = word_poll<Element, kWords>(
          page_copy(c, heads.in), [lane = c.lane, at = token * H::kTokenRows + first](int i) {
            const int d = lane + i * 32;
            return d < H::kHeadDim ? at + d : -1;
          });
      poll_all(c, words);
      float mean = 0, own = 0;
      if constexpr (S::kNormCentred) {
#pragma unroll
        for (int i = 0; i < kWords; ++i) mean += words.value(i);
        mean = sum_of_head(mean) * (1.0f / H::kHeadDim);
      }
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        const float v = words.value(i) - mean;
        if (!S::kNormCentred || c.lane + i * 32 < H::kHeadDim) own = fmaf(v, v, own);
      }
      const float inverse = inverse_of(h, own, all);
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        const int d = c.lane + i * 32;
        const bool real = d < H::kHeadDim;
        float v = 0;
        if (real && !is_value) {
          v = (words.value(i) - mean) * inverse;
          const float by = gain_of<S>(load_weight(gain, d));
          if constexpr (S::kNormShifted) v = fmaf(v, by, load_weight(bias, d));
          else v *= by;
        }
        const float other = shuffle_xor(v, 1);
        const float2 turn = real ? turn_of<S>(c, token, d / 2) : make_float2(0, 0);
        const float turned = rotated(d & 1, v, other, turn.x, turn.y);
        const float value =
            kNormsValues<S> ? rounded<Element>(words.value(i) * inverse) : words.value(i);
        if (real) q[h * H::kHeadDim + d] = is_value ? value : rounded<Element>(turned);
      }
    }
  }
};

}  // namespace amk
