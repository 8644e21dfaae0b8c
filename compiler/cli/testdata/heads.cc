// Runs the readers of attention's heads on the CPU. Each form of norm and rotation is held to what it is by definition,
// in double precision. Prints what differs.
#include "made_up.h"

#if AMK_TENSOR_CORES
#include "amk/unit_reader.cuh"
#else
#include "amk/attention_fma.cuh"
#endif

// ---- a unit, read and by definition ----

enum class Norm { kRms, kWholeRms, kCentred, kShifted };
template <Norm kNorm, bool kRotated, bool kOwn = false>
struct Form : Attn {
  static constexpr bool kWholeNorm = kNorm == Norm::kWholeRms, kRotates = kRotated, kOwnGains = kOwn || kWholeNorm;
  static constexpr bool kNormShifted = kNorm == Norm::kShifted, kNormCentred = kNormShifted || kNorm == Norm::kCentred;
  static constexpr int kAngles = 0;
};
constexpr int kRows = (kHeads + 2 * kKVHeads) * kHeadDim, kOfUnit = (kGroupHeads + 2) * kHeadDim;
static float qkv[kRows], got[kOfUnit];
static u8 exchange[kExchangeBytes];
alignas(16) static WeightElement::Bits q_gain[kHeads * kHeadDim], k_gain[kKVHeads * kHeadDim],
    q_shift[kHeads * kHeadDim], k_shift[kKVHeads * kHeadDim];
static int failures;

// Of a head of q or k, from its first row on: `all` rows from `whole` on, if they are normalised together.
template <class S>
static double by_definition(int first, int d, int whole, int all, const WeightElement::Bits* gain,
                            const WeightElement::Bits* shift) {
  const int from = S::kWholeNorm ? whole : first, n = S::kWholeNorm ? all : kHeadDim;
  double mean = 0, squares = 0;
  for (int i = 0; S::kNormCentred && i < n; ++i) mean += double(qkv[from + i]) / n;
  for (int i = 0; i < n; ++i) squares += (qkv[from + i] - mean) * (qkv[from + i] - mean);
  const auto normed = [&](int d) {
    const int weight = S::kOwnGains ? first - whole + d : d;
    return (qkv[first + d] - mean) / sqrt(squares / n + S::kNormEps) * WeightElement::to_float(gain[weight]) +
           (S::kNormShifted ? WeightElement::to_float(shift[weight]) : 0);
  };
  if (!S::kRotates) return normed(d);
  const float2 turn = block_scratch().rotation[0][0][d / 2];
  return d % 2 == 0 ? normed(d) * turn.x - normed(d + 1) * turn.y : normed(d) * turn.x + normed(d - 1) * turn.y;
}

template <class S>
static void compare(int unit) {
  const double slack = Element::kBytes == 2 ? 0x1p-8 : 0x1p-20;
  for (int e = 0; e < kOfUnit; ++e) {
    const int h = e / kHeadDim, d = e % kHeadDim;
    double want = qkv[v_row(unit) + d];
    if (h < kGroupHeads) {
      want = by_definition<S>((unit * kGroupHeads + h) * kHeadDim, d, 0, kHeads * kHeadDim, q_gain, q_shift);
    } else if (h == kGroupHeads) {
      want = by_definition<S>(k_row(unit), d, kHeads * kHeadDim, kKVHeads * kHeadDim, k_gain, k_shift);
    }
    if (fabs(got[e] - want) <= slack * fabs(want) + 0x1p-20) continue;
    ++failures;
    printf("whole %d centred %d shifted %d own gains %d rotates %d unit %d head %d element %d: %g, want %g\n",
           S::kWholeNorm, S::kNormCentred, S::kNormShifted, S::kOwnGains, S::kRotates, unit, h, d, got[e], want);
  }
}

template <class S, class C>
static void read(C& c) {
  const NormedHeads heads{kQkv, reinterpret_cast<u8*>(q_gain), reinterpret_cast<u8*>(k_gain),
                          reinterpret_cast<u8*>(q_shift), reinterpret_cast<u8*>(k_shift)};
  for (int unit = 0; unit < kKVHeads; ++unit) {
    const Unit<S> u{unit, c.position};
#if AMK_TENSOR_CORES
    UnitReader<S, NormedHeads> reader(c, heads, u);
    auto words = quad_poll<reader.kQuads>(page_copy(c, heads.in), [&](int i) {
      const UnitQuad quad = reader.quad(c.tid, i);
      return quad.is_there() ? unit_word(u.head(), quad) : -1;
    });
    reader.poll(c, heads, u, words);
    reader.take(c, u, words);
    for (int i = 0; i < reader.kQuads; ++i) {
      const UnitQuad quad = reader.quad(c.tid, i);
      const int e = quad.quad * 4;
      if (!quad.is_there()) continue;
      const uint2 four = reader.values(words, i);
      for (int j = 0; j < 4; ++j) got[e + j] = Element::to_float(u16((j < 2 ? four.x : four.y) >> j % 2 * 16));
    }
#else
    UnitReader<S, NormedHeads>::fill(c, heads, u, 0, got);
#endif
    consumer_barrier();
    if (c.tid == 0) compare<S>(unit);
    consumer_barrier();
  }
}

static void block() {
  Context<Mode::kDecode> c(launch);
  c.begin_step(0);
  read<Form<Norm::kRms, true>>(c);
  read<Form<Norm::kRms, false, true>>(c);
  read<Form<Norm::kWholeRms, true>>(c);
  read<Form<Norm::kWholeRms, false>>(c);
  read<Form<Norm::kCentred, true, true>>(c);
  read<Form<Norm::kCentred, false>>(c);
  read<Form<Norm::kShifted, true>>(c);
  read<Form<Norm::kShifted, false, true>>(c);
  end_of_block();
}

int main() {
  launch.exchange = exchange;
  launch.position = 5;
  Context<Mode::kDecode> c(launch);
  c.begin_step(0);
  for (int row = 0; row < kRows; ++row) {
    qkv[row] = rounded<Element>(1 + random_within(row < kHeads * kHeadDim ? 3 : 0.5f));  // of a mean
    for (int copy = 0; copy < kQkv.copies; ++copy) {
      using Word = WordOf<Element>;
      reinterpret_cast<Word::Type*>(exchange + kQkv.offset + copy * kQkv.bytes)[row] = Word::make(qkv[row], c.epoch);
    }
  }
  for (auto& g : q_gain) g = WeightElement::from_float(random_within(2));
  for (auto& g : k_gain) g = WeightElement::from_float(random_within(2));
  for (auto& b : q_shift) b = WeightElement::from_float(random_within(1));
  for (auto& b : k_shift) b = WeightElement::from_float(random_within(1));
  for (int pair = 0; pair < kHeadDim / 2; ++pair) {
    const float angle = random_within(3);
    block_scratch().rotation[0][0][pair] = {cosf(angle), sinf(angle)};
  }
  run_block(block);
  return failures > 0;
}
