// The KV cache: the layout of its rows, and what their bytes mean. A block is 16 rows of K, then
// those of V, of one kv head. Rows of a quantised cache are integers, and each has a scale for K
// and one for V at the end of the block: a copy of a block includes them. H are the HeadSizes of a
// layer (heads.cuh). Needs schedule.h. Must not know who reads or writes which row.
#pragma once

#include "element.cuh"
#include "hw/memory.cuh"

namespace amk {

constexpr bool kQuantisedCache = kSame<CacheElement, Int8>;
constexpr int kCacheRows = 16;  // of a block
// the scales of K and V of a row
constexpr int kRowScaleBytes = kQuantisedCache ? 2 * Bf16::kBytes : 0;
static_assert(!kCacheFragments || kQuantisedCache || kSame<CacheElement, Element>,
              "an mma takes rows of the cache as they lie, with operands of their type");

// A block of 16-bit elements is matrices of 8 rows by 16 bytes, which ldmatrix reads for an mma,
// and wgmma where they are. Of K their rows are those of the cache, and a matrix has half of 16
// dims: pairs of those, by turns, as a lane has four of a query side by side. The matrices of all
// dims come one after the other, first those of rows 0 to 7. Of V rows are dims, and a matrix has
// eight of the cache's: for each eight dims those of rows 0 to 7 and of rows 8 to 15.
constexpr bool kCacheMatrices = kCacheFragments && CacheElement::kBytes == 2;
constexpr int kMatrixBytes = 8 * 16;

// From one matrix of a half of a block to that with the next eight rows of a product's operand:
// rows of the cache, or dims.
template <class H>
constexpr int kNextKeys = H::kPaddedHead / 8 * kMatrixBytes;
constexpr int kNextDims = 2 * kMatrixBytes;

// Byte offset of an element of the cache inside its head (ir.Layout, kvfrag16 and kvrows16).
template <class H>
__device__ __forceinline__ int cache_offset(u32 row, u32 dim, bool is_value) {
  const u32 base = row / kCacheRows * H::kCacheBlockBytes + (is_value ? H::kHalfBlockBytes : 0);
  const u32 r = row % kCacheRows, d = dim % 16;
  if constexpr (!kCacheFragments) return base + (r * H::kPaddedHead + dim) * CacheElement::kBytes;
  if constexpr (kCacheMatrices) {
    return base + (is_value ? dim / 8 * kNextDims + r / 8 * kMatrixBytes + d % 8 * 16 + r % 8 * 2
                            : r / 8 * kNextKeys<H> + (dim / 16 * 2 + d % 4 / 2) * kMatrixBytes +
                                  r % 8 * 16 + d / 4 * 4 + d % 2 * 2);
  }
  const u32 lane = is_value ? d % 8 * 4 + r % 8 / 2 : r % 8 * 4 + d / 4;
  const u32 reg = is_value ? d / 8 + r / 8 * 2 : r / 8 + d % 4 / 2 * 2;
  const u32 half = is_value ? r % 2 : d % 2;
  return base + dim / 16 * (256 * CacheElement::kBytes) +
         (lane * 8 + reg * 2 + half) * CacheElement::kBytes;
}

// ---- scales -------------------------------------------------------------------------------------

// Byte offset of the scales of a row inside its head: a bf16 for K, then one for V.
template <class H>
__device__ __forceinline__ int scale_offset(int row) {
  return row / kCacheRows * H::kCacheBlockBytes + 2 * H::kHalfBlockBytes +
         row % kCacheRows * kRowScaleBytes;
}

// What the integers of K and of V of a row are multiplied by; 1 where they are values.
struct RowScales {
  float k = 1, v = 1;
};
template <class H>
__device__ __forceinline__ RowScales row_scales(const u8* head, int row) {
  if constexpr (!kQuantisedCache) return {};
  const u32 both = load_partly_written(reinterpret_cast<const u32*>(head + scale_offset<H>(row)));
  return {Bf16::to_float(u16(both)), Bf16::to_float(u16(both >> 16))};
}

template <class H>
__device__ __forceinline__ void store_scale(u8* head, int row, bool is_value, float scale) {
  *reinterpret_cast<Bf16::Bits*>(head + scale_offset<H>(row) + is_value * Bf16::kBytes) =
      Bf16::from_float(scale);
}

// How a row is quantised: to multiples of 1/127 of its largest magnitude, which is rounded to a
// bf16. A row whose magnitude has no inverse becomes zeros. One with an infinity or a NaN gets a
// scale that says so, and 0 for every element.
struct RowQuantiser {
  float scale, inverse;
  __device__ explicit __forceinline__ RowQuantiser(float largest)
      : scale(rounded<Bf16>(div_rn(largest, 127.0f))) {
    if (scale < 0x1p-100f) scale = 0;
    inverse = scale == 0 ? 0 : reciprocal_rn(scale);
  }
  __device__ __forceinline__ Int8::Bits operator()(float v) const {
    return Int8::from_float(v * inverse);
  }
};

// The larger magnitude of two elements, as the bits of one: magnitudes are ordered like their bits,
// and NaNs come last.
__device__ __forceinline__ u32 larger_magnitude(u32 a, float b) {
  return max(a, bits_of(b) & 0x7fffffffu);
}
// The largest over the lanes of a warp.
__device__ __forceinline__ float largest_of_warp(u32 own) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) own = max(own, shuffle_xor(own, offset));
  return float_of_bits(own);
}

// ---- integers as operands of an mma -------------------------------------------------------------

// Bytes of a fragment that a lane has: four registers of two elements each.
template <int kBytes>
struct LaneFragment {
  using Type = uint4;
};
template <>
struct LaneFragment<1> {
  using Type = uint2;
};
using CacheFragment = LaneFragment<CacheElement::kBytes>::Type;

// Two of the four signed bytes of a register as 16-bit numbers, the first two or the others. Every
// one is exact.
template <class E>
__device__ __forceinline__ u32 numbers_of(u32 bytes, bool others);

// A byte is placed after the exponent of 128, so that its sign is the lowest bit of the exponent.
// `rest` clears that bit and `sign` keeps it alone: 128 + the other bits, less 128 or 256.
template <>
__device__ __forceinline__ u32 numbers_of<Bf16>(u32 bytes, bool others) {
  const u32 pair = byte_perm(bytes, 0x43434343u, others ? 0x4342 : 0x4140);
  const u32 rest = pair & 0xff7fff7fu, sign = pair & 0xff80ff80u;
  return Bf16::sub2(rest, sign);
}

// A byte plus 128, put after the upper half of a power of two in fp16, whose significand has room
// for it, less that power and 128: 0x64 is that of 1024, and 0x4c that of 16, which makes it 1/64.
template <u32 kUpper>
__device__ __forceinline__ u32 halves_of(u32 bytes, bool others) {
  const u32 pair =
      byte_perm(bytes ^ 0x80808080u, kUpper * 0x01010101u, others ? 0x4342 : 0x4140);
  const u32 taken = (kUpper << 8 | 0x80) * 0x10001u;
  return Fp16::sub2(pair, taken);
}
template <>
__device__ __forceinline__ u32 numbers_of<Fp16>(u32 bytes, bool others) {
  return halves_of<0x64>(bytes, others);
}

// What a lane has of a fragment, as an operand.
template <class E>
__device__ __forceinline__ uint4 operand_of(uint4 fragment) {
  return fragment;
}
template <class E>
__device__ __forceinline__ uint4 operand_of(uint2 fragment) {
  return make_uint4(numbers_of<E>(fragment.x, false), numbers_of<E>(fragment.x, true),
                    numbers_of<E>(fragment.y, false), numbers_of<E>(fragment.y, true));
}

// ---- values -------------------------------------------------------------------------------------

// The scale of a value goes into its probability, which is then rounded to a bf16. The range of
// fp16 is too narrow for that: there values are multiplied and rounded, by 64 times the scale and
// 1/64 of the integer, so that neither is out of range where the value is not.
constexpr bool kScalesValues = kQuantisedCache && kSame<Element, Fp16>;

// The weight of a row of values for a probability, before it is rounded.
__device__ __forceinline__ float weighed(float p, const RowScales& scales) {
  return kQuantisedCache && !kScalesValues ? p * scales.v : p;
}

// An element of a row of values, as it is weighted.
__device__ __forceinline__ float value_of(CacheElement::Bits bits, float scale) {
  const float v = CacheElement::to_float(bits);
  return kScalesValues ? rounded<Element>(rounded<Element>(64 * scale) * (v / 64)) : v;
}

// An element of a row of values whose weight is not rounded. In fp16 it is rounded with its scale,
// as others are.
__device__ __forceinline__ float whole_value(CacheElement::Bits bits, float scale) {
  const float v = value_of(bits, scale);
  return kQuantisedCache && !kScalesValues ? v * scale : v;
}

// The same of a row of a head, or of blocks in a row.
template <class H>
__device__ __forceinline__ float whole_value(const u8* head, int row, int dim) {
  const auto* at =
      reinterpret_cast<const CacheElement::Bits*>(head + cache_offset<H>(row, dim, true));
  return whole_value(*at, row_scales<H>(head, row).v);
}

// What a lane has of a fragment of values, as an operand: `low` are the scales of its first two
// rows as value_of takes them, and `high` those of the rows that are 8 further.
__device__ __forceinline__ uint4 scaled_operand_of(uint2 fragment, u32 low, u32 high) {
  return make_uint4(Fp16::mul2(halves_of<0x4c>(fragment.x, false), low),
                    Fp16::mul2(halves_of<0x4c>(fragment.x, true), low),
                    Fp16::mul2(halves_of<0x4c>(fragment.y, false), high),
                    Fp16::mul2(halves_of<0x4c>(fragment.y, true), high));
}

}  // namespace amk
