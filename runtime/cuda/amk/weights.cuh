// How weights are laid out in memory: the formats of streamed matrices, and vectors. The same
// geometry is a weight format of amkc's ir/format, which packs them. Needs model_config.h. Must not
// know what is computed with a weight.
#pragma once

#include "context.cuh"
#include "e4m3.cuh"

namespace amk {

constexpr int kQuadColumns = 128;  // that a warp multiplies at once

// One weight of a vector, loaded through the read-only path.
__device__ __forceinline__ float load_weight(const u8* vector, int i) {
  return WeightElement::to_float(
      load_constant(reinterpret_cast<const WeightElement::Bits*>(vector) + i));
}

// Where a lane's 8 weights hold column c of its 8: 0 1 4 5 2 3 6 7.
__device__ __forceinline__ int tile_column(int c) { return (c & 1) | (c & 2) << 1 | (c & 4) >> 1; }

// Matrices of elements as they are: a quad is four blocks of 32 columns, a lane has 8 of each.
template <class E>
struct Elements {
  using Element = E;
  static constexpr bool kQuantised = false;
  static constexpr int kBlockColumns = 32;
  static constexpr int kBlockBytes = kTileRows * kBlockColumns * E::kBytes;
  static constexpr int kQuadBytes = kQuadColumns / kBlockColumns * kBlockBytes;

  // Element of a block, through the read-only path.
  __device__ __forceinline__ static float at(const u8* block, int row, int column) {
    const int lane = row * 4 + column / 8;
    return load_weight(block, lane * 8 + tile_column(column % 8));
  }
};

// Integers of kBits bits with a scale for each row and group of kGroup columns, and a zero point if
// there are any: blocks of 128 columns, which are elements, then scales, then zero points. Lane
// 4 * row + part has columns 4 * part to 4 * part + 3 of each 16, in mma order: 16 bytes of the
// first two quarters of a block, and 16 of the others, of which int4 has these in the high halves
// of those bytes. To elements and zero points of int4, 8 is added.
template <int kBitsOf, int kGroupOf, class ScaleOf, bool kZerosOf>
struct Integers {
  using Scale = ScaleOf;
  static constexpr bool kQuantised = true, kZeros = kZerosOf, kFloats = false;
  static constexpr int kBits = kBitsOf, kGroup = kGroupOf;
  static constexpr int kBlockColumns = kQuadColumns, kGroups = kBlockColumns / kGroup;
  static constexpr int kScales = kTileRows * kBlockColumns * kBits / 8;  // where they begin
  static constexpr int kZeroPoints = kScales + kTileRows * kGroups * Scale::kBytes;
  static constexpr int kBlockBytes =
      round_up(kZeroPoints + (kZeros ? kTileRows * kGroups : 0), 16);
  static constexpr int kQuadBytes = kBlockBytes;

  // The byte of an element in a block.
  __host__ __device__ static constexpr int place(int row, int column) {
    return (kBits == 8 ? column / 64 * 512 : 0) + (row * 4 + column % 16 / 4) * 16 +
           column % 64 / 32 * 8 + column % 32 / 16 * 4 + column % 4;
  }

  // The scale of an element, through the read-only path.
  __device__ __forceinline__ static float scale_at(const u8* block, int row, int column) {
    using Bits = typename Scale::Bits;
    const Bits* scales = reinterpret_cast<const Bits*>(block + kScales);
    return Scale::to_float(load_constant(scales + row * kGroups + column / kGroup));
  }

  __device__ __forceinline__ static float at(const u8* block, int row, int column) {
    const int bits = load_constant(block + place(row, column));
    int q;
    if constexpr (kBits == 4) {
      q = column >= kBlockColumns / 2 ? bits >> 4 : bits & 15;
      if constexpr (!kZeros) q -= 8;
    } else {
      q = static_cast<signed char>(bits);
    }
    if constexpr (kZeros) {
      const int group = row * kGroups + column / kGroup;
      q -= static_cast<signed char>(load_constant(block + kZeroPoints + group));
    }
    return float(q) * scale_at(block, row, column);
  }
};

// Floats of 4 or 8 bits with a scale for each row and group, in the blocks of integers.
template <class NumberOf, int kGroupOf, class ScaleOf>
struct Floats : Integers<NumberOf::kBits, kGroupOf, ScaleOf, false> {
  using Number = NumberOf;
  using Blocks = Integers<Number::kBits, kGroupOf, ScaleOf, false>;
  static constexpr bool kFloats = true;

  // The four numbers of a quarter in the bytes of a word, one in the low bits of each.
  __device__ __forceinline__ static u32 of_quarter(u32 word, int quarter) {
    return Number::kBits == 4 && quarter >= 2 ? word >> 4 : word;
  }

  __device__ __forceinline__ static float at(const u8* block, int row, int column) {
    const u32 byte = load_constant(block + Blocks::place(row, column));
    return Number::to_float(of_quarter(byte, column / 32)) * Blocks::scale_at(block, row, column);
  }
};

// The format of a quantised matrix.
template <ElementType kElement, int kGroup, class Scale, bool kZeros,
          class Number = typename FloatOf<kElement>::Type>
struct QuantisedOf {
  static_assert(!kZeros, "floats have no zero points");
  using Format = Floats<Number, kGroup, Scale>;
};
template <ElementType kElement, int kGroup, class Scale, bool kZeros>
struct QuantisedOf<kElement, kGroup, Scale, kZeros, void> {
  using Format = Integers<kElement == kInt4 ? 4 : 8, kGroup, Scale, kZeros>;
};

// The format of a stage's matrix: S::kWeights, where the descriptor has it.
template <class S, class = void>
struct MatrixOf {
  using Format = Elements<WeightElement>;
};
template <class S>
struct MatrixOf<S, decltype(void(S::kWeights))> {
  static constexpr WeightFormat kFormat = S::kWeights;
  using Scale = typename ElementOf<kFormat.scale>::Type;
  using Format = typename QuantisedOf<kFormat.element, kFormat.group, Scale, kFormat.zeros>::Format;
};
template <class S>
using Matrix = typename MatrixOf<S>::Format;

// Bytes of a tile with n columns.
template <class W>
__host__ __device__ constexpr int tile_bytes(int columns) {
  return ceil_div(columns, W::kBlockColumns) * W::kBlockBytes;
}

// Bytes of a chunk of tiles of S: whole quads, and as many for each of the warps that share a tile
// where there is one for each (ir.ChunkQuads).
template <class W, int kWarps>
constexpr int kQuadsOfChunk = int(kSlotBytes) / W::kQuadBytes < kWarps
                                  ? int(kSlotBytes) / W::kQuadBytes
                                  : int(kSlotBytes) / W::kQuadBytes / kWarps * kWarps;
template <class S>
constexpr int kChunkBytes = kQuadsOfChunk<Matrix<S>, S::kWarps> * Matrix<S>::kQuadBytes;

// Whether tensor cores multiply the matrix of a stage: they take four activations at a time.
template <class S>
constexpr bool kOnTensorCores = AMK_TENSOR_CORES && Element::kBytes == 2 &&
                                kSame<WeightElement, Element> && S::kColumns % 4 == 0;

// Chunks of a slab, the columns whose sums are a chain of mma: four quads of each of the warps that
// share a tile, or as many as a chunk has if these are more. In a pass of 8 tokens a warp has the
// activations of n columns in registers. Quantised matrices have no chains of mma: a slab is
// what registers hold, and one token has no slabs. Neither has one without tensor cores; of several
// tokens a slab is then what is in shared memory at a time (ir.PlainSlab).
template <class S>
constexpr int kChunkQuadsOfWarp =
    ceil_div(kQuadsOfChunk<Matrix<S>, S::kWarps>, int(S::kWarps));
constexpr int kPlainSlabColumns = 1024;  // or a chunk of more
template <class S>
constexpr int kChunkColumns = kQuadsOfChunk<Matrix<S>, S::kWarps> * kQuadColumns;
template <class S>
constexpr int kPlainSlabChunks =
    kChunkColumns<S> < kPlainSlabColumns ? kPlainSlabColumns / kChunkColumns<S> : 1;
template <class S>
constexpr int kSlabChunks =
    kTokens > 1 && !kOnTensorCores<S>       ? kPlainSlabChunks<S>
    : Matrix<S>::kQuantised && kTokens == 1 ? ceil_div(S::kColumns, kQuadColumns)
    : kChunkQuadsOfWarp<S> < 4              ? 4 / kChunkQuadsOfWarp<S>
                                            : 1;

// Element of a matrix with n columns.
template <class W>
__device__ __forceinline__ float element_of(const u8* matrix, int columns, int row, int column) {
  const u8* tile = matrix + size_t(row / kTileRows) * tile_bytes<W>(columns);
  return W::at(tile + column / W::kBlockColumns * W::kBlockBytes, row % kTileRows,
               column % W::kBlockColumns);
}

}  // namespace amk
