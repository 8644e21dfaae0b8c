// What attention has made, times the sigmoids of gates. These come with queries, keys and values,
// in an exchange before the last. Needs schedule.h.
#pragma once

#include "stage.cuh"

namespace amk {

template <class S, class C>
__device__ __forceinline__ void gate_heads(C& c, const Page in, const Page gates, const Page out) {
  constexpr int kOwn = ceil_div(kTokens * kMostTiles<S> * kTileRows, kConsumers);  // of a thread
  constexpr int kOfToken = S::kGates + S::kRows;  // of the vector of the gates
  const Tiles mine = tiles_of<S>(c.sm, c.layer);
  const int begin = mine.begin * kTileRows;
  const int rows = min(mine.end * kTileRows, int(S::kRows)) - begin;
  if (rows > 0) {
    // The element of a token's vector of a length that is the thread's i-th, after the first ones.
    auto element = [&](int i, int length, int first) {
      const int at = i * kConsumers + c.tid;
      return at < kTokens * rows ? at / rows * length + first + begin + at % rows : -1;
    };
    await(c);
    auto words = word_poll<Element, kOwn>(page_copy(c, in),
                                          [&](int i) { return element(i, S::kRows, 0); });
    poll_all(c, words);
    c.swap_held(S::kReadsHeld);
    await(c);
    auto open = word_poll<Element, kOwn>(
        page_copy(c, gates), [&](int i) { return element(i, kOfToken, S::kGates); });
    poll_all(c, open);
    c.swap_held(S::kReadsHeld);
    consumer_barrier();
    lap(c, Did::kExchangeWait);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int to = element(i, S::kRows, 0);
      if (to >= 0) publish<Element>(c, out, to, words.value(i) * sigmoid(open.value(i)));
    }
    lap(c, Did::kSignal);
  }
  end_stage<S>(c, rows > 0);
}

}  // namespace amk
