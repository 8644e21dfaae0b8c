// How weights lie in memory: the tiles that matrices are streamed in, of WeightElement. The same
// geometry is a weight format of amkc's ir/format, which packs them. Needs model_config.h. Must not
// know what is computed with a weight.
#pragma once

#include "context.cuh"

namespace amk {

constexpr int kBlockColumns = 32;  // of a block; a tile has kTileRows rows
constexpr int kBlockBytes = kTileRows * kBlockColumns * WeightElement::kBytes;

// Bytes of a tile with so many columns.
__host__ __device__ constexpr int tile_bytes(int columns) {
  return ceil_div(columns, kBlockColumns) * kBlockBytes;
}

// Where a lane's 8 weights hold column c of its 8: 0 1 4 5 2 3 6 7.
__device__ __forceinline__ int tile_column(int c) { return (c & 1) | (c & 2) << 1 | (c & 4) >> 1; }

// One weight of a vector, which comes through the read-only path.
__device__ __forceinline__ float load_weight(const u8* vector, int i) {
  return WeightElement::to_float(
      load_constant(reinterpret_cast<const WeightElement::Bits*>(vector) + i));
}

}  // namespace amk
