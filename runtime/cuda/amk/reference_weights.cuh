// How the plain kernels find a weight: one element at a time, by their own arithmetic from the
// layouts (docs/ir.md, docs/adding.md). Needs model_config.h. Must not include the headers
// of the megakernel's stages.
#pragma once

#include "element.cuh"

namespace amk {

// A tensor in the buffer that it is packed into, between the rows of others: row i of it is row
// first + i * step of the buffer. A matrix may be quantised.
struct Packed {
  const u8* buffer = nullptr;
  int first = 0;
  int step = 1;
  WeightFormat format = {};
};

__device__ inline float weight(const u8* buffer, size_t i) {
  return WeightElement::to_float(reinterpret_cast<const WeightElement::Bits*>(buffer)[i]);
}

// A number of 16 or 32 bits.
__device__ inline float number_at(const u8* numbers, ElementType type, int i) {
  if (type == kFp32) return reinterpret_cast<const float*>(numbers)[i];
  const u16 bits = reinterpret_cast<const u16*>(numbers)[i];
  return type == kFp16 ? fp16_to_float(bits) : float_of_bits(u32(bits) << 16);
}

// The value of a number in e4m3.
__device__ inline float e4m3_value(int bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const float value = exponent == 0 ? ldexpf(mantissa, -9) : ldexpf(8 + mantissa, exponent - 10);
  return bits & 128 ? -value : value;
}

// Bytes of the elements of a block of a quantised matrix.
__device__ inline int quantised_elements(const WeightFormat& f) {
  return f.element == kInt4 ? 512 : 1024;
}

// Element of a quantised matrix: tiles of 8 rows, in them blocks of 128 columns, which are
// elements, then scales, then zero points, and end at a multiple of 16 bytes. Elements are in the
// order in which the lanes of an mma have 32 columns of a quarter: row, column % 16 / 4, odd
// quarter or not, column % 32 / 16, column % 4. Quarters 2 and 3 follow the first two, or with 4
// bits are above them.
__device__ inline float quantised_at(const WeightFormat& f, const u8* tile, int row, int column) {
  const int elements = quantised_elements(f), groups = 128 / f.group;
  const bool nibbles = elements == 512;
  const int zeros = elements + 8 * groups * (f.scale == kFp32 ? 4 : 2);
  const int bytes = round_up(zeros + (f.zeros ? 8 * groups : 0), 16);
  const u8* block = tile + size_t(column / 128) * bytes;
  const int quarter = column % 128 / 32, in = column % 32;
  const int place =
      ((((row % 8) * 4 + in % 16 / 4) * 2 + quarter % 2) * 2 + in / 16) * 4 + in % 4;
  const int upper = quarter / 2;
  const int group = row % 8 * groups + column % 128 / f.group;
  const float scale = number_at(block + elements, f.scale, group);
  int q = nibbles ? (block[place] >> 4 * upper & 15) : block[place + 512 * upper];
  if (f.element == kE4m3) return e4m3_value(q) * scale;
  if (nibbles) q -= 8;
  if (!nibbles && q >= 128) q -= 256;  // two's complement
  if (f.zeros) q -= reinterpret_cast<const signed char*>(block + zeros)[group] - (nibbles ? 8 : 0);
  return float(q) * scale;
}

// Bytes of a tile of a quantised matrix.
__device__ inline size_t quantised_tile(const WeightFormat& f, int columns) {
  const int groups = 128 / f.group, scale = f.scale == kFp32 ? 4 : 2;
  return size_t(ceil_div(columns, 128)) *
         round_up(quantised_elements(f) + 8 * groups * (scale + (f.zeros ? 1 : 0)), 16);
}

// Element of a packed matrix. One that is not quantised: tiles of 8 rows, in them blocks of 32
// columns, in them 8 columns of one row, in the order 0 1 4 5 2 3 6 7.
__device__ inline float weight_at(Packed matrix, int columns, int index, int column) {
  const int row = matrix.first + index * matrix.step;
  if (matrix.format.group > 0) {
    const size_t tile = row / 8 * quantised_tile(matrix.format, columns);
    return quantised_at(matrix.format, matrix.buffer + tile, row, column);
  }
  const size_t block = size_t(row / 8) * ceil_div(columns, 32) + column / 32;
  const int group = row % 8 * 4 + column % 32 / 8;
  const int place = column % 2 + column % 4 / 2 * 4 + column % 8 / 4 * 2;
  return weight(matrix.buffer, (block * 32 + group) * 8 + place);
}

// Element of a packed vector.
__device__ inline float weight_at(Packed vector, int index) {
  return weight(vector.buffer, vector.first + index * vector.step);
}

}  // namespace amk
