// hw/math.cuh on a CPU: bits of numbers, conversions, numbers two to a register, operations that are
// rounded as IEEE says, and fast ones that are not. Functions of their arguments alone, with the same
// bits on every CPU and at every level of optimisation, as long as the compiler fuses nothing
// (-ffp-contract=off).
#pragma once

#include "vectors.h"

// Whether the target has e4m3x4_to_halves. A build for the CPU says which target it stands for.
#ifndef AMK_FP8_CONVERT
#define AMK_FP8_CONVERT 0
#endif

namespace amk {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

// ---- bits and integers --------------------------------------------------------------------------

namespace cpu {
template <class To, class From>
inline To bits_as(From v) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To to;
  __builtin_memcpy(&to, &v, sizeof to);
  return to;
}
}  // namespace cpu

inline u32 bits_of(float v) { return cpu::bits_as<u32>(v); }
inline u64 bits_of(double v) { return cpu::bits_as<u64>(v); }
inline float float_of_bits(u32 bits) { return cpu::bits_as<float>(bits); }
inline double double_of_bits(u64 bits) { return cpu::bits_as<double>(bits); }

// Three bits of each digit count: CUDA documents no others, and the sign-replicating mode of prmt is
// not to be had by __byte_perm.
inline u32 byte_perm(u32 a, u32 b, u32 selector) {
  const u64 both = u64(b) << 32 | a;
  u32 v = 0;
  for (int i = 0; i < 4; ++i) v |= u32(both >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
  return v;
}
inline int dot4(int a, int b, int c) {
  u32 sum = u32(c);
  for (int i = 0; i < 4; ++i) sum += u32(int8_t(a >> 8 * i) * int8_t(b >> 8 * i));
  return int(sum);
}
inline int find_first(u32 v) { return __builtin_ffs(int(v)); }
inline int count_bits(u32 v) { return __builtin_popcount(v); }
inline u64 multiply_high(u64 a, u64 b) {
  return u64(static_cast<unsigned __int128>(a) * b >> 64);
}

// ---- conversions --------------------------------------------------------------------------------

namespace cpu {
constexpr u32 kNan = 0x7fffffff, kInfinity = 0x7f800000, kLeastNormal = 0x00800000;
constexpr u16 kHalfNan = 0x7fff;  // of both types

// The digits without the last `by`, rounded to nearest, ties to even. by is at least 1.
inline u64 rounded_off(u64 digits, int by) {
  if (by > 63) return 0;
  const u64 kept = digits >> by, rest = digits & ((u64(1) << by) - 1), half = u64(1) << (by - 1);
  return kept + (rest > half || (rest == half && (kept & 1) != 0));
}
// A double as 16 bits, of which the fraction has a given number, rounded once.
template <int kFraction>
inline u16 double_to_half(double v) {
  constexpr int kBias = (1 << (14 - kFraction)) - 1;
  const u64 bits = bits_of(v), digits = bits & ((u64(1) << 52) - 1);
  const int field = int(bits >> 52 & 2047), exponent = field - 1023;
  const u16 sign = u16(bits >> 63 << 15), infinity = u16((2 * kBias + 1) << kFraction);
  if (field == 2047 && digits != 0) return kHalfNan;
  if (exponent > kBias) return u16(sign | infinity);
  if (field == 0) return sign;  // far below the least subnormal
  // A carry goes on into the exponent, and from the largest number to infinity.
  const int below = exponent < 1 - kBias ? 1 - kBias - exponent : 0;
  const u64 kept = rounded_off(digits | u64(1) << 52, 52 - kFraction + below);
  return u16(sign | (below != 0 ? kept : kept + (u64(exponent + kBias - 1) << kFraction)));
}
// A sum rounded to odd, so that rounding it again is as good as rounding once: if a double does not
// hold it, the neighbour whose last bit is set.
inline double sum_to_odd(double a, double b) {
  const double sum = a + b, of_b = sum - a;
  const double rest = (a - (sum - of_b)) + (b - of_b);
  const u64 bits = bits_of(sum);
  if ((bits >> 52 & 2047) == 2047 || rest == 0 || (bits & 1) != 0) return sum;
  return double_of_bits((rest > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
}  // namespace cpu

inline u16 float_to_bf16(float v) {
  const u32 bits = bits_of(v);
  if ((bits & 0x7fffffff) > cpu::kInfinity) return cpu::kHalfNan;
  return u16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline u16 float_to_fp16(float v) { return cpu::double_to_half<10>(v); }
inline float fp16_to_float(u16 bits) {
  const u32 sign = u32(bits & 0x8000) << 16, field = bits >> 10 & 31, digits = bits & 1023;
  if (field == 31) return float_of_bits(digits != 0 ? cpu::kNan : sign | cpu::kInfinity);
  if (field != 0) return float_of_bits(sign | (field + 112) << 23 | digits << 13);
  return float_of_bits(sign | bits_of(float(digits) * 0x1p-24f));
}

namespace cpu {
// To the nearest integer, ties to even, for what is less than 2^52 in magnitude.
inline double nearest(double v) {
  const double by = v < 0 ? -0x1p52 : 0x1p52;
  return (v + by) - by;
}
}  // namespace cpu

inline int float_to_int(float v) {
  if (v != v) return 0;
  if (v >= 0x1p31f) return INT32_MAX;
  if (v <= -0x1p31f) return INT32_MIN;
  return int(cpu::nearest(v));
}
inline long long double_to_int64(double v) {
  if (v != v || v <= -0x1p63) return INT64_MIN;
  if (v >= 0x1p63) return INT64_MAX;
  return static_cast<long long>(v > -0x1p52 && v < 0x1p52 ? cpu::nearest(v) : v);
}
// The conversions of the host are IEEE's.
inline float u64_to_float(u64 v) { return float(v); }
inline float double_to_float(double v) { return v != v ? float_of_bits(cpu::kNan) : float(v); }
inline float double_to_float_down(double v) {
  const float nearest = double_to_float(v);
  if (!(double(nearest) > v)) return nearest;
  if (nearest == 0) return float_of_bits(0x80000001);
  const u32 bits = bits_of(nearest);
  return float_of_bits(nearest > 0 ? bits - 1 : bits + 1);
}
inline float double_to_float_up(double v) { return -double_to_float_down(-v); }

// Four e4m3 numbers in the bytes of a word, as pairs of fp16. A NaN becomes fp16's.
inline uint2 e4m3x4_to_halves(u32 four) {
  u32 halves[4];
  for (int i = 0; i < 4; ++i) {
    const u32 one = four >> 8 * i & 255, sign = (one & 128) << 8, field = one >> 3 & 15, digits = one & 7;
    u32 half = (field + 8) << 10 | digits << 7;
    if (field == 0) {
      // digits * 2^-9: fp16 has a normal number for each.
      const int top = digits >= 4 ? 2 : digits >= 2 ? 1 : 0;
      half = digits == 0 ? 0 : u32(top + 6) << 10 | (digits << (10 - top) & 1023);
    }
    halves[i] = (one & 127) == 127 ? cpu::kHalfNan : sign | half;
  }
  return uint2{halves[1] << 16 | halves[0], halves[3] << 16 | halves[2]};
}

// ---- two numbers of 16 bits in a register, each rounded once ------------------------------------

namespace cpu {
inline double widened_bf16(u16 bits) { return float_of_bits(u32(bits) << 16); }
inline double widened_fp16(u16 bits) { return fp16_to_float(bits); }
// Products are exact in a double, and sums with one are rounded to odd there.
template <int kFraction, class Widen>
inline u16 fma_of_halves(u16 x, u16 y, u16 z, Widen&& widened) {
  return double_to_half<kFraction>(sum_to_odd(widened(x) * widened(y), widened(z)));
}
template <class Op>
inline u32 each_half(u32 x, u32 y, u32 z, Op&& op) {
  return u32(op(u16(x >> 16), u16(y >> 16), u16(z >> 16))) << 16 | op(u16(x), u16(y), u16(z));
}
}  // namespace cpu

inline u32 mul2_bf16(u32 x, u32 y) {
  return cpu::each_half(x, y, 0, [](u16 a, u16 b, u16) {
    return cpu::double_to_half<7>(cpu::widened_bf16(a) * cpu::widened_bf16(b));
  });
}
inline u32 mul2_fp16(u32 x, u32 y) {
  return cpu::each_half(x, y, 0, [](u16 a, u16 b, u16) {
    return cpu::double_to_half<10>(cpu::widened_fp16(a) * cpu::widened_fp16(b));
  });
}
inline u32 sub2_bf16(u32 x, u32 y) {
  return cpu::each_half(x, y, 0, [](u16 a, u16 b, u16) {
    return cpu::double_to_half<7>(cpu::sum_to_odd(cpu::widened_bf16(a), -cpu::widened_bf16(b)));
  });
}
inline u32 sub2_fp16(u32 x, u32 y) {
  return cpu::each_half(x, y, 0, [](u16 a, u16 b, u16) {
    return cpu::double_to_half<10>(cpu::widened_fp16(a) - cpu::widened_fp16(b));  // exact
  });
}
inline u32 fma2_bf16(u32 x, u32 y, u32 z) {
  return cpu::each_half(x, y, z, [](u16 a, u16 b, u16 c) {
    return cpu::fma_of_halves<7>(a, b, c, cpu::widened_bf16);
  });
}
inline u32 fma2_fp16(u32 x, u32 y, u32 z) {
  return cpu::each_half(x, y, z, [](u16 a, u16 b, u16 c) {
    return cpu::fma_of_halves<10>(a, b, c, cpu::widened_fp16);
  });
}

// ---- rounded to nearest, and never fused --------------------------------------------------------

inline double add_rn(double a, double b) { return a + b; }
inline double mul_rn(double a, double b) { return a * b; }
inline double fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline double div_rn(double a, double b) { return a / b; }
inline float div_rn(float a, float b) { return a / b; }
inline float reciprocal_rn(float v) { return 1.0f / v; }

// ---- fast, and not rounded ----------------------------------------------------------------------
//
// What a GPU gives here is not known to the bit: PTX and CUDA promise an error, and so much these
// functions take. Of the floats that are near enough to the result, the bits of the arguments draw
// one. It is the nearest no more often than the others, so that what needs the nearest fails. Exact
// are the results that PTX lists as such.

namespace cpu {
// Two bits that depend on all of the arguments.
inline u32 drawn(u32 bits) {
  bits = (bits ^ bits >> 16) * 0x7feb352d;
  bits = (bits ^ bits >> 15) * 0x846ca68b;
  return (bits ^ bits >> 16) >> 30;
}

// A float less than kSteps from v, which is positive and has normal floats around it; so the nearest
// float is no more than kSteps away. Not up from a power of two, where steps become twice as wide, nor
// out of the normal numbers.
template <int kSteps>
inline float near(double v, u32 draw) {
  static_assert(kSteps == 1 || kSteps == 2, "two bits draw one of two or four");
  const u64 bits = bits_of(v);
  const bool exact = (bits & ((u64(1) << 29) - 1)) == 0;
  const u32 below = u32((bits >> 29) - (u64(1023 - 127) << 23)), above = exact ? below : below + 1;
  u32 result = draw & 1 ? above : below;
  if (kSteps == 2 && (draw & 2) != 0) {
    if ((draw & 1) != 0) result = (above & (kLeastNormal - 1)) != 0 ? above + 1 : above;
    else result = below > kLeastNormal ? below - 1 : below;
  }
  return float_of_bits(result < kInfinity ? result : kInfinity - 1);
}

// 2^x for |x| <= 1100, to less than 2^-50 of it.
inline double exp2_of(double x) {
  const double whole = nearest(x), t = (x - whole) * 0x1.62e42fefa39efp-1;
  double e = 1.0 / 6227020800;  // the series of e^t, |t| < 0.35
  e = e * t + 1.0 / 479001600;
  e = e * t + 1.0 / 39916800;
  e = e * t + 1.0 / 3628800;
  e = e * t + 1.0 / 362880;
  e = e * t + 1.0 / 40320;
  e = e * t + 1.0 / 5040;
  e = e * t + 1.0 / 720;
  e = e * t + 1.0 / 120;
  e = e * t + 1.0 / 24;
  e = e * t + 1.0 / 6;
  e = e * t + 0.5;
  e = e * t + 1;
  e = e * t + 1;
  return e * double_of_bits(u64(int64_t(whole) + 1023) << 52);
}
// log2 of a positive v, to less than 2^-48 of it.
inline double log2_of(double v) {
  const u64 bits = bits_of(v);
  int exponent = int(bits >> 52) - 1023;
  double m = double_of_bits((bits & ((u64(1) << 52) - 1)) | u64(1023) << 52);
  if (m > 0x1.6a09ep0) m *= 0.5, ++exponent;
  const double s = (m - 1) / (m + 1), q = s * s;
  double sum = 1.0 / 23;  // the series of atanh(s), |s| < 0.172
  sum = sum * q + 1.0 / 21;
  sum = sum * q + 1.0 / 19;
  sum = sum * q + 1.0 / 17;
  sum = sum * q + 1.0 / 15;
  sum = sum * q + 1.0 / 13;
  sum = sum * q + 1.0 / 11;
  sum = sum * q + 1.0 / 9;
  sum = sum * q + 1.0 / 7;
  sum = sum * q + 1.0 / 5;
  sum = sum * q + 1.0 / 3;
  sum = sum * q + 1;
  return double(exponent) + s * sum * 0x1.71547652b82fep1;  // 2 / ln 2
}
}  // namespace cpu

// ex2.approx.ftz: 2 ulp; 1 of zeros, and of subnormals, which are flushed to them.
inline float exp2_approximate(float x) {
  if (x != x) return float_of_bits(cpu::kNan);
  if (x < -126) return 0;
  if (x >= 128) return float_of_bits(cpu::kInfinity);
  if ((bits_of(x) & 0x7fffffff) < cpu::kLeastNormal) return 1;
  return cpu::near<2>(cpu::exp2_of(x), cpu::drawn(bits_of(x)));
}
// rcp.approx.ftz: 1 ulp. Of a power of two that leaves the power of two.
inline float reciprocal_approximate(float x) {
  const u32 bits = bits_of(x), magnitude = bits & 0x7fffffff, sign = bits ^ magnitude;
  if (magnitude > cpu::kInfinity) return float_of_bits(cpu::kNan);
  if (magnitude < cpu::kLeastNormal) return float_of_bits(sign | cpu::kInfinity);
  if (magnitude > 0x7e800000) return float_of_bits(sign);  // beyond 2^126: of a subnormal, 0
  const float result = cpu::near<1>(1.0 / double(float_of_bits(magnitude)), cpu::drawn(bits));
  return float_of_bits(sign | bits_of(result));
}
// __expf is ex2.approx of a rounded product: 2 + floor(1.173 |x|) ulp.
inline float exp_fast(float x) {
  if (x != x) return float_of_bits(cpu::kNan);
  const float power = x * 0x1.715476p0f;
  if (power < -160) return 0;
  if (power >= 128) return float_of_bits(cpu::kInfinity);
  if ((bits_of(power) & 0x7fffffff) < cpu::kLeastNormal) return 1;
  const double result = cpu::exp2_of(power);
  // From |x| of 8 on, the product's rounding is off enough: with more, a few would be too far.
  const bool draws = power >= -11.5f && power < 11.5f;
  return draws ? cpu::near<1>(result, cpu::drawn(bits_of(x))) : float(result);
}
// __log2f is lg2.approx: 2^-22 between 0.5 and 2, and elsewhere 2 ulp, and 2^-22 of the result.
inline float log2_fast(float x) {
  const u32 bits = bits_of(x), draw = cpu::drawn(bits);
  if ((bits & 0x7fffffff) == 0) return -float_of_bits(cpu::kInfinity);
  if (x != x || x < 0) return float_of_bits(cpu::kNan);
  if (bits == cpu::kInfinity) return x;
  const double log = cpu::log2_of(x);
  if (x > 0.5f && x < 2) return float(log + (int(draw) * 2 - 3) * (0x1p-22 * 0.28));
  const float result = cpu::near<2>(log < 0 ? -log : log, draw);
  return log < 0 ? -result : result;
}
// __fdividef is div.approx, n * (1 / d): 2 ulp for |d| from 2^-126 to 2^126; beyond, 1 / d is 0.
inline float divide_fast(float n, float d) {
  const u32 top = bits_of(n), bottom = bits_of(d), magnitude = bottom & 0x7fffffff;
  const u32 sign = (top ^ bottom) & 0x80000000;
  if (n != n || d != d) return float_of_bits(cpu::kNan);
  float result;
  if (magnitude < cpu::kLeastNormal) {
    result = n * (1 / d);
  } else if (magnitude > 0x7e800000) {
    result = n * float_of_bits(bottom & 0x80000000);
  } else {
    const double quotient = double_of_bits(bits_of(double(n) / double(d)) & (~u64(0) >> 1));
    if (quotient >= 0x1p-126 && quotient < 0x1p128)
      result = cpu::near<2>(quotient, cpu::drawn(top * 31 + bottom));
    else result = float(quotient);
    return float_of_bits(sign | bits_of(result));
  }
  return result != result ? float_of_bits(cpu::kNan) : result;
}

}  // namespace amk

// 1 / sqrt(x): 2 ulp in CUDA, and 2^-22.9 of the result in PTX.
inline float rsqrtf(float x) {
  const amk::u32 bits = amk::bits_of(x);
  if ((bits & 0x7fffffff) == 0) return amk::float_of_bits(bits | amk::cpu::kInfinity);
  if (x != x || x < 0) return amk::float_of_bits(amk::cpu::kNan);
  if (bits == amk::cpu::kInfinity) return 0;
  return amk::cpu::near<1>(1.0 / std::sqrt(double(x)), amk::cpu::drawn(bits));
}
