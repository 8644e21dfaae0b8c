// Runs attention on the CPU for ROWS consecutive rows of each of SEQUENCES sequences, some of which are absent: by passes
// of all or some of the rows of all sequences, or of one. Writes what the units of the stages that the test lists as
// STAGES hand over, and the caches that they leave, so that programs of several sizes of passes can be compared to the
// bit. What splits hand over is combined by the stage COMBINE. With NORMED a form of norm and rotation is put before it:
// that of the number, or with ALL each.
#include "attention.h"
#include "made_up.h"
#include "stream.h"

#include "amk/combine.cuh"

#ifndef COMBINE
#define COMBINE S  // there are no splits
#endif

constexpr int kHandedOver = H::kTokenRows;  // of a token
constexpr Page kOut{(kExchangeBytes + 255) / 256 * 256, 1 << 22, 1};
constexpr Page kCombined{kOut.offset + kOut.bytes, 1 << 22, 1};
static Array<u8, kCombined.offset + kCombined.bytes> exchange;
static Array<u8, SEQUENCES * size_t(kCacheBytes)> cache;
static Array<Element::Bits, 4 * H::kQueryRows> weights;
static Array<float, kHeadDim / 2> frequencies;

// ---- what is read: a function of the sequence, the position of a row, and the element ----

static unsigned which(int sequence, int row) { return sequence * 4096 + row; }

// Rows from the position on are what an earlier text has left, and need not be finite: of integers, their scales.
static void fill_cache(int sequence, int position) {
  for (int head = 0; head < kKVHeads; ++head) {
    u8* const rows = cache.all + sequence * size_t(kCacheBytes) + head * H::kHeadCacheBytes;
    for (int row = 0; row < (kMaxSeq + 15) / 16 * 16; ++row) {
      const float old = row % 2 ? NAN : INFINITY;
      for (int e = 0; e < 2 * H::kPaddedHead; ++e) {
        const int dim = e % H::kPaddedHead, at = cache_offset<H>(row, dim, e >= H::kPaddedHead);
        if constexpr (kQuantisedCache) {
          rows[at] = bits_at(which(sequence, row), head * 4096 + e);
        } else {
          const float v = dim >= kHeadDim ? 0 : row >= position ? old : value_at(which(sequence, row), head * 4096 + e, 1);
          *reinterpret_cast<CacheElement::Bits*>(rows + at) = CacheElement::from_float(v);
        }
      }
      for (int is_value = 0; kQuantisedCache && is_value < 2; ++is_value) {
        const float scale = 1 + bits_at(which(sequence, row), 1 << 22 | head * 2 + is_value) % 64;
        store_scale<H>(rows, row, is_value, row >= position ? old : scale / 2048);
      }
    }
  }
}
static void end_stage(const int (&positions)[SEQUENCES], int sequence, int first, u32 epoch) {
  for (int token = 0; token < kTokens; ++token) {
    const int of = sequence + sequence_of(token), row = positions[of] + first + row_of(token);
    for (int e = 0; e < kHandedOver; ++e) {
      const float v = value_at(which(of, row), 1 << 20 | e, e < H::k_row(0) ? 2 : 1);
      for (int copy = 0; copy < kQkv.copies; ++copy) {
        using Word = WordOf<Element>;
        reinterpret_cast<Word::Type*>(exchange.all + kQkv.offset + copy * kQkv.bytes)[token * kHandedOver + e] =
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
    const auto of = [](int i) { return reinterpret_cast<u8*>(weights.all + i * H::kQueryRows); };
    return {kQkv, of(0), of(1), of(2), of(3)};
  }
}

template <class S, class Heads>
static void attend_on_sm() {
  run_on_cache<S>([](auto& c) {
    rotate_setup(c, frequencies.all);
    consumer_barrier();
    attend<S>(c, heads<S, Heads>(), kOut);
  });
}

// After units of splits, on an SM: it reads the exchange behind the one that they have read.
template <class Combine>
static void combine_on_sm() {
  run_consumers([](auto& c) {
    c.advance(0);
    combine<Combine>(c, kOut, kCombined);
  });
}

// What a unit of a token's sequence has handed over of it: of each head its result, and of a split its maximum and its
// sum too.
template <class S>
static void keep(u8* to, int unit, int token) {
  constexpr int kOfHead = kHeadDim + (S::kSplits > 1 ? 2 : 0);
  for (int h = 0; h < H::kGroupHeads; ++h) {
    for (int d = 0; d < kOfHead; ++d, to += 4) {
      float v = 0;
      if constexpr (S::kSplits > 1) {
        const int of = (sequence_of(token) * kKVHeads * S::kSplits + unit) * kSequenceRows + row_of(token);
        const int at = (of * H::kGroupHeads + h) * kOfHead + d;
        v = WordOf<Fp32>::value(reinterpret_cast<const u64*>(exchange.all + kOut.offset)[at]);
      } else {
        const int at = token * H::kQueryRows + (unit * H::kGroupHeads + h) * kHeadDim + d;
        v = WordOf<Element>::value(reinterpret_cast<const WordOf<Element>::Type*>(exchange.all + kOut.offset)[at]);
      }
      memcpy(to, &v, 4);
    }
  }
}

#if SEQUENCES > 1 && ALL
constexpr int kPositions[][4] = {{0, 40, 1, 16}, {95, -1, 130, 15}, {64, 150, 33, -1}, {-1, 112, -1, 31}};
#elif SEQUENCES > 1
constexpr int kPositions[][4] = {{30, 95, 0, -1}, {-1, 130, 15, 1}};
#elif ALL
constexpr int kPositions[][1] = {{0}, {1}, {13}, {16}, {31}, {40}, {64}, {95}, {112}, {130}, {151}};
#else
constexpr int kPositions[][1] = {{0}, {95}, {130}};
#endif

// A pass of some rows of one sequence, or of all sequences, those from `first` on.
template <class S, class Heads>
static void pass(const int (&positions)[SEQUENCES], int sequence, int first) {
  launch.cache = cache.all + sequence * size_t(kCacheBytes);
  launch.position = kSequences > 1 ? 0 : positions[sequence] + first;
  for (int i = 0; i < SEQUENCES; ++i) launch.positions[i] = positions[i] < 0 ? kAbsent : positions[i] + first;
  end_stage(positions, sequence, first, first_epoch());
  memset(exchange.all + kOut.offset, 0, kOut.bytes + kCombined.bytes);
  exchange.write();
  int units = 0;
  for (int sm = 0; sm < kSMs; ++sm) {
    const int count = units_of<S>(sm, 0).count();
    if (count > 0) add_sm(sm);
    units += count;
  }
  if (units != S::kUnits) abort();
  run_sms(attend_on_sm<S, Heads>, kThreads);
  if constexpr (S::kSplits > 1) {
    for (int sm = 0; sm < kSMs; ++sm)
      if (units_of<COMBINE>(sm, 0).count() > 0) add_sm(sm);
    run_sms(combine_on_sm<COMBINE>);
  }
}

template <class S, class Heads = PlainHeads>
static void run() {
  constexpr int kOfUnit = 4 * H::kGroupHeads * (kHeadDim + (S::kSplits > 1 ? 2 : 0));
  constexpr int kUnits = kKVHeads * S::kSplits;
  static u8 results[SEQUENCES][ROWS][kUnits][kOfUnit];
  static WordOf<Element>::Type combined[SEQUENCES][ROWS][H::kQueryRows];
  static_assert(kSequences == 1 || kSequences == SEQUENCES, "a pass has one sequence or all");
  for (const auto& row : kPositions) {
    int positions[SEQUENCES];
    for (int s = 0; s < SEQUENCES; ++s) positions[s] = row[s];
    for (int s = 0; s < SEQUENCES; ++s) fill_cache(s, positions[s]);
    cache.write();
    memset(results, 0, sizeof results);
    memset(combined, 0, sizeof combined);
    for (int s = 0; s < SEQUENCES; s += kSequences) {
      if (kSequences == 1 && positions[s] < 0) continue;
      for (int first = 0; first < ROWS; first += kSequenceRows) {
        pass<S, Heads>(positions, s, first);
        for (int token = 0; token < kTokens; ++token) {
          const int of = s + sequence_of(token), row = first + row_of(token);
          if (positions[of] < 0) continue;
          for (int unit = 0; unit < kUnits; ++unit) keep<S>(results[of][row][unit], unit, token);
          constexpr size_t kBytes = sizeof combined[0][0];
          if (S::kSplits > 1) memcpy(combined[of][row], exchange.all + kCombined.offset + token * kBytes, kBytes);
        }
      }
    }
    fwrite(results, sizeof results, 1, stdout);
    fwrite(combined, sizeof combined, 1, stdout);
    fwrite(cache.all, cache.kBytes, 1, stdout);
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

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), cache.make(), weights.make(), frequencies.make();
  launch.exchange = exchange.all;
  for (int i = 0; i < 4; ++i)
    for (int e = 0; e < H::kQueryRows; ++e)
      weights[i * H::kQueryRows + e] = Element::from_float(value_at(i, 1 << 21 | e, 2));
  for (int i = 0; i < kHeadDim / 2; ++i) frequencies[i] = powf(10000, -2.0f * i / kHeadDim);
  weights.write(), frequencies.write();
  run_stages<STAGES>();
  return 0;
}
