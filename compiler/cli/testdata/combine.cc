// Joins made-up splits of two tokens on the CPU, some of them empty, as two steps do or, with AMK_PROMPT, as a pass over
// a prompt: holds what comes out to a sum in double precision, prints what differs, and writes what came out, so that
// the two can be compared to the bit. COMBINE is the stage.
#if AMK_PROMPT
#define AMK_PROMPT_TOKENS kMostPromptTokens
#endif
#include "attention.h"
#include "made_up.h"

#if AMK_PROMPT
#include "amk/prompt_shape.cuh"
namespace amk {
constexpr int kPromptColumns = H::kQueryRows;  // of the longest operand, for which a prompt leaves room
}
#include "amk/prompt_attention.cuh"
#else
#include "amk/combine.cuh"
#endif

constexpr int kStride = kHeadDim + 2, kTexts = 2;
constexpr Page kPartial{0, COMBINE::kSplits * kHeads * kStride * 8, 1};
constexpr Page kCombined{(kPartial.bytes + 1023) / 1024 * 1024, 1 << 16, 1};
#if AMK_PROMPT
constexpr size_t kWhere[] = {kPromptPlaces.pages + u64(kPartial.offset / 2) * kPromptTokens,
                             kPromptPlaces.pages + u64(kCombined.offset / 2) * kPromptTokens};
constexpr size_t kEnd = kPromptPlaces.pages + u64((kCombined.offset + kCombined.bytes) / 2) * kPromptTokens;
#else
constexpr size_t kWhere[] = {kPartial.offset, kCombined.offset};
constexpr size_t kEnd = kCombined.offset + kCombined.bytes;
#endif
static Array<u8, kEnd> exchange;

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

#if AMK_PROMPT
constexpr int kAtOnce = kTexts;  // tokens
using PartWord = float;
using Combined = Element::Bits;
static PartWord word_of(float v) { return v; }
static float value_of(Combined v) { return Element::to_float(v); }
static void combine_on_sm() {
  if (thread_index() == 0) init_waits(launch, block_waits());
  block_sync();
  Prompt c(launch);
  c.sm = this_sm();
  combine<COMBINE>(c, kPartial, kCombined);
}
#else
constexpr int kAtOnce = 1;
using PartWord = u64;
using Combined = WordOf<Element>::Type;
static PartWord word_of(float v) { return WordOf<Fp32>::make(v, first_epoch()); }
static float value_of(Combined v) {
  return WordOf<Element>::fresh(v, second_epoch()) ? WordOf<Element>::value(v) : NAN;
}
static void combine_on_sm() {
  run_consumers([](auto& c) { combine<COMBINE>(c, kPartial, kCombined); });
}
#endif

static int failures;
static void join_from(int first) {
  auto* parts = reinterpret_cast<PartWord*>(exchange.all + kWhere[0]);
  for (int token = first; token < first + kAtOnce; ++token)
    for (int head = 0; head < kHeads; ++head)
      for (int split = 0; split < COMBINE::kSplits; ++split)
        for (int at = 0; at < kStride; ++at)
          parts[(token - first) * COMBINE::kSplits * kHeads * kStride + index_of(head, split, at)] =
              word_of(part(token, head, split, at));
#if AMK_PROMPT
  // Some SMs that have tokens and some that have none: of the others all have joined.
  constexpr u32 kSome = ceil_div(kTexts * kHeads, kConsumerWarps) + 1, kJoined = kSMs - kSome;
  for (u32 sm = 0; sm < kSome; ++sm) add_sm(sm);
  memcpy(exchange.all, &kJoined, sizeof kJoined);
#else
  for (int sm = 0; sm < kSMs; ++sm)
    if (units_of<COMBINE>(sm, 0).count() > 0) add_sm(sm);
#endif
  exchange.write();
  run_sms(combine_on_sm);
  const auto* combined = reinterpret_cast<const Combined*>(exchange.all + kWhere[1]);
  for (int token = first; token < first + kAtOnce; ++token) {
    for (int i = 0; i < H::kQueryRows; ++i) {
      const float got = value_of(combined[(token - first) * H::kQueryRows + i]);
      const double want = wanted(token, i / kHeadDim, i % kHeadDim);
      if (!(fabs(got - want) <= 0.005 * fabs(want) + 1e-4) && ++failures < 20)
        fprintf(stderr, "token %d, head %d, element %d: %g, want %g\n", token, i / kHeadDim, i % kHeadDim, got, want);
      fwrite(&got, sizeof got, 1, stdout);
    }
  }
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make();
  launch.exchange = exchange.all;
  launch.steps = kAtOnce;
  for (int token = 0; token < kTexts; token += kAtOnce) join_from(token);
  return failures > 0;
}
