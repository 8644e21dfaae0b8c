// Runs products on the CPU for ROWS vectors, by passes of kTokens of them, of one or of all, behind each reader. Writes
// the finished rows, so that programs of several sizes of passes can be compared to the bit.
#include "made_up.h"
#include "stream.h"

#include "amk/gemv.cuh"

template <int kOfRows, int kOfColumns, int kOfGrain, int kOfWarps, int kOfChain>
struct Product {
  static constexpr int kRows = kOfRows, kColumns = kOfColumns, kGrain = kOfGrain, kWarps = kOfWarps;
  static constexpr int kChains = kOfChain;
  static constexpr int kRotation = 0, kRotationStep = 0, kTasks = 1;
  static constexpr bool kEmpty = false;
};
// The last tile is not whole, and neither is the last quad of most; the second has tiles of two flushes, the third is
// of two slabs, and the last two have groups of warps.
using Small = Product<44, 1024, 8, 8, 1>;
using Flushes = Product<84, 1000, 80, 8, 2>;
using Slabs = Product<20, 5120, 16, 8, 1>;
using Halves = Product<36, 580, 24, 4, 2>;
using Quarters = Product<44, 200, 40, 2, 1>;

constexpr int kMostRows = 96, kMostColumns = 5120;
constexpr Page kIn{(kExchangeBytes + 255) / 256 * 256, ROWS * kMostColumns * 2 * Element::kBytes, 1};
static Array<u8, kIn.offset + kIn.bytes> exchange;
static Array<Element::Bits, kMostRows * (kMostColumns + 128)> matrix;
static Array<Element::Bits, kMostColumns> gain, bias;
static float results[ROWS][kMostRows];

template <class Reader>
static Reader reader() {
  const u8* g = reinterpret_cast<u8*>(gain.all);
  const u8* b = reinterpret_cast<u8*>(bias.all);
  if constexpr (Reader::kNorm) return {kIn, g, 1e-5f};
  else if constexpr (Reader::kShift) return {kIn, 1e-5f, g, b};
  else if constexpr (Reader::kGain) return {kIn, 1e-5f, g};
  else if constexpr (Reader::kCentred) return {kIn, 1e-5f};
  else return {kIn};
}

template <class S, class Reader>
static void multiply_on_sm() {
  run_on_weights<S>(reinterpret_cast<u8*>(matrix.all), [](auto& c) {
    gemv<S>(c, reader<Reader>(), [](const Row& r, float v) {
      if (r.valid) results[launch.position + r.token][r.row] = v;
    });
  });
}

template <class S, class Reader>
static void run() {
  memset(results, 0, sizeof results);
  for (launch.position = 0; launch.position < ROWS; launch.position += kTokens) {
    for (int i = 0; i < kTokens * S::kColumns; ++i) {
      const int row = launch.position + i / S::kColumns;
      const float mean = row % 3 / 64.0f;  // of a row's own
      const float v = rounded<Element>(mean + value_at(row, i % S::kColumns, 1 + row));
      reinterpret_cast<WordOf<Element>::Type*>(exchange.all + kIn.offset)[i] = WordOf<Element>::make(v, first_epoch());
    }
    exchange.write();
    for (int sm = 0; sm < kSMs; ++sm)
      if (tiles_of<S>(sm, 0).count() > 0) add_sm(sm);
    run_sms(multiply_on_sm<S, Reader>, kThreads);
  }
  fwrite(results, sizeof results, 1, stdout);
}

template <class S>
static void run_readers() {
  run<S, Plain>();
  run<S, UnitOffsetRmsNorm>();
  run<S, LayerNorm>();
#if ALL
  run<S, RmsNorm>();
  run<S, BareLayerNorm>();
  run<S, GainLayerNorm>();
  run<S, UnitOffsetLayerNorm>();
#endif
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), matrix.make(), gain.make(), bias.make();
  launch.exchange = exchange.all;
  launch.weights = reinterpret_cast<u8*>(matrix.all);
  for (int i = 0; i < kMostRows * (kMostColumns + 128); ++i) matrix[i] = Element::from_float(value_at(100, i, 1));
  for (int i = 0; i < kMostColumns; ++i) {
    gain[i] = Element::from_float(value_at(101, i, 2));
    bias[i] = Element::from_float(value_at(102, i, 1));
  }
  matrix.write(), gain.write(), bias.write();
  run_readers<Small>(), run_readers<Slabs>(), run_readers<Halves>();
#if ALL
  run_readers<Flushes>(), run_readers<Quarters>();
#endif
  return 0;
}
