// Compares the arithmetic of the CPU side with slow, independent statements of it. Prints a digest of
// results and a line for each check, and fails if one does. The argument is how many outputs it takes
// for each distribution of products; "digest": nothing but the digest.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <chrono>
#include <vector>

#include "../machine/mma.h"
#include "products.h"

using namespace machine;

namespace {

int failures;
// One check: the number of cases, and of those that differ.
void report(const char* what, uint64_t cases, uint64_t wrong) {
  const bool fails = wrong != 0 || cases == 0;
  printf("%s %s: %" PRIu64 " cases, %" PRIu64 " mismatches\n", fails ? "FAIL" : "ok  ", what, cases, wrong);
  failures += fails;
}
// A check of a check: it has to find a difference.
void report_found(const char* what, uint64_t found) {
  printf("%s %s: found in %" PRIu64 " outputs\n", found ? "ok  " : "FAIL", what, found);
  failures += found == 0;
}

// ---- products of 16 bits ----

// A warp's operands by row and column, and the lanes' registers of them by the tables of the PTX
// ISA, in which an element is looked up: not as the code under test packs them.
struct Tile {
  u16 a[16][16], b[8][16];
  u32 c[16][8];
};
void to_lanes(const Tile& t, MmaLane* lanes) {
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane & 3;
    auto& [a, b, d] = lanes[lane];
    for (int i = 0; i < 8; ++i) {  // a0 to a7
      const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
      const int column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      a[i / 2] = i % 2 ? a[i / 2] | u32(t.a[row][column]) << 16 : t.a[row][column];
    }
    for (int i = 0; i < 4; ++i) {  // b0 to b3
      const int k = in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);
      b[i / 2] = i % 2 ? b[i / 2] | u32(t.b[group][k]) << 16 : t.b[group][k];
    }
    for (int i = 0; i < 4; ++i) d[i] = t.c[i < 2 ? group : group + 8][in_group * 2 + (i & 1)];
  }
}
uint64_t differing(const Tile& t, Half type, const TensorCore& core, const Statement& statement) {
  MmaLane lanes[32];
  to_lanes(t, lanes);
  mma_m16n8k16(core, type, lanes);
  uint64_t wrong = 0;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = (lane >> 2) + (i < 2 ? 0 : 8), column = (lane & 3) * 2 + (i & 1);
      const u32 want = statement.product(t.a[row], t.b[column], t.c[row][column], 16);
      wrong += want != lanes[lane].d[i];
    }
  }
  return wrong;
}

Statement statement_of(Half type, const TensorCore& core) {
  Statement s;
  s.fraction = type == Half::kBf16 ? 7 : 10;
  s.products = core.products;
  s.bits = core.fraction_bits;
  return s;
}
Tile random_tile(Half type, Distribution distribution, uint64_t key) {
  Tile t;
  Random random{key};
  const Operands of{type == Half::kBf16 ? 7 : 10, distribution};
  of.fill(&t.a[0][0], 16, false, random);
  of.fill(&t.b[0][0], 8, true, random);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      t.c[row][column] = of.accumulator(t.a[row], t.b[column], random);
  return t;
}

void products(uint64_t outputs) {
  const struct { const char* name; TensorCore core; } cores[] = {
      {"sm_90", kTensorCoreSm90}, {"sm_80", kTensorCoreSm80}};
  for (const auto& core : cores) {
    for (Half type : {Half::kBf16, Half::kFp16}) {
      const char* const name = type == Half::kBf16 ? "bf16" : "fp16";
      for (int d = 0; d < kDistributions; ++d) {
        uint64_t wrong = 0, n = 0;
        Tile t{};
        for (uint64_t i = 0; n < outputs; ++i, n += 128) {
          const bool chain = Distribution(d) == Distribution::kChained && i % 16 != 0;
          MmaLane lanes[32];
          if (chain) {
            to_lanes(t, lanes);
            mma_m16n8k16(core.core, type, lanes);
          }
          t = random_tile(type, Distribution(d), uint64_t(d) << 40 | i);
          for (int lane = 0; chain && lane < 32; ++lane)
            for (int j = 0; j < 4; ++j) t.c[lane / 4 + j / 2 * 8][lane % 4 * 2 + j % 2] = lanes[lane].d[j];
          wrong += differing(t, type, core.core, statement_of(type, core.core));
        }
        char what[100];
        snprintf(what, sizeof what, "mma of %s as on %s, %s", name, core.name, name_of(Distribution(d)));
        report(what, n, wrong);
      }
      // Crafted cases, eight to a tile: with their own operands on its diagonals, with others' elsewhere.
      const std::vector<Crafted> crafted = craft(type == Half::kBf16 ? 7 : 10, outputs / 400 * 8);
      uint64_t wrong[kGroups] = {}, cases[kGroups] = {};
      for (size_t i = 0; i < crafted.size(); i += 8) {
        Tile t;
        for (int j = 0; j < 8; ++j) {
          for (int half = 0; half < 2; ++half) {
            memcpy(t.a[j + half * 8], crafted[i + j].a, 32);
            for (u32& c : t.c[j + half * 8]) c = crafted[i + j].c;
          }
          memcpy(t.b[j], crafted[i + j].b, 32);
        }
        wrong[crafted[i].group] += differing(t, type, core.core, statement_of(type, core.core));
        cases[crafted[i].group] += 128;
      }
      for (int g = 0; g < kGroups; ++g) {
        char what[100];
        snprintf(what, sizeof what, "mma of %s as on %s, crafted: %s", name, core.name, kGroupNames[g]);
        report(what, cases[g], wrong[g]);
      }
    }
  }
}

// The comparison sees each rule of the statement: with one changed, outputs differ.
void rules() {
  const auto count = [](Half type, Distribution d, Statement changed) {
    uint64_t found = 0;
    for (uint64_t i = 0; i < 400; ++i)
      found += differing(random_tile(type, d, uint64_t(d) << 40 | i), type, kTensorCoreSm90, changed);
    return found;
  };
  Statement s = statement_of(Half::kBf16, kTensorCoreSm90);
  s.bits = 24;
  report_found("24 fraction bits", count(Half::kBf16, Distribution::kFour, s));
  s.bits = 26;
  report_found("26 fraction bits", count(Half::kBf16, Distribution::kFour, s));
  s = statement_of(Half::kBf16, kTensorCoreSm90);
  s.products = 8;
  report_found("steps of 8", count(Half::kBf16, Distribution::kFour, s));
  s = statement_of(Half::kBf16, kTensorCoreSm90);
  s.floor = -132;
  report_found("a floor of -132", count(Half::kBf16, Distribution::kDeep, s));
  s.floor = -134;
  report_found("a floor of -134", count(Half::kBf16, Distribution::kDeep, s));
  s = statement_of(Half::kBf16, kTensorCoreSm90);
  s.zeros_count = true;
  report_found("zeros with an exponent", count(Half::kBf16, Distribution::kDeep, s));
  s = statement_of(Half::kBf16, kTensorCoreSm90);
  s.to_infinity = false;
  report_found("the largest number for infinity", count(Half::kBf16, Distribution::kHigh, s));
}

void wide_products(uint64_t outputs) {
  uint64_t n = 0, wrong = 0;
  for (uint64_t i = 0; n < outputs; ++i) {
    const Half type = i % 2 ? Half::kFp16 : Half::kBf16;
    const bool adds = i % 3 != 0;
    const int columns = int(i % 32 + 1) * 8;
    Random random{i + 77};
    const Operands of{type == Half::kBf16 ? 7 : 10, Distribution(i / 2 % kDistributions)};
    Tile t{};
    u16 b[kMostWideColumns][16], rows[16][16];
    u32 c[16][kMostWideColumns], a[32][4], d[32 * kMostWideColumns / 2];
    MmaLane lanes[32];
    of.fill(&t.a[0][0], 16, false, random);
    of.fill(&b[0][0], columns, true, random);
    to_lanes(t, lanes);
    for (int lane = 0; lane < 32; ++lane) memcpy(a[lane], lanes[lane].a, sizeof a[lane]);
    rows_of_registers(a, rows);
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < columns; ++column)
        c[row][column] = of.accumulator(t.a[row], b[column], random);
    // Sum i of a lane: row lane / 4 (+ 8 if i / 2 is odd), column i / 4 * 8 + lane % 4 * 2 + i % 2.
    const auto row_of = [](int lane, int i) { return (lane >> 2) + (i & 2) * 4; };
    const auto column_of = [](int lane, int i) { return (i >> 2) * 8 + (lane & 3) * 2 + (i & 1); };
    const int sums = columns / 2;
    for (int lane = 0; lane < 32; ++lane)
      for (int j = 0; j < sums; ++j) d[lane * sums + j] = c[row_of(lane, j)][column_of(lane, j)];
    wgmma_m64k16(kTensorCoreSm90, type, rows, b, columns, adds, d);
    const Statement statement = statement_of(type, kTensorCoreSm90);
    for (int lane = 0; lane < 32; ++lane) {
      for (int j = 0; j < sums; ++j, ++n) {
        const int row = row_of(lane, j), column = column_of(lane, j);
        wrong += d[lane * sums + j] !=
                 statement.product(t.a[row], b[column], adds ? c[row][column] : 0, 16);
      }
    }
  }
  report("wgmma against the statement", n, wrong);
}

void descriptors() {
  uint64_t n = 0, wrong = 0;
  // As prompt_wgmma.cuh makes it: 64 columns of B, groups of eight side by side.
  SharedOperand o;
  const u64 good = u64(0x12340 >> 4) | u64(64 * 16 >> 4) << 16 | u64(8 * 16 >> 4) << 32;
  wrong += decode_operand(good, o) != nullptr || o.start != 0x12340;
  for (int column = 0; column < 64; ++column)
    for (int k = 0; k < 16; k += 8, ++n) wrong += o.offset(column, k) != u32(k / 8 * 1024 + column * 16);
  for (int bit : {14, 15, 30, 31, 46, 48, 49, 51, 52, 61, 62, 63}) {
    ++n;
    wrong += decode_operand(good | u64(1) << bit, o) == nullptr;
  }
  for (u64 bad : {good & ~(u64(0x3fff) << 16), good & ~(u64(0x3fff) << 32)}) {
    ++n;
    wrong += decode_operand(bad, o) == nullptr;
  }
  report("descriptors of wgmma", n, wrong);
}

void integer_products(uint64_t outputs) {
  uint64_t n = 0, wrong = 0;
  for (uint64_t i = 0; n < outputs; ++i) {
    Random random{i + 5};
    const bool is_signed = i % 2, extreme = i % 4 >= 2;
    MmaLane lanes[32], before[32];
    for (MmaLane& lane : lanes) {
      for (u32& v : lane.a) v = extreme ? (is_signed ? 0x80808080u : ~0u) : random.word();
      for (u32& v : lane.b) v = extreme ? 0x80808080u : random.word();
      for (u32& v : lane.d) v = extreme ? 0x80000000u + random.word() % 9 : random.word();
    }
    memcpy(before, lanes, sizeof lanes);
    mma_m16n8k32(is_signed, lanes);
    for (int lane = 0; lane < 32; ++lane) {
      for (int j = 0; j < 4; ++j, ++n) {
        const int row = (lane >> 2) + (j >= 2 ? 8 : 0), column = (lane & 3) * 2 + (j & 1);
        __int128 sum = before[lane].d[j];
        for (int k = 0; k < 32; ++k) {
          // Byte k of a row: group row % 8, thread k / 4 % 4, register by the halves of rows and k.
          const u32 x = before[row % 8 * 4 + k / 4 % 4].a[(row >= 8) + (k >= 16) * 2] >> k % 4 * 8 & 255;
          const u32 y = before[column * 4 + k / 4 % 4].b[k >= 16] >> k % 4 * 8 & 255;
          sum += __int128(is_signed && x > 127 ? int(x) - 256 : int(x)) * (y > 127 ? int(y) - 256 : int(y));
        }
        wrong += u32(sum) != lanes[lane].d[j];
      }
    }
  }
  report("integers modulo 2^32", n, wrong);
}

void transposes() {
  uint64_t n = 0, wrong = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    Random random{i};
    u32 from[32], to[32];
    for (u32& v : from) v = random.word();
    memcpy(to, from, sizeof to);
    movmatrix(to);
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 8; ++column, ++n) {
        const u32 was = from[column * 4 + row / 2] >> row % 2 * 16 & 0xffff;
        wrong += was != (to[row * 4 + column / 2] >> column % 2 * 16 & 0xffff);
      }
    }
  }
  report("movmatrix", n, wrong);
}

void speed() {
  const int kTiles = 64, kTimes = 400;
  for (Half type : {Half::kBf16, Half::kFp16}) {
    static MmaLane lanes[kTiles][32];
    for (int i = 0; i < kTiles; ++i) to_lanes(random_tile(type, Distribution::kFour, i), lanes[i]);
    const auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < kTimes; ++j)
      for (int i = 0; i < kTiles; ++i) mma_m16n8k16(kTensorCoreSm90, type, lanes[i]);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    printf("     m16n8k16 of %s: %.0f ns, %.1f ns for an output\n", type == Half::kBf16 ? "bf16" : "fp16",
           took * 1e9 / (kTiles * kTimes), took * 1e9 / (kTiles * kTimes * 128));
  }
}

}  // namespace

// In math_test.cc.
void math_checks(void (*report)(const char*, uint64_t, uint64_t), bool all);
uint64_t math_digest();

// Results as one number, which is the same however this was compiled. Operands are drawn one after
// another: compilers evaluate arguments in different orders.
uint64_t digest_of_all() {
  uint64_t digest = math_digest();
  Random r{4};
  for (int i = 0; i < 90; ++i) {
    MmaLane lanes[32];
    for (MmaLane& lane : lanes) {
      // Exponents of a few sizes, or all there are.
      for (u32& v : lane.a) v = i % 3 ? (r.word() & 0x87ff87ff) | 0x38003800 : r.word();
      for (u32& v : lane.b) v = i % 3 ? (r.word() & 0x87ff87ff) | 0x38003800 : r.word();
      for (u32& v : lane.d) v = i % 3 ? (r.word() & 0x83ffffff) | 0x38000000 : r.word();
    }
    mma_m16n8k16(i % 2 ? kTensorCoreSm90 : kTensorCoreSm80, i % 5 ? Half::kBf16 : Half::kFp16, lanes);
    for (const MmaLane& lane : lanes)
      for (u32 v : lane.d) digest = (digest ^ v) * 1099511628211u;
  }
  return digest;
}

int main(int count, char** arguments) {
  printf("digest %016" PRIx64 "\n", digest_of_all());
  if (count > 1 && strcmp(arguments[1], "digest") == 0) return 0;
  const uint64_t outputs = count > 1 ? strtoull(arguments[1], nullptr, 10) : 10000;
  products(outputs);
  rules();
  wide_products(outputs);
  descriptors();
  integer_products(outputs);
  transposes();
  math_checks(report, outputs > 100000);
  speed();
  if (failures != 0) printf("%d checks failed\n", failures);
  return failures != 0;
}
