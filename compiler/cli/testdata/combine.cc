// Joins made-up splits of two tokens on the CPU, some of them empty: holds what comes out to a sum in double precision,
// and prints what differs. COMBINE is the stage.
#include "attention.h"
#include "made_up.h"

#include "amk/combine.cuh"

constexpr int kStride = kHeadDim + 2, kTexts = 2;
constexpr Page kPartial{0, COMBINE::kSplits * kHeads * kStride * 8, 1};
constexpr Page kCombined{(kPartial.bytes + 1023) / 1024 * 1024, 1 << 16, 1};
static Array<u8, kCombined.offset + kCombined.bytes> exchange;

// The element of a split of a head, its maximum or its sum. The maxima are so far apart that most of the weight is on a
// few, one split in five is empty, and so are all of a head but the last.
static bool empty(int head, int split) { return head == 1 ? split < COMBINE::kSplits - 1 : split % 5 == 3; }
static float part(int token, int head, int split, int at) {
  const unsigned which = (token * kHeads + head) * 1024 + split;
  if (at == kHeadDim) return empty(head, split) ? -INFINITY : 8 * value_at(which, at, 1);
  if (at > kHeadDim) return empty(head, split) ? 0 : 1 + fabsf(value_at(which, at, 30));
  return empty(head, split) ? 0 : value_at(which, at, 4);
}

static double wanted(int token, int head, int dim) {
  double top = -INFINITY, sum = 0, value = 0;
  for (int split = 0; split < COMBINE::kSplits; ++split) top = fmax(top, part(token, head, split, kHeadDim));
  for (int split = 0; split < COMBINE::kSplits; ++split) {
    const double scale = empty(head, split) ? 0 : exp(part(token, head, split, kHeadDim) - top);
    sum += scale * part(token, head, split, kHeadDim + 1);
    value += scale * part(token, head, split, dim);
  }
  return value / sum;
}

static int index_of(int head, int split, int at) {
  return ((head / H::kGroupHeads * COMBINE::kSplits + split) * H::kGroupHeads + head % H::kGroupHeads) * kStride + at;
}

static void combine_on_sm() {
  run_consumers([](auto& c) { combine<COMBINE>(c, kPartial, kCombined); });
}

static int failures;
static void join(int token) {
  auto* parts = reinterpret_cast<u64*>(exchange.all + kPartial.offset);
  for (int head = 0; head < kHeads; ++head)
    for (int split = 0; split < COMBINE::kSplits; ++split)
      for (int at = 0; at < kStride; ++at)
        parts[index_of(head, split, at)] = WordOf<Fp32>::make(part(token, head, split, at), first_epoch());
  for (int sm = 0; sm < kSMs; ++sm)
    if (units_of<COMBINE>(sm, 0).count() > 0) add_sm(sm);
  exchange.write();
  run_sms(combine_on_sm);
  using Word = WordOf<Element>;
  const auto* combined = reinterpret_cast<const Word::Type*>(exchange.all + kCombined.offset);
  for (int i = 0; i < H::kQueryRows; ++i) {
    const float got = Word::fresh(combined[i], second_epoch()) ? Word::value(combined[i]) : NAN;
    const double want = wanted(token, i / kHeadDim, i % kHeadDim);
    if (!(fabs(got - want) <= 0.005 * fabs(want) + 1e-4) && ++failures < 20)
      printf("token %d, head %d, element %d: %g, want %g\n", token, i / kHeadDim, i % kHeadDim, got, want);
  }
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make();
  launch.exchange = exchange.all;
  launch.steps = 1;
  for (int token = 0; token < kTexts; ++token) join(token);
  return failures > 0;
}
