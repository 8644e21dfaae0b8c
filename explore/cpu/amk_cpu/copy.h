// hw/copy.cuh on a CPU: asynchronous copies to shared memory, and the barriers they complete on.
#pragma once

#include "thread.h"

namespace amk {

// ---- barriers -----------------------------------------------------------------------------------

inline void barrier_init(u64* b, u32 arrivals, AMK_SITE) {
  machine::barrier_init(b, arrivals, AMK_HERE);
}
inline void fence_barrier_init() { machine::fence_barrier_init(); }
inline bool barrier_try_wait(u64* b, u32 parity, u32 arrivals, AMK_SITE) {
  return machine::barrier_wait(b, parity, arrivals, true, AMK_HERE);
}
inline bool barrier_test_wait(u64* b, u32 parity, u32 arrivals, AMK_SITE) {
  return machine::barrier_wait(b, parity, arrivals, false, AMK_HERE);
}
inline void barrier_arrive(u64* b, u32 n, AMK_SITE) { machine::barrier_arrive(b, n, 0, AMK_HERE); }
inline void barrier_arrive_expect(u64* b, u32 bytes, AMK_SITE) {
  machine::barrier_arrive(b, 1, bytes, AMK_HERE);
}

// ---- bulk copies --------------------------------------------------------------------------------

inline bool runs_alone() { return true; }
inline u64 evict_first_policy() { return 0; }
inline void copy_bulk(void* to, const void* from, u32 bytes, u64* barrier, u64, AMK_SITE) {
  machine::copy_bulk(to, from, bytes, barrier, AMK_HERE);
}
inline void copy_bulk(void* to, const void* from, u32 bytes, u64* barrier, AMK_SITE) {
  machine::copy_bulk(to, from, bytes, barrier, AMK_HERE);
}
inline void prefetch_bulk(const void* from, u32 bytes, AMK_SITE) {
  machine::prefetch_bulk(from, bytes, AMK_HERE);
}

// ---- copies of boxes of tensors ------------------------------------------------------------------

// What it holds is the machine's (machine/tensor.h).
struct alignas(64) TensorMap {
  u64 words[16];
};
template <int kRank>
inline void copy_tensor(void* to, const TensorMap* map, const int (&at)[kRank], u64* barrier,
                        AMK_SITE) {
  machine::copy_box(to, map, at, kRank, barrier, AMK_HERE);
}

// ---- copies of 16 bytes (sm_80) -----------------------------------------------------------------

inline void copy_async_16(void* to, const void* from, AMK_SITE) {
  machine::copy_async_16(to, from, AMK_HERE);
}
inline void commit_copies() { machine::commit_copies(); }
template <int kLeft>
inline void wait_copies() {
  machine::wait_copies(kLeft);
}

}  // namespace amk
