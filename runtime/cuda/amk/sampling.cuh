// How a token is drawn: the one with the largest sum of its logit over the temperature and of
// noise, which depends on the seed, the position and the token alone. docs/sampling.md specifies
// the computation to the bit, and the host computes it too; so every operation here is an intrinsic
// that rounds once and that the compiler does not fuse. Float32 nearly always suffices to find the
// token: it bounds a sum from both sides. Must not know where logits come from.
#pragma once

#include "hw/math.cuh"
#include "hw/memory.cuh"
#include "launch.cuh"

namespace amk {

// Philox4x32-10: the random words of two tokens, 2 * pair and the one after it.
__device__ __forceinline__ uint4 noise_of(u64 seed, u64 position, u32 pair) {
  uint4 w = make_uint4(pair, 0, u32(position), u32(position >> 32));
  u32 key0 = u32(seed), key1 = u32(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xD2511F53u) * w.x, b = u64(0xCD9E8D57u) * w.z;
    w = make_uint4(u32(b >> 32) ^ w.y ^ key0, u32(b), u32(a >> 32) ^ w.w ^ key1, u32(a));
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return w;
}

// A token's odd number below 2^53, from the words of its pair: in units of 2^-53 it is uniform
// between 0 and 1.
__device__ __forceinline__ u64 uniform_of(const uint4& words, int token) {
  const u32 low = token & 1 ? words.z : words.x, high = token & 1 ? words.w : words.y;
  return ((u64(high) << 32 | low) >> 12) << 1 | 1;
}

// The natural logarithm of x, which is positive and not subnormal: with x = 2^k m, m between
// sqrt(1/2) and sqrt(2), and s = (m-1)/(m+1), it is k ln2 + 2 (s + s^3/3 + s^5/5 + ...).
__device__ __forceinline__ double exact_ln(double x) {
  constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr u64 kMantissa = (u64(1) << 52) - 1, kHalf = u64(1022) << 52;
  const u64 bits = bits_of(x);
  int k = int(bits >> 52) - 1022;
  double m = double_of_bits((bits & kMantissa) | kHalf);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m = mul_rn(2.0, m);
    --k;
  }
  const double f = add_rn(m, -1.0);
  const double s = div_rn(f, add_rn(2.0, f));
  const double z = mul_rn(s, s);
  double p = 1.0 / 23;
#pragma unroll
  for (int n = 21; n >= 3; n -= 2) p = fma_rn(p, z, 1.0 / n);
  const double s2 = mul_rn(2.0, s), e = double(k);
  const double low = fma_rn(e, kLn2Low, mul_rn(s2, mul_rn(z, p)));
  return fma_rn(e, kLn2High, add_rn(s2, low));
}

// -ln E, with E = -ln(1-v) for v in units of 2^-53. 1-v is exact. Rarely needed, and in many
// places.
__device__ __noinline__ inline double gumbel_of(u64 v) {
  const u64 u = (u64(1) << 53) - v;
  return -exact_ln(-exact_ln(mul_rn(double(static_cast<long long>(u)), 0x1p-53)));
}

// A candidate for the draw: the largest sum wins, and the lowest id among equals.
struct Drawn {
  double sum = -INFINITY;
  float logit = -INFINITY;
  int token = 0x7fffffff;  // no token
  __device__ __forceinline__ void offer(const Drawn& other) {
    if (other.sum > sum || (other.sum == sum && other.token < token)) *this = other;
  }
};

// The state of a thread or a warp over the tokens offered to it: a lower bound of their largest
// sum, and the token whose sum may be the largest.
struct Leader {
  float low = -INFINITY;   // of the largest sum, from below
  float high = -INFINITY;  // of the token's sum, from above
  float logit = -INFINITY;
  int token = 0x7fffffff;      // no token
  float others = -INFINITY;    // of the sums of all others, from above

  __device__ __forceinline__ void offer(float least, float most, float of, int id) {
    low = fmaxf(low, least);
    others = fmaxf(others, fminf(high, most));
    if (most > high) high = most, logit = of, token = id;
  }
};

// The draw of one position.
struct Draw {
  double temperature;  // 0: the largest logit, without noise
  u64 seed;
  u64 position;   // of the token that is drawn
  float inverse;  // of the temperature, for bounds

  __device__ __forceinline__ Draw(const Sampling* of, int after)
      : temperature(load_constant(&of->temperature)),
        seed(load_constant(&of->seed)),
        position(u64(after) + 1),
        inverse(divide_fast(1.0f, float(temperature))) {}

  // The quantity that is maximised, for a token with score x and number v.
  __device__ __forceinline__ double sum(double x, u64 v) const {
    if (temperature == 0) return x;
    return add_rn(div_rn(x, temperature), gumbel_of(v));
  }
  __device__ __forceinline__ u64 uniform(int token) const {
    return uniform_of(noise_of(seed, position, u32(token) / 2), token);
  }
  // Whether a logit voids the draw: it is not finite and not -inf. The largest logit is searched
  // among everything above -inf, as in a launch without settings.
  __device__ __forceinline__ bool is_void(float logit) const {
    return temperature != 0 && !(logit < INFINITY);
  }
  // Offers a token with its logit and sum. A token with a logit of -inf is never drawn. A void
  // logit beats all others, and has no token.
  __device__ __forceinline__ void offer(Drawn& best, float logit, int token,
                                        double sum) const {
    if (is_void(logit)) best = Drawn{INFINITY, INFINITY, kNoToken};
    else if (logit > -INFINITY) best.offer(Drawn{sum, logit, token});
  }
  __device__ __forceinline__ void offer(Drawn& best, float logit, int token) const {
    offer(best, logit, token, sum(double(logit), uniform(token)));
  }

  // The same for bounds of the sum. lg2 has an error of at most 2^-22, absolute between 1/2 and 2
  // and relative elsewhere. So E has a relative error below 8e-6: below 1/32 the series gives it,
  // whose first omitted term is 2e-7 of the sum, and above, lg2 is 0.045 or more. That is 8e-6 of
  // ln E, to which its own lg2, up to 53, adds 9e-6, and rounding 8e-6: 2^-15 is more than their
  // sum. The inverse has an error of 2^-22, and share and sum are rounded at most four times: less
  // than 2^-20 of the share.
  __device__ __forceinline__ void offer(Leader& leader, float logit, int token, u64 v) const {
    if (temperature == 0) {
      if (logit > -INFINITY) leader.offer(logit, logit, logit, token);
      return;
    }
    const bool small = v < u64(1) << 48;
    const float f = u64_to_float(small ? v : (u64(1) << 53) - v) * 0x1p-53f;
    const float series = fmaf(f * f, fmaf(f, fmaf(f, 0.25f, 1.0f / 3), 0.5f), f);
    const float e = small ? series : -0x1.62e430p-1f * log2_fast(f);
    const float share = logit * inverse, sum = fmaf(-0x1.62e430p-1f, log2_fast(e), share);
    const float error = fmaf(0x1p-20f, fabsf(share), 0x1p-15f);
    const bool bounded = fabsf(share) < 0x1p100f;
    float least = bounded ? sum - error : -INFINITY;
    float most = bounded ? sum + error : INFINITY;
    if (logit == -INFINITY) most = -INFINITY;
    if (!(logit < INFINITY)) least = most = INFINITY, token = kNoToken;
    leader.offer(least, most, logit, token);
  }
};

}  // namespace amk
