// Runs a product on the CPU whose columns are cut into kAll parts: on one GPU with all of them, and on 2, 4 and so on up
// to kAll, of which each has an equal share of the columns as a matrix of its own. Their sums are added in pairs, as
// GPUs would add them. Writes the finished rows for each number of GPUs, so that these can be compared to the
// bit, and those of the same columns in one part.
#include "made_up.h"
#include "stream.h"

#include "amk/gemv.cuh"

// Seven tiles: with eight parts of one a flush, with two four, and one SM has more than a flush of either.
constexpr int kAll = 8, kOfRows = 52, kOfColumns = COLUMNS;

template <int kOfParts, int kGpus>
struct Share {
  static constexpr int kRows = kOfRows, kColumns = kOfColumns / kOfParts / kGpus, kParts = kOfParts;
  static constexpr int kGrain = 56, kWarps = 8, kChains = 2;
  static constexpr int kRotation = 0, kRotationStep = 0, kTasks = 1;
  static constexpr bool kEmpty = false;
#ifdef INTEGERS  // the element type of a quantised matrix
  static constexpr WeightFormat kWeights{INTEGERS, 32, kFp16, ZEROS};
#endif
};
using Format = Matrix<Share<1, 1>>;

#if defined INTEGERS && AMK_TENSOR_CORES
static_assert(GemvShape<Share<kAll, 1>>::kKept, "digits are in shared memory");
#endif

constexpr int kTiles = ceil_div(kOfRows, kTileRows);
constexpr Page kIn{(kExchangeBytes + 255) / 256 * 256, kOfColumns * 8, 1};
static Array<u8, kIn.offset + kIn.bytes> exchange;
constexpr int kAllBytes = kTiles * tile_bytes<Format>(kOfColumns);
static Array<u8, kAllBytes> matrix;
static u8 whole[kAllBytes];
static float results[kAll][kOfRows];
static int gpu;

static void fill() {
#ifdef INTEGERS
  for (u8& b : whole) b = random_bits();
  for (u8* block = whole; block < whole + kAllBytes; block += Format::kBlockBytes)
    for (int at = Format::kScales; at < Format::kZeroPoints; at += 2) put<Fp16>(block + at, random_value(-9, -5));
#else
  for (int i = 0; i < kAllBytes / Element::kBytes; ++i) put<Element>(whole + i * Element::kBytes, value_at(2, i, 1));
#endif
}

template <class S>
static void multiply_on_sm() {
  run_on_weights<S>(matrix.all, [](auto& c) {
    gemv<S>(c, Plain{kIn}, [](const Row& r, float v) {
      if (r.valid) results[gpu][r.row] = v;
    });
  });
}

template <int kParts, int kGpus>
static void run() {
  using S = Share<kParts, kGpus>;
  constexpr int kOfShare = kOfColumns / kGpus, kShareBytes = tile_bytes<Matrix<S>>(kOfShare);
  for (gpu = 0; gpu < kGpus; ++gpu) {
    for (int i = 0; i < kOfShare; ++i)
      reinterpret_cast<WordOf<Element>::Type*>(exchange.all + kIn.offset)[i] =
          WordOf<Element>::make(rounded<Element>(value_at(1, gpu * kOfShare + i, 1)), first_epoch());
    exchange.write();
    for (int tile = 0; tile < kTiles; ++tile)
      memcpy(matrix.all + tile * kShareBytes, whole + (tile * kGpus + gpu) * kShareBytes, kShareBytes);
    matrix.write();
    for (int sm = 0; sm < kSMs; ++sm)
      if (tiles_of<S>(sm, 0).count() > 0) add_sm(sm);
    run_sms(multiply_on_sm<S>, kThreads);
  }
  for (int count = kGpus; count > 1; count /= 2)
    for (int i = 0; i < count / 2; ++i)
      for (int row = 0; row < kOfRows; ++row) results[i][row] = results[2 * i][row] + results[2 * i + 1][row];
  fwrite(results[0], sizeof results[0], 1, stdout);
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), matrix.make();
  launch.exchange = exchange.all;
  launch.weights = matrix.all;
  fill();
  run<1, 1>();
  run<8, 1>(), run<4, 2>(), run<2, 4>(), run<1, 8>();
  return 0;
}
