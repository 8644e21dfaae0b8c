// The functions that finishers consist of: one for each op on finished rows, and one for each
// destination of a row. All threads of a warp call them together, whether their row is valid or
// not. Needs schedule.h and model_config.h.
#pragma once

#include "gemv.cuh"
#include "weights.cuh"

namespace amk {

// ---- ops ----------------------------------------------------------------------------------------

// ROPE: rows below kRotated are rotation pairs, interleaved whatever the checkpoint's order; the
// others pass through. The angles come from the step's table. A head has kDims rows.
template <int kRotated, int kAngles = 0, int kDims = kHeadDim, class C>
__device__ __forceinline__ float rope(C& c, const Row& r, float v) {
  const float other = shuffle_xor(v, 1);
  if (r.valid && r.row < kRotated) {
    const float2 turn = c.shared.rotation[kAngles][r.token][r.row % kDims / 2];
    v = rotated(r.row & 1, v, other, turn.x, turn.y);
  }
  return v;
}

// A gated activation of interleaved rows: of the gate, times up. The thread of a gate's row, which
// is even, gets the product.
template <class Activation>
__device__ __forceinline__ float gated(const Row& r, float v, Activation&& activation) {
  const float up = shuffle_xor(v, 1);
  return r.valid && !(r.row & 1) ? activation(v) * up : v;
}

// v over 1 + e^-x: silu of v where x is v.
__device__ __forceinline__ float sigmoid_of(float x, float v) {
  return divide<Element>(v, 1.0f + (Element::kBytes == 4 ? expf(-x) : exp_fast(-x)));
}

// SILU_MUL: silu(gate) * up.
__device__ __forceinline__ float silu_mul(const Row& r, float v) {
  return gated(r, v, [](float gate) { return sigmoid_of(gate, gate); });
}

// GELU_TANH: the tanh form, in which (1 + tanh(x)) / 2 is 1 over 1 + e^-2x.
__device__ __forceinline__ float gelu_tanh(float v) {
  return sigmoid_of(1.59576912f * v * fmaf(0.044715f * v, v, 1.0f), v);
}

// GELU_TANH_MUL: gelu(gate) * up, in the tanh form.
__device__ __forceinline__ float gelu_tanh_mul(const Row& r, float v) {
  return gated(r, v, [](float gate) { return gelu_tanh(gate); });
}

// GELU: v times the standard normal distribution function at v.
__device__ __forceinline__ float gelu(float v) {
  return 0.5f * v * (1.0f + erff(0.707106781f * v));
}

// RELU: v, or 0 where it is negative.
__device__ __forceinline__ float relu(float v) {
  return v < 0 ? 0 : v;
}

// RELU2: its square.
__device__ __forceinline__ float relu2(float v) {
  return relu(v) * relu(v);
}

// What an XIELU is shaped by, of its four weights (p, n, beta, eps).
struct Xielu {
  float above, below, beta, eps;

  __device__ explicit __forceinline__ Xielu(const u8* weights)
      : beta(load_weight(weights, 2)), eps(load_weight(weights, 3)) {
    above = softplus(load_weight(weights, 0));
    below = beta + softplus(load_weight(weights, 1));
  }
  __device__ static __forceinline__ float softplus(float v) {
    return fmaxf(v, 0.0f) + log1pf(expf(-fabsf(v)));
  }
};

// XIELU: a square above 0, an exponential below it.
__device__ __forceinline__ float xielu(float v, const Xielu& shape) {
  const float curved =
      v > 0 ? shape.above * v * v : shape.below * (expm1f(fminf(v, shape.eps)) - v);
  return fmaf(shape.beta, v, curved);
}

// MUL, of one operand: v * scale.
__device__ __forceinline__ float scale(float v, float scale) {
  return v * scale;
}

// SOFTCAP: cap * tanh(v / cap), with an accurate tanh, because logits depend on it.
__device__ __forceinline__ float soft_cap(float v, float cap) {
  return cap * tanhf(v / cap);
}

// CLIP: v limited to [-cap, cap]; keeps a NaN.
__device__ __forceinline__ float clip(float v, float cap) {
  return v > cap ? cap : v < -cap ? -cap : v;
}

// CLAMPED_SILU_MUL: gate * sigmoid(scale * gate) * (up + 1), of a gate of at most cap, and up
// within it on both sides.
__device__ __forceinline__ float clamped_silu_mul(const Row& r, float v, float cap, float scale) {
  v = r.row & 1 ? clip(v, cap) + 1.0f : v > cap ? cap : v;
  return gated(r, v, [scale](float gate) { return sigmoid_of(scale * gate, gate); });
}

#if AMK_EXPERTS
// What the router has chosen for each token, in order, and how that is weighed.
template <class C>
__device__ __forceinline__ const int (*experts_of(C& c))[kMostChosen] { return c.shared.experts; }
template <class C>
__device__ __forceinline__ const float (*shares_of(C& c))[kMostChosen] { return c.shared.shares; }
template <class C>
__device__ __forceinline__ float gate_of(C& c, int token) { return c.shared.gates[token]; }

// SCALE_BLOCKS: v times the weight of the expert that its row is of; each has kRows rows.
template <int kRows, class C>
__device__ __forceinline__ float by_expert(C& c, const Row& r, float v) {
  return r.valid ? v * shares_of(c)[r.token][r.row / kRows] : v;
}

// SCALE_BLOCKS of all rows: v times the gate of the expert that every token has.
template <class C>
__device__ __forceinline__ float by_gate(C& c, const Row& r, float v) {
  return r.valid ? v * gate_of(c, r.token) : v;
}
#endif

// The residual stream stays with the SM that owns its rows.
template <class C>
__device__ __forceinline__ float residual(C& c, const Row& r) {
  return r.valid ? c.shared.residual[r.residual()] : 0.0f;
}

// A vector of weights that a finisher reads row by row, such as a bias. The rows of the first
// flush, which for most SMs are all, are loaded when a stage begins, long before they are needed.
// With matrices of experts a row has the weight of its expert; or those of all chosen ones, of
// which the sum counts, each times the weight of its expert. Those of several tokens are loaded
// when they are needed.
template <class S>
struct RowWeights {
  static constexpr int kEach = kSummed<S>;  // of a row
  static constexpr int kFirstRows = kTilesAtOnce<S> * kTileRows;
  const u8* weights;
  const int* experts = nullptr;  // of the first token, and its shares
  const float* shares = nullptr;
  int stride = 0;  // from token to token
  float first[kEach] = {};

  template <class C>
  __device__ __forceinline__ RowWeights(C& c, const u8* vector)
      : weights(vector) {
    if constexpr (kSelected<S> > 1 || kEach > 1) {
      experts = experts_of(c)[0], shares = shares_of(c)[0];
      stride = sizeof(*experts_of(c)) / sizeof(*experts);
    }
    const int at = kTokens > 1 ? c.tid % kFlushRows : c.tid;
    const int row = tiles_of<S>(c.sm, c.layer).begin * kTileRows + at;
    if (!kTokenByToken<S> && at < kFirstRows && row < S::kRows) load(first, row, 0);
  }
  __device__ __forceinline__ float of(const Row& r) const {
    if (!kTokenByToken<S> && r.local < kFirstRows) return sum_of(first, 0);
    if (!r.valid) return 0.0f;
    float own[kEach];
    load(own, r.row, r.token);
    return sum_of(own, r.token);
  }
  // Of several rows that a thread has at once (prompt_pairs.cuh).
  template <class Rows>
  __device__ __forceinline__ auto of(const Rows& r) const {
    return r.elements_of(weights, r.valid ? place(r.row, r.token) : 0);
  }

 private:
  static constexpr int kRows = S::kRows / kSelected<S>;  // of a matrix

  __device__ __forceinline__ int place(int row, int token) const {
    if constexpr (kSelected<S> > 1)
      return experts[token * stride + row / kRows] * kRows + row % kRows;
    return row;
  }
  __device__ __forceinline__ void load(float (&to)[kEach], int row, int token) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      int at = place(row, token);
      if constexpr (kEach > 1) at += experts[token * stride + i] * kRows;
      to[i] = load_weight(weights, at);
    }
  }
  __device__ __forceinline__ float sum_of(const float (&own)[kEach], int token) const {
    if constexpr (kEach == 1) return own[0];
    const float* by = shares + token * stride;
    float sum = by[0] * own[0];
#pragma unroll
    for (int i = 1; i < kEach; ++i) sum = fmaf(by[i], own[i], sum);
    return sum;
  }
};

// ---- destinations ---------------------------------------------------------------------------

template <class C>
__device__ __forceinline__ void store_residual(C& c, const Row& r, float v) {
  if (r.valid) c.shared.residual[r.residual()] = v;
}

// Publishes a row.
template <class C>
__device__ __forceinline__ void publish_row(C& c, const Row& r, const Page out, float v) {
  if (r.valid) publish<Element>(c, out, r.index(), v);
}

// The same as it is, whatever the elements of other vectors are. A host that compares the kernel
// with another one asks for these.
template <class C>
__device__ __forceinline__ void publish_exact(C& c, const Row& r, const Page out, float v) {
  if (!r.valid) return;
  publish<Fp32>(c, out, r.index(), v);
  if constexpr (C::kMode_ == Mode::kDecode) {
    if (c.launch.trace) traced_at(c, r.index()) = v;
  }
}

// Publishes the joint result of an even row and the odd one after it.
template <class C>
__device__ __forceinline__ void publish_pair(C& c, const Row& r, const Page out, float v) {
  if (r.valid && !(r.row & 1)) publish<Element>(c, out, r.pair_index(), v);
}

// The first token whose logits this rank computes: each has as many rows of the head.
template <class C>
__device__ __forceinline__ int first_token(C& c) { return rank_of(c) * (kVocab / kGPUs); }

// The logits of a token of this step, if the host has asked for them, or the draw of the next one.
template <class C>
__device__ __forceinline__ float* logits_of(C& c, int token) {
  return c.launch.logits + (size_t(c.step) * c.launch.logit_stride + token) * kVocab;
}
template <class C>
__device__ __forceinline__ void store_logit(C& c, const Row& r, float v) {
  if (r.valid && c.launch.logits) logits_of(c, r.token)[first_token(c) + r.row] = v;
}

// The largest logit a thread has seen; ties go to the lowest token.
struct Candidate {
  float value = -INFINITY;
  int index = 0x7fffffff;
  __device__ __forceinline__ void offer(float v, int i) {
    if (v > value || (v == value && i < index)) value = v, index = i;
  }
};

__device__ __forceinline__ void offer(Candidate& best, const Row& r, float v) {
  best.offer(v, r.row);
}

// The same for each token whose rows the thread finishes; in a pass over a prompt for the last of
// them.
struct Best {
  Candidate of[kTokenTurns];
  int last = -1;  // of the tokens of a prompt that rows were offered of
  template <class Rows, class Values>
  __device__ __forceinline__ void offer_row(const Rows& r, Values v) {
    if (!r.valid) return;
    if constexpr (AMK_PROMPT) {
      if (r.token > last) last = r.token, of[0] = Candidate{};
      if (r.token == last) offer(of[0], r, v);
    } else {
      of[r.token / kTokensAtOnce].offer(v, r.row);
    }
  }
};

}  // namespace amk
