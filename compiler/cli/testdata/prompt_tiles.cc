// Holds what a pass over a prompt multiplies by wgmma to what it is for: every eight columns of an operand have a place
// of their own for each token, and together they fill a tile; a chain's quads lie one after the other, in the order of a
// step, and a quad is found where it is; and the tiles of a product are all pairs of tokens and rows, each once. Prints
// what differs.
#include "build.h"

#include <vector>

#include "amk/gemv.cuh"
#include "amk/prompt_ring.cuh"

template <int kOf, int kShared, int kOfChain>
struct Stage {
  static constexpr int kRows = 1304, kColumns = kOf, kWarps = kShared, kChains = kOfChain;
};

static int failures;
template <class S>
static void fail(const char* what, long at, long got, long want) {
  if (++failures < 20)
    printf("%d columns, %d warps, %d quarters: %s %ld: %ld, want %ld\n", S::kColumns, S::kWarps, S::kChains, what, at,
           got, want);
}

template <class S>
static void check_places() {
  using Shape = PromptShape<S>;
  constexpr int kPieces = int(Shape::kTileBytes / 16);
  std::vector<int> used(kPieces, 0);
  long end = 0;  // of the chain before, for the first token
  for (int member = 0; member < Shape::kMembers; ++member) {
    for (int slab = 0; slab < Shape::kSlabs; ++slab) {
      for (int chain = 0; chain < Shape::kChains; ++chain) {
        for (int i = 0; i < Shape::quads_of(slab); ++i) {
          for (int q = 0; q < Shape::kOfChain; ++q) {
            const int quarter = chain / 2 * Shape::kOfChain + q, sub = slab * Shape::kSlabSubs + i;
            const long first = long(Shape::place(member, sub, quarter, chain % 2, 0));
            if (first != end) fail<S>("place in the walk of chain", chain, first, end);
            end = first + 2 * Shape::kGroupBytes;
            for (int token = 0; token < kTokenTile; ++token) {
              for (int group = 0; group < 2; ++group) {
                const size_t place = Shape::place(member, sub, quarter, chain % 2, token) + group * Shape::kGroupBytes;
                if (place % 16 || place + 16 > Shape::kTileBytes) fail<S>("place of token", token, long(place), 0);
                else if (++used[place / 16] > 1) fail<S>("a place that is taken, token", token, long(place), 0);
              }
            }
          }
        }
      }
    }
  }
  for (int quad = 0; quad < Shape::kQuads; ++quad) {
    const int at = Shape::quad_of(Shape::member_with(quad), Shape::sub_with(quad));
    if (at != quad) fail<S>("the quad where quad", quad, at, quad);
  }
  for (int i = 0; i < kPieces; ++i)
    if (used[i] != 1) fail<S>("users of place", i * 16L, used[i], 1);
}

template <class S>
static void check_tiles() {
  using Shape = SlotShape<S>;
  for (int tokens : {1, 128, 129, 513, 2048}) {
    const PromptTiles<S> tiles(tokens);
    std::vector<int> met(tiles.count(), 0);
    for (int i = 0; i < tiles.count(); ++i) {
      const PromptTile t = tiles[i];
      const long at = (long(t.tokens) * Shape::kParts + t.part) * Shape::kPartTiles + t.first_row / Shape::kRows;
      if (t.tokens < 0 || t.tokens * Shape::kTileTokens >= tokens || t.first_row % Shape::kRows || t.first_row < 0 ||
          t.first_row >= Shape::kPartRows || t.part < 0 || t.part >= Shape::kParts || at >= tiles.count())
        fail<S>("tile", i, at, tiles.count());
      else if (++met[at] > 1) fail<S>("a tile that is another's too", i, at, 1);
    }
  }
}

static int checked;
// Whether the ring is long enough for the step (GemvShape asserts it).
template <class S>
constexpr bool kRuns = S::kWarps == 8 || (8 / S::kWarps - 1) * ceil_div(ceil_div(S::kColumns, 128),
                                             kQuadsOfChunk<Matrix<S>, S::kWarps>) + 1 + int(kInFlight) <= int(kRingSlots);
template <class S>
static void check_stage() {
  if constexpr (kRuns<S>) check_places<S>(), check_tiles<S>(), ++checked;
}
template <int kColumns>
static void check_all() {
  check_stage<Stage<kColumns, 2, 1>>();
  check_stage<Stage<kColumns, 2, 2>>();
  check_stage<Stage<kColumns, 8, 1>>();
  check_stage<Stage<kColumns, 8, 2>>();
}

extern "C" int amk_main(void*) {
  check_all<32>();
  check_all<200>();
  check_all<704>();
  check_all<2560>();
  check_all<4096>();
  check_all<5632>();
  if (failures) printf("%d failures\n", failures);
  return failures > 0 || checked < 12;
}
