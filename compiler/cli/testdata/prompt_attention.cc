// Attends to texts on the CPU, with sinks and without: step by step, or with AMK_PROMPT in passes over a prompt, with
// AMK_WGMMA those of sm_90. Writes
// what the stages that the test lists as STAGES make of each token, and the caches that they leave, so that the two can
// be compared to the bit. Splits are combined by the stage COMBINE. With SPANS tokens before a position have the stage
// that a prompt has in place of another one (before.h, of the build's prompt.cu), and passes have tokens of both.
#if AMK_PROMPT
#define AMK_PROMPT_TOKENS kMostPromptTokens
#endif
#include "attention.h"
#include "made_up.h"

#if AMK_PROMPT
#include "amk/prompt_shape.cuh"
namespace amk {
// Of the longest operand, for which a prompt leaves room.
constexpr PromptSizes kPromptSizes{u64(kMostPromptTokens) * H::kQueryRows * 2, 0};
__device__ constexpr Page kStepPages[] = {{}};
}
#include "amk/prompt_attention.cuh"
#else
#include "stream.h"

#include "amk/combine.cuh"
#endif

#ifndef COMBINE
#define COMBINE S  // there are no splits
#endif

#ifdef SPANS
#if !AMK_PROMPT
namespace amk {
template <class S>
struct Before;
}
#endif
#include "before.h"
template <class S>
using AtFirst = typename Before<S>::Stage;
template <class S>
constexpr int kTurn = Before<S>::kEnd;
#else
template <class S>
using AtFirst = S;
template <class S>
constexpr int kTurn = 0;
#endif

constexpr Page kOut{(kExchangeBytes + 255) / 256 * 256, 1 << 18, 1};
constexpr Page kCombined{kOut.offset + kOut.bytes, 1 << 16, 1};
#if AMK_PROMPT
constexpr size_t place_of(Page page) { return kPromptPlaces.pages + prompt_page(page.offset) * kPromptTokens; }
constexpr int kMost = kPromptTokens;  // of a pass
constexpr int kBlockThreads = kPromptThreads;
#else
constexpr size_t place_of(Page page) { return page.offset; }
constexpr int kMost = 1;
constexpr int kBlockThreads = kThreads;
#endif
static Array<u8, place_of({kCombined.offset + kCombined.bytes, 0, 0})> exchange;
static Array<u8, kCacheBytes> cache;
static Array<WeightElement::Bits, kHeads> sinks;
static const u8* of_heads;  // the sinks, or nullptr

// Rows from the position on are what an earlier text has left.
static void fill_cache(int position) {
  for (int head = 0; head < kKVHeads; ++head) {
    u8* const rows = cache.all + head * H::kHeadCacheBytes;
    for (int row = 0; row < (kMaxSeq + 15) / 16 * 16; ++row) {
      for (int e = 0; e < 2 * H::kPaddedHead; ++e) {
        const int dim = e % H::kPaddedHead, at = cache_offset<H>(row, dim, e >= H::kPaddedHead);
        const float v = dim >= kHeadDim ? 0 : row >= position ? INFINITY : value_at(row, head * 4096 + e, 1);
        if (kQuantisedCache) rows[at] = bits_at(row, head * 4096 + e);
        else *reinterpret_cast<CacheElement::Bits*>(rows + at) = CacheElement::from_float(v);
      }
      for (int is_value = 0; kQuantisedCache && is_value < 2; ++is_value)
        store_scale<H>(rows, row, is_value,
                       row >= position ? INFINITY : (1 + bits_at(row, 1 << 22 | head * 2 + is_value) % 64) / 2048.0f);
    }
  }
  cache.write();
}

// q, k and v of a row. Scores rise by steps now and then: one of the two forms of a rise is more than the slack.
static float handed_over(int row, int e) {
  const float v = value_at(row, 1 << 20 | e, 2);
  return rounded<Element>(row % 13 == 5 && e >= H::k_row(0) ? 6 * v : v);
}

template <class S>
static void attend_on_sm() {
#if AMK_PROMPT
  if (thread_index() == 0) {
    init_waits(launch, block_waits());
#if AMK_WGMMA
    init_prompt_ring(block_waits());
#endif
  }
  block_sync();
#if AMK_WGMMA
  if (thread_index() >= kConsumers) {
    const u32 warp = (thread_index() - kConsumers) / 32;
    PromptCopies copies(launch, warp, launch.exchange + kPromptPlaces.maps);
    if (warp < kCopyWarps && thread_index() % 32 == 0) copies.template attend<S>(0, 0);
    return;
  }
#endif
  Prompt c(launch);
  c.sm = this_sm();
  attend<S>(c, PlainHeads{kQkv}, kOut, of_heads);
  if constexpr (S::kSplits > 1) combine<COMBINE>(c, kOut, kCombined);
#else
  run_on_cache<S>([](auto& c) { attend<S>(c, PlainHeads{kQkv}, kOut, of_heads); });
#endif
}
template <class Combine>
static void combine_on_sm() {
#if !AMK_PROMPT
  run_consumers([](auto& c) {
    c.advance(0);
    combine<Combine>(c, kOut, kCombined);
  });
#endif
}

// Reads some tokens from a position on.
template <class S>
static void pass(int position, int tokens) {
  launch.position = position;
  launch.steps = tokens;
  static float asked;
  launch.hidden = &asked;  // for states of all tokens, so that each is attended for in the last layer too
  memset(exchange.all, 0, sizeof exchange.all);
  for (int token = 0; token < tokens; ++token) {
    for (int e = 0; e < H::kTokenRows; ++e) {
      const float v = handed_over(position + token, e);
#if AMK_PROMPT
      reinterpret_cast<u16*>(exchange.all + place_of(kQkv))[token * H::kTokenRows + e] = Element::from_float(v);
#else
      for (int copy = 0; copy < kQkv.copies; ++copy)
        reinterpret_cast<WordOf<Element>::Type*>(exchange.all + kQkv.offset + copy * kQkv.bytes)[e] =
            WordOf<Element>::make(v, first_epoch());
#endif
    }
  }
  exchange.write();
  for (int sm = 0; sm < kSMs; ++sm) add_sm(sm);
  run_sms(attend_on_sm<S>, kBlockThreads);
  if constexpr (S::kSplits > 1 && !AMK_PROMPT) {
    for (int sm = 0; sm < kSMs; ++sm) add_sm(sm);
    run_sms(combine_on_sm<COMBINE>);
  }
  const u8* out = exchange.all + place_of(S::kSplits > 1 ? kCombined : kOut);
  for (int i = 0; i < tokens * H::kQueryRows; ++i) {
#if AMK_PROMPT
    const float v = Element::to_float(reinterpret_cast<const u16*>(out)[i]);
#else
    const float v = WordOf<Element>::value(reinterpret_cast<const WordOf<Element>::Type*>(out)[i]);
#endif
    if (!(fabsf(v) < INFINITY)) abort();
    fwrite(&v, sizeof v, 1, stdout);
  }
}

template <class S>
static void read_texts() {
  constexpr int kTexts[][2] = {{0, 39}, {37, 44}, {96, 50}};  // from a position on, and how many tokens
  for (const auto& text : kTexts) {
    of_heads = text[0] == 0 ? nullptr : reinterpret_cast<const u8*>(sinks.all);
    fill_cache(text[0]);
    launch.cache = cache.all;
    for (int done = 0; done < text[1]; done += kMost) {
      const int position = text[0] + done;
      if (!AMK_PROMPT && position < kTurn<S>) pass<AtFirst<S>>(position, 1);
      else pass<S>(position, min(kMost, text[1] - done));
    }
    fwrite(cache.all, cache.kBytes, 1, stdout);
  }
}
template <class... S>
static void read_all() {
  (read_texts<S>(), ...);
}

extern "C" int amk_main(void* module) {
  begin(module);
  exchange.make(), cache.make(), sinks.make();
  for (int h = 0; h < kHeads; ++h) sinks[h] = WeightElement::from_float(4 * h % 7 - 3);
  sinks.write();
  launch.exchange = exchange.all;
  read_all<STAGES>();
  return 0;
}
