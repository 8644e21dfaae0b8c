// Adds norms of branches to the residual on the CPU, for ROWS tokens by passes of kTokens of them: by every SM that has
// the whole residual, as of one token, or by the SMs that own its rows, as of several. Prints the squares that warps
// have added up, the residual and what is read of it, so that programs of several sizes of passes can be compared to
// the bit.
#include "made_up.h"

#include "amk/norm_rows.cuh"

constexpr u32 kVector = ROWS * kHidden * kBranchParts * 8;
constexpr Page kIn{0, kVector, 1}, kOut{kVector, kVector, 1};
alignas(16) static u8 exchange[2 * kVector];
alignas(16) static Element::Bits gain[kHidden];
static float before[ROWS][kHidden], sums[ROWS][kHidden], squares[ROWS][kConsumerWarps];

// An element of a branch. Some are small, and the sum of parts that are not: in another order they are lost.
static float branch_at(int token, int part, int row) {
  const bool cancels = row % 5 == 0 && part == 1;
  const float v = value_at(token, row + (cancels ? 0 : part) * kHidden, 1 + token);
  return cancels ? -v : row % 5 == 0 && part == 2 ? v * 0x1p-20f : v;
}

using Word = WordOf<Element>;
static Word::Type* words(const Page& page) { return reinterpret_cast<Word::Type*>(exchange + page.offset); }

// The rows of a stage that an SM has of the residual: all of it, or its own.
template <class S>
static Tiles rows_of() {
  if constexpr (kTokens > 1) {
    const Tiles mine = tiles_of<S>(sm, 0);
    return {mine.begin * kTileRows, min(mine.end * kTileRows, kHidden)};
  } else {
    return {0, kHidden};
  }
}

template <class S>
static void add_on_sm() {
  Context<Mode::kDecode> c(launch);
  c.sm = sm;
  c.begin_step(0);
  const Tiles rows = rows_of<S>();
  auto each = [&](auto&& f) {
    for (int t = 0; t < kTokens; ++t)
      for (int row = rows.begin + c.tid; row < rows.end; row += kConsumers)
        f(launch.position + t, row, c.shared.residual[t * kResidualRows + row - rows.begin]);
  };
  each([](int token, int row, float& residual) { residual = before[token][row]; });
  consumer_barrier();
  const u8* weights = reinterpret_cast<u8*>(gain);
  if constexpr (kTokens > 1) {
    add_norm_rows<S>(c, kIn, weights, kOut);
  } else {
    add_norm<S>(c, kIn, weights);
    add_due(c);
  }
  consumer_barrier();
  each([](int token, int row, float& residual) { sums[token][row] = residual; });
  for (int i = c.tid; i < kTokens * kConsumerWarps; i += kConsumers)
    squares[launch.position + i / kConsumerWarps][i % kConsumerWarps] = c.shared.squares[(c.norms - 1) & 1][i];
  end_of_block();
}

template <class S>
static void run(const char* name) {
  for (launch.position = 0; launch.position < ROWS; launch.position += kTokens) {
    Context<Mode::kDecode> c(launch);
    c.begin_step(0);
    const int columns = kParts<S> * kHidden;
    memset(exchange, 0, sizeof exchange);
    for (int i = 0; i < kTokens * columns; ++i) {
      const int token = launch.position + i / columns;
      words(kIn)[i] = Word::make(branch_at(token, i % columns / kHidden, i % kHidden), c.epoch);
    }
    const int sms = kTokens > 1 ? kSMs : 1;
    for (sm = 0; sm < sms; ++sm) {
      if (rows_of<S>().count() == 0) continue;
      run_block(add_on_sm<S>);
      for (int t = 0; t < kTokens; ++t) {
        printf("%s token %d squares", name, launch.position + t);
        for (float sum : squares[launch.position + t]) printf(" %08x", __float_as_uint(sum));
        printf("\n");
      }
    }
    for (int t = 0; t < kTokens; ++t) {
      for (int row = 0; row < kHidden; ++row) {
        const float sum = sums[launch.position + t][row];
        float read = rounded<Element>(sum);
        if constexpr (kTokens > 1) {
          const auto word = words(kOut)[t * kHidden + row];
          read = Word::fresh(word, c.next_epoch()) ? Word::value(word) : NAN;
        }
        printf("%s token %d row %d: %08x %08x\n", name, launch.position + t, row, __float_as_uint(sum),
               __float_as_uint(read));
      }
    }
  }
}

int main() {
  launch.exchange = exchange;
  for (int i = 0; i < kHidden; ++i) gain[i] = Element::from_float(value_at(101, i, 2));
  for (int t = 0; t < ROWS; ++t)
    for (int i = 0; i < kHidden; ++i) before[t][i] = value_at(200 + t, i, 3);
  run<AttnAdd>("attn_add");
  run<MlpAdd>("mlp_add");
}
