// What a warp holds of a quad, 8 rows by 128 columns of a matrix, and how it multiplies it by the
// quad's activations: once for each kind of format. A quarter is 32 columns of a quad: a lane ends
// up with the sum of quarter lane % 4 of row lane / 4. Needs schedule.h with AMK_TENSOR_CORES. Must
// not know where quads come from, nor what becomes of the sums.
#pragma once

#include "digits.cuh"
#include "exchange_quads.cuh"
#include "weights.cuh"

namespace amk {

// One block of a weight tile: w holds 8 columns of one row in the order of tile_column, x four
// activations (gemv_mma.cuh).
template <class E>
__device__ __forceinline__ void mma_weights(float (&d)[4], uint4 w, uint2 x) {
  E::mma(d, w.x, w.y, w.z, w.w, x.x, x.y);
}

// d += A*B of bytes: exact. Those of A have a sign or not, those of B have one.
template <bool kSigned>
__device__ __forceinline__ void mma_digits(int (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, uint2 b) {
  if constexpr (kSigned) {
    mma_s8(d, a0, a1, a2, a3, b.x, b.y);
  } else {
    mma_u8s8(d, a0, a1, a2, a3, b.x, b.y);
  }
}

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
  static constexpr int kBatch = 1;  // quads whose products are on their way at once
  using Vector = uint2;
  struct Sum {
    float d[kBlocks][4] = {};
  };
  struct Product {};  // the accumulators are those of the sum

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

  __device__ __forceinline__ static Product multiply(Sum& sum, const Weights& w, const Vector& x) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) mma_weights<E>(sum.d[j], w.block[j], x);
    return {};
  }
  __device__ __forceinline__ static void add(Sum&, const Product&, int) {}

  __device__ __forceinline__ static float total(const Sum& s, int lane) {
    const int quarter = lane & 3;
    float sum = s.d[0][0] + s.d[0][3];
#pragma unroll
    for (int j = 1; j < kBlocks; ++j) sum = quarter == j ? s.d[j][0] + s.d[j][3] : sum;
    return sum;
  }
};

// Four activations that are in two registers.
__device__ __forceinline__ void to_floats(float (&v)[4], uint2 x) {
  v[0] = Element::to_float(u16(x.x)), v[1] = Element::to_float(u16(x.x >> 16));
  v[2] = Element::to_float(u16(x.y)), v[3] = Element::to_float(u16(x.y >> 16));
}

// The digits of activations, as an operand of mma.m16n8k32 with one digit to a column. Lane
// 8 * n + i has columns 4 * i of 32. The operand of lane 8 * n + 4 * digit + part is that digit of
// columns 4 * part, and of 16 columns further: two lanes give each other what they lack. All lanes
// of a warp call it.
__device__ __forceinline__ uint2 digit_operand(const float (&v)[4], float inverse, int lane) {
  u32 n[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) n[i] = biased_digits_of(v[i], inverse);
  const u32 first = byte_perm(n[0], n[1], 0x5410), second = byte_perm(n[2], n[3], 0x5410);
  const u32 low = byte_perm(first, second, 0x6420) ^ 0x80808080u;
  const u32 high = byte_perm(first, second, 0x7531) ^ 0x80808080u;
  const bool is_low = lane & 4;
  const u32 other = shuffle_xor(is_low ? high : low, 4);
  return make_uint2(is_low ? other : high, is_low ? low : other);
}

// Integers are multiplied by activations in two digits (digits.cuh), signed bytes high * 256 + low.
// Two of the eight B columns of an mma.m16n8k32 hold the digits of one quarter of the quad's
// columns: 2 * quarter + digit. So weights are multiplied as they are, and the sums of a quarter
// are exact: they depend on no order.
template <int kBits, int kGroup, class Scale, bool kZeros>
struct Fragments<Integers<kBits, kGroup, Scale, kZeros>> {
  using W = Integers<kBits, kGroup, Scale, kZeros>;
  static constexpr int kBatch = 4;
  static constexpr bool kNibbles = kBits == 4;
  static constexpr bool kOffset = kNibbles || kZeros;  // what is multiplied is more than the weight
  struct Weights {
    uint4 half[kBits / 4] = {};
    u32 scale = 0;  // of this lane's row and quarter, its bits
    int zero = 0;
  };
  struct Vector {
    uint2 lower = {}, upper = {};  // of B column lane / 4, if it is of quarters 0 and 1, or of 2, 3
    float scale = 0;
    int sum = 0;  // of this lane's quarter, lane % 4; without zero points times the offset
  };
  struct Product {
    int d[4] = {};
    float scale = 0;
    int offset = 0;  // by how much the sum is too large
  };
  struct Sum {
    float sum = 0;
  };

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
    float v[4];
    to_floats(v, x);
    const float largest = largest_digits(warp_max(magnitude(v)));
    const uint2 digits = digit_operand(v, divide_fast(kLargestDigits, largest), lane);
    Vector to;
    to.lower = lane < 16 ? digits : make_uint2(0, 0);
    to.upper = lane < 16 ? make_uint2(0, 0) : digits;
    // High nibbles are multiplied where they are: 16 times themselves.
    const bool shifted = kNibbles && (lane & 2);
    to.scale = largest * (shifted ? 0x1p-4f / kLargestDigits : 1.0f / kLargestDigits);
    if constexpr (kOffset) {
      constexpr u32 kOnes = 0x01010101u;
      int d[4] = {};
      mma_digits<false>(d, kOnes, kOnes, kOnes, kOnes, digits);
      to.sum = (d[0] * 256 + d[1]) * ((shifted ? 16 : 1) * (kZeros ? 1 : 8));
    }
    return to;
  }

  // A vector in shared memory: of each quad the digits that lanes hold, then scale and sum of each
  // quarter.

  // Keeps n quads. A loop cannot choose from registers: so activations first lie where their
  // digits will.
  template <int kQuads>
  __device__ __forceinline__ static void keep(u8* to, const uint2 (&x)[kQuads], int lane) {
    u8* const own = to + lane * 8;
#pragma unroll
    for (int i = 0; i < kQuads; ++i) *reinterpret_cast<uint2*>(own + i * kDigitQuadBytes) = x[i];
#pragma unroll 4
    for (int i = 0; i < kQuads; ++i) {
      u8* const at = own + i * kDigitQuadBytes;
      const Vector v = vector(*reinterpret_cast<const uint2*>(at), lane);
      *reinterpret_cast<uint2*>(at) = lane < 16 ? v.lower : v.upper;
      if (lane < 4)
        *reinterpret_cast<uint2*>(at + 256) = make_uint2(bits_of(v.scale), u32(v.sum));
    }
    warp_sync();
  }

  // Takes one of them back. Digits that are not this lane's stay 0.
  __device__ __forceinline__ static void recall(Vector& v, const u8* at, int lane) {
    load_shared_8_if(v.lower, at + lane * 8, lane < 16);
    load_shared_8_if(v.upper, at + lane * 8, lane >= 16);
    const uint2 of_quarter = *reinterpret_cast<const uint2*>(at + 256 + lane % 4 * 8);
    v.scale = float_of_bits(of_quarter.x);
    v.sum = int(of_quarter.y);
  }

  // The columns of quarters 0 and 1 come from the first product, those of 2 and 3 from the other.
  __device__ __forceinline__ static Product multiply(Sum&, const Weights& w, const Vector& x) {
    Product p;
    if constexpr (kNibbles) {
      constexpr u32 kLow = 0x0f0f0f0fu, kHigh = 0xf0f0f0f0u;
      const uint4 a = w.half[0];
      mma_digits<false>(p.d, a.x & kLow, a.z & kLow, a.y & kLow, a.w & kLow, x.lower);
      mma_digits<false>(p.d, a.x & kHigh, a.z & kHigh, a.y & kHigh, a.w & kHigh, x.upper);
    } else {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const uint4 a = w.half[j % (kBits / 4)];
        mma_digits<true>(p.d, a.x, a.z, a.y, a.w, j == 0 ? x.lower : x.upper);
      }
    }
    p.scale = Scale::to_float(typename Scale::Bits(w.scale)) * x.scale;
    if constexpr (kOffset) p.offset = kZeros ? w.zero * x.sum : x.sum;
    // Now and not when they are needed: by then the next quad is on its way to the same registers.
    opaque(p.scale, p.offset);
    return p;
  }

  __device__ __forceinline__ static void add(Sum& sum, const Product& p, int lane) {
    // A rows 0-7 are the even quarter of a pair, and rows 8-15 the odd one.
    const bool odd = lane & 1;
    const int total = (odd ? p.d[2] : p.d[0]) * 256 + (odd ? p.d[3] : p.d[1]) - p.offset;
    sum.sum = fmaf(float(total), p.scale, sum.sum);
  }

  __device__ __forceinline__ static float total(const Sum& sum, int) { return sum.sum; }
};

}  // namespace amk
