// Runs attention on the CPU: units of the stages that the test lists as STAGES, over a cache of made-up rows. Each is held
// to a softmax by definition, in double precision, and so is the row that it appends, to the bit. Heads have sinks if SINKS is 1. Prints what differs.
#include "attention.h"
#include "made_up.h"
#include "stream.h"

constexpr int kRows = (kHeads + 2 * kKVHeads) * kHeadDim;
constexpr Page kOut{(kExchangeBytes + 255) / 256 * 256, 1 << 20, 1};
static float qkv[kRows];
static Array<u8, kOut.offset + kOut.bytes> exchange;
static Array<u8, kCacheBytes> cache;
alignas(256) static u8 before[kCacheBytes];
static Array<WeightElement::Bits, kHeads> sinks;
static int failures;

// ---- the cache, by definition (docs/ir.md) ----

constexpr bool kIntegers = CacheElement::kBytes == 1;
constexpr int kPadded = (kHeadDim + 15) / 16 * 16, kBlocks = (kMaxSeq + 15) / 16;
constexpr int kBlock = 32 * kPadded * CacheElement::kBytes + (kIntegers ? 64 : 0);

static u8* block_of(u8* cache, int head, int row) { return cache + (head * kBlocks + row / 16) * kBlock; }
static u16& scale_at(u8* cache, int head, int row, int is_value) {
  u8* scales = block_of(cache, head, row) + 32 * kPadded * CacheElement::kBytes;
  return reinterpret_cast<u16*>(scales)[row % 16 * 2 + is_value];
}
static CacheElement::Bits& element_at(u8* cache, int head, int row, int is_value, int dim) {
  auto* half = reinterpret_cast<CacheElement::Bits*>(block_of(cache, head, row)) + is_value * 16 * kPadded;
  const int r = row % 16, d = dim % 16;
  if (!kCacheFragments) return half[r * kPadded + dim];
  if (!kIntegers) {
    return is_value ? half[dim / 8 * 128 + r / 8 * 64 + dim % 8 * 8 + r % 8]
                    : half[r / 8 * 8 * kPadded + dim / 16 * 128 + d / 2 % 2 * 64 + r % 8 * 8 + d / 4 * 2 + d % 2];
  }
  half += dim / 16 * 256;
  return is_value ? half[(d % 8 * 4 + r % 8 / 2) * 8 + (d / 8 + r / 8 * 2) * 2 + r % 2]
                  : half[(r % 8 * 4 + d / 4) * 8 + (r / 8 + d % 4 / 2 * 2) * 2 + d % 2];
}
static double cached(int head, int row, int is_value, int dim) {
  const double v = CacheElement::to_float(element_at(before, head, row, is_value, dim));
  return kIntegers ? v * Bf16::to_float(scale_at(before, head, row, is_value)) : v;
}

// This step's row of a head: as it is handed over, and where the cache is of integers as it is rounded to them.
struct Own {
  float scale = 1;
  double value[kHeadDim];
  int integer[kHeadDim];
  Own(int head, int is_value) {
    const float* row = qkv + (is_value ? H::v_row(head) : H::k_row(head));
    float largest = 0;
    for (int d = 0; d < kHeadDim; ++d) largest = fmaxf(largest, fabsf(row[d]));
    if (kIntegers) scale = Bf16::to_float(Bf16::from_float(largest / 127));
    for (int d = 0; d < kHeadDim; ++d) {
      integer[d] = kIntegers && scale > 0 ? int(nearbyintf(row[d] * (1 / scale))) : 0;
      value[d] = kIntegers ? double(scale) * integer[d] : row[d];
    }
  }
};

static void wrong(const char* what, int unit, int position, double got, double want) {
  if (++failures < 20) printf("%s of unit %d at position %d: %g, want %g\n", what, unit, position, got, want);
}

// Reads element `index` of what a unit has handed over.
template <class E>
static float handed_over(u32 epoch, int index) {
  using Word = WordOf<E>;
  const auto word = reinterpret_cast<const typename Word::Type*>(exchange.all + kOut.offset)[index];
  return Word::fresh(word, epoch) ? Word::value(word) : NAN;
}

template <class S>
static void compare(int unit, int position, u32 epoch) {
  const int kv_head = unit / S::kSplits, split = unit % S::kSplits;
  const Own k(kv_head, 0), v(kv_head, 1);
  const bool owns = position / S::kShareRows % S::kSplits == split;
  const int first = S::kWindowRows ? max(0, position + 1 - S::kWindowRows) : 0;
  for (int h = 0; h < H::kGroupHeads; ++h) {
    const float* q = qkv + (kv_head * H::kGroupHeads + h) * kHeadDim;
    double sum = 0, top = -INFINITY, largest = 0, value[kHeadDim] = {};
    static double scores[kMaxSeq];
    for (int pass = 0; pass < 2; ++pass) {
      for (int row = first; row <= position; ++row) {
        if (row / S::kShareRows % S::kSplits != split || row == position && !owns) continue;
        if (pass == 0) {
          double score = 0;
          for (int d = 0; d < kHeadDim; ++d)
            score += q[d] * (row < position ? cached(kv_head, row, 0, d) : k.value[d]);
          score *= S::kScale;
          scores[row] = S::kScoreCap ? S::kScoreCap * tanh(score / S::kScoreCap) : score;
          top = fmax(top, scores[row]);
          continue;
        }
        const double p = exp(scores[row] - top);
        sum += p;
        for (int d = 0; d < kHeadDim; ++d) {
          const double x = row < position ? cached(kv_head, row, 1, d) : v.value[d];
          value[d] += p * x;
          largest = fmax(largest, fabs(x));
        }
      }
    }
    if (SINKS && split == 0) {
      const double sink = WeightElement::to_float(sinks[kv_head * H::kGroupHeads + h]), higher = fmax(top, sink);
      for (double& v : value) v *= exp(top - higher);
      sum = sum * exp(top - higher) + exp(sink - higher);
      top = higher;
    }
    // Scores differ by what sums in float32 do, and probabilities are rounded.
    const double slack = Element::kBytes == 4 ? 1e-4 : 1e-2, base = (unit * H::kGroupHeads + h) * (kHeadDim + 2);
    const double total = S::kSplits > 1 ? handed_over<Fp32>(epoch, base + kHeadDim + 1) : 1;
    if (S::kSplits > 1) {
      const float m = handed_over<Fp32>(epoch, base + kHeadDim);
      if (sum > 0 ? !(fabs(m - top) <= slack * (1 + fabs(top))) : m != -INFINITY)
        wrong("largest score", unit, position, m, top);
      if (!(fabs(total - sum) <= slack * sum)) wrong("sum", unit, position, total, sum);
      if (sum == 0) continue;
    }
    for (int d = 0; d < kHeadDim; ++d) {
      const double got = S::kSplits > 1 ? handed_over<Fp32>(epoch, base + d) / total
                                        : handed_over<Element>(epoch, (kv_head * H::kGroupHeads + h) * kHeadDim + d);
      if (!(fabs(got - value[d] / sum) <= slack * largest)) wrong("result", unit, position, got, value[d] / sum);
    }
  }
  // The row is in the cache.
  if (owns) {
    for (int is_value = 0; is_value < 2; ++is_value) {
      const Own& own = is_value ? v : k;
      for (int d = 0; d < kHeadDim; ++d)
        element_at(before, kv_head, position, is_value, d) =
            kIntegers ? CacheElement::Bits(own.integer[d]) : CacheElement::from_float(own.value[d]);
      if (kIntegers) scale_at(before, kv_head, position, is_value) = Bf16::from_float(own.scale);
    }
  }
}

// ---- the units of a position ----

// Rows from the position on are what an earlier sequence has left, and need not be finite.
static void make_up(int position, u32 epoch) {
  for (u8& b : cache) b = random_bits();
  for (int head = 0; head < kKVHeads; ++head) {
    for (int row = 0; row < kBlocks * 16; ++row) {
      for (int is_value = 0; is_value < 2; ++is_value) {
        const bool old = row >= position;
        if (kIntegers) {
          const float scale = fabsf(random_within(0.02f)) + 0.001f;
          scale_at(cache.all, head, row, is_value) = old ? row % 2 ? 0x7fc0 : 0x7f80 : Bf16::from_float(scale);
        }
        for (int d = 0; !kIntegers && d < kHeadDim; ++d)
          element_at(cache.all, head, row, is_value, d) =
              CacheElement::from_float(old ? row % 2 ? NAN : INFINITY : random_within(1));
        for (int d = kHeadDim; !kIntegers && d < kPadded; ++d) element_at(cache.all, head, row, is_value, d) = 0;
      }
    }
  }
  memcpy(before, cache.all, sizeof before);
  cache.write();
  for (int row = 0; row < kRows; ++row) {
    qkv[row] = random_within(row < H::k_row(0) ? 2 : 1);
    for (int copy = 0; copy < kQkv.copies; ++copy) {
      using Word = WordOf<Element>;
      reinterpret_cast<Word::Type*>(exchange.all + kQkv.offset + copy * kQkv.bytes)[row] = Word::make(qkv[row], epoch);
    }
  }
  exchange.write();
}

template <class S>
static void attend_on_sm() {
  const u8* of_heads = SINKS ? reinterpret_cast<const u8*>(sinks.all) : nullptr;
  run_on_cache<S>([=](auto& c) { attend<S>(c, PlainHeads{kQkv}, kOut, of_heads); });
}

template <class S>
static void check() {
  constexpr int kPositions[] = {0, 1, 16, 40, 95, 112, 130};
  for (int position : kPositions) {
    launch.position = position;
    make_up(position, first_epoch());
    int units = 0;
    for (int sm = 0; sm < kSMs; ++sm) {
      if (units_of<S>(sm, 0).count() == 0) continue;
      add_sm(sm);
      units += units_of<S>(sm, 0).count();
    }
    if (units != S::kUnits) wrong("number of units", 0, position, units, S::kUnits);
    run_sms(attend_on_sm<S>, kThreads);
    for (int unit = 0; unit < S::kUnits; ++unit) compare<S>(unit, position, second_epoch());
    // Nothing else has changed.
    for (size_t i = 0; i < kCacheBytes; ++i) {
      if (cache[i] != before[i]) wrong("byte of the cache", 0, position, cache[i], before[i]);
    }
  }
}
template <class... S>
static void check_all() {
  (check<S>(), ...);
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), cache.make(), sinks.make();
  for (int h = 0; h < kHeads; ++h) sinks[h] = WeightElement::from_float(random_within(6));
  sinks.write();
  launch.exchange = exchange.all;
  launch.cache = cache.all;
  check_all<STAGES>();
  return failures > 0;
}
