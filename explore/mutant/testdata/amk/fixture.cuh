// What the generator has to read: a small header in the style of the device runtime.
#pragma once

#include "platform.cuh"

namespace amk {

constexpr u32 kWindow = kInFlight < kRingSlots ? kInFlight : kRingSlots;
static_assert(kWindow >= 1, "something is on its way");

struct Sum {
  Sum operator+(Sum other) const { return {wait_empty(), other}; }
  u32 operator()(int i) const { return load_relaxed(of + i); }
};

struct Producer {
  u32 phase = 1;   // of the empty barrier
  u32 issued = 0;  // chunks
  float2 unused[2] = {};

  explicit Producer(int first) : issued(first), waiter{first, 0} {}

#if AMK_LONG_STREAM
  void ask(const u8* source, u32 ahead) {
#else
  void ask(const u8* source) {
    constexpr u32 ahead = kRunAhead;
#endif
    if (stopped) return;
    wait_empty();
    // "fence_block()" in a comment is none
    copy_bulk(ring + slot * kSlotBytes, source, min(bytes, ahead), &full[slot], policy);
    ++issued;
    advance_slot(slot, phase);
  }

  template <int kLeft>
  void publish_some(u32 n) {
    wait_copies<kLeft - 1>();
    warp_sync();
    while (issued - landed > n) {
      if (lane == 0) barrier_arrive(&full[slot], 1);
      ++landed;
    }
  }
};

template <class C>
__device__ __forceinline__ void arrive_and_wait(C& c, u32 number) {
  consumer_barrier();
  if (c.tid == 0) {
    const u32 target = joins_until(c.step, number) * kSMs;
    u32* const counter = join_counter(c);
    add_release(counter, 1);
    Spin spin;
    while (int(load_acquire(counter) - target) < 0) {
      if (spin.cancelled(c, Wait::kJoin, number, target)) break;
    }
    lap(c, Did::kSignal);
    store_shared_release(&c.shared.joined, number);
  }
  consumer_barrier();
}

template <class C>
__device__ u32 read(C& c) {
  u32 words[2];
  const u32 epoch = c.next_epoch();
  auto give = [&](int i) {
    if (i > 0) release(c, c.slot, 1);
    words[i] = load_relaxed(c.page + i);
  };
#pragma unroll
  for (int i = 0; i < 2; ++i) give(i);
  warp_sync();
#if AMK_BULK_COPY
  fence_proxy_async_shared();
#endif
  return load_relaxed(reinterpret_cast<const u32*>(c.page));
}

// A vector with the name of a variable that waits compare is no number.
__device__ u32 low(const u8* from) {
  const uint4 both = *reinterpret_cast<const uint4*>(from);
  return both.x;
}

template <class C>
__device__ void turn(C& c) {
  warp_sync();
  c.turn.template advance<4>();
}

}  // namespace amk
