// A pass over a prompt: the stages of the decode step, each for all tokens of the pass before the
// next one begins. The stages (stages.h) and their calls (megakernel.cu) are those of the step;
// products, attention and destinations of values differ, because hundreds of tokens do not fit
// where one does. A token is computed to the bits that a step gives it (docs/passes.md). Vectors,
// and the residual stream, are in global memory, a row for each token, and all blocks join between
// one stage and the next: nothing is polled. Needs schedule.h with AMK_TENSOR_CORES and 16-bit
// elements. Must not know a stage.
#pragma once

#include "ending.cuh"
#include "prompt_matrices.cuh"
#if AMK_WGMMA
#include "prompt_ring.cuh"
#endif

namespace amk {

static_assert(AMK_TENSOR_CORES && Element::kBytes == 2 && kSame<WeightElement, Element>,
              "products of 16-bit elements");

constexpr int kPromptTokens = AMK_PROMPT_TOKENS;  // of a pass at most
static_assert(kPromptTokens % kTokenTile == 0, "whole tiles");

// Workspace in global memory; the host knows only its size. A word of a step's page is half value
// and half epoch. Here pages hold values alone, and so take half the bytes for each token. Those
// that a step has alone, as of splits of attention (prompt_attention.cuh), have no place.
__host__ __device__ constexpr u64 prompt_page(u32 offset) {
  u64 at = offset;
  for (const Page& page : kStepPages)
    if (page.offset < offset) at -= u64(page.bytes) * page.copies;
  return at / 2;
}
#if AMK_EXPERTS
// What the router of the layer has chosen for each token (router.cuh).
struct PromptChoices {
  int experts[kPromptTokens][kMostChosen];
  float shares[kPromptTokens][kMostChosen];
  float gates[kPromptTokens];
};
#endif
struct PromptPlaces {
  u64 matrices, maps, inverse, rotation, residual, operand, pages, choices, list, sums, end;
};
constexpr PromptPlaces prompt_places(PromptSizes sizes) {
  const auto next = [](u64 at, u64 bytes) { return (at + bytes + 1023) / 1024 * 1024; };
  PromptPlaces p{};
  p.matrices = 1024;  // after the counter of joins, and what is chosen
  p.maps = next(p.matrices, u64(kMostMatrices) * sizeof(PromptMatrix));
  p.inverse = next(p.maps, AMK_WGMMA ? u64(kMostMatrices) * sizeof(TensorMap) : 0);
  p.rotation = next(p.inverse, u64(kPromptTokens) * 4);
  p.residual = next(p.rotation, u64(kAngleTables) * kPromptTokens * kHeadDim * 4);
  p.operand = next(p.residual, u64(kPromptTokens) * kHidden * 4);
  p.pages = next(p.operand, sizes.operand);
  p.choices = next(p.pages, kPromptTokens * prompt_page(kExchangeBytes));
#if AMK_EXPERTS
  p.list = next(p.choices, sizeof(PromptChoices));
  p.sums = next(p.list, u64(kListTiles) * kMostTileTokens * sizeof(Listed));
#else
  p.list = p.sums = p.choices;
#endif
  p.end = next(p.sums, sizes.sums);
  return p;
}
constexpr PromptPlaces kPromptPlaces = prompt_places(kPromptSizes);
__device__ constexpr u64 prompt_values(const Page page) {
  return kPromptPlaces.pages + prompt_page(page.offset) * kPromptTokens;
}

// What the host needs to know of a kernel for prompts.
struct PromptInfo {
  u32 abi;
  u32 tokens;  // of a pass at most
  u32 threads;
  u32 shared_bytes;
  u64 workspace_bytes;
  u64 matrices;  // where amk_prompt_matrices leaves a PromptMatrix each
  u64 maps;      // where a TensorMap is expected for each
  u32 most_matrices;
  u32 spans;  // 1: a pass may have tokens of several variants
};
static_assert(sizeof(PromptInfo) == 48, "the host reads this struct byte by byte");

#if AMK_WGMMA
template <class S>
__device__ __forceinline__ const u8* PromptCopies::operand_of() const {
  if constexpr (OperandPage<S>::kWritten)
    return workspace + prompt_values(OperandPage<S>::kPage);
  else
    return workspace + kPromptPlaces.operand;
}
#endif

// State of one thread. Of the launch, `steps` is the number of tokens, `forced` are their ids,
// `exchange` is the workspace, and its first word, a counter, is 0.
struct Prompt : Recorder<false> {
  const Launch& launch;
  PromptScratch& shared;
  u8* ring;  // shared memory for operands and results of stages
  int sm;
  int tid;
  int warp;
  int lane;
  int tokens;
  int origin;    // position of the first token
  int position;  // by which stages are chosen
  int first = 0;  // token that stages compute
  int step = 0;
  int layer = 0;
  u32 stage = 0;   // for the stall record
  u32 joined = 0;  // joins so far
  int matrix = 0;  // read next
#if AMK_WGMMA
  NextSlot next;  // of the ring
  u32 products = 0;  // that copies have begun
  u32 listed = 0;  // the last of them with matrices of experts
#endif
  u32 norms = 0;
  Branch due = {};

  static constexpr Mode kMode_ = Mode::kDecode;
  static constexpr bool kWaits = true;

  __device__ explicit Prompt(const Launch& l)
      : launch(l),
        shared(block_waits()),
        ring(block_ring()),
        sm(block_index()),
        tid(thread_index()),
        warp(thread_index() / 32),
        lane(thread_index() % 32),
        tokens(l.steps),
        origin(l.position),
        position(variant_position(l)) {}

  __device__ __forceinline__ void enter(u32 number) { stage = number; }
  __device__ void begin_step(int) {}

  __device__ __forceinline__ float* inverse() const {
    return reinterpret_cast<float*>(launch.exchange + kPromptPlaces.inverse);
  }
  __device__ __forceinline__ float2* rotation(int table, int token) const {
    return reinterpret_cast<float2*>(launch.exchange + kPromptPlaces.rotation) +
           (table * kPromptTokens + token) * (kHeadDim / 2);
  }
  __device__ __forceinline__ float* residual(int token) const {
    return reinterpret_cast<float*>(launch.exchange + kPromptPlaces.residual) +
           size_t(token) * kHidden;
  }
  __device__ __forceinline__ u8* operand() const {
    return launch.exchange + kPromptPlaces.operand;
  }
  template <class E>
  __device__ __forceinline__ typename E::Bits* values(const Page page) const {
    return reinterpret_cast<typename E::Bits*>(launch.exchange + prompt_values(page));
  }
#if AMK_EXPERTS
  __device__ __forceinline__ PromptChoices& choices() const {
    return *reinterpret_cast<PromptChoices*>(launch.exchange + kPromptPlaces.choices);
  }
  __device__ __forceinline__ Listed* list() const {
    return reinterpret_cast<Listed*>(launch.exchange + kPromptPlaces.list);
  }
  // Products of a token with matrices of experts, those of a rank one after another.
  __device__ __forceinline__ float* sums() const {
    return reinterpret_cast<float*>(launch.exchange + kPromptPlaces.sums);
  }
#endif
  // The matrix of the stage, which calls this once.
  __device__ __forceinline__ const u8* next_matrix() {
    const auto* matrices =
        reinterpret_cast<const PromptMatrix*>(launch.exchange + kPromptPlaces.matrices);
    return matrices[matrix++].address;
  }
};

// Bytes of shared memory that stages may use.
constexpr int kPromptRing = int(kPromptSharedBytes) - kPromptScratchBytes;

// All blocks of the pass have arrived, and each sees what the others have written before, and so do
// copies that are begun after it. A block whose wait is cancelled continues: it computes garbage,
// which the host discards. A pass that makes progress runs to its end after a cancellation: only a
// wait that expires aborts it.
__device__ __forceinline__ void join(Prompt& c) {
#if AMK_WGMMA
  fence_proxy_async();
#endif
  consumer_barrier();
  if (c.tid == 0) {
    u32* counter = reinterpret_cast<u32*>(c.launch.exchange);
    add_release(counter, 1);
    const u32 target = ++c.joined * kSMs;
    Spin spin;
    while (int(load_acquire(counter) - target) < 0) {
      if (spin.cancelled(c, Wait::kJoin, c.joined, target)) break;
    }
  }
  consumer_barrier();
}

// ---- the tokens of a product --------------------------------------------------------------------

// Who has a place in the operand of a stage: a token, and which of its products.
struct TokenAt {
  int token;
  int rank;
  bool there;
};
template <class S>
__device__ __forceinline__ TokenAt token_at(Prompt& c, int place) {
#if AMK_EXPERTS
  if constexpr (kRanks<S> > 1) {
    const Listed entry = c.list()[place];
    return {entry.token(), entry.rank(), entry.exists()};
  }
#endif
  return {place, 0, place < c.tokens};
}

#if AMK_EXPERTS
__device__ __forceinline__ const int (*experts_of(Prompt& c))[kMostChosen] {
  return c.choices().experts;
}
__device__ __forceinline__ const float (*shares_of(Prompt& c))[kMostChosen] {
  return c.choices().shares;
}
__device__ __forceinline__ float gate_of(Prompt& c, int token) { return c.choices().gates[token]; }
#endif

// ---- functions of finishers, for a row of any token --------------------------------------------

template <class E>
__device__ __forceinline__ void publish(Prompt& c, const Page page, int index, float value) {
  c.values<E>(page)[index] = E::from_float(value);
}

template <int kRotated, int kAngles = 0, int kDims = kHeadDim>
__device__ __forceinline__ float rope(Prompt& c, const Row& r, float v) {
  const float other = shuffle_xor(v, 1);
  if (r.valid && r.row < kRotated) {
    const float2 turn = c.rotation(kAngles, r.token)[r.row % kDims / 2];
    v = rotated(r.row & 1, v, other, turn.x, turn.y);
  }
  return v;
}

__device__ __forceinline__ float residual(Prompt& c, const Row& r) {
  return r.valid ? c.residual(r.token)[r.row] : 0.0f;
}
__device__ __forceinline__ void store_residual(Prompt& c, const Row& r, float v) {
  if (r.valid) c.residual(r.token)[r.row] = v;
}
__device__ __forceinline__ void store_logit(Prompt& c, const Row& r, float v) {
  if (r.valid && c.launch.logits) c.launch.logits[size_t(r.token) * kVocab + r.row] = v;
}

// ---- the beginning ----------------------------------------------------------------------------

template <int kPairs = kHeadDim / 2, int kAngles = 0>
__device__ __forceinline__ void rotate_setup(Prompt& c, const float* inv_freq, float scale = 1) {
  for (int i = c.sm * kConsumers + c.tid; i < c.tokens * (kHeadDim / 2); i += kSMs * kConsumers) {
    const int token = i / (kHeadDim / 2), j = i % (kHeadDim / 2);
    float sin = 0, cos = 1;
    if (j < kPairs) {
      sincosf(float(c.origin + token) * load_constant(inv_freq + j), &sin, &cos);
      sin *= scale;
      cos *= scale;
    }
    c.rotation(kAngles, token)[j] = make_float2(cos, sin);
  }
}

template <class S, class Added>
__device__ __forceinline__ void embed_tokens(Prompt& c, const u8* table, Added&& added) {
  for (int token = c.sm; token < c.tokens; token += kSMs) {
    const int id = load_constant(c.launch.forced + token);
#pragma unroll 4
    for (int column = c.tid; column < kHidden; column += kConsumers) {
      added(column, token, embedding<S>(c, table, id, token, column));
    }
  }
  join(c);
}

template <class S>
__device__ __forceinline__ void embed(Prompt& c, const u8* table, const Page out) {
  embed_tokens<S>(c, table, [&](int column, int token, float x) {
    c.residual(token)[column] = x;
    publish<Element>(c, out, token * kHidden + column, x);
  });
}

template <class S>
__device__ __forceinline__ void embed(Prompt& c, const u8* table, const u8* positions,
                                      const Page out) {
  const int row = c.origin + S::kPositionOffset;
  embed_tokens<S>(c, table, [&](int column, int token, float x) {
    const float sum =
        x + element_of<Elements<WeightElement>>(positions, kHidden, row + token, column);
    c.residual(token)[column] = sum;
    publish<Element>(c, out, token * kHidden + column, sum);
  });
}

template <class S>
__device__ __forceinline__ void embed_replicated(Prompt& c, const u8* table) {
  embed_tokens<S>(c, table,
                  [&](int column, int token, float x) { c.residual(token)[column] = x; });
}

// ---- the end: the largest logit after the last token, if the host has asked for it. By settings a
// step chooses ------------------------------------------------------------------------------------

// Where the largest is, 0 before the pass: its bits, in order, and after them those of the lowest
// id that has it, inverted.
constexpr int kChosenAt = 8;

template <class S>
__device__ __forceinline__ void publish_best(Prompt& c, const Best& offers, const Page,
                                             const Page) {
  if (!c.launch.chooses) return;
  const bool has = offers.last == c.tokens - 1;
  const Candidate best = reduce_warp(has ? offers.of[0] : Candidate{});
  if (c.lane > 0 || best.value == -INFINITY) return;
  const u32 bits = bits_of(best.value + 0.0f);  // -0 is 0
  const u32 order = bits >> 31 ? ~bits : bits | 1u << 31;
  max_relaxed(reinterpret_cast<u64*>(c.launch.exchange + kChosenAt),
              u64(order) << 32 | ~u32(best.index));
}
__device__ __forceinline__ void sample(Prompt&, const Page, const Page) {}
__device__ __forceinline__ void stop(Prompt&) {}
__device__ __forceinline__ void emit(Prompt&) {}
__device__ __forceinline__ void join_step(Prompt&) {}
__device__ __forceinline__ void tell_host(Prompt&) {}
__device__ __forceinline__ bool stopped(Prompt&) { return true; }

}  // namespace amk
