// Runs the readers of attention's heads on the CPU. Each form of norm and rotation is held to what it is by definition,
// in double precision. Prints what differs.
#include "made_up.h"

#include "attention.h"

// ---- a unit, read and by definition ----

enum class Norm { kRms, kWholeRms, kCentred, kShifted };
template <Norm kNorm, bool kRotated, bool kOwn = false>
struct Form : Attn {
  static constexpr bool kWholeNorm = kNorm == Norm::kWholeRms, kRotates = kRotated, kOwnGains = kOwn || kWholeNorm;
  static constexpr bool kNormShifted = kNorm == Norm::kShifted, kNormCentred = kNormShifted || kNorm == Norm::kCentred;
  static constexpr int kAngles = 0;
};
constexpr int kRows = (kHeads + 2 * kKVHeads) * kHeadDim, kOfUnit = (H::kGroupHeads + 2) * kHeadDim;
static float qkv[kRows], got[kOfUnit];
static float2 turns_of_pairs[kHeadDim / 2];
static Array<u8, kExchangeBytes> exchange;
static Array<WeightElement::Bits, kHeads * kHeadDim> q_gain, q_shift;
static Array<WeightElement::Bits, kKVHeads * kHeadDim> k_gain, k_shift;
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
  const float2 turn = turns_of_pairs[d / 2];
  return d % 2 == 0 ? normed(d) * turn.x - normed(d + 1) * turn.y : normed(d) * turn.x + normed(d - 1) * turn.y;
}

template <class S>
static void compare(int unit) {
  const double slack = Element::kBytes == 2 ? 0x1p-8 : 0x1p-20;
  for (int e = 0; e < kOfUnit; ++e) {
    const int h = e / kHeadDim, d = e % kHeadDim;
    double want = qkv[H::v_row(unit) + d];
    if (h < H::kGroupHeads) {
      want = by_definition<S>((unit * H::kGroupHeads + h) * kHeadDim, d, 0, kHeads * kHeadDim, q_gain.all, q_shift.all);
    } else if (h == H::kGroupHeads) {
      want = by_definition<S>(H::k_row(unit), d, kHeads * kHeadDim, kKVHeads * kHeadDim, k_gain.all, k_shift.all);
    }
    if (fabs(got[e] - want) <= slack * fabs(want) + 0x1p-20) continue;
    ++failures;
    printf("whole %d centred %d shifted %d own gains %d rotates %d unit %d head %d element %d: %g, want %g\n",
           S::kWholeNorm, S::kNormCentred, S::kNormShifted, S::kOwnGains, S::kRotates, unit, h, d, got[e], want);
  }
}

template <class S, class C>
static void read(C& c) {
  const NormedHeads heads{kQkv, reinterpret_cast<u8*>(q_gain.all), reinterpret_cast<u8*>(k_gain.all),
                          reinterpret_cast<u8*>(q_shift.all), reinterpret_cast<u8*>(k_shift.all)};
  for (int unit = 0; unit < kKVHeads; ++unit) {
    const Unit<S> u{unit, c.position};
#if AMK_TENSOR_CORES
    UnitReader<S, NormedHeads> reader(c, heads, u);
    auto words = quad_poll<reader.kQuads>(page_copy(c, heads.in), [&](int i) {
      const UnitQuad<H> quad = reader.quad(c.tid, i);
      return quad.is_there() ? unit_word<H>(u.head(), quad) : -1;
    });
    reader.poll(c, heads, u, words);
    reader.take(c, u, words);
    for (int i = 0; i < reader.kQuads; ++i) {
      const UnitQuad<H> quad = reader.quad(c.tid, i);
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
  run_consumers([](auto& c) {
    for (int pair = c.tid; pair < kHeadDim / 2; pair += kConsumers)
      c.shared.rotation[0][0][pair] = turns_of_pairs[pair];
    consumer_barrier();
    read<Form<Norm::kRms, true>>(c);
    read<Form<Norm::kRms, false, true>>(c);
    read<Form<Norm::kWholeRms, true>>(c);
    read<Form<Norm::kWholeRms, false>>(c);
    read<Form<Norm::kCentred, true, true>>(c);
    read<Form<Norm::kCentred, false>>(c);
    read<Form<Norm::kShifted, true>>(c);
    read<Form<Norm::kShifted, false, true>>(c);
  });
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), q_gain.make(), q_shift.make(), k_gain.make(), k_shift.make();
  launch.exchange = exchange.all;
  launch.position = 5;
  for (int row = 0; row < kRows; ++row) {
    qkv[row] = rounded<Element>(1 + random_within(row < kHeads * kHeadDim ? 3 : 0.5f));  // of a mean
    for (int copy = 0; copy < kQkv.copies; ++copy) {
      using Word = WordOf<Element>;
      auto* const words = reinterpret_cast<Word::Type*>(exchange.all + kQkv.offset + copy * kQkv.bytes);
      words[row] = Word::make(qkv[row], first_epoch());
    }
  }
  for (auto& g : q_gain) g = WeightElement::from_float(random_within(2));
  for (auto& g : k_gain) g = WeightElement::from_float(random_within(2));
  for (auto& b : q_shift) b = WeightElement::from_float(random_within(1));
  for (auto& b : k_shift) b = WeightElement::from_float(random_within(1));
  exchange.write(), q_gain.write(), q_shift.write(), k_gain.write(), k_shift.write();
  for (float2& turn : turns_of_pairs) {
    const float angle = random_within(3);
    turn = {cosf(angle), sinf(angle)};
  }
  add_sm(0);
  run_sms(block);
  return failures > 0;
}
