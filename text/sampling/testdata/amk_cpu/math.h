// Arithmetic of sampling.cuh, for the CPU. What instructions do not round is as far off as it may be.
#pragma once

namespace amk {
inline u64 bits_of(double v) {
  u64 bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
inline double double_of_bits(u64 bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
inline double add_rn(double a, double b) { return a + b; }
inline double mul_rn(double a, double b) { return a * b; }
inline double div_rn(double a, double b) { return a / b; }
inline double fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float u64_to_float(u64 v) { return float(v); }
// Off by two units in the last place.
inline float divide_fast(float n, float d) { return n / d * (1 + 0x1p-22f); }
// In one direction or the other.
inline float direction = 1;
inline float log2_fast(float v) {
  const float log = log2f(v), off = v > 0.5f && v < 2 ? 0x1p-22f : fabsf(log) * 0x1p-22f;
  return log + direction * off;
}
}  // namespace amk
