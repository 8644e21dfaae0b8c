// Runs attention on the CPU for ROWS consecutive rows of a sequence: by passes of kTokens rows, of one or of all. Writes
// what the units of the stages that the test lists as STAGES hand over, and the cache that they leave, so that programs
// of several sizes of passes can be compared to the bit. What splits hand over is combined by the stage COMBINE. With
// NORMED a form of norm and rotation is put before it: that of the number, or with ALL each.
#include "attention.h"
#include "made_up.h"
#include "stream.h"

#include "amk/combine.cuh"

#ifndef COMBINE
#define COMBINE S  // there are no splits
#endif

constexpr int kHandedOver = kTokenRows;  // of a token
constexpr Page kOut{(kExchangeBytes + 255) / 256 * 256, 1 << 20, 1};
constexpr Page kCombined{kOut.offset + kOut.bytes, 1 << 20, 1};
static u8 exchange[kCombined.offset + kCombined.bytes];
alignas(256) static u8 cache[kCacheBytes];
alignas(16) static Element::Bits weights[4][kQueryRows];
static float frequencies[kHeadDim / 2];

// ---- what is read: a function of the position of a row, and of the element ----

// Rows from the position on are what an earlier sequence has left, and need not be finite: of integers, their scales.
static void fill_cache(int position) {
  for (int head = 0; head < kKVHeads; ++head) {
    u8* const rows = cache + head * kHeadCacheBytes;
    for (int row = 0; row < (kMaxSeq + 15) / 16 * 16; ++row) {
      const float old = row % 2 ? NAN : INFINITY;
      for (int e = 0; e < 2 * kPaddedHead; ++e) {
        const int dim = e % kPaddedHead, at = cache_offset(row, dim, e >= kPaddedHead);
        if constexpr (kQuantisedCache) {
          rows[at] = bits_at(row, head * 4096 + e);
        } else {
          const float v = dim >= kHeadDim ? 0 : row >= position ? old : value_at(row, head * 4096 + e, 1);
          *reinterpret_cast<CacheElement::Bits*>(rows + at) = CacheElement::from_float(v);
        }
      }
      for (int is_value = 0; kQuantisedCache && is_value < 2; ++is_value) {
        const float scale = 1 + bits_at(row, 1 << 22 | head * 2 + is_value) % 64;
        store_scale(rows, row, is_value, row >= position ? old : scale / 2048);
      }
    }
  }
}
static void hand_over(int position, u32 epoch) {
  for (int token = 0; token < kTokens; ++token) {
    for (int e = 0; e < kHandedOver; ++e) {
      const float v = value_at(position + token, 1 << 20 | e, e < k_row(0) ? 2 : 1);
      for (int copy = 0; copy < kQkv.copies; ++copy) {
        using Word = WordOf<Element>;
        reinterpret_cast<Word::Type*>(exchange + kQkv.offset + copy * kQkv.bytes)[token * kHandedOver + e] =
            Word::make(v, epoch);
      }
    }
  }
}

// ---- passes ----

template <class S, class Heads>
static Heads heads() {
  if constexpr (kSame<Heads, PlainHeads>) {
    return {kQkv};
  } else {
    return {kQkv, reinterpret_cast<u8*>(weights[0]), reinterpret_cast<u8*>(weights[1]),
            reinterpret_cast<u8*>(weights[2]), reinterpret_cast<u8*>(weights[3])};
  }
}

template <class S, class Heads>
static void attend_on_sm() {
  Context<Mode::kDecode> c(launch);
  c.sm = sm;
  c.begin_step(0);
  rotate_setup(c, frequencies);
  stream_cache<S>(c);
  attend<S>(c, heads<S, Heads>(), kOut);
  end_of_block();
}

// After units of splits, on an SM: it reads the exchange behind the one that they have read.
template <class Combine>
static void combine_on_sm() {
  Context<Mode::kDecode> c(launch);
  c.sm = sm;
  c.begin_step(0);
  c.advance(0);
  combine<Combine>(c, kOut, kCombined);
  end_of_block();
}

// What a unit has handed over of a token: of each head its result, and of a split its maximum and its sum too.
template <class S>
static void keep(u8* to, int unit, int token) {
  constexpr int kOfHead = kHeadDim + (S::kSplits > 1 ? 2 : 0);
  for (int h = 0; h < kGroupHeads; ++h) {
    for (int d = 0; d < kOfHead; ++d, to += 4) {
      float v = 0;
      if constexpr (S::kSplits > 1) {
        const int at = ((unit * kTokens + token) * kGroupHeads + h) * kOfHead + d;
        v = WordOf<Fp32>::value(reinterpret_cast<const u64*>(exchange + kOut.offset)[at]);
      } else {
        const int at = token * kQueryRows + (unit * kGroupHeads + h) * kHeadDim + d;
        v = WordOf<Element>::value(reinterpret_cast<const WordOf<Element>::Type*>(exchange + kOut.offset)[at]);
      }
      memcpy(to, &v, 4);
    }
  }
}

template <class S, class Heads = PlainHeads>
static void run() {
  constexpr int kOfUnit = 4 * kGroupHeads * (kHeadDim + (S::kSplits > 1 ? 2 : 0));
  constexpr int kUnits = kKVHeads * S::kSplits, kParts = AMK_TENSOR_CORES ? (ROWS * kGroupHeads + 15) / 16 : ROWS;
  static u8 results[ROWS][kUnits][kOfUnit];
  static WordOf<Element>::Type combined[ROWS][kQueryRows];
#if ALL
  constexpr int kPositions[] = {0, 1, 13, 16, 31, 40, 64, 95, 112, 130, 151};
#else
  constexpr int kPositions[] = {0, 95, 130};
#endif
  for (int position : kPositions) {
    if (ceil_div(position, S::kShareRows * S::kSplits) * kParts > MOST_CHUNKS) break;  // the ring is filled once
    fill_cache(position);
    memset(results, 0, sizeof results);
    for (int first = 0; first < ROWS; first += kTokens) {
      launch.position = position + first;
      Context<Mode::kDecode> c(launch);
      c.begin_step(0);
      hand_over(launch.position, c.epoch);
      memset(exchange + kOut.offset, 0, kOut.bytes);
      int units = 0;
      for (sm = 0; sm < kSMs; ++sm) {
        const int count = units_of<S>(sm, 0).count();
        if (count > 0) run_block(attend_on_sm<S, Heads>);
        units += count;
      }
      if (units != S::kUnits) abort();
      for (int token = 0; token < kTokens; ++token)
        for (int unit = 0; unit < kUnits; ++unit) keep<S>(results[first + token][unit], unit, token);
      if constexpr (S::kSplits > 1) {
        memset(exchange + kCombined.offset, 0, kCombined.bytes);
        for (sm = 0; sm < kSMs; ++sm)
          if (units_of<COMBINE>(sm, 0).count() > 0) run_block(combine_on_sm<COMBINE>);
        memcpy(combined[first], exchange + kCombined.offset, kTokens * sizeof combined[0]);
      }
    }
    fwrite(results, sizeof results, 1, stdout);
    fwrite(combined, sizeof combined, 1, stdout);
    fwrite(cache, sizeof cache, 1, stdout);
  }
}

#if NORMED
template <class Stage, bool kWhole, bool kCentred, bool kShifted, bool kRotated, bool kOwn>
struct Form : Stage {
  static constexpr bool kWholeNorm = kWhole, kNormCentred = kCentred, kNormShifted = kShifted;
  static constexpr bool kRotates = kRotated, kOwnGains = kOwn, kNormUnitOffset = kShifted;
  static constexpr int kAngles = 0;
};
template <class S>
static void run_all() {
  if constexpr (ALL || NORMED == 1) run<Form<S, false, false, false, true, false>, NormedHeads>();
  if constexpr (ALL || NORMED == 2) run<Form<S, true, false, false, true, true>, NormedHeads>();
  if constexpr (ALL || NORMED == 3) run<Form<S, false, true, true, true, true>, NormedHeads>();
  if constexpr (ALL || NORMED == 4) run<Form<S, false, true, false, false, true>, NormedHeads>();
}
#else
template <class S>
static void run_all() { run<S>(); }
#endif
template <class... S>
static void run_stages() {
  (run_all<S>(), ...);
}

int main() {
  launch.exchange = exchange;
  launch.cache = cache;
  for (int i = 0; i < 4; ++i)
    for (int e = 0; e < kQueryRows; ++e) weights[i][e] = Element::from_float(value_at(i, 1 << 21 | e, 2));
  for (int i = 0; i < kHeadDim / 2; ++i) frequencies[i] = powf(10000, -2.0f * i / kHeadDim);
  run_stages<STAGES>();
}
