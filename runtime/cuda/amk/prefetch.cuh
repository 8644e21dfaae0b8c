// The prefetcher: one lane that walks the same chunks as the producer, up to kRunAhead chunks further, and asks for them
// to be brought into L2 while the ring is full. It follows the producer's count and never holds it up.
// Needs schedule.h with AMK_BULK_COPY. Must not know what the bytes are.
#pragma once

#include "ring.cuh"

namespace amk {

#if AMK_BULK_COPY
template <class C>
struct Prefetcher {
  static constexpr long long kPaceCycles = 800;  // between two requests, so that they do not crowd out the exchanges
  C& c;
  u32 index = 0;       // chunks walked over
  long long last = 0;  // clock of the last request
  bool stopped = false;

  __device__ explicit Prefetcher(C& context) : c(context) {}

  __device__ __forceinline__ void copy(const u8* source, u32 bytes) {
    if (stopped) return;
    ++index;
    Spin spin;
    for (;;) {
      const u32 issued = load_shared_acquire(&c.shared.issued);
      if (index <= issued) return;  // already on its way to the ring
      if (index <= issued + kRunAhead && load_shared_acquire(&c.shared.ring_full) && clock64() - last > kPaceCycles) {
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(bytes) : "memory");
        last = clock64();
        return;
      }
      if (load_shared_acquire(&c.shared.stop) || spin.give_up(c, Wait::kRingEmpty, index, 0)) {
        stopped = true;
        return;
      }
    }
  }
  __device__ void wait_step(u32 step) { stopped = !step_acquired(c, step) || stopped; }
  __device__ void drain() {}  // prefetches write no shared memory
};
#endif

}  // namespace amk
