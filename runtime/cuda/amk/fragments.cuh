// What a warp holds of a quad, 8 rows by 128 columns of a matrix, and how it multiplies it by the
// quad's activations: once for each kind of format. A quarter is 32 columns of a quad: a lane ends
// up with the sum of quarter lane % 4 of row lane / 4. Needs schedule.h with AMK_TENSOR_CORES. Must
// not know where quads come from, nor what becomes of the sums.
#pragma once

#include "digits.cuh"
#include "exchange_quads.cuh"
#include "weights.cuh"

namespace amk {

// One block of a weight tile: w holds 8 columns of one row, as load_matrices has them, x four
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

// kOfChain quarters of a quad's columns share a chain of mma.
template <class W, int kOfChain = 1>
struct Fragments;

// One mma.m16n8k16 eats a block of 8 rows by 32 columns: A rows 0-7 take columns 0 to 3 of every 8,
// and A rows 8-15 the other four, as the matrices of the block have them (weights.cuh), and B
// columns 2g and 2g+1 hold the activations of the two halves of block g. The four blocks of a quad
// share one B register pair, and have an accumulator each or one for two: then the second is
// multiplied by activations that lanes have exchanged, of which those of its quarter are in the
// columns of the first. The useful sums sit on d0 and d3 of the lane whose quarter is the number of
// the block, or of the first of two.
template <class E, int kOfChain>
struct Fragments<Elements<E>, kOfChain> {
  static constexpr int kBlocks = kQuadColumns / Elements<E>::kBlockColumns;
  static constexpr int kChains = kBlocks / kOfChain;  // each for both halves of columns
  struct Weights {
    uint4 block[kBlocks] = {};
  };
  static constexpr int kBatch = 1;  // quads whose products are on their way at once
  using Vector = uint2;
  struct Sum {
    float d[kChains][4] = {};
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
      w.block[j] = j < blocks ? load_matrices(quad + j * Elements<E>::kBlockBytes, lane)
                              : make_uint4(0, 0, 0, 0);
    }
  }

  // Four activations, as what is multiplied.
  __device__ __forceinline__ static Vector vector(uint2 x, int) { return x; }

  // All lanes of a warp call it. They exchange activations again for each tile: kept, these would
  // take registers that long vectors do not leave.
  __device__ __forceinline__ static Product multiply(Sum& sum, const Weights& w, const Vector& x) {
    uint2 exchanged = x;
    if constexpr (kOfChain == 2)
      exchanged = make_uint2(shuffle_xor(x.x, 8), shuffle_xor(x.y, 8));
#pragma unroll
    for (int i = 0; i < kOfChain; ++i) {
#pragma unroll
      for (int j = 0; j < kChains; ++j)
        mma_weights<E>(sum.d[j], w.block[j * kOfChain + i], i == 0 ? x : exchanged);
    }
    return {};
  }
  __device__ __forceinline__ static void add(Sum&, const Product&, int) {}

  // The sum of a quarter; or the chains of two, of which every other lane has some.
  __device__ __forceinline__ static auto total(const Sum& s, int lane) {
    if constexpr (kOfChain == 2) {
      const bool upper = lane & 2;  // no index, which registers do not have
      return make_float2(upper ? s.d[1][0] : s.d[0][0], upper ? s.d[1][3] : s.d[0][3]);
    } else {
      const int quarter = lane & 3;
      float sum = s.d[0][0] + s.d[0][3];
#pragma unroll
      for (int j = 1; j < kBlocks; ++j) sum = quarter == j ? s.d[j][0] + s.d[j][3] : sum;
      return sum;
    }
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
// are exact: they depend on no order. With groups of half a quarter, each of two mma has halves of
// all four quarters: the columns of B that are of an even one have digits in the first half of k,
// and the others in the second half.
template <int kBits, int kGroup, class Scale, bool kZeros, bool kMins, bool kSteps>
struct Fragments<Integers<kBits, kGroup, Scale, kZeros, kMins, kSteps>> {
  using W = Integers<kBits, kGroup, Scale, kZeros, kMins, kSteps>;
  static constexpr int kBatch = 4;
  static constexpr bool kNibbles = kBits == 4;
  // What is multiplied is more than the weight, or the sum of a group's activations counts.
  static constexpr bool kOffset = W::kUnsigned || kZeros;
  static constexpr int kSums = W::kHalves ? 2 : 1;  // of a lane, from a quad
  struct Weights {
    uint4 half[kBits == 8 ? 2 : 1] = {};
    typename W::Above above = {};
    typename W::Numbers of[kSums];  // of this lane's row and quarter
  };
  struct Vector {
    uint2 lower = {}, upper = {};  // of B column lane / 4, for the first mma and for the second
    float scale[kSums] = {};
    // Of this lane's quarter, lane % 4: times the offset if that is a constant, or with minima in
    // floats times the scale.
    int sum[kSums] = {};
  };
  struct Product {
    int d[kSums][4] = {};
    float scale[kSums] = {};
    int offset[kSums] = {};     // by how much the sum is too large
    float least[kMins ? kSums : 1] = {};  // what minima add
  };
  struct Sum {
    float sum = 0;
  };

  __device__ __forceinline__ static int column(int lane) { return lane * 4; }

  __device__ __forceinline__ static void load(Weights& w, const u8* quad, int lane, int) {
#pragma unroll
    for (int j = 0; j < (kBits == 8 ? 2 : 1); ++j)
      w.half[j] = *reinterpret_cast<const uint4*>(quad + j * 512 + lane * 16);
    if constexpr (W::kHasAbove)
      w.above = reinterpret_cast<const typename W::Above*>(quad + W::kAbove)[lane];
#pragma unroll
    for (int k = 0; k < kSums; ++k)
      w.of[k] = W::numbers(quad, lane / 4, lane * W::kGroups / 4 + k, ReadPlainly());
  }

  // High nibbles are multiplied where they are: 16 times themselves. Those of the second mma are of
  // the upper quarters, or of the second sum.
  __device__ __forceinline__ static bool shifted(int lane, int k) {
    return kNibbles && (W::kHalves ? k == 1 : (lane & 2) != 0);
  }

  // Which of four words a lane has as operands of B in groups of half a quarter.
  __device__ __forceinline__ static bool is_odd(int lane) { return lane & 8; }
  __device__ __forceinline__ static void place(Vector& to, uint2 digits, int lane) {
    if constexpr (W::kHalves) {
      to.lower = is_odd(lane) ? make_uint2(0, digits.x) : make_uint2(digits.x, 0);
      to.upper = is_odd(lane) ? make_uint2(0, digits.y) : make_uint2(digits.y, 0);
    } else {
      to.lower = lane < 16 ? digits : make_uint2(0, 0);
      to.upper = lane < 16 ? make_uint2(0, 0) : digits;
    }
  }

  // All lanes of a warp call it.
  __device__ __forceinline__ static uint2 digits(Vector& to, uint2 x, int lane) {
    float v[4];
    to_floats(v, x);
    const float largest = largest_digits(warp_max(magnitude(v)));
    const uint2 digits = digit_operand(v, divide_fast(kLargestDigits, largest), lane);
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      to.scale[k] =
          largest * (shifted(lane, k) ? 0x1p-4f / kLargestDigits : 1.0f / kLargestDigits);
      if constexpr (kOffset) {
        constexpr u32 kOnes = 0x01010101u;
        const uint2 of = !W::kHalves ? digits
                         : k == 0    ? make_uint2(digits.x, 0)
                                     : make_uint2(0, digits.y);
        int d[4] = {};
        mma_digits<false>(d, kOnes, kOnes, kOnes, kOnes, of);
        const int sum = (d[0] * 256 + d[1]) * ((shifted(lane, k) ? 16 : 1) * W::kFactor);
        to.sum[k] = kMins ? int(bits_of(float(sum) * to.scale[k])) : sum;
      }
    }
    return digits;
  }
  __device__ __forceinline__ static Vector vector(uint2 x, int lane) {
    Vector to;
    place(to, digits(to, x, lane), lane);
    return to;
  }

  // A vector in shared memory: of each quad the digits that lanes hold, then scale and sum of each
  // quarter, or both sums, and then scales.
  static constexpr int kKeptBytes = kDigitQuadBytes<W>;

  // Keeps n quads. A loop cannot choose from registers: so activations first lie where their
  // digits will.
  template <int kQuads>
  __device__ __forceinline__ static void keep(u8* to, const uint2 (&x)[kQuads], int lane) {
    u8* const own = to + lane * 8;
#pragma unroll
    for (int i = 0; i < kQuads; ++i) *reinterpret_cast<uint2*>(own + i * kKeptBytes) = x[i];
#pragma unroll 4
    for (int i = 0; i < kQuads; ++i) {
      u8* const at = own + i * kKeptBytes;
      Vector v;
      *reinterpret_cast<uint2*>(at) = digits(v, *reinterpret_cast<const uint2*>(at), lane);
      if (lane < 4) {
        const u32 first = W::kHalves ? u32(v.sum[kSums - 1]) : bits_of(v.scale[0]);
        *reinterpret_cast<uint2*>(at + 256) = make_uint2(first, u32(v.sum[0]));
        if (W::kHalves) *reinterpret_cast<float*>(at + 288 - lane * 4) = v.scale[0];
      }
    }
    warp_sync();
  }

  // Takes one of them back. Digits that are not this lane's stay 0.
  __device__ __forceinline__ static void recall(Vector& v, const u8* at, int lane) {
    if constexpr (W::kHalves) {
      place(v, *reinterpret_cast<const uint2*>(at + lane * 8), lane);
    } else {
      load_shared_8_if(v.lower, at + lane * 8, lane < 16);
      load_shared_8_if(v.upper, at + lane * 8, lane >= 16);
    }
    const uint2 of_quarter = *reinterpret_cast<const uint2*>(at + 256 + lane % 4 * 8);
    v.sum[0] = int(of_quarter.y);
    if constexpr (W::kHalves) {
      v.scale[0] = *reinterpret_cast<const float*>(at + 288 + lane % 4 * 4);
      v.scale[1] = v.scale[0] * (kNibbles ? 0x1p-4f : 1.0f);
      v.sum[1] = int(of_quarter.x);
    } else {
      v.scale[0] = float_of_bits(of_quarter.x);
    }
  }

  // The columns of quarters 0 and 1 come from the first product, those of 2 and 3 from the other.
  __device__ __forceinline__ static Product multiply(Sum&, const Weights& w, const Vector& x) {
    Product p;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const uint4 a = w.half[kBits == 8 ? j : 0];
      mma_digits<!W::kUnsigned>(p.d[W::kHalves ? j : 0], W::elements(a.x, w.above, j, 0),
                                W::elements(a.z, w.above, j, 2), W::elements(a.y, w.above, j, 1),
                                W::elements(a.w, w.above, j, 3), j == 0 ? x.lower : x.upper);
    }
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      p.scale[k] = w.of[k].scale() * x.scale[k];
      if constexpr (kMins) {
        p.least[k] = w.of[k].min() * float_of_bits(u32(x.sum[k]));
        // Now and not when they are needed: by then the next quad is on its way to the same
        // registers.
        opaque(p.scale[k]), opaque(p.least[k]);
      } else {
        if constexpr (kOffset) p.offset[k] = kZeros ? w.of[k].zero * x.sum[k] : x.sum[k];
        opaque(p.scale[k], p.offset[k]);
      }
    }
    return p;
  }

  __device__ __forceinline__ static void add(Sum& sum, const Product& p, int lane) {
    // A rows 0-7 are the even quarter of a pair, and rows 8-15 the odd one, or with halves the
    // first two quarters, and the others.
    const bool odd = lane & (W::kHalves ? 2 : 1);
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      const int (&d)[4] = p.d[k];
      const int total = (odd ? d[2] : d[0]) * 256 + (odd ? d[3] : d[1]) - p.offset[k];
      sum.sum = fmaf(float(total), p.scale[k], kMins ? sum.sum + p.least[k] : sum.sum);
    }
  }

  __device__ __forceinline__ static float total(const Sum& sum, int) { return sum.sum; }
};

}  // namespace amk
