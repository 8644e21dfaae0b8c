// hw/math.cuh's CPU side against slow statements: conversions and packed operations by exact
// integers, approximate functions by long double, within what PTX and CUDA document.
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "../amk_cpu/math.h"
#include "products.h"

using namespace amk;

namespace {

using Report = void (*)(const char*, uint64_t, uint64_t);
struct Count {
  uint64_t cases = 0, wrong = 0;
  void see(bool right) { ++cases, wrong += !right; }
};

// digits * 2^scale to the nearest number of 16 bits, ties to even: bit by bit.
u16 to_half(Wide digits, int scale, int fraction, bool negative_zero) {
  const int bias = fraction == 7 ? 127 : 15;
  const u16 sign = digits < 0 || (digits == 0 && negative_zero) ? 0x8000 : 0;
  if (digits < 0) digits = -digits;
  bool rest = false, half = false;
  while (digits >= Wide(1) << (fraction + 1) || scale < 1 - bias - fraction) {
    rest |= half;
    half = (digits & 1) != 0;
    digits >>= 1;
    ++scale;
    if (digits == 0 && !half) break;
  }
  if (scale < 1 - bias - fraction) return sign;
  if (half && (rest || (digits & 1) != 0)) ++digits;
  while (digits != 0 && digits < Wide(1) << fraction && scale > 1 - bias - fraction) digits <<= 1, --scale;
  if (digits == Wide(1) << (fraction + 1)) digits >>= 1, ++scale;
  if (digits < Wide(1) << fraction) return u16(sign | u16(digits));
  const int field = scale + fraction + bias;
  if (field > 2 * bias) return u16(sign | (2 * bias + 1) << fraction);
  return u16(sign | field << fraction | (u16(digits) & ((1 << fraction) - 1)));
}

// x * y + z.
u16 fma_statement(int fraction, u16 x, u16 y, u16 z) {
  using Number = Statement::Number;
  const Number p = Statement::times(Statement::number(x, fraction, 16), Statement::number(y, fraction, 16));
  const Number c = Statement::number(z, fraction, 16);
  const u16 infinity = fraction == 7 ? 0x7f80 : 0x7c00;
  if (p.kind == Number::kNan || c.kind == Number::kNan) return 0x7fff;
  if (p.kind == Number::kInfinite || c.kind == Number::kInfinite) {
    if (p.kind == c.kind && p.negative != c.negative) return 0x7fff;
    return u16((p.kind == Number::kInfinite ? p.negative : c.negative) << 15 | infinity);
  }
  Wide big = p.negative ? -p.digits : p.digits, small = c.negative ? -c.digits : c.digits;
  int scale_of_big = p.scale, scale_of_small = c.scale;
  if (big == 0 || (small != 0 && scale_of_small > scale_of_big)) {
    std::swap(big, small);
    std::swap(scale_of_big, scale_of_small);
  }
  // What is far below only says which way a tie goes.
  if (small != 0 && scale_of_big - scale_of_small > 90) {
    small = small < 0 ? -1 : 1;
    scale_of_small = scale_of_big - 90;
  }
  if (small == 0) scale_of_small = scale_of_big;
  const Wide sum = (big << (scale_of_big - scale_of_small)) + small;
  return to_half(sum, scale_of_small, fraction, p.negative && c.negative);
}
u16 any_half(int fraction, Random& r) {
  switch (r.between(0, 9)) {
    case 0: return uint16_t(r.sign() << 15 | uint32_t(fraction == 7 ? 0x7f80 : 0x7c00));
    case 1: return uint16_t(r.sign() << 15 | r.word() % 4);
    case 2: return uint16_t(r.sign() << 15 | (0x7fff - r.word() % 300));
    case 3: return uint16_t(r.word());
  }
  return encode16(fraction, r.sign(), r.between(-14, 14), r.one_in(3) ? r.word() & 3 : r.word());
}

void packed(Report report, bool all) {
  for (int fraction : {7, 10}) {
    const bool bf16 = fraction == 7;
    Count mul, sub, fma;
    Random r{uint64_t(fraction)};
    const u16 one = bf16 ? 0x3f80 : 0x3c00;
    for (int i = 0; i < (all ? 4000000 : 200000); ++i) {
      u16 v[3][2];
      u32 packed[3] = {};
      for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 2; ++k) packed[j] |= u32(v[j][k] = any_half(fraction, r)) << 16 * k;
      const u32 product = bf16 ? mul2_bf16(packed[0], packed[1]) : mul2_fp16(packed[0], packed[1]);
      const u32 difference = bf16 ? sub2_bf16(packed[0], packed[1]) : sub2_fp16(packed[0], packed[1]);
      const u32 fused = bf16 ? fma2_bf16(packed[0], packed[1], packed[2])
                             : fma2_fp16(packed[0], packed[1], packed[2]);
      for (int k = 0; k < 2; ++k) {
        // A product is one with -0 added, and a difference one with a factor of -1.
        mul.see(u16(product >> 16 * k) == fma_statement(fraction, v[0][k], v[1][k], 0x8000));
        sub.see(u16(difference >> 16 * k) == fma_statement(fraction, v[1][k], one | 0x8000, v[0][k]));
        fma.see(u16(fused >> 16 * k) == fma_statement(fraction, v[0][k], v[1][k], v[2][k]));
      }
    }
    // A tie that a tiny addend breaks, which a double does not hold.
    for (int by = 0; by < (bf16 ? 125 : 24); ++by) {
      const u16 x = u16(one | 1), half = u16(bf16 ? 0x3fc0 : 0x3e00);  // (1 + 2^-n) * 1.5
      for (u16 sign : {0, 0x8000}) {
        const u16 z = u16(encode16(fraction, 0, -by, 0) | sign);
        const u16 got = u16(bf16 ? fma2_bf16(x, half, z) : fma2_fp16(x, half, z));
        fma.see(got == fma_statement(fraction, x, half, z));
      }
    }
    report(bf16 ? "mul2_bf16" : "mul2_fp16", mul.cases, mul.wrong);
    report(bf16 ? "sub2_bf16" : "sub2_fp16", sub.cases, sub.wrong);
    report(bf16 ? "fma2_bf16" : "fma2_fp16", fma.cases, fma.wrong);
  }
}

void conversions(Report report, bool all) {
  for (int fraction : {7, 10}) {
    Count to, from;
    const auto rounds = [&](u32 bits) {
      const Statement::Number n = Statement::number(bits, 23, 32);
      const u16 infinity = fraction == 7 ? 0x7f80 : 0x7c00;
      u16 want = to_half(n.negative ? -n.digits : n.digits, n.scale, fraction, n.negative);
      if (n.kind == n.kNan) want = 0x7fff;
      if (n.kind == n.kInfinite) want = u16(n.negative << 15 | infinity);
      const float v = float_of_bits(bits);
      to.see((fraction == 7 ? float_to_bf16(v) : float_to_fp16(v)) == want);
    };
    for (u32 bits = 0; bits < 65536; ++bits) {
      // The value of each, and the floats around it and around its tie with the next.
      const Statement::Number n = Statement::number(bits, fraction, 16);
      const double value = std::ldexp(double(n.negative ? -n.digits : n.digits), n.scale);
      const float got = fraction == 7 ? float_of_bits(bits << 16) : fp16_to_float(u16(bits));
      if (n.kind == n.kFinite) from.see(double(got) == value && std::signbit(got) == n.negative);
      else if (n.kind == n.kInfinite) from.see(std::isinf(got) && std::signbit(got) == n.negative);
      else from.see(std::isnan(got));
      const u32 step = fraction == 7 ? 1 << 16 : 1 << 13;
      for (u32 off : {0u, step / 2 - 1, step / 2, step / 2 + 1, step - 1}) rounds(bits_of(got) + off);
    }
    for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += all ? 211 : 10007) rounds(u32(bits));
    report(fraction == 7 ? "float_to_bf16" : "float_to_fp16", to.cases, to.wrong);
    report(fraction == 7 ? "bf16 to float" : "fp16_to_float", from.cases, from.wrong);
  }

  Count e4m3;
  for (u32 bits = 0; bits < 256; ++bits) {
    const u32 exponent = bits >> 3 & 15, digits = bits & 7;
    const double value = exponent ? std::ldexp(8 + digits, int(exponent) - 10) : std::ldexp(digits, -9);
    for (int i = 0; i < 4; ++i) {
      const u32 others = 0x38c57e01 & ~(255u << 8 * i);
      const uint2 halves = e4m3x4_to_halves(bits << 8 * i | others);
      const u16 half = u16((i < 2 ? halves.x : halves.y) >> i % 2 * 16);
      if ((bits & 127) == 127) e4m3.see(half == 0x7fff);
      else e4m3.see(fp16_to_float(half) == (bits & 128 ? -value : value) && half >> 15 == bits >> 7);
    }
  }
  report("e4m3x4_to_halves", e4m3.cases, e4m3.wrong);

  Count ints, longs, floats, down, up, of_u64;
  Random r{3};
  for (int i = 0; i < (all ? 3000000 : 200000); ++i) {
    const u64 word = u64(r.word()) << 32 | r.word();
    float f = float_of_bits(u32(word));
    if (i % 2) f = std::ldexp(float(int(r.word() % 4097) - 2048), r.between(-2, 24)) * (i % 4 == 1 ? 1 : 0.5f);
    long double whole = f != f ? 0 : std::nearbyint((long double)f);
    if (whole > INT32_MAX) whole = INT32_MAX;
    if (whole < INT32_MIN) whole = INT32_MIN;
    ints.see(float_to_int(f) == whole);
    double d = double_of_bits(word);
    if (i % 4 == 1) d = std::ldexp(double(int64_t(word)), r.between(-70, 2));
    if (i % 4 == 2) d = double(f) * (1 + r.between(-2, 2) * 0x1p-52);
    if (i % 8 == 3) d = int(word % 4096) * 0.5 - 1024;
    if (d != d) longs.see(double_to_int64(d) == INT64_MIN);
    else {
      whole = std::nearbyint((long double)d);
      longs.see(whole >= 0x1p63L ? double_to_int64(d) == INT64_MAX
                                 : whole < -0x1p63L ? double_to_int64(d) == INT64_MIN
                                                    : double_to_int64(d) == whole);
    }
    const float low = double_to_float_down(d), high = double_to_float_up(d), near = double_to_float(d);
    if (d != d) {
      down.see(low != low), up.see(high != high), floats.see(near != near);
    } else {
      down.see(double(low) <= d && (std::isinf(low) || std::nextafterf(low, INFINITY) > d));
      up.see(double(high) >= d && (std::isinf(high) || std::nextafterf(high, -INFINITY) < d));
      floats.see((near == low || near == high) &&
                 (std::isinf(low) || std::isinf(high) || std::fabs(near - d) <= std::fabs(low - d)) &&
                 (std::isinf(low) || std::isinf(high) || std::fabs(near - d) <= std::fabs(high - d)));
    }
    const u64 number = word >> r.between(0, 63);
    // To 24 bits by hand.
    int shift = 0;
    while (number >> shift >> 24 != 0) ++shift;
    const Wide kept = number >> shift, rest = number - (u64(kept) << shift);
    const bool more = shift > 0 && (rest * 2 > (Wide(1) << shift) || (rest * 2 == (Wide(1) << shift) && (kept & 1)));
    of_u64.see(double(u64_to_float(number)) == std::ldexp(double(kept + more), shift));
  }
  report("float_to_int", ints.cases, ints.wrong);
  report("double_to_int64", longs.cases, longs.wrong);
  report("double_to_float", floats.cases, floats.wrong);
  report("double_to_float_down", down.cases, down.wrong);
  report("double_to_float_up", up.cases, up.wrong);
  report("u64_to_float", of_u64.cases, of_u64.wrong);
}

void integers(Report report) {
  Count perm, dot, first, high, least;
  Random r{9};
  for (int i = 0; i < 100000; ++i) {
    const u32 a = r.word(), b = r.word(), selector = r.word();
    u8 bytes[8], chosen[4];
    memcpy(bytes, &a, 4);
    memcpy(bytes + 4, &b, 4);
    for (int j = 0; j < 4; ++j) chosen[j] = bytes[(selector >> 4 * j & 15) % 8];
    u32 want;
    memcpy(&want, chosen, 4);
    perm.see(byte_perm(a, b, selector) == want);
    int8_t x[4], y[4];
    memcpy(x, &a, 4);
    memcpy(y, &b, 4);
    dot.see(u32(dot4(int(a), int(b), int(selector))) ==
            u32(int64_t(int(selector)) + x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3]));
    int lowest = 0;
    const u32 sparse = a & b & selector;
    for (int j = 31; j >= 0; --j)
      if (sparse >> j & 1) lowest = j + 1;
    first.see(find_first(sparse) == lowest);
    const u64 m = u64(a) << 32 | b, n = u64(selector) << 32 | r.word();
    // By halves.
    const u64 middle = (m & ~0u) * (n >> 32) + ((m & ~0u) * (n & ~0u) >> 32);
    const u64 rest = (m >> 32) * (n & ~0u) + (middle & ~0u);
    high.see(multiply_high(m, n) == (m >> 32) * (n >> 32) + (middle >> 32) + (rest >> 32));
  }
  first.see(find_first(0) == 0);
  const float none = NAN;
  least.see(min(none, 1.0f) == 1 && max(1.0f, none) == 1 && std::isnan(max(none, none)));
  least.see(std::signbit(min(0.0f, -0.0f)) && std::signbit(min(-0.0f, 0.0f)));
  least.see(!std::signbit(max(0.0f, -0.0f)) && !std::signbit(max(-0.0f, 0.0f)));
  least.see(min(-1, 1) == -1 && min(-1, 1u) == 1u && max(-1, 1u) == ~0u && max(u64(5), u64(7)) == 7);
  report("byte_perm", perm.cases, perm.wrong);
  report("dot4", dot.cases, dot.wrong);
  report("find_first", first.cases, first.wrong);
  report("multiply_high", high.cases, high.wrong);
  report("min and max", least.cases, least.wrong);
}

// ---- approximate functions ----

struct Approximate {
  uint64_t cases = 0, outside = 0, not_nearest = 0;
  long double worst = 0;
  // A result of `exact`, with errors in units of the last place of it and relative to it.
  void see(float got, long double exact, long double ulps, long double relative) {
    ++cases;
    const float nearest = float(exact);
    not_nearest += bits_of(got) != bits_of(nearest);
    int exponent;
    std::frexp(exact < 0 ? -exact : exact, &exponent);  // in [0.5, 1) * 2^exponent
    const long double unit = std::ldexp(1.0L, exponent - 24 < -149 ? -149 : exponent - 24);
    const long double off = std::fabs((long double)got - exact);
    if (off / unit > worst) worst = off / unit;
    const u32 steps = bits_of(got) > bits_of(nearest) ? bits_of(got) - bits_of(nearest)
                                                      : bits_of(nearest) - bits_of(got);
    outside += !(off <= ulps * unit) || steps > ulps + 0.5L || !(off <= relative * std::fabs(exact));
  }
  void done(Report report, const char* name) {
    char what[120];
    snprintf(what, sizeof what, "%s within its error (%.3Lf ulp at most)", name, worst);
    report(what, cases, outside);
    // Were it the nearest too often, code that needs the nearest would pass.
    snprintf(what, sizeof what, "%s is not the nearest (%.0f %%)", name, 100.0 * not_nearest / cases);
    report(what, cases, not_nearest < cases / 5);
  }
};

void approximate(Report report, bool all) {
  const uint64_t stride = all ? 997 : 20011, end = uint64_t(1) << 32;
  constexpr long double kAny = 1e30L;
  {
    Approximate of;
    Count ends;
    for (uint64_t bits = 0; bits < end; bits += stride / 4) {
      const float x = float_of_bits(u32(bits));
      const float got = exp2_approximate(x);
      if (x != x) ends.see(bits_of(got) == 0x7fffffff);
      else if (x >= 128) ends.see(std::isinf(got) && got > 0);
      else if (x < -126) ends.see(bits_of(got) == 0);
      else if (std::fabs(x) < 0x1p-126f) ends.see(got == 1);
      else of.see(got, std::exp2((long double)x), 2, kAny);
      ends.see(bits_of(exp2_approximate(x)) == bits_of(got) && (got == 0 || !(got < 0x1p-126f)));
    }
    // Where results have steps of two sizes, and at the ends of the normal numbers.
    for (int i = -126; i <= 127; ++i) {
      for (int j = -40; j <= 40; ++j) {
        const float x = i + j * 0x1p-24f * (i ? std::fabs(float(i)) : 0.01f);
        if (x >= -126 && std::fabs(x) >= 0x1p-126f) of.see(exp2_approximate(x), std::exp2((long double)x), 2, kAny);
      }
    }
    ends.see(exp2_approximate(0) == 1 && exp2_approximate(-0.0f) == 1 && exp2_approximate(-INFINITY) == 0);
    of.done(report, "exp2_approximate");
    report("exp2_approximate at its ends", ends.cases, ends.wrong);
  }
  {
    Approximate of, root;
    Count ends;
    for (uint64_t bits = 0; bits < end; bits += stride / 4) {
      const float x = float_of_bits(u32(bits)), size = std::fabs(x);
      const float got = reciprocal_approximate(x), inverse = rsqrtf(x);
      if (x != x) ends.see(bits_of(got) == 0x7fffffff && bits_of(inverse) == 0x7fffffff);
      else {
        ends.see(std::signbit(got) == std::signbit(x));
        if (size < 0x1p-126f) ends.see(std::isinf(got));
        else if (size > 0x1p126f) ends.see(got == 0);
        else of.see(got, 1 / (long double)x, 1, kAny);
        if (x < 0) ends.see(bits_of(inverse) == 0x7fffffff);
        else if (x > 0 && !std::isinf(x))
          root.see(inverse, 1 / std::sqrt((long double)x), 2, std::exp2(-22.9L));
      }
    }
    for (int i = -126; i <= 126; ++i) ends.see(reciprocal_approximate(std::ldexp(1.0f, i)) == std::ldexp(1.0f, -i));
    ends.see(reciprocal_approximate(INFINITY) == 0 && std::isinf(reciprocal_approximate(0)) &&
             reciprocal_approximate(-0.0f) == -INFINITY && bits_of(reciprocal_approximate(-INFINITY)) == 0x80000000);
    ends.see(rsqrtf(0.0f) == INFINITY && rsqrtf(-0.0f) == -INFINITY && bits_of(rsqrtf(INFINITY)) == 0);
    of.done(report, "reciprocal_approximate");
    root.done(report, "rsqrtf");
    report("reciprocal_approximate and rsqrtf at their ends", ends.cases, ends.wrong);
  }
  {
    Approximate of;
    Count ends;
    for (uint64_t bits = 0; bits < end; bits += stride / 8) {
      const float x = float_of_bits(u32(bits)), got = exp_fast(x);
      if (x != x) ends.see(bits_of(got) == 0x7fffffff);
      else if (x > 88.73f) ends.see(std::isinf(got));
      else if (x < -110) ends.see(bits_of(got) == 0);
      else if (x > -87 && x < 88.7f)
        of.see(got, std::exp((long double)x), 2 + std::floor(1.173L * std::fabs(x)), kAny);
      else ends.see(got >= 0 && (x > 0 || got <= 0x1p-125f));
    }
    ends.see(exp_fast(0) == 1 && exp_fast(-INFINITY) == 0 && exp_fast(INFINITY) == INFINITY);
    of.done(report, "exp_fast");
    report("exp_fast at its ends", ends.cases, ends.wrong);
  }
  {
    Approximate of;
    Count ends, near_one;
    for (uint64_t bits = 0; bits < end; bits += stride / 4) {
      const float x = float_of_bits(u32(bits)), got = log2_fast(x);
      if (x == 0) ends.see(got == -INFINITY);
      else if (!(x > 0)) ends.see(bits_of(got) == 0x7fffffff);
      else if (std::isinf(x)) ends.see(got == INFINITY);
      else if (x > 0.5f && x < 2) near_one.see(std::fabs(got - std::log2((long double)x)) <= 0x1p-22L);
      else of.see(got, std::log2((long double)x), 2, 0x1p-22L);
    }
    u64 of_one = 0;
    for (u32 bits = 0x3f000001; bits < 0x40000000; bits += all ? 3 : 101) {
      const float x = float_of_bits(bits), got = log2_fast(x);
      near_one.see(std::fabs(got - std::log2((long double)x)) <= 0x1p-22L);
      of_one += got == float(std::log2((long double)x));
    }
    near_one.see(of_one < near_one.cases / 5);
    of.done(report, "log2_fast");
    report("log2_fast between 0.5 and 2", near_one.cases, near_one.wrong);
    report("log2_fast at its ends", ends.cases, ends.wrong);
  }
  {
    Approximate of;
    Count ends;
    Random r{8};
    for (uint64_t i = 0; i < end / stride * 4; ++i) {
      float n = float_of_bits(r.word()), d = float_of_bits(r.word());
      if (i % 2) {
        n = float_of_bits(encode32(0, r.between(-20, 20), r.word()));
        d = float_of_bits(encode32(r.sign(), r.between(-20, 20), r.word()));
      }
      if (i % 16 == 5) n = d * 3;
      const float got = divide_fast(n, d);
      ends.see(bits_of(divide_fast(n, d)) == bits_of(got));
      const long double quotient = (long double)n / d;
      if (n != n || d != d) ends.see(bits_of(got) == 0x7fffffff);
      else if (std::isinf(d)) ends.see(std::isinf(n) ? got != got : got == 0);
      else if (std::fabs(d) > 0x1p126f) ends.see(std::isinf(n) ? got != got : got == 0);
      else if (std::fabs(d) < 0x1p-126f) continue;
      else if (n == 0 || std::isinf(n)) ends.see(got == n / d);
      else if (std::fabs(quotient) >= 0x1p128L) ends.see(std::isinf(got));
      else if (std::fabs(quotient) < 0x1p-126L) ends.see(std::fabs(got - quotient) <= 0x1p-149L);
      else if (std::fabs(quotient) < 0x1.fffff8p127L) of.see(got, quotient, 2, kAny);
    }
    of.done(report, "divide_fast");
    report("divide_fast at its ends", ends.cases, ends.wrong);
  }
}

}  // namespace

void math_checks(Report report, bool all) {
  integers(report);
  conversions(report, all);
  packed(report, all);
  approximate(report, all);
}

// All functions on the same arguments, as one number.
uint64_t math_digest() {
  uint64_t digest = 14695981039346656037u;
  const auto take = [&](u64 v) { digest = (digest ^ v) * 1099511628211u; };
  Random r{1};
  for (int i = 0; i < 20000; ++i) {
    const u32 a = r.word(), b = r.word(), c = r.word();
    const float x = float_of_bits(a), small = float(int(b)) * 0x1p-25f;
    const float positive = float_of_bits(a & 0x7fffffff);
    for (float v : {exp2_approximate(x), exp2_approximate(small), exp_fast(small), log2_fast(positive),
                    log2_fast(1 + small * 0x1p-8f), reciprocal_approximate(x), rsqrtf(positive),
                    divide_fast(x, float_of_bits(b)), divide_fast(small, 3), fp16_to_float(u16(a)),
                    double_to_float_down(small / 3.0), double_to_float_up(small / 3.0)})
      take(bits_of(v));
    for (u32 v : {mul2_bf16(a, b), mul2_fp16(a, b), sub2_bf16(a, b), sub2_fp16(a, b), fma2_bf16(a, b, c),
                  fma2_fp16(a, b, c), u32(float_to_bf16(x)), u32(float_to_fp16(x)), byte_perm(a, b, c),
                  u32(dot4(int(a), int(b), int(c))), u32(float_to_int(small)), e4m3x4_to_halves(a).x})
      take(v);
    take(u64(double_to_int64(small * 0x1p40)));
  }
  return digest;
}
