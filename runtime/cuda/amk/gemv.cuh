// The matrix-vector stages, and what each does with a finished row: rotate and hand over, add to the residual, gate, or
// look for the largest logit. Needs schedule.h. Must not know where the weights come from.
#pragma once

#include "gemv_fma.cuh"
#if AMK_TENSOR_CORES
#include "gemv_mma.cuh"
#endif

namespace amk {

template <class S, class C, class Finish>
__device__ __forceinline__ void gemv(C& c, const Page page, const u8* norm, Finish&& finish) {
#if AMK_TENSOR_CORES
  if constexpr (Element::kBytes == 2 && S::kColumns % 4 == 0) {
    gemv_mma<S>(c, page, norm, finish);
  } else
#endif
  {
    gemv_fma<S>(c, page, norm, finish);
  }
}

// q, k and v rows of one token. Rows below kRotated are rotation pairs side by side (even row j, odd row j + head/2).
template <class S, class C>
__device__ __forceinline__ void qkv(C& c, const Page in, const u8* norm, const Page out) {
  gemv<S>(c, in, norm, [&](int row, int, float v, bool valid) {
    const float other = __shfl_xor_sync(~0u, v, 1);
    if (valid && row < S::kRotated) {
      const float2 r = c.shared.rotation[row % kHeadDim / 2];
      v = row & 1 ? v * r.x + other * r.y : v * r.x - other * r.y;
    }
    if (valid) publish<Element>(c, out, row, v);
  });
}

// Rows added to the residual stream, which stays with the SM that owns them.
template <class S, class C>
__device__ __forceinline__ void add_residual(C& c, const Page in, const Page out) {
  gemv<S>(c, in, nullptr, [&](int row, int local, float v, bool valid) {
    if (valid) {
      const float sum = c.shared.residual[local] + v;
      c.shared.residual[local] = sum;
      publish<Element>(c, out, row, sum);
    }
  });
}

// silu(gate) * up, gate and up rows interleaved.
template <class S, class C>
__device__ __forceinline__ void gate_up(C& c, const Page in, const u8* norm, const Page out) {
  gemv<S>(c, in, norm, [&](int row, int, float v, bool valid) {
    const float up = __shfl_xor_sync(~0u, v, 1);
    if (valid && !(row & 1)) {
      const float gate = divide<Element>(v, 1.0f + (Element::kBytes == 4 ? expf(-v) : __expf(-v)));
      publish<Element>(c, out, row / 2, gate * up);
    }
  });
}

// The largest logit a thread has seen; ties go to the lowest token.
struct Best {
  float value = -INFINITY;
  int index = 0x7fffffff;
  __device__ __forceinline__ void offer(float v, int i) {
    if (v > value || (v == value && i < index)) value = v, index = i;
  }
};

template <class S, class C>
__device__ __forceinline__ Best lm_head(C& c, const Page in, const u8* norm) {
  Best best;
  gemv<S>(c, in, norm, [&](int row, int, float v, bool valid) {
    if (!valid) return;
    best.offer(v, row);
    if (c.launch.logits) c.launch.logits[size_t(c.step) * S::kRows + row] = v;
  });
  return best;
}

}  // namespace amk
