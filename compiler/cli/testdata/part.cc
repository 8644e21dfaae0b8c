// The generated kernel in parts, on the CPU: what the producers of all SMs copy for the parts of a step, one after the
// other, is what they copy for the step; and a part without a stage goes through the step, hands nothing over, counts all
// exchanges, and leaves the residual as it was.
#include "build.h"

#define AMK_MEASURES
#include "megakernel.cu"
#include "numbers.h"  // kNumberOf of measure.cu

static PartLaunch part;
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
  walk(sink);
  return sink.n;
}

// The places at which a step is cut: before every stage of every layer, and behind the last one.
static int cuts(u32* at) {
  int n = 0;
  at[n++] = 0;
  for (int layer = 0; layer < kLayers; ++layer)
    for (u32 stage = FIRST; stage <= LAST; ++stage) at[n++] = (layer + 1) * kPlaceOfLayers + stage;
  at[n++] = kPlaceBehind + LAST + 1;
  at[n] = ~0u;
  return n;
}

static void compare_copies() {
  static u32 at[2 + kLayers * (LAST - FIRST + 1) + 1];
  const int parts = cuts(at);
  int copies = 0;
  for (sm = 0; sm < kSMs; ++sm) {
    const int wanted = collect<Mode::kDecode>(whole);
    int n = 0;
    for (int i = 0; i < parts; ++i) {
      part.first = at[i], part.end = at[i + 1];
      n += collect<Mode::kPart>(pieces + n);
    }
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
  const int all = kExchangesPerStep - (POSITION < kShortEnd ? kLayers : 0);  // a split context has one more a layer
  if (c.ordinal != all || c.slot || c.flush || c.norms)
    printf("exchange %d of %d, slot %u, flush %u\n", c.ordinal, all, c.slot, c.flush), exit(1);
  end_of_block();
}

int main() {
  part.launch.steps = 1;
  part.launch.position = POSITION;
  part.launch.weights = reinterpret_cast<u8*>(1 << 20);  // addresses alone
  part.launch.cache = reinterpret_cast<u8*>(size_t(1) << 40);
  part.residual = kept;
  part.token = &token;
  part.loop_first = FIRST, part.loop_last = LAST;
  compare_copies();

  part.first = kPlaceBehind + 1000, part.end = kPlaceBehind + 1001;
  part.launch.weights = nullptr;  // what is looked at fails
  for (int i = 0; i < kSMs * kTokens * kResidualRows; ++i) kept[i] = i + 0.5f;
  for (sm = 0; sm < kSMs; sm += kSMs - 1) run_block(nothing);
  for (int i = 0; i < kSMs * kTokens * kResidualRows; ++i)
    if (kept[i] != i + 0.5f) printf("residual %d is %g\n", i, kept[i]), exit(1);
  if (token != 7) printf("token %d\n", token), exit(1);

  // A step begins with the token that the one before has chosen, and with no residual of it.
  part.first = 0, part.end = 0, part.follows = 1;
  for (sm = 0; sm < kSMs; sm += kSMs - 1)
    run_block([] {
      Context<Mode::kPart> c(part.launch);
      c.sm = sm;
      c.begin_step(0);
      if (c.shared.token[0] != 7) printf("the step begins with %d\n", c.shared.token[0]), exit(1);
      end_of_block();
    });
}
