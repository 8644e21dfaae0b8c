// The end of a decode step: every SM publishes its best logits, reads all of them, and so knows the
// next tokens and whether there is a next step; then all SMs join at the step counter, which orders
// everything of this step before the next (docs/memory-model.md, step end). Needs schedule.h.
#pragma once

#include "drawing.cuh"

namespace amk {

__device__ __forceinline__ Candidate reduce_warp(Candidate best) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) {
    const float value = shuffle_xor(best.value, offset);
    const int index = shuffle_xor(best.index, offset);
    best.offer(value, index);
  }
  return best;
}

// The block's best, valid in every thread of warp 0.
template <class C>
__device__ __forceinline__ Candidate reduce_block(C& c, Candidate best) {
  best = reduce_warp(best);
  if (c.lane == 0) {
    c.shared.best_value[c.warp] = best.value;
    c.shared.best_index[c.warp] = best.index;
  }
  consumer_barrier();
  Candidate all;
  if (c.warp == 0 && c.lane < kConsumerWarps)
    all = Candidate{c.shared.best_value[c.lane], c.shared.best_index[c.lane]};
  if (c.warp == 0) all = reduce_warp(all);
  return all;
}

// The best of each token among the offers of some warps of the block: thread t gets that of token
// t.
template <class C>
__device__ __forceinline__ Candidate reduce_tokens(C& c, const Best& best) {
  constexpr int kWarpsOfToken = kFlushRows / 32;
#pragma unroll
  for (int turn = 0; turn < kTokenTurns; ++turn) {
    const Candidate of_warp = reduce_warp(best.of[turn]);
    if (c.lane == 0) {
      c.shared.best_value[turn * kConsumerWarps + c.warp] = of_warp.value;
      c.shared.best_index[turn * kConsumerWarps + c.warp] = of_warp.index;
    }
  }
  consumer_barrier();
  Candidate all;
  for (int i = 0; c.tid < kTokens && i < kWarpsOfToken; ++i) {
    const int at = c.tid * kWarpsOfToken + i;
    all.offer(c.shared.best_value[at], c.shared.best_index[at]);
  }
  return all;
}

__device__ __forceinline__ bool has_aborted(Scratch& shared) {
  return load_shared_volatile(&shared.aborted);
}

// Publishes this SM's best logit of each token, or its draw among its rows of stage S.
template <class S, class C>
__device__ __forceinline__ void publish_best(C& c, const Best& offers, const Page values,
                                             const Page indices) {
  Candidate best;
  if (c.launch.sampling) best = draw_own<S>(c);
  else if constexpr (kTokens > 1) best = reduce_tokens(c, offers);
  else best = reduce_block(c, offers.of[0]);
  if (!c.launch.sampling && u32(best.index) < kVocab) best.index += first_token(c);
  if (c.tid < kTokens && C::kWaits) {
    if (has_aborted(c.shared)) best = Candidate{INFINITY, kVoid};
    const u32 epoch = c.epoch;  // lm_head's own: its gemv ended the exchange without publishing
    const int at = c.tid * kAllSMs + rank_of(c) * kSMs + c.sm;
#pragma unroll
    for (int rank = 0; rank < kGPUs; ++rank) {
      store_relaxed_ranks(word_of(c, rank, values, at), WordOf<Fp32>::make(best.value, epoch));
      store_relaxed_ranks(word_of(c, rank, indices, at),
                          u64(u32(best.index)) | u64(epoch) << 32);
    }
  }
  lap(c, Did::kSignal);
}

// The stages that end a step communicate through Scratch alone: sample writes chosen and token, and
// stop writes stop. Thread 0, which has the result of the reduction of one token, does the scalar
// work. Stop comes right after sample: the compiler then makes one branch of both, and keeps chosen
// in a register between them. The join's block barrier makes the results visible to the other
// threads.

// Offers every SM's best of a token; this thread reads the SMs from `first` on, by `step`.
template <class C, class Offer>
__device__ __forceinline__ void each_best(C& c, const Page values, const Page indices, int token,
                                          int first, int step, Offer&& offer) {
  Spin spin;
  for (int sm = first; sm < kAllSMs; sm += step) {
    const int at = token * kAllSMs + sm;
    const u64* value_word = reinterpret_cast<const u64*>(c.launch.exchange + values.offset) + at;
    const u64* index_word = reinterpret_cast<const u64*>(c.launch.exchange + indices.offset) + at;
    u64 value, index;
    do {
      value = load_relaxed_ranks(value_word);
      index = load_relaxed_ranks(index_word);
    } while ((!WordOf<Fp32>::fresh(value, c.epoch) || !WordOf<Fp32>::fresh(index, c.epoch)) &&
             !spin.cancelled(c, Wait::kExchange, sm, c.epoch));
    offer(WordOf<Fp32>::value(value), int(u32(index)));
  }
}

template <class C>
__device__ __forceinline__ Candidate best_of_sms(C& c, const Page values, const Page indices,
                                                 int token, int first, int step) {
  Candidate best;
  each_best(c, values, indices, token, first, step,
            [&](float value, int index) { best.offer(value, index); });
  return best;
}

// The same for draws; each lane of a warp reads some SMs. Words carry a logit and its token; the
// sum is a function of them, and is recomputed here.
template <class C>
__device__ __forceinline__ Finalist draw_of_sms(C& c, const Page values, const Page indices,
                                                int token, int first, int step) {
  const Draw draw(settings_of(c, token), c.position_of(token));
  Leader leader;
  each_best(c, values, indices, token, first, step, [&](float logit, int id) {
    if (u32(id) < kVocab) draw.offer(leader, logit, id, draw.uniform(id));
    else if (id != Drawn().token) leader.offer(INFINITY, INFINITY, logit, id);
  });
  return reduce_warp(leader, [&] {
    const u8* words = c.launch.exchange;
    return drawn_of_words(settings_of(c, token), c.position_of(token),
                          reinterpret_cast<const u64*>(words + values.offset) + token * kAllSMs,
                          reinterpret_cast<const u64*>(words + indices.offset) + token * kAllSMs,
                          first, step);
  });
}

// The same where the launch has choices.
template <class C>
__device__ __forceinline__ Drawn choose_of_sms(C& c, const Page values, const Page indices,
                                               int token, int first, int step) {
  each_best(c, values, indices, token, first, step, [](float, int) {});
  const u8* words = c.launch.exchange;
  return reduce_warp(
      chosen_of_words(Site(c, 0, 0), token,
                      reinterpret_cast<const u64*>(words + values.offset) + token * kAllSMs,
                      reinterpret_cast<const u64*>(words + indices.offset) + token * kAllSMs, first,
                      step));
}

// Whether the logits may leave a token of the pass without a choice.
template <class C>
__device__ __forceinline__ bool may_have_none(C& c, int token) {
  if (!c.launch.sampling) return false;
  if (c.launch.choices && c.launch.choices[token / kSequenceRows].set) return true;
  return load_constant(&settings_of(c, token)->temperature) != 0;
}

// Stores the result for a token: the token chosen, and the one to decode next.
template <class C>
__device__ __forceinline__ void choose(C& c, int token, const Candidate& best, int forced) {
  int chosen = best.index;
  // no logit above -inf: token 0, or no token if there are settings
  if (u32(chosen) >= kVocab || best.value == -INFINITY)
    chosen = may_have_none(c, token) ? kNoToken : 0;
  const bool aborted = has_aborted(c.shared) || best.index == kVoid;
  c.shared.chosen[token] = aborted ? kVoid : chosen;
  // for an absent sequence the launch may continue without a token
  c.shared.token[token] = forced >= 0 ? forced : u32(chosen) < kVocab ? chosen : 0;
}

// The token that the host forces after this step, or -1.
template <class C>
__device__ __forceinline__ int forced_next(C& c, int token) {
  const int* forced = c.launch.forced;
  return forced && !is_last(c) ? load_constant(forced + (c.step + 1) * kTokens + token) : -1;
}

// Computes the next tokens: reads every SM's best, and takes the largest. With several tokens, each
// is handled by a warp.
template <class C>
__device__ __forceinline__ void sample(C& c, const Page values, const Page indices) {
  if constexpr (kTokens > 1) {
    static_assert(kTokens <= kConsumerWarps, "a warp has one token");
    int forced = -1;
    if (c.warp < kTokens && c.lane == 0) forced = forced_next(c, c.warp);
    Candidate best;
    if (c.launch.sampling) {
      if (C::kWaits && c.warp < kTokens) {
        if (c.launch.choices) {
          const Drawn drawn = choose_of_sms(c, values, indices, c.warp, c.lane, 32);
          best = Candidate{drawn.logit, drawn.token};
        } else {
          const Finalist drawn = draw_of_sms(c, values, indices, c.warp, c.lane, 32);
          best = Candidate{drawn.logit, drawn.token};
        }
      }
    } else {
      if (C::kWaits && c.warp < kTokens)
        best = best_of_sms(c, values, indices, c.warp, c.lane, 32);
      best = reduce_warp(best);
    }
    lap(c, Did::kExchangeWait);
    // a choice depends on the tokens of the rows before; their memory is reused for the next ones
    if (c.launch.choices) consumer_barrier();
    if (c.warp < kTokens && c.lane == 0) choose(c, c.warp, best, forced);
    consumer_barrier();  // thread 0 looks at all of them
  } else {
    int forced = -1;
    if (c.tid == 0) forced = forced_next(c, 0);
    Candidate best;
    if (c.launch.sampling) {
      if (C::kWaits && c.launch.choices) {
        const Drawn drawn = choose_of_sms(c, values, indices, 0, c.tid, kConsumers);
        if (c.lane == 0) drawn_of_warps(c.shared, 1, 0)[c.warp] = drawn;
      } else if (C::kWaits) {
        const Finalist drawn = draw_of_sms(c, values, indices, 0, c.tid, kConsumers);
        if (c.lane == 0) finalists_of(c.shared, 1, 0)[c.warp] = drawn;
      }
      consumer_barrier();
      lap(c, Did::kExchangeWait);
      if (C::kWaits && c.tid == 0) {
        if (c.launch.choices) {
          const Drawn drawn = reduce_warps(c.shared, 1, 0);
          best = Candidate{drawn.logit, drawn.token};
        } else {
          best = draw_of_warps(settings_of(c, 0), c.position_of(0), finalists_of(c.shared, 1, 0));
        }
      }
    } else {
      if (C::kWaits) best = best_of_sms(c, values, indices, 0, c.tid, kConsumers);
      consumer_barrier();  // best_value and best_index are free again
      lap(c, Did::kExchangeWait);
      best = reduce_block(c, best);
    }
    if (c.tid == 0) choose(c, 0, best, forced);
  }
}

// Finds whether the launch ends with this step: it is the last one, or void, or has no token where
// one is needed, or has chosen an id that ends a launch, for a sequence that is present. The ring's
// producer, which runs ahead, reads the result too.
template <class C>
__device__ __forceinline__ void stop(C& c) {
  if (c.tid == 0) {
    const Launch& launch = c.launch;
    bool ends = is_last(c);
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      const int chosen = c.shared.chosen[token];
      ends = ends || chosen == kVoid;
      if constexpr (kSequences > 1) {
        if (!is_present(launch, sequence_of(token))) continue;
      }
      // without draws, logits may have any value
      ends = ends || (chosen == kNoToken && forced_next(c, token) < 0);
      for (int i = 0; i < launch.n_stop; ++i)
        ends = ends || load_constant(launch.stop_ids + i) == chosen;
    }
    store_shared_release(&c.shared.stop, ends);
  }
}

// Writes the tokens out. The host finds them there when the launch has ended.
template <class C>
__device__ __forceinline__ void emit(C& c) {
  if (c.tid < kTokens && c.sm == 0 && c.shared.chosen[c.tid] != kVoid && c.launch.tokens)
    c.launch.tokens[c.step * kTokens + c.tid] = u32(c.shared.chosen[c.tid]);
}

// The first half of the join that ends the step; the next one waits in embed.
template <class C>
__device__ __forceinline__ void join_step(C& c) {
  consumer_barrier();
  if (c.tid == kJoiner && C::kWaits) {
#pragma unroll
    for (int rank = 0; rank < kGPUs; ++rank)
      add_release_ranks(step_counter(exchange_of(c, rank)), 1);
  }
}

// Stores the tokens where the host polls for them, after the arrival, which would wait for a store
// on its way to the host.
template <class C>
__device__ __forceinline__ void tell_host(C& c) {
  const Launch& launch = c.launch;
  if (c.tid == kJoiner && c.sm == 0 && launch.host_tokens) {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      const int chosen = c.shared.chosen[token];
      if (chosen != kVoid)
        store_system(launch.host_tokens + c.step * kTokens + token, u32(chosen) + 1);
    }
  }
  lap(c, Did::kSignal);
}

// Whether the step that was joined ends the launch.
template <class C>
__device__ __forceinline__ bool stopped(C& c) {
  return c.shared.stop;
}

}  // namespace amk
