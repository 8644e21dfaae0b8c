// Asynchronous copies to shared memory, and the barriers in shared memory that bulk copies complete
// on (sm_90). No policy, no loops.
#pragma once

#include "thread.cuh"

#ifndef __CUDACC__
#include <amk_cpu/copy.h>
#else

namespace amk {

// ---- barriers -----------------------------------------------------------------------------------
// A phase of a barrier is complete when all arrivals and all bytes that they announced are in. The
// last argument of a wait is the number of arrivals, which ring.cuh asks for where it counts them.

__device__ __forceinline__ void barrier_init(u64* b, u32 arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals)
               : "memory");
}
// Makes the barriers that this thread has initialised visible to copies. Other threads see them
// after a barrier of the block.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Whether the phase of a parity is complete. It may suspend the thread for a while.
__device__ __forceinline__ bool barrier_try_wait(u64* b, u32 parity, u32) {
  u32 done;
  asm volatile(
      "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
      " selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done) : "r"(shared_address(b)), "r"(parity) : "memory");
  return done;
}
// The same at once.
__device__ __forceinline__ bool barrier_test_wait(u64* b, u32 parity, u32) {
  u32 done;
  asm volatile(
      "{\n .reg .pred p;\n mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
      " selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done) : "r"(shared_address(b)), "r"(parity) : "memory");
  return done;
}
// n arrivals.
__device__ __forceinline__ void barrier_arrive(u64* b, u32 n) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(n)
               : "memory");
}
// One arrival, which announces bytes of copies.
__device__ __forceinline__ void barrier_arrive_expect(u64* b, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(b)),
               "r"(bytes)
               : "memory");
}

// ---- bulk copies --------------------------------------------------------------------------------

// Says of lane 0 that no other lane of its warp runs what follows, and returns true. A copy takes
// its operands from registers of a warp: without this, each is in a loop over the lanes that run.
__device__ __forceinline__ bool runs_alone() {
  u32 elected;
  asm volatile("{\n .reg .pred p;\n elect.sync _|p, 1;\n selp.u32 %0, 1, 0, p;\n}"
               : "=r"(elected));
  return elected;
}
// For copies of bytes that are not read again.
__device__ __forceinline__ u64 evict_first_policy() {
  u64 policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
// Copies a multiple of 16 bytes to shared memory, which completes as many on the barrier.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, u32 bytes, u64* barrier,
                                          u64 policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}
// The same of bytes that are read again.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, u32 bytes, u64* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
      "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
// Brings bytes into L2.
__device__ __forceinline__ void prefetch_bulk(const void* from, u32 bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

// ---- copies of boxes ----------------------------------------------------------------------------

// What the driver encodes of a tensor and of a box of it (cuTensorMapEncodeTiled).
struct alignas(64) TensorMap {
  u64 words[16];
};
// Copies the box at some coordinates, that of the innermost dimension first, to shared memory, and
// completes its bytes on the barrier. What is outside of the tensor is zeros.
__device__ __forceinline__ void copy_tensor(void* to, const TensorMap* map, const int (&at)[4],
                                            u64* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(to)),
      "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
      "r"(shared_address(barrier))
      : "memory");
}

// ---- copies of 16 bytes (sm_80) -----------------------------------------------------------------

// Copies 16 bytes to shared memory. The copies since the last commit are a group; wait_copies waits
// until all but the last kLeft groups of this thread are there.
__device__ __forceinline__ void copy_async_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

}  // namespace amk

#endif
