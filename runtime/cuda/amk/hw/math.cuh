// Bits of numbers, conversions, numbers two to a register, operations that are rounded as IEEE says
// whatever surrounds them, and fast ones that are not. No policy, no loops.
#pragma once

#include "thread.cuh"

#ifndef __CUDACC__
#include <amk_cpu/math.h>
#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Whether the chip has e4m3x4_to_halves. -DAMK_FP8_CONVERT=0 forces the way of chips that do not.
#ifndef AMK_FP8_CONVERT
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define AMK_FP8_CONVERT 1
#else
#define AMK_FP8_CONVERT 0
#endif
#endif

namespace amk {

// ---- bits and integers --------------------------------------------------------------------------

__device__ __forceinline__ u32 bits_of(float v) { return __float_as_uint(v); }
__device__ __forceinline__ u64 bits_of(double v) { return u64(__double_as_longlong(v)); }
__device__ __forceinline__ float float_of_bits(u32 bits) { return __uint_as_float(bits); }
__device__ __forceinline__ double double_of_bits(u64 bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}

// Four of the eight bytes of a and b: digit i of the selector numbers byte i, from 0, the lowest
// of a.
__device__ __forceinline__ u32 byte_perm(u32 a, u32 b, u32 selector) {
  return __byte_perm(a, b, selector);
}
// c plus the products of four signed bytes.
__device__ __forceinline__ int dot4(int a, int b, int c) { return __dp4a(a, b, c); }
// One more than the number of the lowest bit that is set; 0 if none is.
__device__ __forceinline__ int find_first(u32 v) { return __ffs(int(v)); }
// How many bits are set.
__device__ __forceinline__ int count_bits(u32 v) { return __popc(v); }
// The upper half of a product.
__device__ __forceinline__ u64 multiply_high(u64 a, u64 b) { return __umul64hi(a, b); }

// ---- conversions: to nearest, ties to even, but where the name says down or up ------------------

__device__ __forceinline__ u16 float_to_bf16(float v) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(v));
}
__device__ __forceinline__ u16 float_to_fp16(float v) {
  return __half_as_ushort(__float2half_rn(v));
}
__device__ __forceinline__ float fp16_to_float(u16 bits) {
  return __half2float(__ushort_as_half(bits));
}
// Beyond the range of the integer its nearest; 0 for a NaN.
__device__ __forceinline__ int float_to_int(float v) { return __float2int_rn(v); }
__device__ __forceinline__ long long double_to_int64(double v) { return __double2ll_rn(v); }
__device__ __forceinline__ float u64_to_float(u64 v) { return __ull2float_rn(v); }
__device__ __forceinline__ float double_to_float(double v) { return __double2float_rn(v); }
__device__ __forceinline__ float double_to_float_down(double v) { return __double2float_rd(v); }
__device__ __forceinline__ float double_to_float_up(double v) { return __double2float_ru(v); }

// Four e4m3 numbers in the bytes of a word, as pairs of fp16: 0 and 1, and 2 and 3. Exact.
#if AMK_FP8_CONVERT
__device__ __forceinline__ uint2 e4m3x4_to_halves(u32 four) {
  uint2 halves;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2;"
      " cvt.rn.f16x2.e4m3x2 %0, low; cvt.rn.f16x2.e4m3x2 %1, high; }"
      : "=r"(halves.x), "=r"(halves.y)
      : "r"(four));
  return halves;
}
#endif

// ---- two numbers of 16 bits in a register, each rounded once ------------------------------------

__device__ __forceinline__ u32 mul2_bf16(u32 x, u32 y) {
  __nv_bfloat162 a, b;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  a = __hmul2(a, b);
  memcpy(&x, &a, sizeof x);
  return x;
}
__device__ __forceinline__ u32 mul2_fp16(u32 x, u32 y) {
  __half2 a, b;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  a = __hmul2(a, b);
  memcpy(&x, &a, sizeof x);
  return x;
}
__device__ __forceinline__ u32 sub2_bf16(u32 x, u32 y) {
  __nv_bfloat162 a, b;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  a = __hsub2(a, b);
  memcpy(&x, &a, sizeof x);
  return x;
}
__device__ __forceinline__ u32 sub2_fp16(u32 x, u32 y) {
  __half2 a, b;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  a = __hsub2(a, b);
  memcpy(&x, &a, sizeof x);
  return x;
}
// x * y + z (sm_80).
__device__ __forceinline__ u32 fma2_bf16(u32 x, u32 y, u32 z) {
  u32 d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(y), "r"(z));
  return d;
}
__device__ __forceinline__ u32 fma2_fp16(u32 x, u32 y, u32 z) {
  u32 d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(y), "r"(z));
  return d;
}

// ---- rounded to nearest, and never fused --------------------------------------------------------

__device__ __forceinline__ double add_rn(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double mul_rn(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ __forceinline__ double div_rn(double a, double b) { return __ddiv_rn(a, b); }
__device__ __forceinline__ float div_rn(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ float reciprocal_rn(float v) { return __frcp_rn(v); }

// ---- fast, and not rounded ----------------------------------------------------------------------

// 2^x to 22 bits; 0 for what would be subnormal.
__device__ __forceinline__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 1 / x to 23 bits, for x that are not subnormal.
__device__ __forceinline__ float reciprocal_approximate(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// As CUDA has them: e^x, log2 of x, and n / d to 2 ulp, which is 0 for d beyond 2^126.
__device__ __forceinline__ float exp_fast(float x) { return __expf(x); }
__device__ __forceinline__ float log2_fast(float x) { return __log2f(x); }
__device__ __forceinline__ float divide_fast(float n, float d) { return __fdividef(n, d); }

}  // namespace amk

#endif
