#include "mma.h"

#include <cstring>

namespace machine {
TensorCore tensor_core = kTensorCoreSm90;

namespace {

using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;

// Eight outputs of a row at a time, in vectors of the compiler. All products and scalings of floats
// below are exact, so that no rounding, contraction or flag of the compiler changes a bit.
using Shorts = i16 __attribute__((vector_size(16)));
using Ints = i32 __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));

constexpr int kWarp = 32;       // lanes
constexpr int kSide = 8;        // columns of a vector
constexpr int kDepth = 16;      // k of a product
constexpr int kFloor = -133;    // the least that the largest exponent counts as
constexpr i16 kAbsent = -8192;  // the exponent of a zero: below any other, twice too
constexpr u32 kNan = 0x7fffffff, kInfinity = 0x7f800000, kSign = 0x80000000;

template <Half kType>
struct Format {
  static constexpr int kFraction = kType == Half::kBf16 ? 7 : 10;
  static constexpr int kBias = kType == Half::kBf16 ? 127 : 15, kTop = 2 * kBias + 1;
};

// Eight shorts that are not negative, as ints. Bytes are in little-endian order.
inline void widen(Ints (&to)[2], Shorts from) {
  const Shorts zero{};
#ifdef __clang__
  to[0] = (Ints)__builtin_shufflevector(from, zero, 0, 8, 1, 9, 2, 10, 3, 11);
  to[1] = (Ints)__builtin_shufflevector(from, zero, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  to[0] = (Ints)__builtin_shuffle(from, zero, Shorts{0, 8, 1, 9, 2, 10, 3, 11});
  to[1] = (Ints)__builtin_shuffle(from, zero, Shorts{4, 12, 5, 13, 6, 14, 7, 15});
#endif
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "widen, and registers of two numbers");

// Elements in parts: significands with their sign, as integers in floats, and exponents. A
// subnormal has the exponent of the smallest normal number. What is infinite or NaN is a zero here
// and marked; its outputs are computed again.
struct Parts {
  Floats significand[2];
  Shorts exponent;
  bool special;
};

template <class F>
inline void split(Parts& parts, Shorts bits) {
  const Shorts field = bits >> F::kFraction & i16(F::kTop);
  const Shorts fraction = bits & i16((1 << F::kFraction) - 1);
  const Shorts normal = field != 0;  // -1 where it is
  const Shorts special = field == i16(F::kTop);
  Shorts magnitude = (fraction | (normal & i16(1 << F::kFraction))) & ~special;
  const Shorts zero = magnitude == 0;
  parts.exponent = ((field + i16(1 - F::kBias) + normal) & ~zero) | (zero & kAbsent);
  Ints of[2], negative[2];
  widen(of, magnitude);
  widen(negative, bits >> 15 & 1);
  for (int i = 0; i < 2; ++i)
    parts.significand[i] = (Floats)((Ints)__builtin_convertvector(of[i], Floats) | negative[i] << 31);
  u64 any[2];
  memcpy(any, &special, sizeof any);
  parts.special = (any[0] | any[1]) != 0;
}

// A and B for a run of k: B by k, with a lane for each of eight columns; A by row and k.
struct Left {
  float significand[kSide * 2][kDepth];
  i16 exponent[kSide * 2][kDepth];
  bool special[kSide * 2];
};
struct Right {
  Floats significand[kDepth][2];
  Shorts exponent[kDepth];
  bool special;
};

template <class F>
void prepare(Left& left, const u16 (*a)[kDepth]) {
  for (int row = 0; row < 2 * kSide; ++row) {
    left.special[row] = false;
    for (int k = 0; k < kDepth; k += kSide) {
      Shorts bits;
      memcpy(&bits, a[row] + k, sizeof bits);
      Parts parts;
      split<F>(parts, bits);
      memcpy(left.significand[row] + k, parts.significand, sizeof parts.significand);
      memcpy(left.exponent[row] + k, &parts.exponent, sizeof parts.exponent);
      left.special[row] |= parts.special;
    }
  }
}

template <class F>
void prepare(Right& right, const u16 (*b)[kDepth]) {
  right.special = false;
  for (int k = 0; k < kDepth; ++k) {
    Shorts bits{};
    for (int column = 0; column < kSide; ++column) bits[column] = i16(b[column][k]);
    Parts parts;
    split<F>(parts, bits);
    memcpy(right.significand[k], parts.significand, sizeof parts.significand);
    right.exponent[k] = parts.exponent;
    right.special |= parts.special;
  }
}

// One output with an infinity or a NaN among its terms; false if it has none. A step takes kProducts.
template <class F>
bool special_sum(const u16* a, const u16* b, int products, u32& c) {
  bool nan = (c & ~kSign) > kInfinity, infinite[2] = {};
  if ((c & ~kSign) == kInfinity) infinite[c >> 31] = true;
  constexpr u32 kTop = u32(F::kTop) << F::kFraction;
  for (int k = 0; k < products; ++k) {
    const u32 x = a[k] & 0x7fff, y = b[k] & 0x7fff;
    if (x < kTop && y < kTop) continue;
    if (x > kTop || y > kTop || x == 0 || y == 0) nan = true;
    infinite[(a[k] ^ b[k]) >> 15] = true;
  }
  if (!nan && !infinite[0] && !infinite[1]) return false;
  c = nan || (infinite[0] && infinite[1]) ? kNan : infinite[1] ? kSign | kInfinity : kInfinity;
  return true;
}

// sum * 2^(exponent - kFractionBits), cut to fp32.
template <int kFractionBits>
u32 cut_any(i64 sum, int exponent) {
  if (sum == 0) return 0;
  const u32 sign = sum < 0 ? kSign : 0;
  const u64 magnitude = u64(sum < 0 ? -sum : sum);
  const int top = 63 - __builtin_clzll(magnitude), unit = exponent - kFractionBits;
  if (unit + top > 127) return sign | kInfinity;
  const bool normal = unit + top >= -126;
  const int gone = normal ? top - 23 : -149 - unit;
  u32 bits = u32(gone >= 0 ? magnitude >> gone : magnitude << -gone);
  // The leading bit of a normal number adds 1 to the field.
  if (normal) bits += u32(unit + top + 126) << 23;
  return bits == 0 ? 0 : sign | bits;
}
// The same, fast where the result is a normal number: as a double, which has room for the sum, it is
// that number with more digits and another exponent.
template <int kFractionBits>
inline u32 cut(i64 sum, int exponent) {
  const double v = double(sum);
  u64 bits;
  memcpy(&bits, &v, sizeof bits);
  const int field = int(bits >> 52 & 2047) + exponent - kFractionBits - 1023 + 127;
  if (field < 1 || field > 254) return cut_any<kFractionBits>(sum, exponent);
  return u32(bits >> 32 & kSign) | u32(field) << 23 | u32(bits >> 29 & 0x7fffff);
}

// One step for a row and eight columns: products first to first + kProducts - 1.
template <class F, int kProducts, int kFractionBits>
inline void step(const float* a, const i16* a_exponent, const Right& right, int first, u32* c) {
  // Accumulators in parts, as split has elements.
  Floats significand[2] = {};
  Shorts exponent_of_c{};
  for (int n = 0; n < kSide; ++n) {
    const u32 field = c[n] >> 23 & 255, fraction = c[n] & 0x7fffff;
    const i32 magnitude = field == 255 ? 0 : i32(fraction | u32(field != 0) << 23);
    significand[n / 4][n % 4] = float(c[n] >> 31 ? -magnitude : magnitude);
    exponent_of_c[n] = magnitude == 0 ? kAbsent : i16(i32(field + (field == 0)) - 127);
  }

  Shorts largest = exponent_of_c > kFloor ? exponent_of_c : Shorts{} + i16(kFloor);
  for (int i = 0; i < kProducts; ++i) {
    const Shorts exponent = right.exponent[first + i] + a_exponent[first + i];
    largest = exponent > largest ? exponent : largest;
  }
  // A term is its significand times a power of two in units of its own. The power is made as the
  // exponent field of a float: 0, which is 0, for terms that are cut to nothing.
  const auto powers = [](Ints (&to)[2], Shorts field) {
    widen(to, field > 0 ? field : Shorts{});
    to[0] <<= 23, to[1] <<= 23;
  };
  const Shorts to_field = i16(127 + kFractionBits - 2 * F::kFraction) - largest;
  Ints sum[2] = {}, power[2];
  for (int i = 0; i < kProducts; ++i) {
    const int k = first + i;
    powers(power, right.exponent[k] + a_exponent[k] + to_field);
    // Toward zero.
    sum[0] += __builtin_convertvector(right.significand[k][0] * a[k] * (Floats)power[0], Ints);
    sum[1] += __builtin_convertvector(right.significand[k][1] * a[k] * (Floats)power[1], Ints);
  }
  powers(power, exponent_of_c + (i16(127 + kFractionBits - 23) - largest));
  Ints added[2];
  for (int i = 0; i < 2; ++i)
    added[i] = __builtin_convertvector(significand[i] * (Floats)power[i], Ints);
  for (int n = 0; n < kSide; ++n)
    c[n] = cut<kFractionBits>(i64(sum[n / 4][n % 4]) + added[n / 4][n % 4], largest[n]);
}

// The sum of 16 products fits an int: each is below 2^(kFractionBits + 2).
template <class F, int kProducts, int kFractionBits>
void multiply(const u16 (*a)[kDepth], const Left& left, const u16 (*b)[kDepth], const Right& right,
              u32 (*c)[kSide]) {
  static_assert(kDepth % kProducts == 0, "whole steps");
  for (int row = 0; row < 2 * kSide; ++row) {
    for (int first = 0; first < kDepth; first += kProducts) {
      u32 before[kSide];
      memcpy(before, c[row], sizeof before);
      step<F, kProducts, kFractionBits>(left.significand[row], left.exponent[row], right, first,
                                        c[row]);
      bool special = left.special[row] || right.special;
      for (int n = 0; n < kSide; ++n) special |= (before[n] & kInfinity) == kInfinity;
      if (!special) continue;
      for (int n = 0; n < kSide; ++n)
        if (special_sum<F>(a[row] + first, b[n] + first, kProducts, before[n])) c[row][n] = before[n];
    }
  }
}

template <Half kType>
void prepare_and_multiply(const TensorCore& core, const u16 (*a)[kDepth], const u16 (*b)[kDepth],
                          int groups, u32 (*c)[2 * kSide][kSide]) {
  using F = Format<kType>;
  Left left;
  Right right;
  prepare<F>(left, a);
  for (int g = 0; g < groups; ++g, b += kSide) {
    prepare<F>(right, b);
    if (core.products == 16) multiply<F, 16, 25>(a, left, b, right, c[g]);
    else multiply<F, 8, 24>(a, left, b, right, c[g]);
  }
}

void multiply_of(Half type, const TensorCore& core, const u16 (*a)[kDepth],
                 const u16 (*b)[kDepth], int groups, u32 (*c)[2 * kSide][kSide]) {
  if (type == Half::kBf16) prepare_and_multiply<Half::kBf16>(core, a, b, groups, c);
  else prepare_and_multiply<Half::kFp16>(core, a, b, groups, c);
}

// Register i of a lane's four of A has row lane / 4 + i % 2 * 8, and of it the column
// lane % 4 * 2 + i / 2 * 8 and the next.
void to_rows(u16 (*rows)[kDepth], int lane, const u32 (&a)[4]) {
  for (int i = 0; i < 4; ++i)
    memcpy(&rows[lane / 4 + i % 2 * 8][lane % 4 * 2 + i / 2 * 8], &a[i], 4);
}

}  // namespace

void mma_m16n8k16(const TensorCore& core, Half type, MmaLane* lanes) {
  u16 rows[2 * kSide][kDepth], columns[kSide][kDepth];
  u32 c[1][2 * kSide][kSide];
  for (int lane = 0; lane < kWarp; ++lane) {
    to_rows(rows, lane, lanes[lane].a);
    for (int i = 0; i < 2; ++i) {
      memcpy(&columns[lane / 4][lane % 4 * 2 + i * 8], &lanes[lane].b[i], 4);
      memcpy(&c[0][lane / 4 + i * 8][lane % 4 * 2], &lanes[lane].d[i * 2], 8);
    }
  }
  multiply_of(type, core, rows, columns, 1, c);
  for (int lane = 0; lane < kWarp; ++lane)
    for (int i = 0; i < 2; ++i)
      memcpy(&lanes[lane].d[i * 2], &c[0][lane / 4 + i * 8][lane % 4 * 2], 8);
}

void wgmma_m64k16(const TensorCore& core, Half type, const u16 (*a)[kWideDepth],
                  const u16 (*b)[kWideDepth], int columns, bool adds, u32* d) {
  // Sums are those of products of m16n8k16, one after another.
  const int groups = columns / kSide, sums = columns / 2;
  u32 c[kMostWideColumns / kSide][2 * kSide][kSide];
  if (!adds) memset(c, 0, size_t(groups) * sizeof c[0]);
  for (int lane = 0; adds && lane < kWarp; ++lane)
    for (int i = 0; i < 2 * groups; ++i)
      memcpy(&c[i / 2][lane / 4 + i % 2 * 8][lane % 4 * 2], &d[lane * sums + i * 2], 8);
  multiply_of(type, core, a, b, groups, c);
  for (int lane = 0; lane < kWarp; ++lane)
    for (int i = 0; i < 2 * groups; ++i)
      memcpy(&d[lane * sums + i * 2], &c[i / 2][lane / 4 + i % 2 * 8][lane % 4 * 2], 8);
}

void rows_of_registers(const u32 (*a)[4], u16 (*rows)[kWideDepth]) {
  for (int lane = 0; lane < kWarp; ++lane) to_rows(rows, lane, a[lane]);
}

void mma_m16n8k32(bool a_is_signed, MmaLane* lanes) {
  // Register i of A has rows lane / 4 + i % 2 * 8 and bytes lane % 4 * 4 + i / 2 * 16 to the fourth.
  i16 rows[16][32], columns[8][32];
  const auto widen = [](i16* to, u32 bytes, bool is_signed) {
    for (int i = 0; i < 4; ++i, bytes >>= 8) to[i] = is_signed ? i16(int8_t(bytes)) : i16(u8(bytes));
  };
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 4; ++i)
      widen(&rows[lane / 4 + i % 2 * 8][lane % 4 * 4 + i / 2 * 16], lanes[lane].a[i], a_is_signed);
    for (int i = 0; i < 2; ++i)
      widen(&columns[lane / 4][lane % 4 * 4 + i * 16], lanes[lane].b[i], true);
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const i16* const row = rows[lane / 4 + i / 2 * 8];
      const i16* const column = columns[lane % 4 * 2 + i % 2];
      i32 sum = 0;  // of at most 32 * 255 * 128
      for (int k = 0; k < 32; ++k) sum += row[k] * column[k];
      lanes[lane].d[i] += u32(sum);
    }
  }
}

void mma_bf16(MmaLane* lanes) { mma_m16n8k16(tensor_core, Half::kBf16, lanes); }
void mma_fp16(MmaLane* lanes) { mma_m16n8k16(tensor_core, Half::kFp16, lanes); }
void mma_s8(MmaLane* lanes) { mma_m16n8k32(true, lanes); }
void mma_u8s8(MmaLane* lanes) { mma_m16n8k32(false, lanes); }

void movmatrix(u32* lanes) {
  u16 rows[8][8];
  memcpy(rows, lanes, sizeof rows);  // four lanes have a row
  for (int lane = 0; lane < kWarp; ++lane)
    lanes[lane] = u32(rows[lane % 4 * 2 + 1][lane / 4]) << 16 | rows[lane % 4 * 2][lane / 4];
}

const char* decode_operand(u64 descriptor, SharedOperand& operand) {
  constexpr u64 kField = 0x3fff;
  operand = {u32(descriptor & kField) << 4, u32(descriptor >> 16 & kField) << 4,
             u32(descriptor >> 32 & kField) << 4};
  if (descriptor >> 62 != 0) return "a swizzled operand of wgmma is not modelled";
  if ((descriptor >> 49 & 7) != 0) return "a base offset in a descriptor of wgmma is not modelled";
  constexpr u64 kModelled = kField | kField << 16 | kField << 32;
  if ((descriptor & ~kModelled) != 0) return "reserved bits of a descriptor of wgmma are set";
  // Core matrices of 128 bytes that overlap, or rows of 16 bytes that are not apart.
  if (operand.next_k < 128 || operand.next_rows < 128)
    return "core matrices that a descriptor of wgmma names overlap";
  return nullptr;
}

}  // namespace machine
