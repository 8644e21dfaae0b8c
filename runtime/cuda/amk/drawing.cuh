// The draws of a step, where the launch has settings: what each SM draws among the logits of its
// own rows, and what is drawn among the results of all SMs. Sums are compared by their float32
// bounds; where these leave several candidates, and for choices beyond temperature and seed, the
// sums are computed. Needs schedule.h.
#pragma once

#include "search.cuh"

namespace amk {

__device__ __forceinline__ Drawn reduce_warp(Drawn best) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) {
    best.offer(Drawn{shuffle_xor(best.sum, offset),
                     shuffle_xor(best.logit, offset),
                     shuffle_xor(best.token, offset)});
  }
  return best;
}

// ---- sums, which are rarely needed --------------------------------------------------------------

// Offers a token that an SM or a warp has published, or the mark of one that has none.
__device__ __forceinline__ void offer_handed(const Draw& draw, Drawn& best, float logit, int id) {
  if (u32(id) < kVocab) draw.offer(best, logit, id);
  else if (id != Drawn().token) best.offer(Drawn{INFINITY, INFINITY, id});  // void, or kNoToken
}

// What a thread draws of its rows.
__device__ __noinline__ inline Drawn drawn_of_rows(const Sampling* settings, int after,
                                                   const float* logits, int first, int end) {
  const Draw draw(settings, after);
  Drawn best;
  for (int id = first; id < end; id += 2 * kConsumers) {
    draw.offer(best, logits[id], id);
    if (id + 1 < end) draw.offer(best, logits[id + 1], id + 1);
  }
  return best;
}

// The draw among the words of some SMs, which have arrived.
__device__ __noinline__ inline Drawn drawn_of_words(const Sampling* settings, int after,
                                                    const u64* values, const u64* indices,
                                                    int first, int step) {
  const Draw draw(settings, after);
  Drawn best;
  for (int sm = first; sm < kAllSMs; sm += step) {
    const float logit = WordOf<Fp32>::value(load_relaxed_ranks(values + sm));
    offer_handed(draw, best, logit, int(u32(load_relaxed_ranks(indices + sm))));
  }
  return best;
}

// ---- bounds -------------------------------------------------------------------------------------

// The token with the largest sum of a warp's: `least` and `most` bound it.
struct Finalist {
  float least, most, logit;
  int token;
};
static_assert(sizeof(Finalist) == 16, "a load");

__device__ __forceinline__ float largest_of_warp(float v) {
#if AMK_ASYNC_COPY  // from compute capability 8.0 on
  const u32 bits = bits_of(v);
  const u32 key = warp_max(bits >> 31 ? ~bits : bits | 1u << 31);
  return float_of_bits(key >> 31 ? key & ~(1u << 31) : ~key);
#else
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) v = fmaxf(v, shuffle_xor(v, offset));
  return v;
#endif
}

// The token with the largest sum among those that the lanes of a warp were offered. Where several
// are possible, the lanes that have one of them compute the sums of all of theirs.
template <class Sums>
__device__ __forceinline__ Finalist reduce_warp(const Leader& leader, Sums&& sums) {
  const float least = largest_of_warp(leader.low);
  const bool may = leader.high > -INFINITY && leader.high >= least;
  const u32 lanes = warp_ballot(may);
  const bool also = may && leader.others >= least;
  if ((lanes & (lanes - 1)) || warp_any(also)) {
    Drawn drawn;
    if (may) drawn = sums();
    drawn = reduce_warp(drawn);
    return {double_to_float_down(drawn.sum), double_to_float_up(drawn.sum), drawn.logit,
            drawn.token};
  }
  const int from = lanes ? find_first(lanes) - 1 : 0;
  return {least, shuffle(leader.high, from), shuffle(leader.logit, from),
          shuffle(leader.token, from)};
}

// The draws of the warps of a block for a token, which take the place of partial sums: one half is
// written while some threads still read the other.
__device__ __forceinline__ Finalist* finalists_of(Scratch& shared, int half, int token) {
  static_assert(sizeof(shared.partial[0]) >= kTokens * kConsumerWarps * sizeof(Finalist),
                "it has room for the draws of all tokens");
  return reinterpret_cast<Finalist*>(shared.partial[half]) + token * kConsumerWarps;
}

__device__ __noinline__ inline Drawn drawn_of_finalists(const Sampling* settings, int after,
                                                        const Finalist* of) {
  const Draw draw(settings, after);
  Drawn best;
  for (int warp = 0; warp < kConsumerWarps; ++warp)
    offer_handed(draw, best, of[warp].logit, of[warp].token);
  return best;
}

// One thread's work.
__device__ __forceinline__ Candidate draw_of_warps(const Sampling* settings, int after,
                                                   const Finalist* of) {
  Leader leader;
#pragma unroll
  for (int warp = 0; warp < kConsumerWarps; ++warp) {
    const Finalist f = of[warp];
    if (f.most > -INFINITY) leader.offer(f.least, f.most, f.logit, f.token);
  }
  if (leader.others > -INFINITY && leader.others >= leader.low) {
    const Drawn drawn = drawn_of_finalists(settings, after, of);
    return Candidate{drawn.logit, drawn.token};
  }
  return Candidate{leader.logit, leader.token};
}

// ---- choices ------------------------------------------------------------------------------------

__device__ __forceinline__ Drawn* drawn_of_warps(Scratch& shared, int half, int token) {
  static_assert(sizeof(shared.partial[0]) >= kTokens * kConsumerWarps * sizeof(Drawn),
                "it has room for the draws of all tokens");
  static_assert(kTokens * kConsumerWarps * sizeof(Drawn) <= sizeof(Pool::amount),
                "and does not touch the searches");
  return reinterpret_cast<Drawn*>(shared.partial[half]) + token * kConsumerWarps;
}
__device__ __forceinline__ Drawn reduce_warps(Scratch& shared, int half, int token) {
  const Drawn* of = drawn_of_warps(shared, half, token);
  Drawn best = of[0];
  for (int warp = 1; warp < kConsumerWarps; ++warp) best.offer(of[warp]);
  return best;
}

// The choice of this SM among the logits of its own rows: thread t gets that of token t.
__device__ __noinline__ inline Candidate choose_own(const Site& at) {
  Pool& pool = pool_of(at.shared);
  const int warp = thread_index() / 32;
  if (at.launch.rounds) find_left(at, pool);
#pragma unroll 1
  for (int token = 0; token < kTokens; ++token) {
    const Chooser chooser = at.chooser(token);
    const Left* left = at.launch.rounds && chooser.leaves_out() ? &pool.of[token].left : nullptr;
    const float* logits = at.logits(token);
    Drawn best;
    for (int id = at.begin + int(thread_index()); id < at.end; id += kConsumers)
      chooser.offer(best, logits[id], id, left);
    best = reduce_warp(best);
    if (thread_index() % 32 == 0) drawn_of_warps(at.shared, 0, token)[warp] = best;
  }
  consumer_barrier();
  Drawn best;
  if (thread_index() < kTokens) best = reduce_warps(at.shared, 0, int(thread_index()));
  return Candidate{best.logit, best.token};
}

// The same for the choices of the SMs, all of which are eligible.
__device__ __noinline__ inline Drawn chosen_of_words(const Site& at, int token, const u64* values,
                                                     const u64* indices, int first, int step) {
  const Chooser chooser = at.chooser(token);
  Drawn best;
  for (int sm = first; sm < kAllSMs; sm += step) {
    const float logit = WordOf<Fp32>::value(load_relaxed_ranks(values + sm));
    const int id = int(u32(load_relaxed_ranks(indices + sm)));
    if (u32(id) < kVocab) chooser.offer(best, logit, id, nullptr);
    else offer_handed(chooser.draw, best, logit, id);
  }
  return best;
}

// ---- of a block ---------------------------------------------------------------------------------

// The settings of a token of the pass, and the position after which it is chosen.
template <class C>
__device__ __forceinline__ const Sampling* settings_of(C& c, int token) {
  return c.launch.sampling + token / kSequenceRows;
}

// The draw of this SM among the logits of its own rows of stage S, which it has stored: thread t
// gets that of token t. Noise is computed while the logits are in flight. A tile begins with an
// even id, so a thread has both ids that share random words.
template <class S, class C>
__device__ __forceinline__ Candidate draw_own(C& c) {
  const Tiles mine = tiles_of<S>(c.sm, 0);
  const int first = first_token(c), begin = first + mine.begin * kTileRows;
  const int end = first + min(mine.end * kTileRows, int(S::kRows));
  Draw draw(settings_of(c, 0), c.position_of(0));
  consumer_barrier();  // the logits have arrived, and partial sums are read
  if (c.launch.choices) return C::kWaits ? choose_own(Site(c, begin, end)) : Candidate{};
#pragma unroll 1
  for (int token = 0; token < kTokens; ++token) {
    const float* logits = logits_of(c, token);
    const int own = begin + 2 * c.tid;
    const auto logit = [&](int id) { return id < end ? logits[id] : -INFINITY; };
    float first = logit(own), second = logit(own + 1);
    Leader leader;
    for (int id = own; id < end; id += 2 * kConsumers) {
      const float even = first, odd = second;
      first = logit(id + 2 * kConsumers), second = logit(id + 2 * kConsumers + 1);
      const uint4 words = noise_of(draw.seed, draw.position, u32(id) / 2);
      draw.offer(leader, even, id, uniform_of(words, id));
      draw.offer(leader, odd, id + 1, uniform_of(words, id + 1));
    }
    const Finalist of_warp = reduce_warp(leader, [&] {
      return drawn_of_rows(settings_of(c, token), c.position_of(token), logits, own, end);
    });
    if (c.lane == 0) finalists_of(c.shared, 0, token)[c.warp] = of_warp;
    if (token + 1 < kTokens) draw = Draw(settings_of(c, token + 1), c.position_of(token + 1));
  }
  consumer_barrier();
  if (c.tid >= kTokens) return Candidate{};
  return draw_of_warps(settings_of(c, c.tid), c.position_of(c.tid),
                       finalists_of(c.shared, 0, c.tid));
}

}  // namespace amk
