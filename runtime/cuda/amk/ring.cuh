// The ring through which one SM's weight and cache bytes stream: slots of shared memory, a full and
// an empty barrier each. Three ways to fill a slot: bulk copies (sm_90), cp.async (sm_80), plain
// loads. Must not know what the bytes are.
#pragma once

#include "context.cuh"
#include "hw/copy.cuh"

namespace amk {

// ---- barriers -----------------------------------------------------------------------------------
// The barriers of hw/copy.cuh. Without mbarrier, a barrier is a count of arrivals: phase k is
// complete at (k + 1) * arrivals.

__device__ __forceinline__ void barrier_init(ArrivalCount* b, u32) { *b->arrived() = 0; }
__device__ __forceinline__ bool barrier_try_wait(ArrivalCount* b, u32 parity, u32 arrivals) {
  return (load_shared_acquire(b->arrived()) / arrivals & 1) != parity;
}
__device__ __forceinline__ void barrier_arrive(ArrivalCount* b, u32 n) {
  fence_block();
  add_shared_relaxed(b->arrived(), n);
}

// Comes after the barriers have been initialised, and before a block barrier.
__device__ __forceinline__ void barriers_ready() {
#if AMK_BULK_COPY
  fence_barrier_init();
#else
  fence_block();
#endif
}

// ---- consumer side ------------------------------------------------------------------------------

__device__ __forceinline__ void advance_slot(u32& slot, u32& phase) {
  if (++slot == kRingSlots) slot = 0, phase ^= 1;
}
__device__ __forceinline__ void advance_slot(u32& slot, u32& phase, u32 n) {
  slot += n;
  const u32 rounds = slot / kRingSlots;
  slot -= rounds * kRingSlots;
  phase ^= rounds & 1;
}

// Waits until a slot holds its chunk. The whole warp calls it. The loop is not inlined: a stage
// waits once per chunk of a tile, and inlined loops would push the code of a layer out of the
// instruction cache.
__device__ __noinline__ void wait_full_long(u32 stage, int layer, int step, u32 slot, u32 phase) {
  Waiter waiter{stage, layer, step};
  Spin spin;
  while (!barrier_try_wait(&block_scratch().full[slot], phase, 1)) {
    if (spin.cancelled(waiter, Wait::kRingFull, slot, phase)) break;
  }
}

template <class C>
__device__ __forceinline__ void wait_full(C& c, u32 slot, u32 phase) {
  if (barrier_try_wait(&c.shared.full[slot], phase, 1)) return;
  wait_full_long(c.stage, c.layer, c.step, slot, phase);
}

// Releases a slot. The arrivals n of all warps on one chunk add up to kConsumerWarps. A warp
// arrives only after it has waited for the slot to be full, so it is never a phase ahead. One lane
// arrives for its warp. The fence orders this warp's loads before the next copy. An arrival alone
// does not: it overtakes loads from shared memory that are queued after polls of the exchange, and
// they would read what the next copy writes (docs/memory-model.md, ring slots).
constexpr u32 kArrivingLanes = AMK_RACECHECK ? 32 : 1;
constexpr u32 kSlotArrivals = kConsumerWarps * kArrivingLanes;

template <class C>
__device__ __forceinline__ void release(C& c, u32 slot, u32 n) {
  fence_proxy_async_shared();
  warp_sync();
  if (c.lane < kArrivingLanes) barrier_arrive(&c.shared.empty[slot], n);
}

// ---- producer side ------------------------------------------------------------------------------

// Chunks in flight. No more than there are slots: the full barrier of a slot distinguishes only
// consecutive phases, so a chunk must be seen to have landed before its slot is filled again.
constexpr u32 kWindow = kInFlight < kRingSlots ? kInFlight : kRingSlots;

// Fewer of them while the ring holds kStock chunks or more: copies are throttled in favour of
// exchange traffic, and the next chunks are prefetched into L2 meanwhile. Only bulk copies are
// counted.
constexpr bool kStocks = AMK_BULK_COPY && kMostStock > 0 && kMostStock < kRingSlots;
constexpr u32 kStockedWindow = kInFlightStocked < kWindow ? kInFlightStocked : kWindow;
static_assert(kStockedWindow >= 1, "the stream never stands still for a stock");

// Whether the compiler is told that one lane runs the producer (runs_alone): there are fewer
// instructions for a copy then. Small chunks come as fast as the producer asks for them. Large ones
// do not come faster, and asking for them sooner delays the exchanges.
constexpr bool kLeanCopies = AMK_BULK_COPY && (AMK_EXPERTS || kSlotBytes < 16384);

// What the lanes that run the producer decide together: a whole warp without bulk copies, which
// must not diverge before a warp barrier, and one lane with them.
__device__ __forceinline__ bool all_lanes(bool v) { return AMK_BULK_COPY ? v : warp_all(v); }
__device__ __forceinline__ bool any_lane(bool v) { return AMK_BULK_COPY ? v : warp_any(v); }

// Waits until the cache rows of the steps before `step` may be read. Returns false if the launch
// ends before it.
template <class C>
__device__ bool step_acquired(C& c, u32 step) {
  Spin spin;
  while (!all_lanes(load_shared_acquire(&c.shared.acquired_step) >= step ||
                    load_shared_acquire(&c.shared.stop))) {
    if (any_lane(spin.cancelled(c, Wait::kStep, step, 0))) break;
  }
  fence_proxy_async();
  return all_lanes(!load_shared_acquire(&c.shared.stop) && !load_shared_acquire(&c.shared.aborted));
}

__device__ __forceinline__ bool slot_is_empty(Scratch& shared, u32 slot, u32 phase) {
  return all_lanes(barrier_try_wait(&shared.empty[slot], phase, kSlotArrivals));
}

// Waits until a slot is free. Returns false if the launch ends before it. Out of line, as
// wait_full_long is.
__device__ __noinline__ bool wait_empty_long(u32 slot, u32 phase) {
  Scratch& shared = block_scratch();
  Waiter waiter;
  Spin spin;
  while (!slot_is_empty(shared, slot, phase)) {
    if (any_lane(load_shared_acquire(&shared.stop) ||
                 spin.cancelled(waiter, Wait::kRingEmpty, slot, phase)))
      return false;
  }
  return true;
}

#if AMK_EXPERTS
// Waits until this SM's router has chosen for layer `layers` - 1, counted over the steps of the
// launch. Returns false if the launch ends before it. Out of line, as wait_empty_long is.
__device__ __noinline__ bool choice_made(u32 layers) {
  Scratch& shared = block_scratch();
  Waiter waiter;
  Spin spin;
  while (!all_lanes(int(load_shared_acquire(&shared.choices) - layers) >= 0)) {
    if (any_lane(load_shared_acquire(&shared.stop) ||
                 spin.cancelled(waiter, Wait::kChoice, layers, 0)))
      break;
  }
  return all_lanes(int(load_shared_acquire(&shared.choices) - layers) >= 0 &&
                   !load_shared_acquire(&shared.aborted));
}

// The expert that stands in for one that a router chooses where nobody waits for it: other ones in
// other layers and steps and for other tokens, and no expert twice.
__device__ __forceinline__ int made_up_expert(u32 layers, int token, int rank) {
  return int(((layers * kTokens + u32(token)) * 2654435761u >> 8) + u32(rank)) % kExperts;
}
#endif

// Copies a warp's bytes from `at` on in rounds of kAtOnce loads per lane, limited by registers.
// `at` is the lane's own; less than a round is left over.
template <u32 kAtOnce>
__device__ __forceinline__ void load_and_store(u8* to, const u8* from, u32 bytes, u32& at) {
  constexpr u32 kRow = 32 * 16;  // a load of every lane
#pragma unroll 1
  for (; at + (kAtOnce - 1) * kRow < bytes; at += kAtOnce * kRow) {
    uint4 v[kAtOnce];
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) v[i] = load_relaxed_16(from + at + i * kRow);
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) *reinterpret_cast<uint4*>(to + at + i * kRow) = v[i];
  }
}

// Fills slots in order. With bulk copies one lane runs it; otherwise the whole warp does.
template <class C>
struct Producer {
  static constexpr bool kWaits = C::kWaits, kSelects = true;
  C& c;
  // With experts these addresses are in registers: else they are computed for each chunk.
  decltype(C::shared) shared;
  decltype(C::ring) const ring;
  u32 slot = 0;
  u32 phase = 1;       // of the empty barrier: the first pass over the ring finds every slot free
  u32 issued = 0;      // chunks issued
  u32 landed = 0;      // chunks known to be complete
  u32 landed_slot = 0;
  u32 landed_phase = 0;
  u32 acquired = 0;    // steps whose cache rows may be copied
  bool stopped = false;
#if AMK_BULK_COPY
  u64 policy;
#endif

  __device__ explicit Producer(C& context)
      : c(context), shared(*kept(&context.shared)), ring(kept(context.ring)) {
#if AMK_BULK_COPY
    policy = evict_first_policy();
#endif
  }

  // Copies one chunk of at most kSlotBytes, a multiple of 16 bytes, into the next slot.
  __device__ __forceinline__ void copy(const u8* source, u32 bytes) {
    copy_with([&] { fill(source, bytes); });
  }

#if AMK_EXPERTS
  // The same of what a router has chosen, and of a chunk of several parts of as many bytes each,
  // which only bulk copies have. Every SM waits for the first of them and no vector is on its way,
  // so that there is no stock.
  template <int kMost>
  __device__ __forceinline__ void copy_chosen(const u8* const (&sources)[kMost], u32 bytes,
                                              int parts) {
#if AMK_BULK_COPY
    copy_with([&] {
      while (issued - landed >= kWindow) wait_landed();
      u64* full = &shared.full[slot];
      barrier_arrive_expect(full, bytes * parts);
      u8* to = ring + slot * kSlotBytes;
      copy_bulk(to, sources[0], bytes, full, policy);
#pragma unroll
      for (int i = 1; i < kMost; ++i) {
        if (i >= parts) break;
        copy_bulk(to += bytes, sources[i], bytes, full, policy);
      }
      count_issued();
    });
#else
    copy(sources[0], bytes);
#endif
  }
#endif

  // What copy does, unless the stream is disabled.
  __device__ __forceinline__ void fill(const u8* source, u32 bytes) {
#if AMK_BULK_COPY
    // Checked once per chunk and not again after each landing: with one chunk in flight, the time
    // between a landing and the next request is lost to the stream.
    const bool enough = stocked();
    if constexpr (kStocks) let_prefetch(enough);
    const u32 window = enough ? kStockedWindow : kWindow;
    while (issued - landed >= window) wait_landed();
    u64* full = &shared.full[slot];
    barrier_arrive_expect(full, bytes);
    copy_bulk(ring + slot * kSlotBytes, source, bytes, full, policy);
#elif AMK_ASYNC_COPY
    if (issued - landed >= kWindow) publish_all_but(kWindow - 1);
    for (u32 at = c.lane * 16; at < bytes; at += 32 * 16)
      copy_async_16(ring + slot * kSlotBytes + at, source + at);
    commit_copies();
#else
    u32 at = c.lane * 16;
    u8* to = ring + slot * kSlotBytes;
    load_and_store<16>(to, source, bytes, at);
    load_and_store<8>(to, source, bytes, at);
    load_and_store<4>(to, source, bytes, at);
    load_and_store<2>(to, source, bytes, at);
    load_and_store<1>(to, source, bytes, at);
#endif
    count_issued();
  }

  // Every chunk issued so far becomes visible to the consumers without further calls.
  __device__ __forceinline__ void flush() {
#if !AMK_BULK_COPY
    publish_all_but(0);
#endif
  }

  // Waits until no copy is in flight: a block must not exit before.
  __device__ void drain() {
#if AMK_BULK_COPY
    while (landed < issued) wait_landed();
#else
    publish_all_but(0);
#endif
  }

  // Call before copying cache rows that steps before `step` have written. Until its first cache row
  // of a step, an SM streams weights without waiting.
  __device__ __forceinline__ void wait_step(u32 step) {
    if (acquired >= step || stopped) return;
    flush();
    let_prefetch(true);
    const u32 begin = wait_begins(c);
    stopped = !step_acquired(c, step);
    wait_ends(c, Did::kStepWait, begin);
    let_prefetch(false);
    acquired = step;
  }

#if AMK_EXPERTS
  // Call before copying what the router of layer `layers` - 1 has chosen.
  __device__ __forceinline__ void wait_choice(u32 layers) {
    if (!kWaits || stopped) return;
    flush();
    const u32 begin = wait_begins(c);
    stopped = !choice_made(layers);
    wait_ends(c, Did::kStepWait, begin);
  }
  // The expert of a token and rank; call after wait_choice, unless the stream has stopped.
  __device__ __forceinline__ int expert(u32 layers, int token, int rank) const {
    if constexpr (!kWaits) return made_up_expert(layers, token, rank);
    return c.shared.experts[token][rank];
  }
#endif

 private:
  template <class T>
  __device__ __forceinline__ static T* kept(T* p) {
    return AMK_EXPERTS ? opaque(p) : p;
  }

  // Waits for the next slot, which `fill` fills.
  template <class Fill>
  __device__ __forceinline__ void copy_with(Fill&& fill) {
    if (stopped) return;
    wait_empty();
    if (stopped) return;
    if constexpr (C::kCopies) {
      fill();
    } else if (c.lane == 0) {
      barrier_arrive(&shared.full[slot], 1);
    }
    advance_slot(slot, phase);
#if !AMK_BULK_COPY && !AMK_ASYNC_COPY
    publish_all_but(0);
#endif
  }

  __device__ __forceinline__ void count_issued() {
    ++issued;
    if constexpr (kPrefetches) store_shared_relaxed(&shared.issued, issued);
  }

  __device__ __forceinline__ void wait_empty() {
    const u32 begin = wait_begins(c);
    if (slot_looks_empty()) {
      test_ends(c, Did::kSlotWait, begin);
      return;
    }
    flush();
    let_prefetch(true);
    stopped = !wait_empty_long(slot, phase);
    wait_ends(c, Did::kSlotWait, begin);
    let_prefetch(false);
  }

  __device__ __forceinline__ void let_prefetch(bool on) {
    if constexpr (kPrefetches) store_shared_relaxed(&shared.prefetches, u32(on));
  }

  // try_wait may suspend the thread for a microsecond, during which the prefetcher would not know
  // that the ring is full.
  __device__ __forceinline__ bool slot_looks_empty() const {
    if constexpr (kPrefetches)
      return all_lanes(barrier_test_wait(&shared.empty[slot], phase, kSlotArrivals));
    else return slot_is_empty(shared, slot, phase);
  }

  // Whether the ring holds kStock chunks or more, ready or in flight: the chunk issued kStock ago
  // has not been released. That is about kStock where groups of warps release slots out of order.
  // The slot was filled in this pass over the ring or in the previous one.
  __device__ __forceinline__ bool stocked() const {
    if constexpr (kStocks) {
#if AMK_LONG_STREAM
      const u32 stock = c.launch.position >= kLongFrom ? kLongStock : kStock;
      if (stock == 0) return false;
#else
      constexpr u32 stock = kStock;
#endif
      u32 at = slot + kRingSlots - stock;
      if (at >= kRingSlots) at -= kRingSlots;
      return !barrier_test_wait(&shared.empty[at], at < slot ? phase ^ 1 : phase, kSlotArrivals);
    }
    return false;
  }

#if AMK_BULK_COPY
  __device__ __forceinline__ void wait_landed() {
    while (!barrier_try_wait(&shared.full[landed_slot], landed_phase, 1)) {
    }
    ++landed;
    advance_slot(landed_slot, landed_phase);
  }
#else
  // Marks all but the newest n chunks as full.
  __device__ __forceinline__ void publish_all_but(u32 n) {
    if (issued - landed <= n) return;
#if AMK_ASYNC_COPY
    if (n == 0) wait_copies<0>();
    else wait_copies<kWindow - 1>();
#endif
    warp_sync();
    while (issued - landed > n) {
      if (c.lane == 0) barrier_arrive(&shared.full[landed_slot], 1);
      ++landed;
      advance_slot(landed_slot, landed_phase);
    }
    warp_sync();
  }
#endif
};

}  // namespace amk
