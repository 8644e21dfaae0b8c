// Runs the end of steps on the CPU: every SM publishes what it draws of its own logits, and chooses among what all SMs
// have published. Reads a seed, a position, as many settings as there are tokens and all logits from stdin for each
// step, and prints the tokens that every SM has come to.
#include "build.h"

#include "amk/ending.cuh"

static u8 exchange[kExchangeBytes];
static float logits[kTokens * kVocab];
static Sampling settings[kMaxSequences];

template <class T> static bool read(T& v) { return fread(&v, sizeof v, 1, stdin) == 1; }

static void publish_on_sm() {
  Context<Mode::kDecode> c(launch);
  c.sm = sm;
  c.begin_step(0);
  Best best;
  const Tiles mine = tiles_of<LmHead>(sm, 0);
  // of several tokens, a thread has the rows of some
  const int first = kTokens > 1 ? c.tid / kFlushRows : 0, local = c.tid % kFlushRows;
  for (int token = first; token < kTokens && c.tid < kTokensAtOnce * kFlushRows; token += kTokensAtOnce) {
    if (kTokens == 1 && c.tid >= kFlushRows) break;
    for (int row = mine.begin * kTileRows + local; row < min(mine.end * kTileRows, kVocab); row += kFlushRows)
      best.of[token / kTokensAtOnce].offer(logits_of(c, token)[row], row);
  }
  publish_best<LmHead>(c, best, kBestValue, kBestIndex);
  consumer_barrier();
  end_of_block();
}

static void choose_on_sm() {
  Context<Mode::kDecode> c(launch);
  c.sm = sm;
  c.begin_step(0);
  sample(c, kBestValue, kBestIndex);
  consumer_barrier();
  if (c.tid == 0) {
    for (int token = 0; token < kTokens; ++token) printf(token ? " %d" : "%d", c.shared.chosen[token]);
    printf("\n");
  }
  end_of_block();
}

int main() {
  launch.exchange = exchange;
  launch.logits = logits;
  launch.logit_stride = kTokens;
  launch.steps = 1;
  for (int position; read(position);) {
    unsigned draws;
    if (!read(draws) || fread(settings, sizeof settings, 1, stdin) != 1 || fread(logits, sizeof logits, 1, stdin) != 1)
      return 1;
    launch.sampling = draws ? settings : nullptr;
    launch.position = kSequences > 1 ? 0 : position;
    for (int s = 0; s < kMaxSequences; ++s) launch.positions[s] = position + 3 * s;
    launch.first_epoch++;
    for (sm = 0; sm < kSMs; ++sm) run_block(publish_on_sm);
    for (sm = 0; sm < kSMs; ++sm) run_block(choose_on_sm);
  }
}
