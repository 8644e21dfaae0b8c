// Tensor-core primitives: the GEMV form of m16n8k16, the plain form, the integer form, and the 8x8
// transpose between registers. Must not load or store anything.
#pragma once

#include "element.cuh"

namespace amk {

// d += A*B in the plain form.
template <class E>
__device__ __forceinline__ void mma16816(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                         u32 b1);

template <>
__device__ __forceinline__ void mma16816<Bf16>(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3,
                                               u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma16816<Fp16>(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3,
                                               u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// One block of a weight tile: w holds 8 columns of one row in the order of tile_column, x four
// activations (gemv_mma.cuh).
template <class E>
__device__ __forceinline__ void mma_weights(float (&d)[4], uint4 w, uint2 x) {
  mma16816<E>(d, w.x, w.y, w.z, w.w, x.x, x.y);
}

// d += A*B of bytes: exact. Those of A have a sign or not, those of B have one.
template <bool kSigned>
__device__ __forceinline__ void mma16832(int (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, uint2 b) {
  if constexpr (kSigned) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, "
        "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b.x), "r"(b.y));
  } else {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, "
        "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b.x), "r"(b.y));
  }
}

// Transposes an 8x8 matrix of 16-bit values held one register per lane.
__device__ __forceinline__ u32 transpose8x8(u32 a) {
  u32 d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
  return d;
}

}  // namespace amk
