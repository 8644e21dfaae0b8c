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
constexpr int kPromptColumns = kQueryRows;  // of the longest operand, for which a prompt leaves room
}
#include "amk/prompt_attention.cuh"
#else
#include "amk/combine.cuh"
#endif

constexpr int kStride = kHeadDim + 2, kTexts = 2;
constexpr Page kPartial{0, COMBINE::kSplits * kHeads * kStride * 8, 1};
constexpr Page kCombined{(kPartial.bytes + 1023) / 1024 * 1024, 1 << 16, 1};
alignas(16) static u8 exchange[1 << 25];

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
  return ((head / kGroupHeads * COMBINE::kSplits + split) * kGroupHeads + head % kGroupHeads) * kStride + at;
}

#if AMK_PROMPT
static void combine_on_sm() {
  Prompt c(launch);
  c.sm = sm;
  combine<COMBINE>(c, kPartial, kCombined);
  end_of_block();
}
constexpr int kAtOnce = kTexts;  // tokens
static void hand_over(int token, int head, int split, int at) {
  reinterpret_cast<float*>(exchange + kPromptPlaces.pages + u64(kPartial.offset / 2) * kPromptTokens)[
      token * COMBINE::kSplits * kHeads * kStride + index_of(head, split, at)] = part(token, head, split, at);
}
static float result(int token, int i) {
  const int index = token * kQueryRows + i;
  return Element::to_float(reinterpret_cast<const Element::Bits*>(
      exchange + kPromptPlaces.pages + u64(kCombined.offset / 2) * kPromptTokens)[index]);
}
static void begin() {
  launch.steps = kAtOnce;
  constexpr size_t kEnd = kPromptPlaces.pages + u64((kCombined.offset + kCombined.bytes) / 2) * kPromptTokens;
  static_assert(kEnd <= sizeof exchange, "memory for the pass");
}
static void before_block() {  // all others have joined
  const u32 joined = kSMs - 1;
  memcpy(exchange, &joined, sizeof joined);
}
#else
constexpr int kAtOnce = 1;
static u32 epoch;
static void combine_on_sm() {
  Context<Mode::kDecode> c(launch);
  c.sm = sm;
  c.begin_step(0);
  combine<COMBINE>(c, kPartial, kCombined);
  end_of_block();
}
static void hand_over(int token, int head, int split, int at) {
  reinterpret_cast<u64*>(exchange + kPartial.offset)[index_of(head, split, at)] =
      WordOf<Fp32>::make(part(token, head, split, at), epoch);
}
static float result(int, int index) {
  return WordOf<Element>::value(reinterpret_cast<const WordOf<Element>::Type*>(exchange + kCombined.offset)[index]);
}
static void begin() {
  Context<Mode::kDecode> c(launch);
  c.begin_step(0);
  epoch = c.epoch;
}
static void before_block() {}
#endif

static int failures;
static void join_from(int first) {
  for (int token = first; token < first + kAtOnce; ++token)
    for (int head = 0; head < kHeads; ++head)
      for (int split = 0; split < COMBINE::kSplits; ++split)
        for (int at = 0; at < kStride; ++at) hand_over(token, head, split, at);
  for (sm = 0; sm < kSMs; ++sm) {
    before_block();
    run_block(combine_on_sm);
  }
  for (int token = first; token < first + kAtOnce; ++token) {
    for (int i = 0; i < kQueryRows; ++i) {
      const float got = result(token, i);
      const double want = wanted(token, i / kHeadDim, i % kHeadDim);
      if (!(fabs(got - want) <= 0.005 * fabs(want) + 1e-4) && ++failures < 20)
        fprintf(stderr, "token %d, head %d, element %d: %g, want %g\n", token, i / kHeadDim, i % kHeadDim, got, want);
      fwrite(&got, sizeof got, 1, stdout);
    }
  }
}

int main() {
  launch.exchange = exchange;
  begin();
  for (int token = 0; token < kTexts; token += kAtOnce) join_from(token);
  return failures > 0;
}
