// A slow statement of what a tensor core computes, one term after another, and the operands that it
// is asked about.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

using Wide = __int128;

struct Random {
  uint64_t state;
  uint32_t word() {
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return uint32_t((z ^ z >> 31) >> 16);
  }
  int between(int low, int high) { return low + int(word() % uint32_t(high - low + 1)); }
  bool one_in(int n) { return word() % uint32_t(n) == 0; }
  uint32_t sign() { return word() & 1; }
};

// ---- the statement ----

struct Statement {
  int fraction = 7;          // bits of an element's fraction: 7 of bf16, 10 of fp16
  int products = 16;         // of a step
  int bits = 25;             // kept below the largest exponent
  int floor = -133;          // of the largest exponent
  bool zeros_count = false;  // whether a zero has an exponent too
  bool to_infinity = true;   // whether what is too large is infinity

  // A number is digits * 2^exponent; infinities and NaN apart.
  struct Number {
    enum { kFinite, kInfinite, kNan } kind;
    bool negative;
    int64_t digits;
    int scale, exponent;  // digits * 2^scale; exponent as the tensor core has it
  };
  static Number number(uint32_t bits, int fraction, int width) {
    const int exponent_bits = width - 1 - fraction, bias = (1 << (exponent_bits - 1)) - 1;
    const int field = int(bits >> fraction & ((1u << exponent_bits) - 1));
    const int64_t rest = bits & ((1u << fraction) - 1);
    Number n{Number::kFinite, (bits >> (width - 1)) != 0, rest, 0, 0};
    if (field == (1 << exponent_bits) - 1) {
      n.kind = rest != 0 ? Number::kNan : Number::kInfinite;
      return n;
    }
    if (field != 0) n.digits += int64_t(1) << fraction;
    n.exponent = (field != 0 ? field : 1) - bias;
    n.scale = n.exponent - fraction;
    return n;
  }
  static Number times(const Number& a, const Number& b) {
    Number n{Number::kFinite, a.negative != b.negative, a.digits * b.digits, a.scale + b.scale,
             a.exponent + b.exponent};
    const auto zero = [](const Number& v) { return v.kind == Number::kFinite && v.digits == 0; };
    if (a.kind == Number::kNan || b.kind == Number::kNan) n.kind = Number::kNan;
    else if (a.kind == Number::kInfinite || b.kind == Number::kInfinite)
      n.kind = zero(a) || zero(b) ? Number::kNan : Number::kInfinite;
    return n;
  }

  uint32_t step(const uint16_t* a, const uint16_t* b, uint32_t c) const {
    std::vector<Number> terms{number(c, 23, 32)};
    for (int k = 0; k < products; ++k)
      terms.push_back(times(number(a[k], fraction, 16), number(b[k], fraction, 16)));
    bool plus = false, minus = false;
    for (const Number& t : terms) {
      if (t.kind == Number::kNan) return 0x7fffffff;
      if (t.kind == Number::kInfinite) (t.negative ? minus : plus) = true;
    }
    if (plus && minus) return 0x7fffffff;
    if (plus || minus) return minus ? 0xff800000 : 0x7f800000;
    int largest = floor;
    for (const Number& t : terms)
      if ((t.digits != 0 || zeros_count) && t.exponent > largest) largest = t.exponent;
    const int unit = largest - bits;  // terms are multiples of 2^unit
    Wide sum = 0;
    for (const Number& t : terms) {
      Wide cut = t.digits;
      for (int s = t.scale; s > unit; --s) cut *= 2;
      for (int s = t.scale; s < unit && cut != 0; ++s) cut /= 2;
      sum += t.negative ? -cut : cut;
    }
    const uint32_t sign = sum < 0 ? 0x80000000u : 0;
    Wide digits = sum < 0 ? -sum : sum;
    int scale = unit;
    for (; digits >= 1 << 24; ++scale) digits /= 2;
    for (; digits != 0 && digits < 1 << 23 && scale > -149; --scale) digits *= 2;
    for (; scale < -149; ++scale) digits /= 2;
    if (digits == 0) return 0;
    if (digits < 1 << 23) return sign | uint32_t(digits);
    const int field = scale + 23 + 127;
    if (field >= 255) return sign | (to_infinity ? 0x7f800000 : 0x7f7fffff);
    return sign | uint32_t(field) << 23 | (uint32_t(digits) & 0x7fffff);
  }
  uint32_t product(const uint16_t* a, const uint16_t* b, uint32_t c, int depth) const {
    for (int k = 0; k < depth; k += products) c = step(a + k, b + k, c);
    return c;
  }
};

// ---- operands at random ----

enum class Distribution {
  kOne, kFour, kTwelve, kFinite, kAny, kCancel, kMinusC, kChained, kLow, kSparse, kHigh, kDeep,
  kSubnormal, kApart
};
constexpr int kDistributions = 14;
inline const char* name_of(Distribution d) {
  static const char* const kNames[kDistributions] = {
      "exponents within 1", "exponents within 4", "exponents within 12", "all finite exponents",
      "any bits", "products that cancel in pairs", "an accumulator that cancels a product",
      "normal values in chains", "results that underflow", "half zeros", "results that overflow",
      "all below 2^-126", "subnormal operands", "sparse fractions far apart"};
  return kNames[int(d)];
}

inline uint16_t encode16(int fraction, uint32_t sign, int exponent, uint32_t digits) {
  const int bias = fraction == 7 ? 127 : 15;
  digits &= (1u << fraction) - 1;
  if (exponent > bias) exponent = bias;
  if (exponent > -bias) return uint16_t(sign << 15 | uint32_t(exponent + bias) << fraction | digits);
  const int below = 1 - bias - exponent;
  const uint32_t all = digits | 1u << fraction;
  return uint16_t(sign << 15 | (below > fraction ? 0 : all >> below));
}
inline uint32_t encode32(uint32_t sign, int exponent, uint32_t digits) {
  digits &= 0x7fffff;
  if (exponent > 127) exponent = 127;
  if (exponent >= -126) return sign << 31 | uint32_t(exponent + 127) << 23 | digits;
  const int below = -126 - exponent;
  return sign << 31 | (below > 23 ? 0 : (digits | 1u << 23) >> below);
}

struct Operands {
  int fraction;
  Distribution distribution;

  uint16_t element(bool is_b, int k, int shift, Random& r) const {
    const bool bf16 = fraction == 7;
    const uint32_t s = r.sign(), m = r.word();
    const auto normal = [&](int low, int high) {
      int e = r.between(low, high);
      const int least = bf16 ? -126 : -14;
      return encode16(fraction, s, e < least ? least : e, m);
    };
    const auto subnormal = [&](int fields, uint32_t digits) {
      return uint16_t(s << 15 | (r.word() % uint32_t(fields)) << fraction |
                      (digits & ((1u << fraction) - 1)));
    };
    switch (distribution) {
      case Distribution::kOne: return normal(-1, 1);
      case Distribution::kFour: return normal(-4, 4);
      case Distribution::kTwelve: return normal(-12, 12);
      case Distribution::kFinite: return bf16 ? normal(-126, 127) : normal(-14, 15);
      case Distribution::kAny: return uint16_t(m);
      case Distribution::kCancel: return normal(-3, 3);
      case Distribution::kMinusC:
        return is_b || k == 0 ? normal(-1, 1) : bf16 ? normal(-24, -6) : normal(-12, -4);
      case Distribution::kChained: {
        // The sum of four uniform numbers is near enough to a normal one.
        int sum = 0;
        for (int i = 0; i < 4; ++i) sum += r.between(-(1 << 15), 1 << 15);
        if (sum == 0) return 0;
        const uint32_t size = uint32_t(sum < 0 ? -sum : sum);
        const int top = 31 - __builtin_clz(size);
        const uint32_t digits = top > fraction ? size >> (top - fraction) : size << (fraction - top);
        return encode16(fraction, sum < 0, top - 16, digits);
      }
      case Distribution::kLow: return bf16 ? normal(-85, -50) : subnormal(4, m);
      case Distribution::kSparse: return r.one_in(2) ? uint16_t(s << 15) : normal(-12, 12);
      case Distribution::kHigh: return bf16 ? normal(52, 66) : normal(8, 15);
      case Distribution::kDeep:
        if (bf16) return is_b ? normal(-28 - shift, -9 - shift) : subnormal(10, m);
        return is_b ? normal(-14, 3) : subnormal(2, m % 16 ? 0 : m >> 4);
      case Distribution::kSubnormal:
        if (is_b) return bf16 ? normal(96, 126) : normal(-2, 15);
        return subnormal(bf16 ? 4 : 3, (m & ((1u << fraction) - 1)) >> r.between(0, fraction - 1));
      case Distribution::kApart: {
        if (r.one_in(8)) return uint16_t(s << 15);
        const uint32_t all = (1u << fraction) - 1, bit = 1u << r.between(0, fraction - 1);
        const uint32_t kinds[] = {0, all, bit, all & ~bit, all * bit, all / bit};
        return encode16(fraction, s, r.between(-14, 14), kinds[r.between(0, 5)]);
      }
    }
    return 0;
  }
  // So many rows of A, or columns of B, of 16.
  void fill(uint16_t* to, int lines, bool is_b, Random& r) const {
    const int shift = r.between(0, 24);
    for (int i = 0; i < lines * 16; ++i) {
      const int k = i % 16;
      if (distribution != Distribution::kCancel || k < 8) {
        to[i] = element(is_b, k, shift, r);
      } else {
        // The product is the other's negative, or next to it.
        to[i] = is_b ? uint16_t(to[i - 8] ^ (r.one_in(3) ? 1 : 0)) : uint16_t(to[i - 8] ^ 0x8000);
      }
    }
  }
  uint32_t accumulator(const uint16_t* a, const uint16_t* b, Random& r) const {
    const bool bf16 = fraction == 7;
    const uint32_t s = r.sign(), zero = s << 31;
    uint32_t m = r.word() & 0x7fffff;
    if (r.one_in(4)) m &= 0x7ff000;
    const auto normal = [&](int low, int high) { return encode32(s, r.between(low, high), m); };
    const auto small = [&](int fields) {
      return zero | (r.word() % uint32_t(fields)) << 23 | m >> r.between(0, 22);
    };
    switch (distribution) {
      case Distribution::kOne: return normal(-3, 6);
      case Distribution::kFour: return normal(-10, 10);
      case Distribution::kTwelve: return normal(-30, 30);
      case Distribution::kFinite: return bf16 ? normal(-126, 127) : normal(-40, 40);
      case Distribution::kAny: return bf16 || r.one_in(2) ? r.word() : normal(-60, 40);
      case Distribution::kCancel: return normal(-30, 4);
      case Distribution::kMinusC: {
        // The negative of the first product, now and then with another last bit or so.
        const Statement::Number p = Statement::times(Statement::number(a[0], fraction, 16),
                                                     Statement::number(b[0], fraction, 16));
        int64_t digits = p.digits;
        int exponent = p.scale + 23;
        for (; digits < 1 << 23; --exponent) digits *= 2;
        const uint32_t bits = encode32(!p.negative, exponent, uint32_t(digits));
        return r.one_in(2) ? bits : bits ^ 1u << r.between(0, 7);
      }
      case Distribution::kChained: return 0;
      case Distribution::kLow:
        if (r.one_in(4)) return zero;
        return bf16 ? small(24) : r.one_in(2) ? normal(-60, -20) : small(3);
      case Distribution::kSparse: return r.one_in(4) ? zero : normal(-30, 30);
      case Distribution::kHigh: return bf16 ? normal(112, 127) : normal(10, 34);
      case Distribution::kDeep: return r.one_in(4) ? small(bf16 ? 3 : 1) : zero;
      case Distribution::kSubnormal:
        return r.one_in(8) ? zero : bf16 ? normal(-40, 10) : normal(-35, 6);
      case Distribution::kApart: {
        const int by = r.between(0, 22);
        const uint32_t kinds[] = {0, 0x7fffff, 0x7fffffu >> by, 0x7fffffu << by & 0x7fffff};
        return encode32(s, r.between(-28, 28), kinds[r.between(0, 3)]);
      }
    }
    return 0;
  }
};

// ---- crafted operands ----

struct Crafted {
  int group;
  uint16_t a[16], b[16];
  uint32_t c;
};
constexpr int kGroups = 13;
constexpr const char* kGroupNames[kGroups] = {
    "one product and an accumulator at every gap", "one large and many tiny terms",
    "cancellation that leaves a tail", "significands of 2 and more", "subnormal operands",
    "zeros times large numbers", "infinities, NaN and other special values", "overflow", "underflow",
    "few terms", "exponents of all sizes", "carries", "zeros of both signs"};

struct Crafting {
  int fraction;
  Random r{uint64_t(12345)};
  Crafted now{};

  bool bf16() const { return fraction == 7; }
  uint32_t digits(int bits) {
    const uint32_t all = (1u << bits) - 1, bit = 1u << r.between(0, bits - 1);
    switch (r.between(0, 7)) {
      case 0: return 0;
      case 1: return all;
      case 2: return bit;
      case 3: return all & ~bit;
      case 4: return all & all * bit;
    }
    return r.word() & all;
  }
  // A product with that exponent, as far as the type has one.
  void product(int k, uint32_t sign, int exponent, uint32_t x, uint32_t y) {
    const int high = bf16() ? 127 : 15, low = 1 - high;
    const auto within = [&](int e) { return e < low ? low : e > high ? high : e; };
    int of_a = within(exponent / 2 + r.between(-6, 6)), of_b = within(exponent - of_a);
    of_a = within(exponent - of_b);
    const uint32_t s = r.sign();
    now.a[k] = encode16(fraction, s, of_a, x);
    now.b[k] = encode16(fraction, s ^ sign, of_b, y);
  }
  void product(int k, uint32_t sign, int exponent) {
    product(k, sign, exponent, digits(fraction), digits(fraction));
  }
  void negate_of(int to, int from) {
    now.a[to] = now.a[from] ^ 0x8000;
    now.b[to] = now.b[from];
  }
  uint16_t special() {
    const uint16_t s = uint16_t(r.sign() << 15), infinity = bf16() ? 0x7f80 : 0x7c00;
    switch (r.between(0, 11)) {
      case 0: return s;
      case 1: return s | 1;
      case 2: return uint16_t(s | ((1 << fraction) - 1));
      case 3: return uint16_t(s | 1 << fraction);
      case 4: return s | (infinity - 1);
      case 5: return s | infinity;
      case 6: return r.one_in(3) ? uint16_t(s | (infinity + 1 + r.between(0, (1 << fraction) - 2))) : s;
    }
    return uint16_t(s | encode16(fraction, 0, r.between(-10, 10), digits(fraction)));
  }
  uint32_t special32() {
    const uint32_t s = r.sign() << 31;
    switch (r.between(0, 9)) {
      case 0: return s;
      case 1: return s | 1;
      case 2: return s | 0x7fffff;
      case 3: return s | 0x800000;
      case 4: return s | 0x7f7fffff;
      case 5: return s | 0x7f800000;
      case 6: return r.one_in(3) ? s | 0x7f800001 | (r.word() & 0x7fffff) : s;
    }
    return s | encode32(0, r.between(-20, 20), digits(23));
  }
  uint32_t zero32() { return r.sign() << 31; }

  void make(int group) {
    now = {};
    now.group = group;
    const int e = bf16() ? r.between(-20, 20) : r.between(2, 28), n = r.between(1, 15);
    const uint32_t s = r.sign();
    const bool same = r.one_in(2);
    const auto either = [&] { return same ? s : r.sign(); };
    switch (group) {
      case 0:
        product(0, r.sign(), e);
        now.c = encode32(r.sign(), e + r.between(-45, 45), digits(23));
        break;
      case 1: {
        const int mode = r.between(0, 2), gap = r.between(18, 32);
        if (mode != 1) product(15, r.sign(), e);
        now.c = mode == 0 ? zero32()
                          : encode32(r.sign(), e + (mode == 2 ? r.between(-2, 2) : 0), digits(23));
        for (int k = 0; k < n; ++k) product(k, either(), e - gap + (r.one_in(2) ? r.between(-1, 1) : 0));
        break;
      }
      case 2: {
        const uint32_t x = digits(fraction), y = digits(fraction);
        product(14, 0, e, x, y);
        if (!r.one_in(3)) {
          negate_of(15, 14);
          if (same) now.b[15] ^= 1;
          now.c = encode32(r.sign(), e - r.between(10, 45), digits(23));
        } else {
          const Operands of{fraction, Distribution::kMinusC};
          if ((now.a[14] & 0x7fff) != 0 && (now.b[14] & 0x7fff) != 0)
            now.c = of.accumulator(now.a + 14, now.b + 14, r);
        }
        for (int k = 0; k < n - 1; ++k) product(k, r.sign(), e - r.between(15, 40));
        break;
      }
      case 3: {
        const uint32_t top = 3u << (fraction - 2);
        product(15, r.sign(), e, digits(fraction) | top, digits(fraction) | top);
        now.c = encode32(r.sign(), e - r.between(-4, 30), digits(23));
        for (int k = 0; k < n % 8; ++k) product(k, r.sign(), e - r.between(0, 30));
        if (same) negate_of(14, 15);
        break;
      }
      case 4: {
        const int low = bf16() ? -126 : -14, below = r.between(1, fraction);
        const int other = bf16() ? r.between(-10, 127) : r.between(-14, 15);
        for (int k = 0; k <= n % 6; ++k) {
          now.a[k] = encode16(fraction, r.sign(), low - (k ? r.between(1, fraction) : below), digits(fraction));
          now.b[k] = encode16(fraction, r.sign(), other + r.between(-2, 2), digits(fraction));
          if (r.one_in(2)) std::swap(now.a[k], now.b[k]);
        }
        if (same)
          for (int k = 8; k < 12; ++k) product(k, r.sign(), low - below + other + r.between(-30, 4));
        if (r.one_in(3)) negate_of(15, 0);
        now.c = r.one_in(6) ? zero32()
                            : encode32(r.sign(), low - below + other + r.between(-40, 40), digits(23));
        break;
      }
      case 5: {
        const int top = bf16() ? r.between(0, 127) : r.between(0, 15), low = bf16() ? -126 : -14;
        for (int k = 0; k <= n % 8; ++k) {
          now.a[k] = uint16_t(r.sign() << 15);
          now.b[k] = encode16(fraction, r.sign(), k ? r.between(low, top) : top, digits(fraction));
          if (r.one_in(2)) std::swap(now.a[k], now.b[k]);
        }
        const int middle = top + low - r.between(-3, 50);
        if (same)
          for (int k = 8; k < 12; ++k) product(k, r.sign(), middle + r.between(-30, 4));
        now.c = r.one_in(5) ? zero32() : encode32(r.sign(), middle + r.between(-30, 4), digits(23));
        break;
      }
      case 6:
        for (int k = 0; k <= n; ++k) {
          const auto one = [&] {
            return r.one_in(3) ? special()
                               : encode16(fraction, r.sign(), r.between(-3, 3), digits(fraction));
          };
          now.a[k] = one();
          now.b[k] = one();
        }
        now.c = same ? special32() : encode32(r.sign(), r.between(-5, 5), digits(23));
        break;
      case 7:
        for (int k = 0; k <= n; ++k)
          product(k, either(), !bf16() ? r.between(20, 30) : same ? r.between(120, 130) : r.between(100, 254));
        if (r.one_in(2)) negate_of(1, 0);
        now.c = r.one_in(4) ? 0
                            : r.one_in(3) || !bf16() ? (0x7f7fffff - r.word() % 4) | zero32()
                                                     : encode32(r.sign(), r.between(100, 127), digits(23));
        break;
      case 8: {
        const int base = bf16() ? r.between(-175, -120) : -28;
        for (int k = 0; k <= n; ++k) {
          product(k, either(), base + (r.one_in(2) ? r.between(-8, 8) : 0));
          if (!bf16() && r.one_in(2)) now.a[k] &= 0x8000;
        }
        now.c = r.one_in(3) ? zero32()
                            : encode32(r.sign(), bf16() ? base + r.between(-30, 30) : r.between(-150, -20), digits(23));
        break;
      }
      case 9:
        for (int k = 0; k < n % 4 + 1; ++k) product(k, r.sign(), e - r.between(0, 30));
        now.c = r.one_in(8) ? zero32() : encode32(r.sign(), e - r.between(0, 34), digits(23));
        break;
      case 10: {
        const int reach = bf16() ? 100 : 24;
        for (int k = 0; k < 16; ++k) product(k, r.sign(), r.between(-reach, reach));
        now.c = encode32(r.sign(), r.between(-reach, reach), digits(23));
        break;
      }
      case 11: {
        const uint32_t top = 3u << (fraction - 2);
        const int middle = r.between(-8, 8);
        for (int k = 0; k < 16; ++k)
          product(k, s, middle - r.between(0, 1), digits(fraction) | top, digits(fraction) | top);
        now.c = encode32(r.one_in(4) ? s ^ 1 : s, middle + r.between(-6, 6), digits(23));
        break;
      }
      case 12: {
        for (int k = 0; k < 16; ++k) {
          now.a[k] = uint16_t(r.sign() << 15);
          now.b[k] = same ? uint16_t(r.sign() << 15)
                          : encode16(fraction, r.sign(), r.between(-10, 10), digits(fraction));
        }
        if (r.one_in(3)) {
          product(0, 1, 2);
          negate_of(8, 0);
        }
        now.c = zero32();
        break;
      }
    }
    // Any term may come at any k.
    for (int i = 15; i > 0; --i) {
      const int j = r.between(0, i);
      std::swap(now.a[i], now.a[j]);
      std::swap(now.b[i], now.b[j]);
    }
  }
};

// So many cases of each group.
inline std::vector<Crafted> craft(int fraction, uint64_t of_each) {
  Crafting crafting{fraction};
  std::vector<Crafted> all;
  for (int group = 0; group < kGroups; ++group) {
    for (uint64_t i = 0; i < of_each; ++i) {
      crafting.make(group);
      all.push_back(crafting.now);
    }
  }
  return all;
}
