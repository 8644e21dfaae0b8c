// Loads and stores that say their order, atomic operations, fences and clocks: the only place where
// the runtime says which memory operation of PTX it means. No policy, no loops.
#pragma once

#include "../platform.cuh"

#ifndef __CUDACC__
#include <amk_cpu/memory.h>
#else

namespace amk {

// ---- global memory ------------------------------------------------------------------------------

// Relaxed loads at gpu scope: they order nothing, but they see what other SMs have stored.
__device__ __forceinline__ uint4 load_relaxed_16(const void* p) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
  return v;
}
// Two loads of 8 bytes.
__device__ __forceinline__ ulonglong2 load_relaxed_2x8(const u64* p) {
  ulonglong2 v;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0,%1}, [%2];"
               : "=l"(v.x), "=l"(v.y) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ u32 load_relaxed(const u32* p) {
  u32 v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ u64 load_relaxed(const u64* p) {
  u64 v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store_relaxed(u32* p, u32 v) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ void store_relaxed(u64* p, u64 v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
// Four stores of 4 bytes, and two of 8.
__device__ __forceinline__ void store_relaxed(uint4* p, uint4 v) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1,%2,%3,%4};"
               ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ __forceinline__ void store_relaxed(ulonglong2* p, ulonglong2 v) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1,%2};"
               ::"l"(p), "l"(v.x), "l"(v.y) : "memory");
}

// Host-visible words (pinned memory): system scope.
__device__ __forceinline__ u32 load_system(const u32* p) {
  u32 v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store_system(u32* p, u32 v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// Counters of exchanges that are realised by counter.
__device__ __forceinline__ void add_release(u32* p, u32 v) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ u32 load_acquire(const u32* p) {
  u32 v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}

// Words and counters that SMs of all ranks access: of system scope where there are several.
#if AMK_RANKS
#define AMK_RANKS_SCOPE "sys"
#else
#define AMK_RANKS_SCOPE "gpu"
#endif
__device__ __forceinline__ u64 load_relaxed_ranks(const u64* p) {
  u64 v;
  asm volatile("ld.relaxed." AMK_RANKS_SCOPE ".global.u64 %0, [%1];"
               : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store_relaxed_ranks(u64* p, u64 v) {
  asm volatile("st.relaxed." AMK_RANKS_SCOPE ".global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
__device__ __forceinline__ void add_release_ranks(u32* p, u32 v) {
  asm volatile("red.release." AMK_RANKS_SCOPE ".global.add.u32 [%0], %1;"
               ::"l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ u32 load_acquire_ranks(const u32* p) {
  u32 v;
  asm volatile("ld.acquire." AMK_RANKS_SCOPE ".global.u32 %0, [%1];"
               : "=r"(v) : "l"(p) : "memory");
  return v;
}

// Atomic operations of all SMs on a word, relaxed: they order nothing else.
__device__ __forceinline__ void add_relaxed(u32* p, u32 v) { atomicAdd(p, v); }
__device__ __forceinline__ void add_relaxed(u64* p, u64 v) {
  using Word = unsigned long long;
  atomicAdd(reinterpret_cast<Word*>(p), Word(v));
}
__device__ __forceinline__ void max_relaxed(u64* p, u64 v) {
  using Word = unsigned long long;
  atomicMax(reinterpret_cast<Word*>(p), Word(v));
}

// Read-only data: weights and constants, which nothing writes while the kernel runs.
__device__ __forceinline__ uint2 load_constant_8(const void* p) {
  return __ldg(static_cast<const uint2*>(p));
}
template <class T>
__device__ __forceinline__ T load_constant(const T* p) {
  return __ldg(p);
}
// 4 bytes of them that an SM reads once for each tile: kept out of L1. Other SMs find them in L2.
__device__ __forceinline__ u32 load_weights_4(const void* p) {
  u32 v;
  asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}

// Read once and not again.
__device__ __forceinline__ uint4 load_streaming_16(const uint4* p) { return __ldcs(p); }

// ---- fences -------------------------------------------------------------------------------------

// Among the threads of the block.
__device__ __forceinline__ void fence_block() { __threadfence_block(); }

// Makes generic-proxy writes that this thread has observed visible to its later bulk copies.
__device__ __forceinline__ void fence_proxy_async() {
#if AMK_BULK_COPY
  asm volatile("fence.proxy.async;" ::: "memory");
#endif
}

// Orders this thread's accesses to shared memory before bulk copies that its next arrival allows.
__device__ __forceinline__ void fence_proxy_async_shared() {
#if AMK_BULK_COPY
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// ---- shared memory ------------------------------------------------------------------------------

// Words that warps of one block use to tell each other how far they are.
__device__ __forceinline__ u32 load_shared_acquire(const u32* p) {
  u32 v;
#if AMK_RACECHECK
  asm volatile("atom.acq_rel.cta.shared.or.b32 %0, [%1], 0;"
               : "=r"(v)
               : "r"(shared_address(p))
               : "memory");
#else
  asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared_address(p)) : "memory");
#endif
  return v;
}
__device__ __forceinline__ void store_shared_release(u32* p, u32 v) {
#if AMK_RACECHECK
  [[maybe_unused]] u32 old;
  asm volatile("atom.acq_rel.cta.shared.exch.b32 %0, [%1], %2;"
               : "=r"(old)
               : "r"(shared_address(p)), "r"(v)
               : "memory");
#else
  asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(shared_address(p)), "r"(v) : "memory");
#endif
}
// Words that are hints: they order nothing.
__device__ __forceinline__ u32 load_shared_relaxed(const u32* p) {
#if AMK_RACECHECK
  return load_shared_acquire(p);
#else
  u32 v;
  asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared_address(p)));
  return v;
#endif
}
__device__ __forceinline__ void store_shared_relaxed(u32* p, u32 v) {
#if AMK_RACECHECK
  store_shared_release(p, v);
#else
  asm volatile("st.relaxed.cta.shared.u32 [%0], %1;" ::"r"(shared_address(p)), "r"(v));
#endif
}
// Reads again a word that other threads may write, in the order of the program.
__device__ __forceinline__ u32 load_shared_volatile(const u32* p) {
  return *static_cast<const volatile u32*>(p);
}

// Atomic operations of the block on a word, relaxed. exchange_ returns what was there.
__device__ __forceinline__ void add_shared_relaxed(u32* p, u32 v) { atomicAdd(p, v); }
__device__ __forceinline__ void add_shared_relaxed(u64* p, u64 v) {
  using Word = unsigned long long;
  atomicAdd(reinterpret_cast<Word*>(p), Word(v));
}
__device__ __forceinline__ u32 exchange_shared_relaxed(u32* p, u32 v) { return atomicExch(p, v); }

// Loads bytes of which some may not have been written: what comes of those is not used.
template <class T>
__device__ __forceinline__ T load_partly_written(const T* p) {
  return *p;
}
// Loads 8 bytes if `wanted`. Otherwise nothing is read, and `to` stays.
__device__ __forceinline__ void load_shared_8_if(uint2& to, const void* from, bool wanted) {
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.u32 p, %3, 0;\n @p ld.shared.v2.u32 {%0, %1}, [%2];\n}"
      : "+r"(to.x), "+r"(to.y) : "r"(shared_address(from)), "r"(u32(wanted)) : "memory");
}

// ---- clocks -------------------------------------------------------------------------------------

// Of the whole GPU, in nanoseconds.
__device__ __forceinline__ u64 global_timer_ns() {
  u64 t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
// Of this SM, in cycles: among accesses to memory, and wherever the compiler has it.
__device__ __forceinline__ u64 sm_clock() {
  u64 t;
  asm volatile("mov.u64 %0, %clock64;" : "=l"(t)::"memory");
  return t;
}
__device__ __forceinline__ long long cycle_count() { return clock64(); }

}  // namespace amk

#endif
