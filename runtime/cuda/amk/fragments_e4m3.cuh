// What a warp holds of a quad of floats of 4 or 8 bits, and how it multiplies it: as fp16, which
// has all of their values. Its activations become fp16 too, those of bf16 times a power of two.
// Needs schedule.h with AMK_TENSOR_CORES. Must not know where quads come from, nor what becomes of
// the sums.
#pragma once

#include "digits.cuh"
#include "e4m3.cuh"
#include "fragments.cuh"

namespace amk {

// Four activations of bf16 as fp16: times the power of two that takes the largest magnitude of the
// quad, `largest`, to at least 2^15 and less than 2^16. Those of at least 2^-31 of it keep their
// value; what is less is rounded to a multiple of 2^-39 of the power of two that it is at least. An
// infinity and NaN stay what they are. `scale` is what takes them back.
__device__ __forceinline__ uint2 halves_of_quad(const float (&v)[4], u32 largest, float& scale) {
  // An exponent field of e is 2^(e - 127); what is largest is taken for 2^-100 at least.
  const u32 e = max(largest >> 23, 27u);
  const float up = float_of_bits((2 * 127 + 15 - e) << 23);
  scale = float_of_bits((e - 15) << 23);
  const auto halves = [up](float a, float b) {
    return u32(Fp16::from_float(a * up)) | u32(Fp16::from_float(b * up)) << 16;
  };
  return make_uint2(halves(v[0], v[1]), halves(v[2], v[3]));
}

// Four activations of a quad that is in a warp, as fp16; those of fp16 as they are. All lanes
// call it.
__device__ __forceinline__ uint2 activations_in_halves(uint2 x, float& scale) {
  if constexpr (kSame<Element, Fp16>) {
    scale = 1;
    return x;
  } else {
    float v[4];
    to_floats(v, x);
    return halves_of_quad(v, warp_max(magnitude(v)), scale);
  }
}

// One mma.m16n8k16 eats a quarter of a quad, 8 rows by 32 columns: a lane holds 8 columns of one
// row, four in A rows 0-7 and the four that lie 16 columns on in A rows 8-15, and B columns 2g and
// 2g+1 hold the activations of the two halves of quarter g. The four quarters share one B register
// pair and have an accumulator each; the useful sums are d0 and d3 of the lane whose quarter it is.
template <class Number, int kGroup, class Scale>
struct Fragments<Floats<Number, kGroup, Scale>> {
  using W = Floats<Number, kGroup, Scale>;
  static constexpr int kBatch = 1, kQuarters = 4;
  struct Weights {
    uint4 half[W::kBits / 4] = {};
    typename Scale::Bits scale[W::kGroups] = {};  // of this lane's row

    // Eight numbers of a quarter, as rows lane / 4 and lane / 4 + 8 of A.
    __device__ __forceinline__ uint4 operand(int quarter) const {
      const uint4 two = half[W::kBits == 8 ? quarter / 2 : 0];  // quarters
      const uint2 first = W::to_halves(quarter % 2 ? two.z : two.x, quarter);
      const uint2 second = W::to_halves(quarter % 2 ? two.w : two.y, quarter);
      return make_uint4(first.x, second.x, first.y, second.y);
    }
    __device__ __forceinline__ float scale_of(int quarter) const {
      return Scale::to_float(scale[quarter * W::kGroups / 4]);
    }
  };
  struct Vector {
    uint2 four = {};
    float scale = 0;
  };
  struct Product {
    float d[kQuarters][4] = {};
    float scale[W::kGroups] = {};
  };
  struct Sum {
    float d[kQuarters] = {};
  };

  __device__ __forceinline__ static int column(int lane) { return lane * 4; }

  __device__ __forceinline__ static void load(Weights& w, const u8* quad, int lane, int) {
#pragma unroll
    for (int j = 0; j < W::kBits / 4; ++j)
      w.half[j] = *reinterpret_cast<const uint4*>(quad + j * 512 + lane * 16);
    using Row = typename LoadOf<sizeof(w.scale)>::Type;
    const Row scales = reinterpret_cast<const Row*>(quad + W::kScales)[lane / 4];
    memcpy(w.scale, &scales, sizeof scales);
  }

  // All lanes of a warp call it.
  __device__ __forceinline__ static Vector vector(uint2 x, int) {
    Vector to;
    to.four = activations_in_halves(x, to.scale);
    to.scale *= Number::kHalvesUnit;
    return to;
  }

  __device__ __forceinline__ static Product multiply(Sum&, const Weights& w, const Vector& x) {
    Product p;
#pragma unroll
    for (int j = 0; j < kQuarters; ++j) {
      const uint4 a = w.operand(j);
      Fp16::mma(p.d[j], a.x, a.y, a.z, a.w, x.four.x, x.four.y);
    }
#pragma unroll
    for (int g = 0; g < W::kGroups; ++g) p.scale[g] = Scale::to_float(w.scale[g]) * x.scale;
    return p;
  }

  __device__ __forceinline__ static void add(Sum& sum, const Product& p, int) {
#pragma unroll
    for (int j = 0; j < kQuarters; ++j)
      sum.d[j] = fmaf(p.d[j][0] + p.d[j][3], p.scale[j * W::kGroups / kQuarters], sum.d[j]);
  }

  __device__ __forceinline__ static float total(const Sum& sum, int lane) {
    const int quarter = lane & 3;
    float total = sum.d[0];
#pragma unroll
    for (int j = 1; j < kQuarters; ++j) total = quarter == j ? sum.d[j] : total;
    return total;
  }
};

}  // namespace amk
