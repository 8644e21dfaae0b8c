// The plain kernels of layers with experts. Their matrices lie one after another in one buffer,
// each as any matrix is packed. Must not include the headers of the megakernel's stages.
#pragma once

#include "reference_values.cuh"
#include "reference_weights.cuh"

namespace amk {

// Whether a score comes before another one: the larger one does, of equal ones that with the lower
// number, and after all others what is not a number.
__device__ inline bool comes_before(const float* scores, int i, int j) {
  const float a = scores[i], b = scores[j];
  if (a == a && b == b && a != b) return a > b;
  if ((a == a) != (b == b)) return a == a;
  return i < j;
}

// What routers of some models do besides: their scores become sigmoids, not a softmax; experts are
// of groups, and chosen from some of these; the sum of the weights is increased, or has a bound;
// the weights are multiplied.
struct Choosing {
  bool sigmoid = false;
  int groups = 1, top_groups = 1;
  float extra = 0, least = 0, scale = 1;
};

// Of n numbers, the one that follows another one in order; the first follows -1.
__device__ inline int next_of(const float* numbers, int n, int before) {
  int next = -1;
  for (int i = 0; i < n; ++i) {
    const bool after = before < 0 || comes_before(numbers, before, i);
    if (after && (next < 0 || comes_before(numbers, i, next))) next = i;
  }
  return next;
}

// Chooses k of n experts by their scores, the first one first, and weighs them: by a softmax over
// the scores of those, or over all, or by sigmoids; then, perhaps, so that their weights add up to
// 1. A bias of float32 may be added for the choice alone. The score after those of the experts may
// make a gate. One thread; `room` has a number for each expert, and one for each group.
template <bool kOfChosen, bool kRenormalised>
__device__ inline void route(float* shares, int* ids, int k, const float* scores, int n,
                             float* room, Choosing how = {}, Packed biases = {},
                             float* gate = nullptr) {
  if (grid_index() > 0) return;
  const auto* bias = reinterpret_cast<const float*>(biases.buffer);
  const int size = n / how.groups;
  float* sums = room + n;
  const float largest = scores[next_of(scores, n, -1)];
  float all = 0;
  for (int e = 0; e < n; ++e) all += expf(scores[e] - largest);
  auto share_of = [&](int e) {
    if (how.sigmoid) return 1.0f / (1.0f + expf(-scores[e]));
    return expf(scores[e] - largest) / all;
  };
  // A softmax leaves the order as it is.
  const bool by_scores = !how.sigmoid && !bias && how.top_groups == how.groups;
  for (int e = 0; e < n; ++e)
    room[e] = by_scores ? scores[e] : share_of(e) + (bias ? bias[e] : 0);
  for (int g = 0; g < how.groups && size > 1; ++g) {
    const float* of = room + g * size;
    const int best = next_of(of, size, -1);
    sums[g] = of[best] + of[next_of(of, size, best)];
  }
  int groups = 0;  // a bit for each that is chosen from
  for (int i = 0, g = -1; i < how.top_groups; ++i) {
    g = next_of(sums, how.groups, g);
    groups |= 1 << g;
  }
  for (int i = 0, e = -1; i < k;) {
    e = next_of(room, n, e);
    if (how.top_groups == how.groups || groups >> e / size & 1) ids[i++] = e;
  }
  float chosen = 0, sum = how.extra;
  for (int i = 0; i < k; ++i) chosen += expf(scores[ids[i]] - largest);
  for (int i = 0; i < k; ++i) {
    shares[i] = kOfChosen ? expf(scores[ids[i]] - largest) / chosen : share_of(ids[i]);
    sum += shares[i];
  }
  for (int i = 0; i < k; ++i) {
    if (kRenormalised) shares[i] /= fmaxf(sum, how.least);
    shares[i] *= how.scale;
  }
  if (gate) *gate = 1.0f / (1.0f + expf(-scores[n]));
}

// Multiplies what an expert makes that every token has by its gate.
__device__ inline void gated_by(float* y, const float* gate, int rows) {
  const int row = grid_index();
  if (row < rows) y[row] *= *gate;
}

// Row of the matrix of an expert, times x; known to the whole warp.
__device__ inline float row_of_expert(Packed matrices, int columns, int row, const Bits* x) {
  float sum = 0;
  for (int column = thread_index() % 32; column < columns; column += 32)
    sum += weight_at(matrices, columns, row, column) * at(x, column);
  return warp_sum(sum);
}

// What is made of a gate and up: silu(gate) * up, or with a bound of both, which up has on both
// sides, gate * sigmoid(scale * gate) * (up + 1).
__device__ inline float gate_of_expert(float gate, float up, float bound, float scale) {
  if (bound == 0) return gate / (1.0f + expf(-gate)) * up;
  if (gate > bound) gate = bound;
  if (up > bound) up = bound;
  if (up < -bound) up = -bound;
  return gate / (1.0f + expf(-scale * gate)) * (up + 1.0f);
}

// The middle of the chosen experts, one after another, rounded, of `wide` elements each, times the
// expert's weight. An expert has 2 * wide rows, those of gate and up in turn. A warp for each
// element.
__device__ inline void experts_up(Bits* out, int n, int wide, Packed matrices, int columns,
                                  const Bits* x, const float* scale, const int* ids,
                                  const float* shares, Packed biases = {}, float bound = 0,
                                  float slope = 1) {
  const int element = grid_index() / 32;
  if (element >= n) return;
  const int rank = element / wide;
  const int row = (ids[rank] * wide + element % wide) * 2;
  const float factor = scale ? *scale : 1;
  float gate = row_of_expert(matrices, columns, row, x) * factor;
  float up = row_of_expert(matrices, columns, row + 1, x) * factor;
  if (biases.buffer) gate += weight_at(biases, row), up += weight_at(biases, row + 1);
  if (thread_index() % 32 == 0)
    put(out, element, gate_of_expert(gate, up, bound, slope) * shares[rank]);
}

// The sum of what k chosen experts make of their vectors, in order, of `rows` rows, and of their
// biases, each times the expert's weight. A warp each.
template <class Out>
__device__ inline void experts_down(Out* out, int rows, int k, Packed matrices, int columns,
                                    const Bits* x, const int* ids, const float* shares = nullptr,
                                    Packed biases = {}) {
  const int row = grid_index() / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int rank = 0; rank < k; ++rank) {
    const int at = ids[rank] * rows + row;
    sum += row_of_expert(matrices, columns, at, x + rank * columns);
    if (biases.buffer) sum += shares[rank] * weight_at(biases, at);
  }
  if (thread_index() % 32 == 0) put(out, row, sum);
}

}  // namespace amk
