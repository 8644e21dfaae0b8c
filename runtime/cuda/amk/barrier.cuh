// A barrier of all SMs between two layers, in two halves: an SM arrives when it is done with the
// layer, and joins when all have arrived. Nothing of the next layer is copied before: the ring has
// run empty. It is the baseline that looping without barriers is measured against
// (docs/memory-model.md, layer barrier). Needs schedule.h with kBarriersPerStep. Must not know what
// the stages around it compute.
#pragma once

#include "prefetch.cuh"
#include "ring.cuh"

namespace amk {

static_assert(kCounterOffset + (kExchangesPerStep + 2) * 4 <= kExchangeBytes,
              "the barriers have a counter");

// Barriers of a launch up to and including number `number` of a step.
__device__ __forceinline__ u32 joins_until(int step, int number) {
  return u32(step) * kBarriersPerStep + u32(number) + 1;
}

// Prepares a block's scratch for barriers. Comes before init_scratch, whose block barrier makes it
// visible.
__device__ __forceinline__ void init_barriers(Scratch& s, u32 thread) {
  if (thread == 0) s.joined = 0;
}

// One counter for all barriers, which is never reset: barriers follow one another, and the host
// counts steps since it was cleared.
template <class C>
__device__ __forceinline__ u32* join_counter(C& c) {
  return reinterpret_cast<u32*>(c.launch.exchange + kCounterOffset) + kExchangesPerStep + 1;
}

// The release of thread 0 comes after a block barrier that follows everything this SM does in the
// layer, so it covers the block.
template <class C>
__device__ __forceinline__ void arrive(C& c) {
  if constexpr (!C::kWaits) return;
  consumer_barrier();
  if (c.tid == 0) add_release(join_counter(c), 1);
  lap(c, Did::kSignal);
}

// Waits until all SMs have arrived, then releases the producer. A cancelled wait releases it too:
// the producer stops on its own.
template <class C>
__device__ __forceinline__ void join(C& c, int number) {
  if constexpr (!C::kWaits) return;
  if (c.tid == 0) {
    const u32 passed = joins_until(c.step, number);
    const u32 target = (u32(c.launch.first_epoch) * kBarriersPerStep + passed) * kSMs;
    Spin spin;
    while (int(load_acquire(join_counter(c)) - target) < 0) {
      if (spin.cancelled(c, Wait::kJoin, number, target)) break;
    }
    store_shared_release(&c.shared.joined, passed);
  }
  consumer_barrier();
  lap(c, Did::kExchangeWait);
}

// Waits until the consumers have passed `passed` barriers. Returns false if the launch ends first.
// Out of line, as wait_empty_long is.
__device__ __noinline__ bool joined(u32 passed) {
  Scratch& shared = block_scratch();
  Waiter waiter;
  Spin spin;
  while (!all_lanes(load_shared_acquire(&shared.joined) >= passed)) {
    if (any_lane(load_shared_acquire(&shared.stop) ||
                 spin.cancelled(waiter, Wait::kLayer, passed, 0)))
      break;
  }
  return all_lanes(load_shared_acquire(&shared.joined) >= passed &&
                   !load_shared_acquire(&shared.aborted));
}

// For the producer and the prefetcher: called before anything of the layer after a barrier is
// copied or prefetched.
template <class Sink>
__device__ __forceinline__ void await_join(Sink& p, int step, int number) {
  if constexpr (!Sink::kWaits) return;
  if (p.stopped) return;
  p.flush();
  const u32 begin = wait_begins(p.c);
  p.stopped = !joined(joins_until(step, number));
  wait_ends(p.c, Did::kStepWait, begin);
}

}  // namespace amk
