// Holds the places of an operand of a pass over a prompt to what they are for: each quarter of a quad lies in one place
// of its own for each token of a tile, a warp finds its quads in the order of a step, one after the other, and there is
// no place outside of the tile. Prints what differs.
#include "build.h"

#include "amk/gemv.cuh"
#include "amk/prompt_shape.cuh"

template <int kOf, int kShared, int kOfChain>
struct Stage {
  static constexpr int kRows = 64, kColumns = kOf, kWarps = kShared, kChains = kOfChain;
};

static int failures;
template <class S>
static void fail(const char* what, int at, long got, long want) {
  if (++failures < 20)
    printf("%d columns, %d warps, chunks of %d: %s %d: %ld, want %ld\n", S::kColumns, S::kWarps, int(kSlotBytes), what,
           at, got, want);
}

// The first byte of 32 columns of a token.
template <class Shape>
static size_t place_of(int member, int sub, int quarter, int token) {
  const auto to = Shape::place(member, sub, quarter);
  return to.part + token / 8 * Shape::kRowBytes + to.block * Shape::kBlockBytes + token % 8 * 64;
}

template <class S>
static void check() {
  using Shape = PromptShape<S>;
  constexpr int quads = (S::kColumns + 127) / 128;
  static int used[Shape::kTileBytes / 64], want[quads];
  static bool met[quads];
  for (int& user : used) user = -1;
  for (int member = 0; member < S::kWarps; ++member) {
    // As the warp of a step has them, which takes every kWarps-th of a chunk.
    int wanted = 0;
    for (int chunk = 0; chunk * Shape::kChunkQuads < quads; ++chunk)
      for (int quad = member; quad < Shape::kChunkQuads; quad += S::kWarps)
        if (chunk * Shape::kChunkQuads + quad < quads) want[wanted++] = chunk * Shape::kChunkQuads + quad;
    int n = 0;
    long before = -1;
    for (int sub = 0; sub < Shape::kSlabs * Shape::kSlabSubs; ++sub) {
      const int quad = Shape::quad_of(member, sub);
      if (quad == Shape::kQuads) continue;
      if (member >= Shape::kMembers) fail<S>("a quad of a warp that has none, sub", sub, quad, Shape::kQuads);
      if (n == wanted || quad != want[n]) fail<S>("quad of sub", sub, quad, n < wanted ? want[n] : -1);
      ++n, met[quad] = true;
      for (int quarter = 0; quarter < 4; ++quarter) {
        for (int token = 0; token < kTokenTile; ++token) {
          const size_t place = place_of<Shape>(member, sub, quarter, token);
          if (place % 64 || place + 64 > Shape::kTileBytes) {
            fail<S>("place of token", token, long(place), long(Shape::kTileBytes));
            continue;
          }
          int& user = used[place / 64];
          if (user >= 0) fail<S>("a place that is taken, quad", quad, user, -1);
          user = quad;
        }
        // The quarters of a slab, of all its quads, lie behind one another.
        const long chain = long(place_of<Shape>(member, sub, quarter, 0)) / Shape::kPartBytes / S::kChains;
        const long slab = long(member) * Shape::kSlabs + sub / Shape::kSlabSubs;
        const long wants = (slab * 4 + quarter) / S::kChains;
        if (chain != wants) fail<S>("chain of sub", sub, chain, wants);
      }
      const long first = long(place_of<Shape>(member, sub, 0, 0));
      if (first <= before) fail<S>("place of sub", sub, first, before);
      before = first;
    }
    if (n != wanted) fail<S>("quads of warp", member, n, wanted);
  }
  for (int quad = 0; quad < quads; ++quad)
    if (!met[quad]) fail<S>("quad", quad, 0, 1);
}

// Whether the ring is long enough for the step (GemvShape asserts it).
template <int kColumns, int kWarps>
constexpr bool kRuns = kWarps == 8 || (8 / kWarps - 1) * ceil_div(ceil_div(kColumns, 128),
                                          kQuadsOfChunk<Matrix<Stage<kColumns, kWarps, 1>>, kWarps>) +
                                              1 + int(kInFlight) <= int(kRingSlots);

static int checked;
template <int kColumns, int kWarps>
static void check_of() {
  if constexpr (kRuns<kColumns, kWarps>)
    check<Stage<kColumns, kWarps, 1>>(), check<Stage<kColumns, kWarps, 2>>(), ++checked;
}
template <int kColumns>
static void check_all() {
  check_of<kColumns, 1>();
  check_of<kColumns, 2>();
  check_of<kColumns, 4>();
  check_of<kColumns, 8>();
}

extern "C" int amk_main(void*) {
  check_all<32>();
  check_all<64>();
  check_all<200>();
  check_all<704>();
  check_all<1024>();
  check_all<1536>();
  check_all<2560>();
  check_all<4096>();
  check_all<5632>();
  if (failures) printf("%d failures\n", failures);
  return failures > 0 || checked < 9;
}
