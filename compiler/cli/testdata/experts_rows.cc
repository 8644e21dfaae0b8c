// Runs products with experts on the CPU for ROWS vectors, each with experts of its own, by passes of kTokens of them, of
// one or of all. Writes the finished rows, so that programs of several sizes of passes can be compared to the bit.
#include "made_up.h"
#include "stream.h"

#include "amk/gemv.cuh"

constexpr int kOfExpert = 16, kOfColumns = 5120;  // rows of a matrix, and its columns: two slabs, if there are slabs

template <ElementType kElement, int kOfSelected, int kOfSummed>
struct Product {
  static constexpr int kRows = kOfExpert * kOfSelected, kColumns = kOfColumns, kGrain = 16, kWarps = 8, kChains = 1;
  static constexpr int kSelected = kOfSelected, kSummed = kOfSummed;
  static constexpr int kRotation = 0, kRotationStep = 0, kTasks = 1;
  static constexpr bool kEmpty = false;
  static constexpr WeightFormat kWeights{kElement, 32, kFp16, false};
};
template <ElementType kElement>
using Format = Matrix<Product<kElement, 1, kMostChosen>>;
static_assert(kTileChunks<Product<kE4m3, 1, kMostChosen>> > 4, "more quads of a warp than a slab has");

constexpr int kMostBytes = kExperts * (kOfExpert / kTileRows) * tile_bytes<Format<kInt8>>(kOfColumns);
constexpr Page kIn{(kExchangeBytes + 255) / 256 * 256, ROWS * kMostChosen * kOfColumns * 4, 1};
static Array<u8, kIn.offset + kIn.bytes> exchange;
static Array<u8, kMostBytes> matrices;
static float results[ROWS][kOfExpert * kMostChosen];

// What a router would have left of each token.
template <class C>
static void choose(C& c) {
  if (c.tid < kTokens * kMostChosen) {
    const int token = c.tid / kMostChosen, rank = c.tid % kMostChosen;
    c.shared.experts[token][rank] = (launch.position + token + rank * 3) % kExperts;
  }
  consumer_barrier();
  if (c.tid == 0) store_shared_release(&c.shared.choices, 1u);
}

template <class S>
static void multiply_on_sm() {
  run_stage([](auto& c, Turns& turns) { turns.experts<S>(c, matrices.all, 0, 0); },
            [](auto& c) {
              choose(c);
              auto keep = [](const Row& r, float v) {
                if (r.valid) results[launch.position + r.token][r.row] = v;
              };
              // as gemv does, which wants one side of a matrix to be the model's hidden size
              for (int token = 0; token < kTokens; ++token) gemv_of<S>(c, Plain{kIn}, keep, token);
            });
}

template <class S>
static void run() {
  using W = Matrix<S>;
  for (int i = 0; i < kMostBytes; ++i) matrices.all[i] = u8(bits_at(1, i) & (W::kFloats ? 0xbf : 0xff));
  for (u8* block = matrices.all; block + W::kBlockBytes <= matrices.all + kMostBytes; block += W::kBlockBytes)
    for (int at = W::kScales; at < W::kBlockBytes; at += 2) put<Fp16>(block + at, random_value(-9, -5));
  matrices.write();
  constexpr int kOfVector = S::kSummed * kOfColumns;
  memset(results, 0, sizeof results);
  for (launch.position = 0; launch.position < ROWS; launch.position += kTokens) {
    for (int i = 0; i < kTokens * kOfVector; ++i) {
      const int row = launch.position + i / kOfVector;
      const float v = rounded<Element>(value_at(2 + row, i % kOfVector, 1));
      reinterpret_cast<WordOf<Element>::Type*>(exchange.all + kIn.offset)[i] = WordOf<Element>::make(v, first_epoch());
    }
    exchange.write();
    for (int sm = 0; sm < kSMs; ++sm)
      if (tiles_of<S>(sm, 0).count() > 0) add_sm(sm);
    run_sms(multiply_on_sm<S>, kThreads);
  }
  fwrite(results, sizeof results, 1, stdout);
}

template <ElementType kElement>
static void run_both() {
  run<Product<kElement, kMostChosen, 1>>(), run<Product<kElement, 1, kMostChosen>>();
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), matrices.make();
  launch.exchange = exchange.all;
  launch.weights = matrices.all;
  run_both<kE4m3>(), run_both<kInt8>();
  return 0;
}
