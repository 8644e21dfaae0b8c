// Reading an exchanged vector of 16-bit elements straight into mma operands: four words, one
// 16-byte load, a quad. Needs schedule.h. Must not know what the vector is.
#pragma once

#include "exchange.cuh"

namespace amk {

// The values of four words, as two registers of 16-bit pairs.
__device__ __forceinline__ uint2 pairs_of(uint4 words) {
  return make_uint2(byte_perm(words.x, words.y, 0x5410), byte_perm(words.z, words.w, 0x5410));
}

// A poll of kCount quads of words, one 16-byte load each: the i-th quad is index_of(i) words after
// word `first`. A negative index means none, and reads as 0.
template <int kCount, class IndexOf>
struct QuadPoll {
  static_assert(kCount <= 32, "a bit for each four words");
  const u8* words;  // from the first on
  IndexOf index_of;
  int first;
  u32 missing = 0;
  uint4 quad[kCount];

  __device__ __forceinline__ QuadPoll(const u8* copy, IndexOf of, int word)
      : words(copy + word * 4), index_of(of), first(word) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      quad[i] = make_uint4(0, 0, 0, 0);
      if (index_of(i) >= 0) missing |= 1u << i;
    }
  }
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (missing >> i & 1) quad[i] = load_relaxed_16(words + index_of(i) * 4);
    }
  }
  // Branch-free: it is on the path from the last word to the first product.
  template <class C>
  __device__ __forceinline__ void check(C& c) {
    u32 stale = 0;
    if constexpr (C::kWaits && kFlagged) {
      const u32 both = c.epoch * 0x10001u;
#pragma unroll
      for (int i = 0; i < kCount; ++i) stale |= four_stale(quad[i], both) ? 1u << i : 0;
    }
    missing &= stale;
  }
  __device__ __forceinline__ int first_missing() const {
    return first + index_of(find_first(missing) - 1);
  }
  // The four values, as two registers of 16-bit pairs.
  __device__ __forceinline__ uint2 pairs(int i) const { return pairs_of(quad[i]); }
};

template <int kCount, class IndexOf>
__device__ __forceinline__ QuadPoll<kCount, IndexOf> quad_poll(const u8* copy, IndexOf index_of,
                                                               int first = 0) {
  return {copy, index_of, first};
}

// A poll of kCount quads of words at the same stride for each thread: the i-th quad is place_of(i)
// words after word `first`. place_of is a constant, so that a load is one instruction. A round
// reads all of them again. Quads for which there_is(i) is false read as 0.
template <int kCount, class PlaceOf, class ThereIs>
struct PlacedPoll {
  const u8* words;  // from the first on
  PlaceOf place_of;
  ThereIs there_is;
  int first;
  u32 missing = 1;  // nonzero: some word is stale
  uint4 quad[kCount] = {};

  __device__ __forceinline__ PlacedPoll(const u8* copy, int word, PlaceOf of, ThereIs is)
      : words(copy + word * 4), place_of(of), there_is(is), first(word) {}
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (there_is(i)) quad[i] = load_relaxed_16(words + place_of(i) * 4);
    }
  }
  template <class C>
  __device__ __forceinline__ void check(C& c) {
    missing = 0;
    if constexpr (C::kWaits && kFlagged) {
      const u32 both = c.epoch * 0x10001u;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (there_is(i)) missing |= four_stale(quad[i], both);
      }
    }
  }
  // The thread's first word, whichever of them are missing.
  __device__ __forceinline__ int first_missing() const { return first; }
  // The four values, as two registers of 16-bit pairs.
  __device__ __forceinline__ uint2 pairs(int i) const { return pairs_of(quad[i]); }
};

template <int kCount, class PlaceOf, class ThereIs>
__device__ __forceinline__ PlacedPoll<kCount, PlaceOf, ThereIs> placed_poll(const u8* copy,
                                                                            int first,
                                                                            PlaceOf place_of,
                                                                            ThereIs there_is) {
  return {copy, first, place_of, there_is};
}

// Four weights of a norm, from column on; 0 beyond the vector.
template <int kColumns>
__device__ __forceinline__ uint2 load_norm(const u8* norm, int column) {
  return column < kColumns ? load_constant_8(norm + column * 2) : make_uint2(0, 0);
}

__device__ __forceinline__ u32 pack2(float lo, float hi) {
  return u32(Element::from_float(lo)) | u32(Element::from_float(hi)) << 16;
}

__device__ __forceinline__ float squares_of(uint2 x) {
  const float a = Element::to_float(u16(x.x)), b = Element::to_float(u16(x.x >> 16));
  const float d = Element::to_float(u16(x.y)), e = Element::to_float(u16(x.y >> 16));
  return fmaf(e, e, fmaf(d, d, sum_of_products(a, a, b, b)));
}

__device__ __forceinline__ float sum_of(uint2 x) {
  const float a = Element::to_float(u16(x.x)), b = Element::to_float(u16(x.x >> 16));
  const float d = Element::to_float(u16(x.y)), e = Element::to_float(u16(x.y >> 16));
  return (a + b) + (d + e);
}

}  // namespace amk
