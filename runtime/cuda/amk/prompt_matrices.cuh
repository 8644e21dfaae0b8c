// Where the matrices of a pass over a prompt lie, which the host asks once: of those that tensor
// maps describe it encodes one each, and leaves it in the workspace. Needs schedule.h with
// AMK_TENSOR_CORES.
#pragma once

#include "prompt_shape.cuh"
#include "prompt_walk.cuh"

namespace amk {

// A matrix, and the tensor of 16-bit values that it is to copies: blocks of 8 rows by 32 columns,
// those of a part of the columns, the parts, and the tiles of 8 rows. A box of it is what a copy
// brings. No sizes: nothing copies boxes of it.
struct PromptMatrix {
  const u8* address;
  u64 sizes[4];
  u64 strides[3];  // in bytes, of all dimensions but the first
  u32 box[4];
  u64 reserved[6];
};
static_assert(sizeof(PromptMatrix) == 128 && sizeof(TensorMap) == 128,
              "the host reads and writes these byte by byte");

template <class S>
__device__ __forceinline__ PromptMatrix prompt_matrix(const u8* address) {
  PromptMatrix m = {};
  m.address = address;
#if AMK_WGMMA
  if constexpr (!Matrix<S>::kQuantised) {
    using Shape = PromptShape<S>;
    constexpr int kParts = kSplitK<S>, kPartBytes = tile_bytes<Matrix<S>>(S::kColumns);
    m.sizes[0] = Matrix<S>::kBlockBytes / 2;
    m.sizes[1] = kPartBytes / Matrix<S>::kBlockBytes;
    m.sizes[2] = kParts;
    m.sizes[3] = kMatrices<S> * ceil_div(kMatrixRows<S> / kParts, kTileRows);
    m.strides[0] = Matrix<S>::kBlockBytes;
    m.strides[1] = kPartBytes;
    m.strides[2] = kPartBytes * kParts;
    m.box[0] = Matrix<S>::kBlockBytes / 4;
    m.box[1] = Shape::kOfChain;
    m.box[2] = 1;
    m.box[3] = Shape::kRows / kTileRows;
  }
#endif
  return m;
}

// Notes the matrices of a pass.
struct MatrixList {
  PassLaunch launch;
  PromptMatrix* next;
  PromptMatrix* end;

  __device__ __forceinline__ MatrixList(const Launch& of, u8* to)
      : launch(of), next(reinterpret_cast<PromptMatrix*>(to)), end(next + kMostMatrices) {}

  template <class S>
  __device__ __forceinline__ void take(const u8* matrix) {
    if (next < end) *next++ = prompt_matrix<S>(matrix);
  }
  template <class S, class Cache>
  __device__ __forceinline__ void attend(int, Cache) {}
};

}  // namespace amk
