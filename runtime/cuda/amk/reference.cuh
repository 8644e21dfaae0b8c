// Plain kernels, one operation each, on the packed weights and the cache of the megakernel: the
// oracle for the megakernel. They round where it rounds and share none of its machinery: no ring,
// no exchange, no tensor cores, and indices computed one element at a time from the layouts
// (docs/ir.md). A launch is one operation; the stream is the only order. Needs schedule.h, for the
// cache's layout, and model_config.h. Must not include the headers of the megakernel's stages.
#pragma once

#include "reference_attention.cuh"
#include "reference_convolution.cuh"
#include "reference_experts.cuh"
#include "reference_recurrence.cuh"
#include "reference_weights.cuh"

namespace amk {

// ---- what the host reads and passes: mirrored by the launcher's host packages ---------------

// Argument of every kernel.
struct Reference {
  const u8* weights;  // the data section of weights.safetensors
  u8* cache;          // KV cache, kCacheBytes
  u8* scratch;        // a Values
  int layer;
  int position;
  int token;
  int reserved;
};
static_assert(sizeof(Reference) == 3 * 8 + 4 * 4, "the launcher builds this struct byte by byte");

// The value of a whole stage.
struct Result {
  char stage[32];  // its label; empty inside a stage
  u32 offset;      // bytes into the scratch memory
  u32 elements;
  u32 bytes;       // of an element: Element::kBytes, or 4 for fp32
};

// One launch of the step. Those of the layers are side by side, kind by kind.
struct Operation {
  char kernel[32];
  u32 blocks;
  u32 repeats;
  u32 kind;  // of the layers that it runs in
  Result result;
};
static_assert(sizeof(Operation) == 32 + 3 * 4 + 32 + 3 * 4,
              "the launcher reads this struct byte by byte");

// Operation::repeats. What observes is not a part of the step: it looks at what the megakernel has
// left in the cache, and its result is that, followed by as much that should be there. What sums
// leaves a GPU's share of its result, in float32, and the host adds up those of all.
constexpr u32 kOnce = 0, kEachLayer = 1, kObserves = 2, kSums = 3;

struct ReferenceInfo {
  u32 abi;
  u32 threads;  // of every block
  u32 layers;
  u32 vocab;
  u64 scratch_bytes;
};
static_assert(sizeof(ReferenceInfo) == 4 * 4 + 8, "the launcher reads this struct byte by byte");

constexpr u32 blocks_for(int threads) { return ceil_div(threads, kReferenceThreads); }
// a warp per row
constexpr u32 blocks_for_rows(int rows) { return ceil_div(rows, kReferenceWarps); }

// ---- operations ---------------------------------------------------------------------------------

// Row `token` of the embedding, times scale, starts the residual stream of n elements; plus a row
// of a table of positions, if there is one.
__device__ inline void embed(float* residual, Bits* x, int n, Packed table, int token,
                             float scale = 1, Packed positions = {}, int position = 0) {
  const int i = grid_index();
  if (i >= n) return;
  residual[i] = scale * weight_at(table, n, token, i);
  if (positions.buffer) residual[i] += weight_at(positions, n, position, i);
  put(x, i, residual[i]);
}

// out = x * (offset + g), rounded, of n elements; the scale by 1/rms of x comes after the product
// with out, so it is left as a number. One block.
__device__ inline void rmsnorm(Bits* out, float* scale, int n, const Bits* x, Packed g, float eps,
                               float offset = 0) {
  float squares = 0;
  for (int i = thread_index(); i < n; i += block_threads()) {
    squares += at(x, i) * at(x, i);
    put(out, i, at(x, i) * (offset + weight_at(g, i)));
  }
  squares = block_sum(squares);
  if (thread_index() == 0) *scale = rsqrtf(squares / n + eps);
}

// out = (x - mean) / deviation * (offset + g) + b, rounded, of n elements; of g and b what there
// is. One block.
__device__ inline void layernorm(Bits* out, int n, const Bits* x, float eps, Packed g = {},
                                 Packed b = {}, float offset = 0) {
  float sum = 0, squares = 0;
  for (int i = thread_index(); i < n; i += block_threads()) sum += at(x, i);
  const float mean = block_sum(sum) / n;
  for (int i = thread_index(); i < n; i += block_threads()) {
    squares += (at(x, i) - mean) * (at(x, i) - mean);
  }
  const float inverse = rsqrtf(block_sum(squares) / n + eps);
  for (int i = thread_index(); i < n; i += block_threads()) {
    float y = (at(x, i) - mean) * inverse;
    if (g.buffer) y *= offset + weight_at(g, i);
    if (b.buffer) y += weight_at(b, i);
    put(out, i, y);
  }
}

// Normalises heads of `dims` elements, a block each, or one vector of as many; with kCentred their
// mean is taken off before. A head's weights, if there are any, are so far apart from those of the
// next.
template <bool kCentred = false, class Out>
__device__ inline void norm_heads(Out* out, const Bits* x, int dims, Packed g, float eps,
                                  float offset = 0, int apart = 0, Packed b = {}) {
  const int first = block_index() * apart;
  x += block_index() * dims;
  out += block_index() * dims;
  float sum = 0, squares = 0;
  for (int d = thread_index(); d < dims; d += block_threads()) sum += at(x, d);
  const float mean = kCentred ? block_sum(sum) / dims : 0;
  for (int d = thread_index(); d < dims; d += block_threads()) {
    squares += (at(x, d) - mean) * (at(x, d) - mean);
  }
  const float inverse = rsqrtf(block_sum(squares) / dims + eps);
  for (int d = thread_index(); d < dims; d += block_threads()) {
    float y = (at(x, d) - mean) * inverse;
    if (g.buffer) y *= offset + weight_at(g, first + d);
    if (b.buffer) y += weight_at(b, first + d);
    put(out, d, y);
  }
}

// y = matrix · x * scale + bias, summed in fp32, a warp per row. Without a scale, 1.
template <class Out>
__device__ inline void linear(Out* y, int rows, Packed matrix, int columns, const Bits* x,
                              const float* scale = nullptr, Packed bias = {}) {
  const int row = grid_index() / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int column = thread_index() % 32; column < columns; column += 32) {
    sum += weight_at(matrix, columns, row, column) * at(x, column);
  }
  sum = warp_sum(sum);
  if (scale) sum *= *scale;
  if (bias.buffer) sum += weight_at(bias, row);
  if (thread_index() % 32 == 0) put(y, row, sum);
}

// Rotates the rows of q or k and rounds them: in a head, rows 2j and 2j+1 are the pair that turns
// by angle j and grows by the scale. Those from kPairs on stay as they are.
template <int kPairs = kHeadDim / 2, int kDims = kHeadDim, class In>
__device__ inline void rope(Bits* out, const In* y, int rows, const float* inv_freq, int position,
                            float scale = 1) {
  const int row = grid_index();
  if (row >= rows) return;
  if (row % kDims / 2 >= kPairs) {
    put(out, row, at(y, row));
    return;
  }
  const float angle = float(position) * inv_freq[row % kDims / 2];
  const float even = at(y, row & ~1), odd = at(y, row | 1);
  put(out, row, scale * (row % 2 == 0 ? even * cosf(angle) - odd * sinf(angle)
                                      : odd * cosf(angle) + even * sinf(angle)));
}

// The residual stream stays in fp32; what is read from it is rounded. A factor multiplies the sum.
template <class In>
__device__ inline void add(float* residual, Bits* x, const In* y, int n, Packed factor = {}) {
  const int i = grid_index();
  if (i >= n) return;
  residual[i] += at(y, i);
  if (factor.buffer) residual[i] *= weight_at(factor, 0);
  put(x, i, residual[i]);
}

__device__ inline void silu_mul(Bits* out, const float* gate, const float* up, int n) {
  const int i = grid_index();
  if (i < n) put(out, i, gate[i] / (1.0f + expf(-gate[i])) * up[i]);
}

__device__ inline void gelu_tanh_mul(Bits* out, const float* gate, const float* up, int n) {
  const int i = grid_index();
  if (i >= n) return;
  const float g = gate[i], x = 0.797884561f * (g + 0.044715f * g * g * g);
  put(out, i, 0.5f * g * (1.0f + tanhf(x)) * up[i]);
}

__device__ inline void gelu_tanh(Bits* out, const float* y, int n) {
  const int i = grid_index();
  if (i >= n) return;
  const float v = y[i], x = 0.797884561f * (v + 0.044715f * v * v * v);
  put(out, i, 0.5f * v * (1.0f + tanhf(x)));
}

__device__ inline void gelu(Bits* out, const float* y, int n) {
  const int i = grid_index();
  if (i < n) put(out, i, 0.5f * y[i] * (1.0f + erff(y[i] * 0.707106781f)));
}

__device__ inline void relu(Bits* out, const float* y, int n) {
  const int i = grid_index();
  if (i < n) put(out, i, y[i] < 0 ? 0 : y[i]);
}

__device__ inline void relu2(Bits* out, const float* y, int n) {
  const int i = grid_index();
  if (i < n) put(out, i, y[i] < 0 ? 0 : y[i] * y[i]);
}

__device__ inline void xielu(Bits* out, const float* y, Packed weights, int n) {
  const int i = grid_index();
  if (i >= n) return;
  float by[4];
  for (int k = 0; k < 4; ++k) by[k] = weight_at(weights, k);
  const float v = y[i], alpha = log1pf(expf(v > 0 ? by[0] : by[1]));
  if (v > 0) put(out, i, alpha * v * v + by[2] * v);
  else put(out, i, (expm1f(v < by[3] ? v : by[3]) - v) * (by[2] + alpha) + by[2] * v);
}

// Multiplies rows.
__device__ inline void scale(float* y, float factor, int rows) {
  const int row = grid_index();
  if (row < rows) y[row] *= factor;
}

// Limits rows to [-cap, cap].
__device__ inline void soft_cap(float* y, float cap, int rows) {
  const int row = grid_index();
  if (row < rows) y[row] = cap * tanhf(y[row] / cap);
}

// Takes rows between -cap and cap, and publishes them or keeps them.
template <class Out>
__device__ inline void clip(Out* out, const float* y, float cap, int rows) {
  const int row = grid_index();
  if (row < rows) put(out, row, y[row] < -cap ? -cap : y[row] > cap ? cap : y[row]);
}

}  // namespace amk
