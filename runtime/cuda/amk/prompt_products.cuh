// Which product a stage of a prompt uses, by its matrix and by the architecture. Needs schedule.h
// with AMK_TENSOR_CORES.
#pragma once

#include "prompt_quantised.cuh"
#if AMK_WGMMA
#include "prompt_wgmma.cuh"
#endif

namespace amk {

template <class S>
struct ProductOf<S, true> {
  using Type = QuantisedProduct<S>;
};
#if !AMK_WGMMA
template <class S>
struct ProductOf<S, false> {
  using Type = ElementProduct<S>;
};
#endif

template <class S, class Reader, class Finish>
__device__ __forceinline__ void gemv(Prompt& c, const Reader& in, Finish&& finish) {
  static_assert(S::kColumns % 4 == 0, "what codegen admits");
  if constexpr (Reader::kResidual) add_due(c);
  const u8* matrix = c.next_matrix();
  if (kOffers<S> && !c.launch.logits) return;
#if AMK_WGMMA
  if constexpr (!Matrix<S>::kQuantised) {
    wide_gemv<S>(c, in, finish);
    return;
  }
#endif
  if constexpr (Matrix<S>::kQuantised || !AMK_WGMMA) narrow_gemv<S>(c, matrix, in, finish);
}

}  // namespace amk
