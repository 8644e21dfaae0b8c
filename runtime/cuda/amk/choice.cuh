// What is done to a sequence's logits before a token is chosen, and which tokens are eligible:
// bias, penalties, allowed tokens, top-k, top-p and min-p. docs/sampling.md specifies the
// computation to the bit, and the host computes it too. Only launches with choices run this code,
// and none of it is inlined into the step. Needs model_config.h.
#pragma once

#include "sampling.cuh"

namespace amk {

// e^y for y <= 0.
__device__ __forceinline__ double exact_exp(double y) {
  if (y < -700) return 0;
  constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr double kFactorials[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
      1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      1.0 / 2};
  const double k = rint(mul_rn(y, 0x1.71547652b82fep+0));
  const double r = fma_rn(-k, kLn2Low, fma_rn(-k, kLn2High, y));
  double q = kFactorials[0];
#pragma unroll
  for (int n = 1; n < 12; ++n) q = fma_rn(q, r, kFactorials[n]);
  q = fma_rn(fma_rn(q, r, 1.0), r, 1.0);
  return mul_rn(q, double_of_bits(u64(static_cast<long long>(k) + 1023) << 52));
}

// Doubles as integers in the same order; -0 is 0.
__device__ __forceinline__ u64 in_order(double x) {
  const u64 bits = bits_of(add_rn(x, 0.0));
  return bits >> 63 ? ~bits : bits | u64(1) << 63;
}
__device__ __forceinline__ double from_order(u64 key) {
  return double_of_bits(key >> 63 ? key & ~(u64(1) << 63) : ~key);
}

// The place of a token in descending order of probability: by the distance of its score from the
// largest, in float32, which spreads well over digits; then by the score itself; among equals the
// higher id comes first. A place is sixteen digits.
constexpr int kPlaceDigits = 16, kScoreDigits = 12;
struct Place {
  u32 words[4];

  __device__ __forceinline__ u32 digit(int i) const {
    return words[i / 4] >> (24 - i % 4 * 8) & 255;
  }
  // Whether the first n digits equal those of another place.
  __device__ __forceinline__ bool begins(const Place& as, int n) const {
    for (int i = 0; i < n / 4; ++i) {
      if (words[i] != as.words[i]) return false;
    }
    return n % 4 == 0 || (words[n / 4] ^ as.words[n / 4]) >> (32 - n % 4 * 8) == 0;
  }
  __device__ __forceinline__ bool is_after(const Place& other) const {
    for (int i = 0; i < 4; ++i) {
      if (words[i] != other.words[i]) return words[i] > other.words[i];
    }
    return false;
  }
  // The last place that begins with the first n digits and the digit after them.
  __device__ __forceinline__ void end_with(int n, u32 digit) {
    for (int i = n; i < kPlaceDigits; ++i) set(i, i == n ? digit : 255);
  }
  __device__ __forceinline__ void set(int i, u32 digit) {
    const int shift = 24 - i % 4 * 8;
    words[i / 4] = (words[i / 4] & ~(u32(255) << shift)) | digit << shift;
  }
};
__device__ __forceinline__ Place place_of(double score, double largest, int token) {
  const u64 key = ~in_order(score);
  return {{bits_of(double_to_float(add_rn(largest, -score))), u32(key >> 32), u32(key),
           ~u32(token)}};
}

// The eligible tokens.
struct Left {
  Place last;      // none after it
  double largest;  // score, of all
  u32 bounded;     // whether `last` is set
  u32 is_void;     // whether a logit makes the step void
};

// How the token after one of the pass is chosen. Ids decoded in the launch are those that its steps
// have chosen, or, with several rows of a sequence, those of the rows before.
struct Chooser {
  const Choice& choice;
  Draw draw;
  const u32* decoded;
  int stride, n_decoded;

  __device__ __forceinline__ Chooser(const Choice& of, const Sampling* settings, int after,
                                     const u32* ids, int step_between, int n)
      : choice(of), draw(settings, after), decoded(ids), stride(step_between),
        n_decoded(of.counts ? n : 0) {}

  // The logit with its bias and penalties; -inf for a token that may not be chosen.
  __device__ __forceinline__ double score(float logit, int token) const {
    double x = double(logit);
    if (choice.bias) x = add_rn(x, load_constant(choice.bias + token));
    if (choice.uses) {
      int n = load_constant(choice.uses + token);
      for (int i = 0; i < choice.n_recent; ++i)
        if (load_constant(choice.recent + i) == token) n = max(n, 0) + 1;
      for (int i = 0; i < n_decoded; ++i)
        if (decoded[i * stride] == u32(token)) n = max(n, 0) + 1;
      if (n >= 0) x = x < 0 ? mul_rn(x, choice.repetition) : div_rn(x, choice.repetition);
      if (n > 0) {
        x = add_rn(x, -mul_rn(choice.frequency, double(n)));
        x = add_rn(x, -choice.presence);
      }
    }
    const bool allowed =
        !choice.allowed || load_constant(choice.allowed + token / 64) >> (token % 64) & 1;
    return allowed ? x : -INFINITY;
  }
  // The probability of a score relative to the largest.
  __device__ __forceinline__ double probability(double score, double largest) const {
    return exact_exp(div_rn(add_rn(score, -largest), draw.temperature));
  }
  __device__ __forceinline__ bool is_void(float logit) const {
    return choice.set ? !(logit < INFINITY) : draw.is_void(logit);
  }
  // Whether tokens are excluded by their probability.
  __device__ __forceinline__ bool leaves_out() const {
    return choice.set && draw.temperature != 0 &&
           (choice.top_k || choice.rest > 0 || choice.min_p > 0);
  }
  __device__ __forceinline__ bool keeps(double score, int token, const Left& left) const {
    if (left.bounded && place_of(score, left.largest, token).is_after(left.last)) return false;
    return !(choice.min_p > 0) || !(probability(score, left.largest) < choice.min_p);
  }
  __device__ __forceinline__ void offer(Drawn& best, float logit, int token,
                                        const Left* left) const {
    if (!choice.set) return draw.offer(best, logit, token);
    if (is_void(logit)) {
      best = Drawn{INFINITY, INFINITY, kNoToken};
      return;
    }
    const double x = score(logit, token);
    if (x == -INFINITY || (left && !keeps(x, token, *left))) return;
    best.offer(Drawn{draw.sum(x, draw.uniform(token)), logit, token});
  }
};

}  // namespace amk
