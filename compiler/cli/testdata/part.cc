// The generated kernel in parts, on the CPU: what the producers of all SMs copy for the parts of a step, one after the
// other, is what they copy for the step; and a part without a stage publishes nothing, stays at its exchange, and leaves
// the residual as it was.
#include "build.h"

#include "measure.cu"

static PartLaunch part;
static const u32 short_stages[] = {SHORT_STAGES}, long_stages[] = {LONG_STAGES};
constexpr int kKept = kSMs * kTokens * kResidualRows;
static Array<float, kKept> kept;
static Array<int> token;

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

static int collecting;  // SM

template <Mode kMode>
static int collect(Copy* to) {
  Context<kMode> c(part.launch);
  c.sm = collecting;
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
  if (thread_index() != 0) return;
  int copies = 0;
  for (int sm = 0; sm < kSMs; ++sm) {
    collecting = sm;
    const int wanted = collect<Mode::kDecode>(whole);
    int n = collect_part(0, kStageEmbed, pieces);
    for (int layer = 0; layer < kLayers; ++layer)
      if (part.launch.position < kShortEnd)
        for (u32 stage : short_stages) n += collect_part(layer, stage, pieces + n);
      else
        for (u32 stage : long_stages) n += collect_part(layer, stage, pieces + n);
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
  init_scratch(part.launch, block_scratch());
  Context<Mode::kPart> c(part.launch);
  c.sm = this_sm();
  consume(c);
  if (c.ordinal != int(part.ended) || c.slot || c.flush || c.norms)
    printf("exchange %d of %u, slot %u, flush %u\n", c.ordinal, part.ended, c.slot, c.flush), exit(1);
}

static void begin_with_token() {
  init_scratch(part.launch, block_scratch());
  Context<Mode::kPart> c(part.launch);
  c.sm = this_sm();
  take_token(c);
  if (c.shared.token[0] != 7) printf("the step begins with %d\n", c.shared.token[0]), exit(1);
}

// On the first SM and the last.
static void run_ends(void (*thread)()) {
  add_sm(0), add_sm(kSMs - 1);
  run_sms(thread);
}

extern "C" int amk_main(void* module) {
  begin(module);
  kept.make(), token.make();
  token[0] = 7;
  token.write();
  part.launch = launch;
  part.launch.steps = 1;
  part.launch.weights = reinterpret_cast<u8*>(1 << 20);  // addresses alone
  part.launch.cache = reinterpret_cast<u8*>(size_t(1) << 40);
  part.residual = kept.all;
  part.token = token.all;
  constexpr int kPositions[] = {3, 900};
  static_assert(kPositions[0] < kShortEnd && kPositions[1] >= kShortEnd, "of both variants");
  for (int position : kPositions) {
    part.launch.position = position;
    add_sm(0);
    run_sms(compare_copies, 32);
  }

  part.count = 0, part.layer = kLayers - 1, part.ended = kExchangesPerStep - 2;
  part.launch.weights = nullptr;  // what is looked at fails
  for (int i = 0; i < kKept; ++i) kept[i] = i + 0.5f;
  kept.write();
  run_ends(nothing);
  for (int i = 0; i < kKept; ++i)
    if (kept[i] != i + 0.5f) printf("residual %d is %g\n", i, kept[i]), exit(1);
  if (token[0] != 7) printf("token %d\n", token[0]), exit(1);

  // A step begins with the token that the one before has chosen.
  part.follows = 1;
  run_ends(begin_with_token);
  return 0;
}
