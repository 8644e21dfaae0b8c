// The prefetcher: one lane that walks the same chunks as the producer, up to kRunAhead chunks
// further, and prefetches them into L2 while the producer waits or the ring holds its stock, kPace
// cycles apart. Both numbers may differ from kLongFrom on. It follows the producer's count and
// never blocks it. Needs schedule.h with AMK_BULK_COPY. Must not know what the bytes are.
#pragma once

#include "ring.cuh"

namespace amk {

#if AMK_BULK_COPY
template <class C>
struct Prefetcher {
  static constexpr bool kWaits = C::kWaits, kSelects = false;
  C& c;
  u32 index = 0;       // chunks walked over
  long long last = 0;  // clock of the last request
  bool stopped = false;

  __device__ explicit Prefetcher(C& context) : c(context) {}

  __device__ __forceinline__ void copy(const u8* source, u32 bytes) {
    if (stopped) return;
#if AMK_LONG_STREAM
    const bool is_long = c.launch.position >= kLongFrom;
    last = ask(source, bytes, ++index, last, is_long ? kLongRunAhead : kRunAhead,
               is_long ? kLongPace : kPace);
#else
    last = ask(source, bytes, ++index, last);
#endif
    stopped = last == kStopped;
  }
  // chunks whose bytes depend on values of the step
  __device__ __forceinline__ void skip(u32 chunks) { index += chunks; }
  // a prefetch reads no bytes: L2 is where stores of other SMs arrive
  __device__ void wait_step(u32) {}
  __device__ void flush() {}
  __device__ void drain() {}  // prefetches write no shared memory

 private:
  static constexpr long long kStopped = -1;

  // Prefetches chunk `index` once it is due; returns the time of the last request, or kStopped if
  // the launch ends. Out of line: the walk calls it once per stage.
#if AMK_LONG_STREAM
  __device__ static __noinline__ long long ask(const u8* source, u32 bytes, u32 index,
                                               long long last, u32 ahead, u32 pace) {
#else
  __device__ static __noinline__ long long ask(const u8* source, u32 bytes, u32 index,
                                               long long last) {
    constexpr u32 ahead = kRunAhead, pace = kPace;
#endif
    Scratch& shared = block_scratch();
    Waiter waiter;
    Spin spin;
    for (;;) {
      const u32 issued = load_shared_relaxed(&shared.issued);
      if (index <= issued) return last;  // already on its way to the ring
      if (index <= issued + ahead && load_shared_relaxed(&shared.prefetches) &&
          cycle_count() - last > pace) {
        prefetch_bulk(source, bytes);
        return cycle_count();
      }
      if (load_shared_relaxed(&shared.stop) || spin.cancelled(waiter, Wait::kRingEmpty, index, 0))
        return kStopped;
    }
  }
};
#endif

}  // namespace amk
