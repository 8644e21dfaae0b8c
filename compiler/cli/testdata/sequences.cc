// Runs attention of several sequences on the CPU: all units of the stages that the test lists as STAGES, over a cache of
// each sequence that is made up. Prints what each sequence that is there gets, and a digest of every cache. Compiled
// with a kernel of one token it does one sequence after another, and what it prints must be the same.
#include "attention.h"
#include "made_up.h"
#include "stream.h"

constexpr int kAll = SEQUENCES;  // of the pass that is compared
constexpr Page kOut{(kExchangeBytes + 255) / 256 * 256, 1 << 22, 1};
static float qkv[kAll][kTokenRows];
static u8 exchange[kOut.offset + kOut.bytes];
alignas(256) static u8 cache[kAll][kCacheBytes];

// Finite rows of integers with scales, or of elements; padding too.
static void make_up(u8* of) {
  for (size_t i = 0; i < kCacheBytes; i += CacheElement::kBytes) {
    if constexpr (kQuantisedCache) of[i] = u8(random_bits());
    else put<CacheElement>(of + i, random_within(1));
  }
  for (int head = 0; kQuantisedCache && head < kKVHeads; ++head)
    for (int row = 0; row < kHeadCacheBytes / kCacheBlockBytes * kCacheRows; ++row)
      for (int is_value = 0; is_value < 2; ++is_value)
        store_scale(of + head * kHeadCacheBytes, row, is_value, fabsf(random_within(0.02f)) + 0.001f);
}

static void hand_over(int token, int sequence, u32 epoch) {
  using Word = WordOf<Element>;
  for (int copy = 0; copy < kQkv.copies; ++copy)
    for (int row = 0; row < kTokenRows; ++row)
      reinterpret_cast<Word::Type*>(exchange + kQkv.offset + copy * kQkv.bytes)[token * kTokenRows + row] =
          Word::make(qkv[sequence][row], epoch);
}

template <class S>
static void attend_on_sm() {
  Context<Mode::kDecode> c(launch);
  c.sm = sm;
  c.begin_step(0);
  stream_cache<S>(c);
  attend<S>(c, PlainHeads{kQkv}, kOut);
  consumer_barrier();
  end_of_block();
}

template <class S>
static void attend_everywhere() {
  for (sm = 0; sm < kSMs; ++sm) {
    const int units = units_of<S>(sm, 0).count();
    if (units > 1) abort();  // the ring is filled once
    if (units == 1) run_block(attend_on_sm<S>);
  }
}

// What a sequence gets, which is that of the token-th of the pass.
template <class S>
static void print(int sequence, int token) {
  unsigned long long digest = 1469598103934665603;
  const auto add = [&](unsigned long long word) { digest = (digest ^ word) * 1099511628211; };
  if (S::kSplits == 1) {
    const auto words = reinterpret_cast<const WordOf<Element>::Type*>(exchange + kOut.offset) + token * kQueryRows;
    for (int i = 0; i < kQueryRows; ++i) add(Element::from_float(WordOf<Element>::value(words[i])));
  } else {
    constexpr int kParts = kKVHeads * S::kSplits * kGroupHeads * (kHeadDim + 2);
    const auto words = reinterpret_cast<const u64*>(exchange + kOut.offset) + token * kParts;
    for (int i = 0; i < kParts; ++i) add(u32(words[i]));
  }
  printf("sequence %d: %016llx\n", sequence, digest);
}

template <class S>
static void check() {
  constexpr int kPositions[][4] = {{0, 40, 1, 16}, {95, -1, 130, 15}, {-1, 112, -1, 31}, {64, 150, 33, -1}};
  for (const auto& positions : kPositions) {
    for (int s = 0; s < kAll; ++s) {
      make_up(cache[s]);
      for (int row = 0; row < kTokenRows; ++row) qkv[s][row] = random_within(row < kQueryRows ? 2 : 1);
    }
    launch.position = 0;
    for (int s = 0; s < kAll; ++s) launch.positions[s] = positions[s];
    Context<Mode::kDecode> c(launch);
    c.begin_step(0);
    if (kSequences > 1) {
      launch.cache = cache[0];
      for (int s = 0; s < kAll; ++s) hand_over(s, s, c.epoch);
      attend_everywhere<S>();
    }
    for (int s = 0; s < kAll; ++s) {
      if (positions[s] < 0) continue;
      if (kSequences == 1) {
        launch.cache = cache[s];
        launch.position = positions[s];
        hand_over(0, s, c.epoch);
        attend_everywhere<S>();
      }
      print<S>(s, kSequences > 1 ? s : 0);
    }
    for (int s = 0; s < kAll; ++s) {
      unsigned long long digest = 1469598103934665603;
      for (u8 b : cache[s]) digest = (digest ^ b) * 1099511628211;
      printf("cache %d: %016llx\n", s, digest);
    }
  }
}
template <class... S>
static void check_all() {
  (check<S>(), ...);
}

int main() {
  launch.exchange = exchange;
  check_all<STAGES>();
}
