// Which product a stage of a prompt uses, by its matrix and by the architecture. Needs schedule.h
// with AMK_TENSOR_CORES.
#pragma once

#include "prompt_quantised.cuh"
#if AMK_WGMMA
#include "prompt_wgmma.cuh"
#endif

namespace amk {

template <class A, class B, bool kFirst>
struct Chosen {
  using Type = A;
};
template <class A, class B>
struct Chosen<A, B, false> {
  using Type = B;
};

template <class S>
struct ProductOf<S, true> {
  using Type = QuantisedProduct<S>;
};
template <class S>
struct ProductOf<S, false> {
#if AMK_WGMMA
  using Type = typename Chosen<WideProduct<S>, ElementProduct<S>, PromptShape<S>::kWide>::Type;
#else
  using Type = ElementProduct<S>;
#endif
};

}  // namespace amk
