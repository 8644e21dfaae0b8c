// A block of the kernel with one stage, which streams what it reads of weights or of the cache.
#pragma once

#include "build.h"

#include "amk/prefetch.cuh"
#include "amk/stream.cuh"

// What the threads of a block do, kThreads of them: its consumers compute, while what `turn` says of each turn is
// streamed.
template <class Turn, class Consume>
static void run_stage(Turn&& turn, Consume&& consume) {
  init_scratch(launch, block_scratch());
  Context<Mode::kDecode> c(launch);
  c.sm = this_sm();
  if (thread_index() < kConsumers) {
    take_registers();
    c.begin_step(0);
    return consume(c);
  }
  give_registers();
  const auto walk = [&](auto sink) {
    for (Turns turns; turns.left(); turns.copy(sink, 0)) turn(c, turns);
    sink.drain();
  };
  if (thread_index() < kConsumers + (AMK_BULK_COPY ? 1 : 32)) {
    walk(Producer<Context<Mode::kDecode>>(c));
#if AMK_BULK_COPY
  } else if (kPrefetches && thread_index() == kConsumers + 32) {
    walk(Prefetcher<Context<Mode::kDecode>>(c));
#endif
  }
}
template <class S, class Consume>
static void run_on_cache(Consume&& consume) {
  run_stage([](auto& c, Turns& turns) { turns.cache<S>(c, 0, launch.position); }, consume);
}
template <class S, class Consume>
static void run_on_weights(const u8* matrix, Consume&& consume) {
  run_stage([&](auto& c, Turns& turns) { turns.weights<S>(c, matrix, 0); }, consume);
}
