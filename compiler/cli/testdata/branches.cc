// Adds norms of branches to the residual on the CPU, for ROWS tokens by passes of kTokens of them: by every SM that has
// the whole residual, as of one token, or by the SMs that own its rows, as of several. Prints the squares that warps
// have added up, the residual and what is read of it, so that programs of several sizes of passes can be compared to
// the bit.
#include "made_up.h"

#include "amk/norm_rows.cuh"

constexpr u32 kVector = ROWS * kHidden * kBranchParts * 8;
constexpr Page kIn{0, kVector, 1}, kOut{kVector, kVector, 1};
static Array<u8, 2 * kVector> exchange;
static Array<Element::Bits, kHidden> gain;
static float before[ROWS][kHidden], sums[ROWS][kHidden], squares[kMostAtOnce][kTokens][kConsumerWarps];

// An element of a branch. Some are small, and the sum of parts that are not: in another order they are lost.
static float branch_at(int token, int part, int row) {
  const bool cancels = row % 5 == 0 && part == 1;
  const float v = value_at(token, row + (cancels ? 0 : part) * kHidden, 1 + token);
  return cancels ? -v : row % 5 == 0 && part == 2 ? v * 0x1p-20f : v;
}

using Word = WordOf<Element>;
static Word::Type* words(const Page& page) { return reinterpret_cast<Word::Type*>(exchange.all + page.offset); }

// The rows of a stage that an SM has of the residual: all of it, or its own.
template <class S>
static Tiles rows_of(int sm) {
  if constexpr (kTokens > 1) {
    const Tiles mine = tiles_of<S>(sm, 0);
    return {mine.begin * kTileRows, min(mine.end * kTileRows, kHidden)};
  } else {
    return {0, kHidden};
  }
}

template <class S>
static void add_on_sm() {
  run_consumers([](auto& c) {
    const Tiles rows = rows_of<S>(c.sm);
    auto each = [&](auto&& f) {
      for (int t = 0; t < kTokens; ++t)
        for (int row = rows.begin + c.tid; row < rows.end; row += kConsumers)
          f(launch.position + t, row, c.shared.residual[t * kResidualRows + row - rows.begin]);
    };
    each([](int token, int row, float& residual) { residual = before[token][row]; });
    consumer_barrier();
    const u8* weights = reinterpret_cast<u8*>(gain.all);
    if constexpr (kTokens > 1) {
      add_norm_rows<S>(c, kIn, weights, kOut);
    } else {
      add_norm<S>(c, kIn, weights);
      add_due(c);
    }
    consumer_barrier();
    each([](int token, int row, float& residual) { sums[token][row] = residual; });
    for (int i = c.tid; i < kTokens * kConsumerWarps; i += kConsumers)
      squares[block_index()][i / kConsumerWarps][i % kConsumerWarps] = c.shared.squares[(c.norms - 1) & 1][i];
  });
}

template <class S>
static void run(const char* name) {
  for (launch.position = 0; launch.position < ROWS; launch.position += kTokens) {
    const int columns = kParts<S> * kHidden;
    memset(exchange.all, 0, exchange.kBytes);
    for (int i = 0; i < kTokens * columns; ++i) {
      const int token = launch.position + i / columns;
      words(kIn)[i] = Word::make(branch_at(token, i % columns / kHidden, i % kHidden), first_epoch());
    }
    exchange.write();
    const int all = kTokens > 1 ? kSMs : 1;
    for (int sm = 0; sm < all; ++sm) {
      if (rows_of<S>(sm).count() > 0) add_sm(sm);
      if (listed < kMostAtOnce && sm + 1 < all) continue;
      const int n = listed;
      run_sms(add_on_sm<S>);
      for (int i = 0; i < n * kTokens; ++i) {
        printf("%s token %d squares", name, launch.position + i % kTokens);
        for (float sum : squares[i / kTokens][i % kTokens]) printf(" %08x", bits_of(sum));
        printf("\n");
      }
    }
    for (int t = 0; t < kTokens; ++t) {
      for (int row = 0; row < kHidden; ++row) {
        const float sum = sums[launch.position + t][row];
        float read = rounded<Element>(sum);
        if constexpr (kTokens > 1) {
          const auto word = words(kOut)[t * kHidden + row];
          read = Word::fresh(word, second_epoch()) ? Word::value(word) : NAN;
        }
        printf("%s token %d row %d: %08x %08x\n", name, launch.position + t, row, bits_of(sum),
               bits_of(read));
      }
    }
  }
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), gain.make();
  launch.exchange = exchange.all;
  for (int i = 0; i < kHidden; ++i) gain[i] = Element::from_float(value_at(101, i, 2));
  gain.write();
  for (int t = 0; t < ROWS; ++t)
    for (int i = 0; i < kHidden; ++i) before[t][i] = value_at(200 + t, i, 3);
  run<AttnAdd>("attn_add");
  run<MlpAdd>("mlp_add");
  return 0;
}
