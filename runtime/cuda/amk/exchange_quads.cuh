// Reading an exchanged vector of 16-bit elements straight into mma operands: four words, one 16-byte load, a quad.
// Needs schedule.h. Must not know what the vector is.
#pragma once

#include "exchange.cuh"

namespace amk {

// Polls four words from column of each of kCount quads: quad_of(i) is the quad number, or -1 for none. Words from
// column kColumns on are padding and count as 0.
template <int kColumns, int kCount, class C, class QuadOf>
__device__ __forceinline__ void poll_quads(C& c, const Page page, int column0, QuadOf quad_of, uint2 (&x)[kCount]) {
  static_assert(kColumns % 4 == 0, "four words are read at a time");
  constexpr int kQuad = 128;  // columns
  const u8* words = page_copy(c, page) + column0 * 4;
  const u32 both = c.epoch * 0x10001u;
  uint4 v[kCount];
  u32 missing = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    v[i] = make_uint4(0, 0, 0, 0);
    const int quad = quad_of(i);
    if (quad >= 0 && (kColumns % kQuad == 0 || quad * kQuad + column0 < kColumns)) missing |= 1u << i;
  }
  Spin spin;
  do {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (missing >> i & 1) v[i] = load_relaxed_16(words + quad_of(i) * (kQuad * 4));
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if ((missing >> i & 1) && (!C::kWaits || !kFlagged || four_fresh(v[i], both))) missing &= ~(1u << i);
    }
  } while (missing && !spin.give_up(c, Wait::kExchange, quad_of(__ffs(missing) - 1) * kQuad + column0, c.epoch));
#pragma unroll
  for (int i = 0; i < kCount; ++i) x[i] = make_uint2(__byte_perm(v[i].x, v[i].y, 0x5410), __byte_perm(v[i].z, v[i].w, 0x5410));
}

// Four weights of a norm, from column on; 0 beyond the vector.
template <int kColumns>
__device__ __forceinline__ uint2 load_norm(const u8* norm, int column) {
  return column < kColumns ? load_constant_8(norm + column * 2) : make_uint2(0, 0);
}

__device__ __forceinline__ float squares_of(uint2 x) {
  const float a = Element::to_float(u16(x.x)), b = Element::to_float(u16(x.x >> 16));
  const float d = Element::to_float(u16(x.y)), e = Element::to_float(u16(x.y >> 16));
  return a * a + b * b + d * d + e * e;
}

}  // namespace amk
