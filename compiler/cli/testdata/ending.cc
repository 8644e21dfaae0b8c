// Runs the end of steps on the CPU: every SM publishes what it chooses among its own logits, and chooses among what all
// SMs have published. Reads a step's position, its number in the launch, how it is launched, settings, choices and logits
// from stdin, and prints the tokens that every SM has come to.
#include "build.h"

#include "amk/ending.cuh"

static u8 exchange[kExchangeBytes];
static float logits[kTokens * kVocab];
static Sampling settings[kMaxSequences];
static Choice choices[kMaxSequences];
static Rounds rounds;
static u32 chosen[32 * kTokens];  // by the steps of a launch
static Scratch scratch[kSMs];

static bool read(void* to, size_t n) { return fread(to, n, 1, stdin) == 1; }
template <class T> static bool read(T& v) { return read(&v, sizeof v); }

// Reads a table of a choice, whose pointer says for now how long it is.
template <class T> static void table(const T*& of) {
  const size_t n = reinterpret_cast<size_t>(of);
  T* const to = n ? new T[n] : nullptr;
  if (n && !read(to, n * sizeof(T))) exit(1);
  of = to;
}

static int step;
static void publish_on_sm() {
  Context<Mode::kDecode> c(launch);
  c.sm = sm;
  c.begin_step(step);
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
  c.begin_step(step);
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
  launch.steps = 100;
  launch.tokens = chosen;
  for (int position; read(position);) {
    unsigned draws;  // 1: with settings, 2: with choices, 3: that leave tokens out
    int decoded[kTokens];
    if (!read(step) || !read(draws) || !read(settings) || !read(choices)) return 1;
    for (Choice& c : choices) table(c.bias), table(c.uses), table(c.allowed), table(c.recent);
    if (!read(chosen) || !read(decoded) || !read(logits)) return 1;
    launch.sampling = draws ? settings : nullptr;
    launch.choices = draws > 1 ? choices : nullptr;
    launch.rounds = draws > 2 ? &rounds : nullptr;
    launch.position = kSequences > 1 ? 0 : position - step * kSequenceRows;
    for (int s = 0; s < kMaxSequences; ++s) launch.positions[s] = position + 3 * s - step * kSequenceRows;
    launch.first_epoch++;
    for (Scratch& s : scratch) memcpy(s.token, decoded, sizeof decoded);
    run_grid(kSMs, publish_on_sm, [](unsigned b) { sm = b, block_scratch() = scratch[b]; },
             [](unsigned b) { scratch[b] = block_scratch(); });
    for (sm = 0; sm < kSMs; ++sm) {
      block_scratch() = scratch[sm];
      run_block(choose_on_sm);
    }
    for (Choice& c : choices) delete[] c.bias, delete[] c.uses, delete[] c.allowed, delete[] c.recent;
  }
}
