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

// A number of 16 or 32 bits, or a power of two by its exponent.
__device__ inline float number_at(const u8* numbers, ElementType type, int i) {
  if (type == kFp32) return reinterpret_cast<const float*>(numbers)[i];
  if (type == kE8m0) return ldexpf(1, int(numbers[i]) - 127);
  const u16 bits = reinterpret_cast<const u16*>(numbers)[i];
  return type == kFp16 ? fp16_to_float(bits) : float_of_bits(u32(bits) << 16);
}

// The value of a number in e4m3.
__device__ inline float e4m3_value(int bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const float value = exponent == 0 ? ldexpf(mantissa, -9) : ldexpf(8 + mantissa, exponent - 10);
  return bits & 128 ? -value : value;
}

// The value of a number in e2m1.
__device__ inline float e2m1_value(int bits) {
  const int exponent = bits >> 1 & 3, mantissa = bits & 1;
  const float value = exponent == 0 ? mantissa * 0.5f : ldexpf(2 + mantissa, exponent - 2);
  return bits & 8 ? -value : value;
}

// Bits of an element of a quantised matrix.
__device__ inline int quantised_bits(const WeightFormat& f) {
  if (f.element == kInt4 || f.element == kE2m1) return 4;
  return f.element == kInt5 ? 5 : f.element == kInt6 ? 6 : 8;
}

// Where the parts of a block of a quantised matrix begin, and its bytes: tiles of 8 rows, in them
// blocks of 128 columns, which are elements, then with steps the numbers that a row's groups share,
// then scales, each with its minimum, then zero points, and end at a multiple of 16 bytes.
struct QuantisedBlock {
  int shared, scales, zeros, bytes;
};
__device__ inline QuantisedBlock quantised_block(const WeightFormat& f) {
  const int groups = 8 * 128 / f.group, numbers = f.mins ? 2 : 1;
  const int size = f.scale == kFp32 ? 4 : f.scale == kE8m0 ? 1 : 2;
  QuantisedBlock b;
  b.shared = 128 * quantised_bits(f);
  b.scales = b.shared + (f.steps ? 8 * numbers * size : 0);
  b.zeros = b.scales + groups * numbers * (f.steps ? 1 : size);
  b.bytes = round_up(b.zeros + (f.zeros ? groups : 0), 16);
  return b;
}

// Element of a quantised matrix. Elements are in the order in which the lanes of an mma have 32
// columns of a quarter: row, column % 16 / 4, odd quarter or not, column % 32 / 16, column % 4.
// Quarters 2 and 3 follow the first two, or with fewer bits are above them. In groups of 16 columns
// the bits of a quarter's number take the places of these: row, column % 16 / 4, quarter,
// column % 4, and second halves of quarters follow the first. Bits above the fourth are in bytes of
// column % 4, after all nibbles, in words of 32 bits for each row and column % 16 / 4.
__device__ inline float quantised_at(const WeightFormat& f, const u8* tile, int row, int column) {
  const QuantisedBlock parts = quantised_block(f);
  const int bits = quantised_bits(f), groups = 128 / f.group;
  const u8* block = tile + size_t(column / 128) * parts.bytes;
  const int quarter = column % 128 / 32, half = column % 32 / 16, part = column % 16 / 4;
  const int upper = f.group == 16 ? half : quarter / 2;
  const int word = f.group == 16 ? quarter : quarter % 2 * 2 + half;
  const int lane = row % 8 * 4 + part;
  // Of numbers in e2m1, the second and the third of four change places.
  const int of_four = f.element == kE2m1 ? column % 2 * 2 + column % 4 / 2 : column % 4;
  const int place = (lane * 4 + word) * 4 + of_four;
  const int group = row % 8 * groups + column % 128 / f.group;
  const int numbers = f.mins ? 2 : 1;
  float scale, least = 0;
  if (f.steps) {
    const auto* steps = reinterpret_cast<const signed char*>(block + parts.scales);
    scale = number_at(block + parts.shared, f.scale, row % 8 * numbers) * steps[group * numbers];
    if (f.mins)
      least = number_at(block + parts.shared, f.scale, row % 8 * 2 + 1) * steps[group * 2 + 1];
  } else {
    scale = number_at(block + parts.scales, f.scale, group * numbers);
    if (f.mins) least = number_at(block + parts.scales, f.scale, group * 2 + 1);
  }
  int q = bits < 8 ? block[place] >> 4 * upper & 15 : block[place + 512 * upper];
  if (bits == 5) q |= (block[512 + lane * 4 + column % 4] >> (upper * 4 + word) & 1) << 4;
  if (bits == 6)
    q |= (block[512 + lane * 8 + upper * 4 + column % 4] >> word * 2 & 3) << 4;
  if (f.element == kE4m3) return e4m3_value(q) * scale;
  if (f.element == kE2m1) return e2m1_value(q) * scale;
  if (f.mins) return float(q) * scale + least;
  if (bits < 8) q -= 1 << (bits - 1);
  if (bits == 8 && q >= 128) q -= 256;  // two's complement
  if (f.zeros)
    q -= reinterpret_cast<const signed char*>(block + parts.zeros)[group] - (bits == 4 ? 8 : 0);
  return float(q) * scale;
}

// Bytes of a tile of a quantised matrix.
__device__ inline size_t quantised_tile(const WeightFormat& f, int columns) {
  return size_t(ceil_div(columns, 128)) * quantised_block(f).bytes;
}

// Element of a packed matrix. One that is not quantised: tiles of 8 rows, in them blocks of 32
// columns. A block has columns 0 and 1 of every 8, row after row, then 2 and 3, and so on.
__device__ inline float weight_at(Packed matrix, int columns, int index, int column) {
  const int row = matrix.first + index * matrix.step;
  if (matrix.format.group > 0) {
    const size_t tile = row / 8 * quantised_tile(matrix.format, columns);
    return quantised_at(matrix.format, matrix.buffer + tile, row, column);
  }
  const size_t block = size_t(row / 8) * ceil_div(columns, 32) + column / 32;
  const int pair = (column % 8 / 2 * 8 + row % 8) * 4 + column % 32 / 8;
  return weight(matrix.buffer, block * 256 + pair * 2 + column % 2);
}

// Element of a packed vector.
__device__ inline float weight_at(Packed vector, int index) {
  return weight(vector.buffer, vector.first + index * vector.step);
}

}  // namespace amk
