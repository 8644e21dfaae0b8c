// Element types: how a value of the model's dtype is stored, rounded and multiplied.
// Must not know what a value is used for.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "platform.cuh"
#include "weight_format.cuh"

namespace amk {

struct Bf16 {
  using Bits = u16;
  static constexpr int kBytes = 2;
  __device__ static __forceinline__ float to_float(Bits b) { return __uint_as_float(u32(b) << 16); }
  __device__ static __forceinline__ Bits from_float(float v) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(v));
  }
  // Two values in one register: x * g, each product rounded once.
  __device__ static __forceinline__ u32 mul2(u32 x, u32 g) {
    __nv_bfloat162 a, b;
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &g, sizeof b);
    a = __hmul2(a, b);
    memcpy(&x, &a, sizeof x);
    return x;
  }
  // The same for 1 + g, which is not rounded: x + x * g.
  __device__ static __forceinline__ u32 mul2_of_1_plus(u32 x, u32 g) {
    asm("fma.rn.bf16x2 %0, %0, %1, %0;" : "+r"(x) : "r"(g));
    return x;
  }
};

struct Fp16 {
  using Bits = u16;
  static constexpr int kBytes = 2;
  __device__ static __forceinline__ float to_float(Bits b) {
    return __half2float(__ushort_as_half(b));
  }
  __device__ static __forceinline__ Bits from_float(float v) {
    return __half_as_ushort(__float2half_rn(v));
  }
  __device__ static __forceinline__ u32 mul2(u32 x, u32 g) {
    __half2 a, b;
    memcpy(&a, &x, sizeof a);
    memcpy(&b, &g, sizeof b);
    a = __hmul2(a, b);
    memcpy(&x, &a, sizeof x);
    return x;
  }
  __device__ static __forceinline__ u32 mul2_of_1_plus(u32 x, u32 g) {
    asm("fma.rn.f16x2 %0, %0, %1, %0;" : "+r"(x) : "r"(g));
    return x;
  }
};

struct Fp32 {
  using Bits = u32;
  static constexpr int kBytes = 4;
  __device__ static __forceinline__ float to_float(Bits b) { return __uint_as_float(b); }
  __device__ static __forceinline__ Bits from_float(float v) { return __float_as_uint(v); }
};

// Integers, of which a cache has a scale for each row (cache.cuh).
struct Int8 {
  using Bits = u8;
  static constexpr int kBytes = 1;
  __device__ static __forceinline__ float to_float(Bits b) { return float(int8_t(b)); }
  // To nearest, ties to even. What is no number is 0.
  __device__ static __forceinline__ Bits from_float(float v) { return Bits(__float2int_rn(v)); }
};

// The type that a value of a 16-bit or 32-bit element type has.
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

// Whether two element types are one.
template <class A, class B>
constexpr bool kSame = false;
template <class A>
constexpr bool kSame<A, A> = true;

// n / d, to 2 ulp where the result is rounded to 16 bits anyway. 0 for d beyond 2^126.
template <class E>
__device__ __forceinline__ float divide(float n, float d) {
  return E::kBytes == 4 ? n / d : __fdividef(n, d);
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
