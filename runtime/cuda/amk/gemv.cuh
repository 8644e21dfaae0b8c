// The product of a stage: a reader, which loads the vector, and a finisher, which is emitted with
// the stage in stages.h and processes each finished row. Needs schedule.h. Must not know where the
// weights come from.
#pragma once

#include "gemm_fma.cuh"
#if AMK_TENSOR_CORES
#include "gemm_mma.cuh"
#include "gemv_matrices.cuh"
#endif

namespace amk {

// ---- readers ------------------------------------------------------------------------------------

// The vector as published.
struct Plain {
  static constexpr bool kNorm = false, kCentred = false, kGain = false, kShift = false;
  static constexpr bool kResidual = false;
  Page page;
};

// The vector times the norm's weight, or times 1 + the weight, rounded once. The sums are scaled by
// 1/rms when they are finished.
template <bool kPlusOne>
struct NormReader {
  static constexpr bool kNorm = true, kResidual = false, kUnitOffset = kPlusOne;
  static constexpr bool kCentred = false, kGain = true, kShift = false;
  Page page;
  const u8* weight;
  float eps;
};
using RmsNorm = NormReader<false>;
using UnitOffsetRmsNorm = NormReader<true>;

// The vector at mean 0 and variance 1, times the norm's weight, or times 1 + the weight, plus its
// bias, where it has them; rounded once. The block knows mean and variance before it multiplies:
// without that, x·g would be rounded with the mean still in it.
template <int kWeights, bool kPlusOne = false>
struct CentredReader {
  static constexpr bool kNorm = false, kResidual = false, kUnitOffset = kPlusOne;
  static constexpr bool kCentred = true, kGain = kWeights > 0, kShift = kWeights > 1;
  Page page;
  float eps;
  const u8* weight = nullptr;
  const u8* bias = nullptr;
};
using BareLayerNorm = CentredReader<0>;
using GainLayerNorm = CentredReader<1>;
using LayerNorm = CentredReader<2>;
using UnitOffsetLayerNorm = CentredReader<2, true>;

// The same for this SM's residual (replicated.cuh), as it would be published: no vector is waited
// for.
struct ResidualPlain {
  static constexpr bool kNorm = false, kCentred = false, kGain = false, kShift = false;
  static constexpr bool kResidual = true;
};
template <bool kPlusOne>
struct ResidualNormReader {
  static constexpr bool kNorm = true, kResidual = true, kUnitOffset = kPlusOne;
  static constexpr bool kCentred = false, kGain = true, kShift = false;
  const u8* weight;
  float eps;
};
using ResidualRmsNorm = ResidualNormReader<false>;
using ResidualUnitOffsetRmsNorm = ResidualNormReader<true>;

// ---- the product --------------------------------------------------------------------------------

// With the vector of one token.
template <class S, class C, class Reader, class Finish>
__device__ __forceinline__ void gemv_of(C& c, const Reader& in, Finish&& finish, int token) {
  if constexpr (kOnTensorCores<S>) {
#if AMK_TENSOR_CORES
    if constexpr (kOwnMatrices<S>) gemv_matrices<S>(c, in, finish, token);
    else gemv_mma<S>(c, in, finish, token);
#endif
  } else {
    gemv_fma<S>(c, in, finish, token);
  }
}

// With those of all tokens of a pass. What is multiplied by matrices of its own goes by alone, with
// the code of a pass of one token, and so with its bits.
template <class S, class C, class Reader, class Finish>
__device__ __forceinline__ void gemv(C& c, const Reader& in, Finish&& finish) {
  if constexpr (kTokenByToken<S>) {
    static_assert((kSelected<S> > 1 ? S::kColumns : S::kRows) == kHidden,
                  "what a layer's second product makes of a token may take the first one's place");
#pragma unroll 1
    for (int token = 0; token < kTokens; ++token) gemv_of<S>(c, in, finish, token);
  } else if constexpr (kTokens == 1) {
    gemv_of<S>(c, in, finish, 0);
  } else if constexpr (kOnTensorCores<S>) {
#if AMK_TENSOR_CORES
    gemm_mma<S>(c, in, finish);
#endif
  } else {
    gemm_fma<S>(c, in, finish);
  }
}

}  // namespace amk
