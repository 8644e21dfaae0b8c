// Which product a stage of a prompt uses, by its matrix and by the architecture. Needs schedule.h
// with AMK_TENSOR_CORES.
#pragma once

#include "prompt_quantised.cuh"
#if AMK_WGMMA
#include "prompt_wgmma_quantised.cuh"
#endif

namespace amk {

template <class S>
struct ProductOf<S, true, false> {
  using Type = QuantisedProduct<S>;
};
template <class S>
struct ProductOf<S, false, false> {
  using Type = ElementProduct<S>;
};

#if AMK_WGMMA
template <class S>
struct ProductOf<S, true, true> {
  using Type = QuadProduct<S>;
};
template <class S>
struct ProductOf<S, false, true> {
  using Type = WideProduct<S>;
};

// A stage's product for all tokens of the pass, of a matrix that copying warps bring.
template <class S, class Reader, class Finish>
__device__ __forceinline__ void wide_gemv(Prompt& c, const Reader& in, Finish&& finish) {
  if constexpr (!OperandPage<S>::kWritten) prepare<S>(c, in);
  begin_copies(c);
  if constexpr (kRanks<S> > 1) c.listed = c.products;
  const PromptTiles<S> tiles(c.tokens, c.first);
#pragma unroll 1
  for (int i = c.sm; i < tiles.count(); i += kSMs) {
    const PromptTile tile = tiles[i];
    if (tiles.has(tile)) ProductFor<S>::template tile<Reader>(c, tile, finish);
  }
  join(c);
}
#endif

// The product of all tokens with the matrix of a stage, or with those that are chosen for each.
template <class S, class Reader, class Finish>
__device__ __forceinline__ void multiply(Prompt& c, const u8* matrix, const Reader& in,
                                         Finish&& finish) {
#if AMK_WGMMA
  if constexpr (kByWgmma<S>) {
    wide_gemv<S>(c, in, finish);
    return;
  }
#endif
  if constexpr (!kByWgmma<S>) narrow_gemv<S>(c, matrix, in, finish);
}

template <class S, class Reader, class Finish>
__device__ __forceinline__ void gemv(Prompt& c, const Reader& in, Finish&& finish) {
  static_assert(S::kColumns % 4 == 0, "what codegen admits");
  if constexpr (Reader::kResidual) add_due(c);
  const u8* matrix = c.next_matrix();
  if (kOffers<S> && !c.launch.logits && !c.launch.chooses) return;
#if AMK_EXPERTS
  if constexpr (kSummed<S> > 1) {
    multiply<S>(c, matrix, in, [&](const auto& r, auto v) { keep_sum(c, r, v); });
    finish_sums<S>(c, finish);
    return;
  }
#endif
  if constexpr (kSummed<S> == 1) multiply<S>(c, matrix, in, finish);
}

}  // namespace amk
