// Threads, warps and blocks: who a thread is, what it exchanges with the lanes of its warp, the
// barriers of a block and the shared memory of one. hw/*.cuh is the only place where the runtime
// uses PTX and what CUDA adds to C++, but its keywords; of a host compiler without CUDA it asks for
// the same names in amk_cpu/*.h. No policy, no loops.
#pragma once

#include <cstddef>
#include <cstdint>

namespace amk {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

}  // namespace amk

#ifndef __CUDACC__
#include <amk_cpu/thread.h>
#else

namespace amk {

// ---- places -------------------------------------------------------------------------------------

// Of this thread in its block, of the block in the grid, and how many there are of each.
__device__ __forceinline__ u32 thread_index() { return threadIdx.x; }
__device__ __forceinline__ u32 block_index() { return blockIdx.x; }
__device__ __forceinline__ u32 block_threads() { return blockDim.x; }
__device__ __forceinline__ u32 block_count() { return gridDim.x; }

// ---- barriers -----------------------------------------------------------------------------------

// Of all threads of the block, of all lanes of the warp, and of kThreads threads of the block that
// name the same barrier.
__device__ __forceinline__ void block_sync() { __syncthreads(); }
__device__ __forceinline__ void warp_sync() { __syncwarp(); }
template <int kBarrier, int kThreads>
__device__ __forceinline__ void named_barrier_sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}
// The same of a barrier that is known when the program runs. A thread that arrives does not wait
// for the others.
template <int kThreads>
__device__ __forceinline__ void named_barrier_sync(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
// As named_barrier_sync. Returns whether v is true in any of the threads.
template <int kThreads>
__device__ __forceinline__ bool named_barrier_any(int barrier, bool v) {
  u32 any;
  asm volatile(
      "{\n"
      ".reg .pred v, any;\n"
      "setp.ne.u32 v, %2, 0;\n"
      "bar.red.or.pred any, %1, %3, v;\n"
      "selp.u32 %0, 1, 0, any;\n"
      "}"
      : "=r"(any)
      : "r"(barrier), "r"(u32(v)), "n"(kThreads)
      : "memory");
  return any;
}
template <int kThreads>
__device__ __forceinline__ void named_barrier_arrive(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}

// ---- warps: all lanes take part -----------------------------------------------------------------

// The value of a lane, of the lane whose number differs in the bits of `mask`, and of the lane `by`
// before; the first lanes have none before, and get their own.
template <class T>
__device__ __forceinline__ T shuffle(T v, int lane) {
  return __shfl_sync(~0u, v, lane);
}
template <class T>
__device__ __forceinline__ T shuffle_xor(T v, int mask) {
  return __shfl_xor_sync(~0u, v, mask);
}
template <class T>
__device__ __forceinline__ T shuffle_up(T v, int by) {
  return __shfl_up_sync(~0u, v, by);
}
// Whether any lane says so, whether all do, and which: a bit for each.
__device__ __forceinline__ bool warp_any(bool v) { return __any_sync(~0u, v); }
__device__ __forceinline__ bool warp_all(bool v) { return __all_sync(~0u, v); }
__device__ __forceinline__ u32 warp_ballot(bool v) { return __ballot_sync(~0u, v); }
// The largest value of all lanes.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__device__ __forceinline__ u32 warp_max(u32 v) { return __reduce_max_sync(~0u, v); }
#endif

// ---- registers ----------------------------------------------------------------------------------

// A group of four warps goes on with more registers a thread, or with fewer (sm_90).
template <int kRegisters>
__device__ __forceinline__ void raise_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void lower_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Has values in registers here, and hides from the compiler what they are.
__device__ __forceinline__ void opaque(int& a) { asm volatile("" : "+r"(a)); }
__device__ __forceinline__ void opaque(float& a) { asm volatile("" : "+f"(a)); }
__device__ __forceinline__ void opaque(float& a, int& b) {
  asm volatile("" : "+f"(a), "+r"(b));
}
__device__ __forceinline__ void opaque(int& a, int& b, int& c, int& d) {
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
}
// As opaque. Returns the pointer.
template <class T>
__device__ __forceinline__ T* opaque(T* p) {
  asm volatile("" : "+l"(p));
  return p;
}
// A 0 of which the compiler does not know that it is one: blocks have no second dimension.
__device__ __forceinline__ u32 opaque_zero() { return threadIdx.y; }
// As opaque, and keeps accesses to memory on their side of it.
__device__ __forceinline__ void opaque_in_order(float& a) { asm volatile("" : "+f"(a)::"memory"); }
__device__ __forceinline__ void opaque_in_order(uint4& a) {
  asm volatile("" : "+r"(a.x), "+r"(a.y), "+r"(a.z), "+r"(a.w)::"memory");
}

// ---- shared memory ------------------------------------------------------------------------------

// What a launch gives the block, aligned to 1024 bytes.
__device__ __forceinline__ u8* block_memory() {
  extern __shared__ __align__(1024) u8 shared[];
  return shared;
}

// kCount values that a block has besides. Each tag is another array.
template <class Tag, class T, int kCount>
__device__ __forceinline__ T (&shared_array())[kCount] {
  __shared__ T values[kCount];
  return values;
}

// Address of shared memory as the 32-bit number that PTX wants: for hw/*.cuh.
__device__ __forceinline__ u32 shared_address(const void* p) {
  return static_cast<u32>(__cvta_generic_to_shared(p));
}

}  // namespace amk

#endif
