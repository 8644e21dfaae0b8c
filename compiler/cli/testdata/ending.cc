// Runs the end of steps on the CPU, on all SMs: every one publishes what it chooses among its own logits, and chooses
// among what all have published. Reads a step's position, its number in the launch, how it is launched, settings, choices
// and logits from stdin, and prints the tokens that every SM has come to.
#include "build.h"

#include "amk/ending.cuh"

static Array<u8, kExchangeBytes> exchange;
static Array<float, kTokens * kVocab> logits;
static Array<Sampling, kMaxSequences> settings;
static Array<Choice, kMaxSequences> choices;
static Array<Rounds> rounds;
static Array<u32, 32 * kTokens> chosen;  // by the steps of a launch
static int decoded[kTokens], results[kSMs][kTokens];

static bool read(void* to, size_t n) { return fread(to, n, 1, stdin) == 1; }
template <class T, size_t kCount> static bool read(Array<T, kCount>& array) {
  if (!read(array.all, array.kBytes)) return false;
  array.write();
  return true;
}
template <class T> static bool read(T& v) { return read(&v, sizeof v); }

// Reads a table of a choice, whose pointer says for now how long it is.
template <class T> static void table(const T*& of) {
  const size_t n = reinterpret_cast<size_t>(of);
  of = nullptr;
  if (n == 0) return;
  void* const to = allocate(n * sizeof(T));
  if (!read(to, n * sizeof(T))) exit(1);
  written(to, n * sizeof(T));
  of = static_cast<T*>(to);
}
static void release(const void* table) {
  if (table && cuMemFree_v2(const_cast<void*>(table)) != 0) exit(1);
}

static int step;
static void end_on_sm() {
  run_consumers([](auto& c) {
    if (c.tid < kTokens) c.shared.token[c.tid] = decoded[c.tid];
    consumer_barrier();
    c.begin_step(step);
    Best best;
    const Tiles mine = tiles_of<LmHead>(c.sm, 0);
    // of several tokens, a thread has the rows of some
    const int first = kTokens > 1 ? c.tid / kFlushRows : 0, local = c.tid % kFlushRows;
    for (int token = first; token < kTokens && c.tid < kTokensAtOnce * kFlushRows; token += kTokensAtOnce) {
      if (kTokens == 1 && c.tid >= kFlushRows) break;
      for (int row = mine.begin * kTileRows + local; row < min(mine.end * kTileRows, kVocab); row += kFlushRows)
        best.of[token / kTokensAtOnce].offer(logits_of(c, token)[row], row);
    }
    publish_best<LmHead>(c, best, kBestValue, kBestIndex);
    sample(c, kBestValue, kBestIndex);
    consumer_barrier();
    if (c.tid < kTokens) results[c.sm][c.tid] = c.shared.chosen[c.tid];
  });
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), logits.make(), settings.make(), choices.make(), rounds.make(), chosen.make();
  launch.exchange = exchange.all;
  launch.logits = logits.all;
  launch.steps = 100;
  launch.tokens = chosen.all;
  for (int position; read(position);) {
    unsigned draws;  // 1: with settings, 2: with choices, 3: that leave tokens out
    if (!read(step) || !read(draws) || !read(settings) || !read(choices)) return 1;
    for (Choice& c : choices) table(c.bias), table(c.uses), table(c.allowed), table(c.recent);
    choices.write();
    if (!read(chosen) || !read(decoded) || !read(logits)) return 1;
    memset(static_cast<void*>(rounds.all), 0, rounds.kBytes);
    rounds.write();
    launch.sampling = draws ? settings.all : nullptr;
    launch.choices = draws > 1 ? choices.all : nullptr;
    launch.rounds = draws > 2 ? rounds.all : nullptr;
    launch.position = kSequences > 1 ? 0 : position - step * kSequenceRows;
    for (int s = 0; s < kMaxSequences; ++s) launch.positions[s] = position + 3 * s - step * kSequenceRows;
    launch.first_epoch += launch.steps;  // no epoch of the steps before
    for (int sm = 0; sm < kSMs; ++sm) add_sm(sm);
    run_sms(end_on_sm);
    for (int sm = 0; sm < kSMs; ++sm) {
      for (int token = 0; token < kTokens; ++token) printf(token ? " %d" : "%d", results[sm][token]);
      printf("\n");
    }
    for (Choice& c : choices) release(c.bias), release(c.uses), release(c.allowed), release(c.recent);
  }
  return 0;
}
