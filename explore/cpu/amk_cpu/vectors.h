// What CUDA adds to C++ without an include: vector types, min and max, rsqrtf.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

// Aligned as CUDA has them, so that they lie in memory as they do on a GPU.
#define AMK_VECTOR_2(NAME, T, ALIGNMENT)                                      \
  struct alignas(ALIGNMENT) NAME {                                            \
    T x, y;                                                                   \
  };                                                                          \
  constexpr NAME make_##NAME(T x, T y) { return NAME{x, y}; }
#define AMK_VECTOR_4(NAME, T, ALIGNMENT)                                      \
  struct alignas(ALIGNMENT) NAME {                                            \
    T x, y, z, w;                                                             \
  };                                                                          \
  constexpr NAME make_##NAME(T x, T y, T z, T w) { return NAME{x, y, z, w}; }
AMK_VECTOR_2(int2, int, 8)
AMK_VECTOR_2(uint2, unsigned, 8)
AMK_VECTOR_2(float2, float, 8)
AMK_VECTOR_2(ulonglong2, unsigned long long, 16)
AMK_VECTOR_4(int4, int, 16)
AMK_VECTOR_4(uint4, unsigned, 16)
AMK_VECTOR_4(float4, float, 16)
#undef AMK_VECTOR_2
#undef AMK_VECTOR_4

// With CUDA's overloads and no other: a call that is ambiguous there is ambiguous here. One operand
// without a sign makes both so.
#define AMK_MIN_AND_MAX(A, B, RESULT)                                         \
  constexpr RESULT min(A x, B y) {                                            \
    const RESULT a = x, b = y;                                                \
    return b < a ? b : a;                                                     \
  }                                                                           \
  constexpr RESULT max(A x, B y) {                                            \
    const RESULT a = x, b = y;                                                \
    return a < b ? b : a;                                                     \
  }
AMK_MIN_AND_MAX(int, int, int)
AMK_MIN_AND_MAX(unsigned, unsigned, unsigned)
AMK_MIN_AND_MAX(int, unsigned, unsigned)
AMK_MIN_AND_MAX(unsigned, int, unsigned)
AMK_MIN_AND_MAX(long, long, long)
AMK_MIN_AND_MAX(unsigned long, unsigned long, unsigned long)
AMK_MIN_AND_MAX(long, unsigned long, unsigned long)
AMK_MIN_AND_MAX(unsigned long, long, unsigned long)
AMK_MIN_AND_MAX(long long, long long, long long)
AMK_MIN_AND_MAX(unsigned long long, unsigned long long, unsigned long long)
AMK_MIN_AND_MAX(long long, unsigned long long, unsigned long long)
AMK_MIN_AND_MAX(unsigned long long, long long, unsigned long long)
#undef AMK_MIN_AND_MAX
// Of a number and NaN the number, and -0 is less than +0.
inline float min(float a, float b) {
  return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}
inline float max(float a, float b) {
  return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : a < b ? b : a;
}
inline double min(double a, double b) {
  return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}
inline double max(double a, double b) {
  return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : a < b ? b : a;
}
