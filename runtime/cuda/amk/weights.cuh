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

// Matrices of elements as they are: a quad is four blocks of 32 columns. A block is four matrices
// of 8 rows by 8 elements, as tensor cores take them: matrix 2 * h + c has columns 8t + 4h + 2c + e
// of each row, in the order of t and then e.
template <class E>
struct Elements {
  using Element = E;
  static constexpr bool kQuantised = false, kHalves = false;
  static constexpr int kBlockColumns = 32;
  static constexpr int kBlockBytes = kTileRows * kBlockColumns * E::kBytes;
  static constexpr int kQuadBytes = kQuadColumns / kBlockColumns * kBlockBytes;
  static constexpr int kMatrices = 4, kMatrixBytes = kBlockBytes / kMatrices;

  // Element of a block, through the read-only path.
  __device__ __forceinline__ static float at(const u8* block, int row, int column) {
    const int matrix = column / 2 % kMatrices, place = column / 8 * 2 + column % 2;
    return load_weight(block, (matrix * kTileRows + row) * 8 + place);
  }
};

// How to load from a pointer: plainly, or through the read-only path.
struct ReadPlainly {
  template <class T>
  __device__ __forceinline__ T operator()(const T* from) const {
    return *from;
  }
};
struct ReadConstant {
  template <class T>
  __device__ __forceinline__ T operator()(const T* from) const {
    return load_constant(from);
  }
};

// As many bytes as are a power of two, in one load if that is possible.
template <int kBytes>
struct LoadOf {
  using Type = u8;
};
template <>
struct LoadOf<2> {
  using Type = u16;
};
template <>
struct LoadOf<4> {
  using Type = u32;
};
template <>
struct LoadOf<8> {
  using Type = uint2;
};
template <>
struct LoadOf<16> {
  using Type = uint4;
};
template <>
struct LoadOf<32> {  // in two
  struct alignas(16) Type {
    uint4 half[2];
  };
};

// Integers of kBits bits with a scale for each row and group of kGroup columns, and a zero point or
// a minimum if there are any: blocks of 128 columns, which are elements, then what groups of a row
// share if scales are steps, then scales, each with its minimum, then zero points. Lane
// 4 * row + part has columns 4 * part to 4 * part + 3 of each 16, in mma order: 16 bytes of the
// first two quarters of a block, and 16 of the others, of which less than 8 bits have these in the
// high halves of those bytes. Bits above the fourth follow: of 5 bits a word of each lane, of 6
// two.
// To elements of less than 8 bits, and to zero points of int4, half their range is added.
//
// In groups of 16 columns the operands are the first halves of all quarters, and then the second.
template <int kBitsOf, int kGroupOf, class ScaleOf, bool kZerosOf, bool kMinsOf = false,
          bool kStepsOf = false>
struct Integers {
  using Scale = ScaleOf;
  static constexpr bool kQuantised = true, kZeros = kZerosOf, kFloats = false;
  static constexpr bool kMins = kMinsOf, kSteps = kStepsOf;
  static constexpr int kBits = kBitsOf, kGroup = kGroupOf;
  static constexpr int kBlockColumns = kQuadColumns, kGroups = kBlockColumns / kGroup;
  static constexpr bool kHalves = kGroup < 32;  // a group is half a quarter
  static constexpr bool kUnsigned = kBits < 8;
  // By what the sum of a group's activations is multiplied for what products are too large by.
  static constexpr int kFactor = kUnsigned && !kZeros && !kMins ? 1 << (kBits - 1) : 1;
  // Where the parts of a block begin.
  static constexpr int kAbove = kTileRows * kBlockColumns / 2;  // bits above the fourth
  static constexpr int kShared = kTileRows * kBlockColumns * kBits / 8;
  static constexpr int kNumbers = kMins ? 2 : 1;  // of a group
  static constexpr int kSharedBytes = kSteps ? kNumbers * Scale::kBytes : 0;  // of a row
  static constexpr int kGroupBytes = kNumbers * (kSteps ? 1 : Scale::kBytes);
  static constexpr int kScales = kShared + kTileRows * kSharedBytes;
  static constexpr int kZeroPoints = kScales + kTileRows * kGroups * kGroupBytes;
  static constexpr int kBlockBytes =
      round_up(kZeroPoints + (kZeros ? kTileRows * kGroups : 0), 16);
  static constexpr int kQuadBytes = kBlockBytes;

  // What a group has besides its elements, as it is stored.
  struct Numbers {
    typename LoadOf<kGroupBytes>::Type own = {};
    typename LoadOf<kSharedBytes>::Type shared = {};
    int zero = 0;

    __device__ __forceinline__ float scale() const { return number<0>(); }
    __device__ __forceinline__ float min() const { return number<kNumbers - 1>(); }

   private:
    using Bits = typename Scale::Bits;
    template <int kIndex>
    __device__ __forceinline__ float number() const {
      if constexpr (kSteps) {
        return float(static_cast<signed char>(own >> 8 * kIndex)) *
               Scale::to_float(Bits(shared >> 8 * Scale::kBytes * kIndex));
      } else {
        return Scale::to_float(Bits(own >> (kMins ? 8 * Scale::kBytes * kIndex : 0)));
      }
    }
  };

  // Those of a group: number `index` of the groups of all rows.
  template <class Read>
  __device__ __forceinline__ static Numbers numbers(const u8* block, int row, int index,
                                                    Read read) {
    Numbers n;
    using Own = typename LoadOf<kGroupBytes>::Type;
    n.own = read(reinterpret_cast<const Own*>(block + kScales) + index);
    if constexpr (kSteps) {
      using Shared = typename LoadOf<kSharedBytes>::Type;
      n.shared = read(reinterpret_cast<const Shared*>(block + kShared) + row);
    }
    if constexpr (kZeros) {
      n.zero = read(reinterpret_cast<const signed char*>(block + kZeroPoints) + index);
    }
    return n;
  }

  // Those of all groups of a row, of which scales and minima are in one load or two.
  __device__ __forceinline__ static void numbers_of_row(Numbers (&to)[kGroups], const u8* block,
                                                        int row) {
    using All = typename LoadOf<kGroups * kGroupBytes>::Type;
    const All own = reinterpret_cast<const All*>(block + kScales)[row];
    typename LoadOf<kGroups>::Type zeros = {};
    if constexpr (kZeros)
      zeros = reinterpret_cast<const typename LoadOf<kGroups>::Type*>(block + kZeroPoints)[row];
    typename LoadOf<kSharedBytes>::Type shared = {};
    if constexpr (kSteps)
      shared = reinterpret_cast<const typename LoadOf<kSharedBytes>::Type*>(block + kShared)[row];
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      memcpy(&to[g].own, reinterpret_cast<const u8*>(&own) + g * kGroupBytes, kGroupBytes);
      to[g].shared = shared;
      signed char zero = 0;
      if constexpr (kZeros) memcpy(&zero, reinterpret_cast<const u8*>(&zeros) + g, 1);
      to[g].zero = zero;
    }
  }

  // By which mma a column is multiplied, and in which word of its operand.
  __host__ __device__ static constexpr int second(int column) {
    return kHalves ? column % 32 / 16 : column / 64;
  }
  __host__ __device__ static constexpr int word(int column) {
    return kHalves ? column / 32 : column % 64 / 32 * 2 + column % 32 / 16;
  }

  // The byte of an element in a block, or of its low four bits.
  __host__ __device__ static constexpr int place(int row, int column) {
    return (kBits == 8 ? second(column) * 512 : 0) + (row * 4 + column % 16 / 4) * 16 +
           word(column) * 4 + column % 4;
  }

  // Bits above the fourth of the lanes' elements: a word of 5 bits, two words of 6.
  static constexpr bool kHasAbove = kBits == 5 || kBits == 6;
  using Above = typename LoadOf<kHasAbove ? 4 * (kBits - 4) : 1>::Type;
  __device__ __forceinline__ static u32 above_word(u32 above, int) { return above; }
  __device__ __forceinline__ static u32 above_word(uint2 above, int second) {
    return second ? above.y : above.x;
  }
  // Four elements of an operand, each in a byte. Nibbles of the second mma are where they are, 16
  // times themselves, unless bits are added to them.
  __device__ __forceinline__ static u32 elements(u32 stored, Above above, int second, int word) {
    if constexpr (kBits == 8) return stored;
    if constexpr (kBits == 4) return stored & (second ? 0xf0f0f0f0u : 0x0f0f0f0fu);
    if constexpr (kHasAbove) {
      constexpr u32 kMask = kBits == 5 ? 0x10101010u : 0x30303030u;
      const int bit = kBits == 5 ? second * 4 + word : word * 2;
      const u32 bits = above_word(above, second);
      const u32 high = bit < 4 ? bits << (4 - bit) : bits >> (bit - 4);
      return ((second ? stored >> 4 : stored) & 0x0f0f0f0fu) | (high & kMask);
    }
  }

  // The scale of an element, through the read-only path.
  __device__ __forceinline__ static float scale_at(const u8* block, int row, int column) {
    return numbers(block, row, row * kGroups + column / kGroup, ReadConstant()).scale();
  }

  // Four elements that are side by side as integers, less half their range if there are no minima.
  template <class Read>
  __device__ __forceinline__ static void integers(int (&q)[4], const u8* block, int row,
                                                  int column, Read read) {
    const u8* const at = block + place(row, column);
    const int upper = second(column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kBits == 8) {
        q[i] = static_cast<signed char>(read(at + i));
      } else {
        q[i] = read(at + i) >> 4 * upper & 15;
        if constexpr (kHasAbove) {
          const int lane = row * 4 + column % 16 / 4;
          const int above = kBits == 5 ? lane * 4 : lane * 8 + upper * 4;
          const int bit = kBits == 5 ? upper * 4 + word(column) : word(column) * 2;
          q[i] |= (read(block + kAbove + above + i) >> bit & ((1 << (kBits - 4)) - 1)) << 4;
        }
        if constexpr (!kMins) q[i] -= 1 << (kBits - 1);
      }
    }
  }

  __device__ __forceinline__ static float at(const u8* block, int row, int column) {
    const ReadConstant read;
    const Numbers n = numbers(block, row, row * kGroups + column / kGroup, read);
    int four[4];
    integers(four, block, row, column & ~3, read);
    int q = four[column & 3];
    if constexpr (kZeros) q -= n.zero - (kBits == 4 ? 8 : 0);
    if constexpr (kMins) return float(q) * n.scale() + n.min();
    return float(q) * n.scale();
  }
};

// Floats of 4 or 8 bits with a scale for each row and group, in the blocks of integers.
template <class NumberOf, int kGroupOf, class ScaleOf>
struct Floats : Integers<NumberOf::kBits, kGroupOf, ScaleOf, false> {
  using Number = NumberOf;
  using Blocks = Integers<Number::kBits, kGroupOf, ScaleOf, false>;
  static constexpr bool kFloats = true;

  // Whether numbers of a quarter are in the high halves of their bytes.
  __host__ __device__ static constexpr bool high(int quarter) {
    return Number::kBits == 4 && quarter >= 2;
  }
  __device__ __forceinline__ static uint2 to_halves(u32 word, int quarter) {
    return Number::to_halves(word, high(quarter));
  }
  // Number i of the four of a quarter in a word.
  __device__ __forceinline__ static float to_float(u32 word, int quarter, int i) {
    return Number::to_float(word >> (8 * Number::byte_of(i) + (high(quarter) ? 4 : 0)));
  }

  __device__ __forceinline__ static float at(const u8* block, int row, int column) {
    const int first = column & ~3;
    const u32 word = load_constant(
        reinterpret_cast<const u32*>(block + Blocks::place(row, first)));
    return to_float(word, column / 32, column - first) * Blocks::scale_at(block, row, column);
  }
};

// The format of a quantised matrix.
template <ElementType kElement, int kGroup, class Scale, bool kZeros, bool kMins = false,
          bool kSteps = false, class Number = typename FloatOf<kElement>::Type>
struct QuantisedOf {
  static_assert(!kZeros && !kMins && !kSteps, "floats have scales alone");
  using Format = Floats<Number, kGroup, Scale>;
};
constexpr int bits_of_integer(ElementType e) {
  return e == kInt4 ? 4 : e == kInt5 ? 5 : e == kInt6 ? 6 : 8;
}
template <ElementType kElement, int kGroup, class Scale, bool kZeros, bool kMins, bool kSteps>
struct QuantisedOf<kElement, kGroup, Scale, kZeros, kMins, kSteps, void> {
  using Format = Integers<bits_of_integer(kElement), kGroup, Scale, kZeros, kMins, kSteps>;
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
  using Format = typename QuantisedOf<kFormat.element, kFormat.group, Scale, kFormat.zeros,
                                      kFormat.mins, kFormat.steps>::Format;
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

template <class S>
constexpr int kTileChunks =
    ceil_div(ceil_div(int(S::kColumns), kQuadColumns), kQuadsOfChunk<Matrix<S>, S::kWarps>);

// Whether tensor cores multiply the matrix of a stage: they take four activations at a time.
template <class S>
constexpr bool kOnTensorCores = AMK_TENSOR_CORES && Element::kBytes == 2 &&
                                kSame<WeightElement, Element> && S::kColumns % 4 == 0;

// Quarters of a quad's columns that share a chain of mma: S::kChains. Quantised matrices have no
// chains.
template <class S>
constexpr int kChainQuarters =
    kOnTensorCores<S> && !Matrix<S>::kQuantised ? int(S::kChains) : 1;

// Chunks of a slab, the columns whose sums are a chain of mma: four quads of each of the warps that
// share a tile, or as many as a chunk has if these are more. Where two quarters share a chain, and
// so a warp keeps half as many sums, they are up to five quads, in slabs of about the same size. In
// a pass of 8 tokens a warp has the activations of n columns in registers. Quantised matrices have
// no chains of mma: a slab is what registers hold, and one token has no slabs. Neither has one
// without tensor cores; of several tokens a slab is then what is in shared memory at a time
// (kernel.Slabs and kernel.PlainSlab have the same).
template <class S>
constexpr int kChunkQuadsOfWarp =
    ceil_div(kQuadsOfChunk<Matrix<S>, S::kWarps>, int(S::kWarps));
template <int kQuads, class S>
constexpr int kChunksOfQuads =
    kChunkQuadsOfWarp<S> < kQuads ? kQuads / kChunkQuadsOfWarp<S> : 1;
template <class S>
constexpr int kPairedSlabChunks =
    ceil_div(kTileChunks<S>, ceil_div(kTileChunks<S>, kChunksOfQuads<5, S>));
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
    : kChainQuarters<S> == 2                ? kPairedSlabChunks<S>
                                            : kChunksOfQuads<4, S>;

// Element of a matrix with n columns.
template <class W>
__device__ __forceinline__ float element_of(const u8* matrix, int columns, int row, int column) {
  const u8* tile = matrix + size_t(row / kTileRows) * tile_bytes<W>(columns);
  return W::at(tile + column / W::kBlockColumns * W::kBlockBytes, row % kTileRows,
               column % W::kBlockColumns);
}

}  // namespace amk
