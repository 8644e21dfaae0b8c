// What a warp holds of a quad, 8 rows by 128 columns of a matrix, and how it multiplies it by the
// quad's activations: once for each kind of format. A lane ends up with the sum of a quarter of the
// columns of row lane / 4. Needs schedule.h with AMK_TENSOR_CORES. Must not know where quads come
// from, nor what becomes of the sums.
#pragma once

#include "exchange_quads.cuh"
#include "mma.cuh"
#include "weights.cuh"

namespace amk {

template <class W>
struct Fragments;

// One mma.m16n8k16 eats a block of 8 rows by 32 columns: a lane holds 8 columns of one row, A rows
// 0-7 take the first four of them and A rows 8-15 the last four, and B columns 2g and 2g+1 hold the
// activations of the two halves of block g. The four blocks of a quad share one B register pair and
// have an accumulator each; the useful sums sit on d0 and d3 of the lane whose quarter is the
// block's number.
template <class E>
struct Fragments<Elements<E>> {
  static constexpr int kBlocks = kQuadColumns / Elements<E>::kBlockColumns;
  struct Weights {
    uint4 block[kBlocks] = {};
  };
  using Vector = uint2;
  struct Sum {
    float d[kBlocks][4] = {};
  };

  // The first of the four columns whose activations a lane holds.
  __device__ __forceinline__ static int column(int lane) {
    return (lane >> 3) * 32 + (lane & 3) * 8 + ((lane >> 2) & 1) * 4;
  }

  // Of the blocks of a quad only the first `blocks` are there; the others count as 0.
  __device__ __forceinline__ static void load(Weights& w, const u8* quad, int lane, int blocks) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      w.block[j] = j < blocks ? *reinterpret_cast<const uint4*>(
                                    quad + j * Elements<E>::kBlockBytes + lane * 16)
                              : make_uint4(0, 0, 0, 0);
    }
  }

  // Four activations, as what is multiplied.
  __device__ __forceinline__ static Vector vector(uint2 x, int) { return x; }

  __device__ __forceinline__ static void multiply(Sum& sum, const Weights& w, const Vector& x) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) mma_weights<E>(sum.d[j], w.block[j], x);
  }

  __device__ __forceinline__ static float total(const Sum& s, int lane) {
    const int quarter = lane & 3;
    float sum = s.d[0][0] + s.d[0][3];
#pragma unroll
    for (int j = 1; j < kBlocks; ++j) sum = quarter == j ? s.d[j][0] + s.d[j][3] : sum;
    return sum;
  }
};

// Activations in two digits: the largest magnitude of a quad becomes 127 * 256, and each activation
// an integer of 16 bits, held as two signed bytes, high * 256 + low. Two of the eight B columns of
// an mma.m16n8k32 hold the digits of one quarter of the quad's columns: 2 * quarter + digit. So
// weights are multiplied as they are, and the sums of a quarter are exact: they depend on no order.
constexpr float kLargestDigits = 127 * 256;

template <int kBits, int kGroup, class Scale, bool kZeros>
struct Fragments<Integers<kBits, kGroup, Scale, kZeros>> {
  using W = Integers<kBits, kGroup, Scale, kZeros>;
  struct Weights {
    uint4 half[kBits / 4] = {};
    typename Scale::Bits scale = 0;  // of this lane's row and quarter
    int zero = 0;
  };
  struct Vector {
    uint2 digits = {};  // of B column lane / 4
    float scale = 0;
    int sum = 0;  // of this lane's quarter, lane % 4; where there are zero points
  };
  struct Sum {
    float sum = 0;
  };
  // int4 is multiplied in the high half of a byte.
  static constexpr int kUnit = kBits == 4 ? 16 : 1;

  __device__ __forceinline__ static int column(int lane) { return lane * 4; }

  __device__ __forceinline__ static void load(Weights& w, const u8* quad, int lane, int) {
#pragma unroll
    for (int j = 0; j < kBits / 4; ++j)
      w.half[j] = *reinterpret_cast<const uint4*>(quad + j * 512 + lane * 16);
    const int group = lane * W::kGroups / 4;
    w.scale = reinterpret_cast<const typename Scale::Bits*>(quad + W::kScales)[group];
    if constexpr (kZeros)
      w.zero = reinterpret_cast<const signed char*>(quad + W::kZeroPoints)[group];
  }

  // All lanes of a warp call it.
  __device__ __forceinline__ static Vector vector(uint2 x, int lane) {
    const float v[4] = {Element::to_float(u16(x.x)), Element::to_float(u16(x.x >> 16)),
                        Element::to_float(u16(x.y)), Element::to_float(u16(x.y >> 16))};
    const float most = fmaxf(fmaxf(fabsf(v[0]), fabsf(v[1])), fmaxf(fabsf(v[2]), fabsf(v[3])));
    // Floats that are not negative are in the order of their bits, and NaN is the largest.
    const float largest =
        fmaxf(__uint_as_float(__reduce_max_sync(~0u, __float_as_uint(most))), 0x1p-100f);
    const float inverse = __fdividef(kLargestDigits, largest);
    // Rounded to the nearest integer, which is in the low bits of the sum.
    u32 n[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) n[i] = __float_as_uint(fmaf(v[i], inverse, 0x1.8p23f));
    const u32 low = __byte_perm(__byte_perm(n[0], n[1], 0x0040), __byte_perm(n[2], n[3], 0x0040),
                                0x5410);
    const u32 high = __byte_perm(__byte_perm(n[0] + 128, n[1] + 128, 0x0051),
                                 __byte_perm(n[2] + 128, n[3] + 128, 0x0051), 0x5410);
    // Lane 8 * quarter + i has columns 4 * i of a quarter; the operand of lane 4 * n + part is
    // columns 4 * part, and 16 more, of quarter n / 2.
    const int from = (lane & ~7) | (lane & 3);
    const u32 low0 = __shfl_sync(~0u, low, from), low1 = __shfl_sync(~0u, low, from + 4);
    const u32 high0 = __shfl_sync(~0u, high, from), high1 = __shfl_sync(~0u, high, from + 4);
    const bool is_low = lane & 4;
    Vector to;
    to.digits = make_uint2(is_low ? low0 : high0, is_low ? low1 : high1);
    to.scale = largest * (1.0f / (kLargestDigits * kUnit));
    if constexpr (kZeros) {
      constexpr u32 kOnes = 0x01010101u * kUnit;
      int d[4];
      mma16832(d, kOnes, kOnes, kOnes, kOnes, to.digits);
      to.sum = d[0] * 256 + d[1];
    }
    return to;
  }

  __device__ __forceinline__ static void multiply(Sum& sum, const Weights& w, const Vector& x) {
    int d[2][4];  // of quarters 0 and 1, and of 2 and 3
    if constexpr (kBits == 4) {
      constexpr u32 kHigh = 0xf0f0f0f0u;
      const uint4 a = w.half[0];
      mma16832(d[0], a.x << 4 & kHigh, a.z << 4 & kHigh, a.y << 4 & kHigh, a.w << 4 & kHigh,
               x.digits);
      mma16832(d[1], a.x & kHigh, a.z & kHigh, a.y & kHigh, a.w & kHigh, x.digits);
    } else {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const uint4 a = w.half[j % (kBits / 4)];
        mma16832(d[j], a.x, a.z, a.y, a.w, x.digits);
      }
    }
    // A rows 0-7 are the even quarter of a pair, and rows 8-15 the odd one.
    const int lane = threadIdx.x % 32;
    const bool second = lane & 2, odd = lane & 1;
    const int high = odd ? (second ? d[1][2] : d[0][2]) : (second ? d[1][0] : d[0][0]);
    const int low = odd ? (second ? d[1][3] : d[0][3]) : (second ? d[1][1] : d[0][1]);
    int total = high * 256 + low;
    if constexpr (kZeros) total -= w.zero * x.sum;
    sum.sum = fmaf(float(total), Scale::to_float(w.scale) * x.scale, sum.sum);
  }

  __device__ __forceinline__ static float total(const Sum& sum, int) { return sum.sum; }
};

}  // namespace amk
