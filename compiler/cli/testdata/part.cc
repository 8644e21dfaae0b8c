// The generated kernel in parts, on the CPU: what the producers of all SMs copy for the parts of a step, one after the
// other, is what they copy for the step; and a part without a stage publishes nothing, stays at its exchange, and leaves
// the residual as it was.
#include "build.h"

#define AMK_MEASURES
#include "megakernel.cu"
#include "amk/part.cuh"
#include "parts.h"  // of measure.cu

static PartLaunch part;
static const u32 of_layer[] = {STAGES};
static float kept[kSMs * kTokens * kResidualRows];
static int token = 7;

// ---- producers ----

struct Copy {
  const u8* source;
  u32 bytes;
};
constexpr int kMost = 1 << 20;
static Copy whole[kMost], pieces[kMost];

template <Mode kMode>
struct Collector {
  Context<kMode>& c;
  Copy* to;
  int n = 0;
  bool stopped = false;
  void wait_step(int) {}
  void drain() {}
  void copy(const u8* source, u32 bytes) {
    if (n == kMost) abort();
    to[n++] = {source, bytes};
  }
};

template <Mode kMode>
static int collect(Copy* to) {
  Context<kMode> c(part.launch);
  c.sm = sm;
  Collector<kMode> sink{c, to};
  if constexpr (kMode == Mode::kPart) {
    walk_part(sink);
  } else {
    walk(sink);
  }
  return sink.n;
}

// Collects what a part of one stage copies.
static int collect_part(int layer, u32 stage, Copy* to) {
  part.layer = layer, part.count = 1, part.stages[0] = stage;
  return collect<Mode::kPart>(to);
}

static void compare_copies() {
  int copies = 0;
  for (sm = 0; sm < kSMs; ++sm) {
    const int wanted = collect<Mode::kDecode>(whole);
    int n = collect_part(0, kStageEmbed, pieces);
    for (int layer = 0; layer < kLayers; ++layer)
      for (u32 stage : of_layer) n += collect_part(layer, stage, pieces + n);
    n += collect_part(kLayers, kStageLmHead, pieces + n);
    if (n != wanted || memcmp(whole, pieces, n * sizeof(Copy))) {
      printf("SM %d: %d copies of a step, and %d of its parts, or others\n", sm, wanted, n);
      exit(1);
    }
    copies += n;
  }
  if (copies < 2 * kLayers * kSMs) printf("only %d copies\n", copies), exit(1);
}

// ---- consumers ----

static void nothing() {
  Context<Mode::kPart> c(part.launch);
  c.sm = sm;
  consume(c);
  if (c.ordinal != int(part.ended) || c.slot || c.flush || c.norms)
    printf("exchange %d of %u, slot %u, flush %u\n", c.ordinal, part.ended, c.slot, c.flush), exit(1);
  end_of_block();
}

int main() {
  part.launch.steps = 1;
  part.launch.position = POSITION;
  part.launch.weights = reinterpret_cast<u8*>(1 << 20);  // addresses alone
  part.launch.cache = reinterpret_cast<u8*>(size_t(1) << 40);
  part.residual = kept;
  part.token = &token;
  compare_copies();

  part.count = 0, part.layer = kLayers - 1, part.ended = kExchangesPerStep - 2;
  part.launch.weights = nullptr;  // what is looked at fails
  for (int i = 0; i < kSMs * kTokens * kResidualRows; ++i) kept[i] = i + 0.5f;
  for (sm = 0; sm < kSMs; sm += kSMs - 1) run_block(nothing);
  for (int i = 0; i < kSMs * kTokens * kResidualRows; ++i)
    if (kept[i] != i + 0.5f) printf("residual %d is %g\n", i, kept[i]), exit(1);
  if (token != 7) printf("token %d\n", token), exit(1);

  // A step begins with the token that the one before has chosen.
  part.follows = 1;
  for (sm = 0; sm < kSMs; sm += kSMs - 1)
    run_block([] {
      Context<Mode::kPart> c(part.launch);
      c.sm = sm;
      take_token(c);
      if (c.shared.token[0] != 7) printf("the step begins with %d\n", c.shared.token[0]), exit(1);
      end_of_block();
    });
}
