// Runs stages of a build on the CPU for the tokens of a pass, all at once or one after the other, as the schedule that
// it is compiled with says: products that the test lists as PRODUCTS, and attention stages that it lists as STAGES.
// Products read what a layer begins with through an RMSNORM, or all of them through READER.
// Prints the bits of all results and of the cache, which are the same in both.
#include "attention.h"
#include "made_up.h"
#include "stream.h"

#include <type_traits>

#include "amk/gemv.cuh"

// ---- vectors ----

constexpr int kInput = 1 << 20;
constexpr Page kIn{0, kInput, 1}, kOut{kInput, 1 << 20, 1};
static Array<u8, kOut.offset + kOut.bytes> exchange;
static float vectors[PASS][kInput / 4 / PASS];  // of the tokens of the pass

// Hands over the vectors of so many elements of the tokens from `first` on. Nothing else is there to be read: whoever
// waits for a word behind them waits in vain.
static void end_stage(int first, int elements, u32 epoch) {
  using Word = WordOf<Element>;
  memset(exchange.all, 0, kOut.offset + kOut.bytes);
  for (int token = 0; token < kTokens; ++token)
    for (int i = 0; i < elements; ++i)
      reinterpret_cast<Word::Type*>(exchange.all)[token * elements + i] = Word::make(vectors[first + token][i], epoch);
  exchange.write();
}

// ---- products ----

static u8* matrix;
static Array<u8, 1 << 17> norm, shift;
static float sums[PASS][1 << 17];
static bool has[1 << 17];
static int first_of_pass;

// Some bits of quantised blocks mean no number.
template <class W>
static void fill(size_t bytes) {
  matrix = static_cast<u8*>(allocate(bytes));
  for (size_t i = 0; i < bytes; ++i) matrix[i] = random_bits();
  if constexpr (W::kQuantised) {
    for (u8* block = matrix; block < matrix + bytes; block += W::kBlockBytes) {
      for (int i = 0; W::kFloats && i < W::kScales; ++i)
        if (block[i] % 128 == 127) block[i] = 1;
      for (int i = 0; i < kTileRows * W::kGroups; ++i)
        put<typename W::Scale>(block + W::kScales + i * W::Scale::kBytes, random_value(-9, -5));
    }
  } else {
    for (size_t i = 0; i < bytes; i += WeightElement::kBytes) put<WeightElement>(matrix + i, random_value(-5, 0));
  }
  written(matrix, bytes);
  launch.weights = matrix;
}

template <class S, class Reader>
static void multiply() {
  run_on_weights<S>(matrix, [](auto& c) {
    const auto finish = [](const Row& row, float sum) {
      if (!row.valid) return;
      sums[first_of_pass + row.token][row.row] = sum;
      has[row.row] = true;
    };
    if constexpr (Reader::kNorm) {
      gemv<S>(c, Reader{kIn, norm.all, 1e-5f}, finish);
    } else if constexpr (Reader::kCentred) {
      gemv<S>(c, Reader{kIn, 1e-5f, norm.all, shift.all}, finish);
    } else {
      gemv<S>(c, Reader{kIn}, finish);
    }
  });
}

#ifdef READER
template <class S>
using ReaderOf = READER;
#else
template <class S>
using ReaderOf = typename std::conditional<S::kColumns == kHidden, RmsNorm, Plain>::type;
#endif

template <class S>
static void product() {
  using Reader = ReaderOf<S>;
  fill<Matrix<S>>(size_t(ceil_div(S::kRows, kTileRows)) * tile_bytes<Matrix<S>>(S::kColumns));
  for (int i = 0; i < S::kColumns; ++i) {
    put<Element>(norm.all + i * Element::kBytes, random_value(-2, 1));
    put<Element>(shift.all + i * Element::kBytes, random_value(-4, 0));
  }
  // Elements of very different sizes, tokens of other sizes, and one of zeros.
  for (int token = 0; token < PASS; ++token)
    for (int i = 0; i < S::kColumns; ++i)
      vectors[token][i] = token == 2 ? 0 : rounded<Element>(random_value(-8 - token, 2 * token - 4));
  norm.write(), shift.write();
  memset(has, 0, sizeof has);
  for (int slot = kSMs - 1; slot >= 0; slot -= LONG ? 65 : kSMs) {  // the SM with the last rows, and others
    for (first_of_pass = 0; first_of_pass < PASS; first_of_pass += kTokens) {
      end_stage(first_of_pass, S::kColumns, first_epoch());
      add_sm(((slot - S::kRotation) % kSMs + kSMs) % kSMs);
      run_sms(multiply<S, Reader>, kThreads);
    }
  }
  cuMemFree_v2(matrix);
  for (int row = 0; row < S::kRows; ++row)
    for (int token = 0; has[row] && token < PASS; ++token)
      printf("%d by %d row %d token %d: %08x\n", S::kRows, S::kColumns, row, token, bits_of(sums[token][row]));
}
template <class... S>
static void products() {
  (product<S>(), ...);
}

// ---- attention ----

constexpr int kRows = (kHeads + 2 * kKVHeads) * kHeadDim;
static Array<u8, kCacheBytes> cache;

// Rows from the position on are what an earlier sequence has left. A row of integers has a scale.
static void make_up(int position) {
  for (u8& b : cache) b = random_bits();
  for (int head = 0; head < kKVHeads; ++head) {
    u8* const rows = cache.all + head * H::kHeadCacheBytes;
    for (int row = 0; row < round_up(kMaxSeq, kCacheRows); ++row)
      for (int is_value = 0; is_value < 2; ++is_value) {
        const bool old = row >= position;
        if constexpr (kQuantisedCache) {
          store_scale<H>(rows, row, is_value, old ? row % 2 ? NAN : INFINITY : fabsf(random_value(-8, -5)));
        } else {
          for (int dim = 0; dim < H::kPaddedHead; ++dim)
            put<CacheElement>(rows + cache_offset<H>(row, dim, is_value),
                         dim >= kHeadDim ? 0 : old ? row % 2 ? NAN : INFINITY : random_value(-4, 0));
        }
      }
  }
  cache.write();
  for (int token = 0; token < PASS; ++token)
    for (int i = 0; i < kRows; ++i) vectors[token][i] = rounded<Element>(random_value(-4, i < H::k_row(0) ? 2 : 0));
  // What is not a number in the last token's row is its own affair, where its scale is not multiplied with other rows'
  // probabilities.
  if (kQuantisedCache && !kScalesValues) vectors[PASS - 1][H::k_row(0)] = vectors[PASS - 1][H::v_row(1)] = INFINITY;
}

template <class S>
static void attend_on_sm() {
  run_on_cache<S>([](auto& c) { attend<S>(c, PlainHeads{kIn}, kOut); });
}

template <class E>
static unsigned handed_over(u32 epoch, int index) {
  using Word = WordOf<E>;
  const auto word = reinterpret_cast<const typename Word::Type*>(exchange.all + kOut.offset)[index];
  if (!Word::fresh(word, epoch)) return 0xdead;
  const float v = Word::value(word);
  return v == v ? bits_of(v) : 0x7fffffff;
}

template <class S>
static void attention(const char* name) {
#if LONG
  constexpr int kPositions[] = {0, 1, 9, 16, 24, 40, 95, 130};
#else
  constexpr int kPositions[] = {0, 9, 130};
#endif
  for (int position : kPositions) {
    make_up(position);
    for (int first = 0; first < PASS; first += kTokens) {
      launch.position = position + first;
      end_stage(first, kRows, first_epoch());
      for (int sm = 0; sm < kSMs; ++sm)
        if (units_of<S>(sm, 0).count() > 0) add_sm(sm);
      run_sms(attend_on_sm<S>, kThreads);
      for (int token = 0; token < kTokens; ++token)
        for (int unit = 0; unit < kKVHeads * S::kSplits; ++unit)
          for (int head = 0; head < H::kGroupHeads; ++head)
            for (int dim = 0; dim < kHeadDim + (S::kSplits > 1 ? 2 : 0); ++dim) {
              const int of_token = (unit * H::kGroupHeads + head) * kHeadDim + dim;
              const int of_part = ((unit * kTokens + token) * H::kGroupHeads + head) * (kHeadDim + 2) + dim;
              printf("%s at %d token %d unit %d head %d dim %d: %08x\n", name, position, first + token, unit, head, dim,
                     S::kSplits > 1 ? handed_over<Fp32>(second_epoch(), of_part)
                                    : handed_over<Element>(second_epoch(), token * kHeads * kHeadDim + of_token));
            }
    }
    unsigned digest = 1;
    for (u8 b : cache) digest = (digest ^ b) * 16777619;
    printf("%s at %d leaves %08x\n", name, position, digest);
  }
}
template <class... S>
static void attentions() {
  (attention<S>(S::kSplits > 1 ? "split" : "whole"), ...);
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), cache.make(), norm.make(), shift.make();
  launch.exchange = exchange.all;
  launch.cache = cache.all;
  products<PRODUCTS>();
  attentions<STAGES>();
  return 0;
}
