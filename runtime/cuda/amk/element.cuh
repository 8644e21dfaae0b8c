// Element types: how a value of the model's dtype is stored, rounded and multiplied.
// Must not know what a value is used for.
#pragma once

#include "hw/math.cuh"
#include "hw/mma.cuh"
#include "platform.cuh"
#include "weight_format.cuh"

namespace amk {

struct Bf16 {
  using Bits = u16;
  static constexpr int kBytes = 2;
  __device__ static __forceinline__ float to_float(Bits b) { return float_of_bits(u32(b) << 16); }
  __device__ static __forceinline__ Bits from_float(float v) { return float_to_bf16(v); }
  // Two values in one register: x * g, each product rounded once.
  __device__ static __forceinline__ u32 mul2(u32 x, u32 g) { return mul2_bf16(x, g); }
  // The same for 1 + g, which is not rounded: x + x * g.
  __device__ static __forceinline__ u32 mul2_of_1_plus(u32 x, u32 g) {
    return fma2_bf16(x, g, x);
  }
  __device__ static __forceinline__ u32 sub2(u32 x, u32 y) { return sub2_bf16(x, y); }
  // d += A*B.
  __device__ static __forceinline__ void mma(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                             u32 b1) {
    mma_bf16(d, a0, a1, a2, a3, b0, b1);
  }
  // The same of 64 rows, or d = A*B, of B in shared memory, and A there or in registers.
  template <int kSums, class A>
  __device__ static __forceinline__ void wgmma(float (&d)[kSums], A a, WideOperand b, bool adds) {
    wgmma_bf16(d, a, b, adds);
  }
};

struct Fp16 {
  using Bits = u16;
  static constexpr int kBytes = 2;
  __device__ static __forceinline__ float to_float(Bits b) { return fp16_to_float(b); }
  __device__ static __forceinline__ Bits from_float(float v) { return float_to_fp16(v); }
  __device__ static __forceinline__ u32 mul2(u32 x, u32 g) { return mul2_fp16(x, g); }
  __device__ static __forceinline__ u32 mul2_of_1_plus(u32 x, u32 g) {
    return fma2_fp16(x, g, x);
  }
  __device__ static __forceinline__ u32 sub2(u32 x, u32 y) { return sub2_fp16(x, y); }
  __device__ static __forceinline__ void mma(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                             u32 b1) {
    mma_fp16(d, a0, a1, a2, a3, b0, b1);
  }
  template <int kSums, class A>
  __device__ static __forceinline__ void wgmma(float (&d)[kSums], A a, WideOperand b, bool adds) {
    wgmma_fp16(d, a, b, adds);
  }
};

struct Fp32 {
  using Bits = u32;
  static constexpr int kBytes = 4;
  __device__ static __forceinline__ float to_float(Bits b) { return float_of_bits(b); }
  __device__ static __forceinline__ Bits from_float(float v) { return bits_of(v); }
};

// Integers, of which a cache has a scale for each row (cache.cuh).
struct Int8 {
  using Bits = u8;
  static constexpr int kBytes = 1;
  __device__ static __forceinline__ float to_float(Bits b) { return float(int8_t(b)); }
  // To nearest, ties to even. NaN becomes 0.
  __device__ static __forceinline__ Bits from_float(float v) { return Bits(float_to_int(v)); }
};

// A power of two by its exponent, which scales are (OCP Microscaling Formats).
struct E8m0 {
  using Bits = u8;
  static constexpr int kBytes = 1;
  __device__ static __forceinline__ float to_float(Bits b) {
    return float_of_bits(max(u32(b) << 23, 1u << 22));  // 2^-127 is subnormal
  }
};

// The type of the numbers of an element type that scales may have.
template <ElementType kType>
struct ElementOf {
  using Type = Fp32;
};
template <>
struct ElementOf<kFp16> {
  using Type = Fp16;
};
template <>
struct ElementOf<kBf16> {
  using Type = Bf16;
};

template <>
struct ElementOf<kE8m0> {
  using Type = E8m0;
};

// Whether two element types are one.
template <class A, class B>
constexpr bool kSame = false;
template <class A>
constexpr bool kSame<A, A> = true;

// n / d, to 2 ulp where the result is rounded to 16 bits anyway. 0 for d beyond 2^126.
template <class E>
__device__ __forceinline__ float divide(float n, float d) {
  return E::kBytes == 4 ? n / d : divide_fast(n, d);
}

// a * b + c * d, of which the second product is rounded. Kernels are compiled with -fmad=false:
// left to the compiler, which product is rounded would depend on the code around them, and a
// token's bits on the kernel that computes it.
__device__ __forceinline__ float sum_of_products(float a, float b, float c, float d) {
  return fmaf(a, b, c * d);
}

// One of a rotation pair, v, with the other one: the second of them if it is odd.
__device__ __forceinline__ float rotated(bool odd, float v, float other, float cos,
                                          float sin) {
  return sum_of_products(v, cos, odd ? other : -other, sin);
}

// Value of v after a round trip through E.
template <class E>
__device__ __forceinline__ float rounded(float v) {
  return E::to_float(E::from_float(v));
}

}  // namespace amk
