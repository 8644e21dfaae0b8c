// hw/memory.cuh on a CPU: loads and stores that say their order, atomic operations, fences, clocks.
#pragma once

#include "thread.h"

namespace amk {

namespace cpu {

using machine::Ordering;
using machine::Scope;
using machine::Update;
#if AMK_RANKS
constexpr Scope kOfRanks = Scope::kSystem;
#else
constexpr Scope kOfRanks = Scope::kGpu;
#endif

// A value of n words of T.
template <class T, u32 n, class V>
inline V load(const void* p, Ordering ordering, Scope scope, machine::Site site) {
  static_assert(sizeof(V) == n * sizeof(T), "whole words");
  u64 words[n];
  machine::load_words(p, sizeof(T), n, words, ordering, scope, site);
  T values[n];
  for (u32 i = 0; i < n; ++i) values[i] = T(words[i]);
  V v;
  memcpy(&v, values, sizeof v);
  return v;
}
template <class T, u32 n, class V>
inline void store(void* p, V v, Ordering ordering, Scope scope, machine::Site site) {
  static_assert(sizeof(V) == n * sizeof(T), "whole words");
  T values[n];
  memcpy(values, &v, sizeof v);
  u64 words[n];
  for (u32 i = 0; i < n; ++i) words[i] = values[i];
  machine::store_words(p, sizeof(T), n, words, ordering, scope, site);
}
// Bytes that nothing writes.
template <class T>
inline T constant(const void* p, machine::Site site) {
  machine::read_constant(p, sizeof(T), site);
  T v;
  machine::copy_unseen(&v, p, sizeof v);
  return v;
}

}  // namespace cpu

// ---- global memory ------------------------------------------------------------------------------

inline uint4 load_relaxed_16(const void* p, AMK_SITE) {
  return cpu::load<u32, 4, uint4>(p, cpu::Ordering::kRelaxed, cpu::Scope::kGpu, AMK_HERE);
}
inline ulonglong2 load_relaxed_2x8(const u64* p, AMK_SITE) {
  return cpu::load<u64, 2, ulonglong2>(p, cpu::Ordering::kRelaxed, cpu::Scope::kGpu, AMK_HERE);
}
inline u32 load_relaxed(const u32* p, AMK_SITE) {
  return cpu::load<u32, 1, u32>(p, cpu::Ordering::kRelaxed, cpu::Scope::kGpu, AMK_HERE);
}
inline u64 load_relaxed(const u64* p, AMK_SITE) {
  return cpu::load<u64, 1, u64>(p, cpu::Ordering::kRelaxed, cpu::Scope::kGpu, AMK_HERE);
}
inline void store_relaxed(u32* p, u32 v, AMK_SITE) {
  cpu::store<u32, 1>(p, v, cpu::Ordering::kRelaxed, cpu::Scope::kGpu, AMK_HERE);
}
inline void store_relaxed(u64* p, u64 v, AMK_SITE) {
  cpu::store<u64, 1>(p, v, cpu::Ordering::kRelaxed, cpu::Scope::kGpu, AMK_HERE);
}
inline void store_relaxed(uint4* p, uint4 v, AMK_SITE) {
  cpu::store<u32, 4>(p, v, cpu::Ordering::kRelaxed, cpu::Scope::kGpu, AMK_HERE);
}
inline void store_relaxed(ulonglong2* p, ulonglong2 v, AMK_SITE) {
  cpu::store<u64, 2>(p, v, cpu::Ordering::kRelaxed, cpu::Scope::kGpu, AMK_HERE);
}

inline u32 load_system(const u32* p, AMK_SITE) {
  return cpu::load<u32, 1, u32>(p, cpu::Ordering::kRelaxed, cpu::Scope::kSystem, AMK_HERE);
}
inline void store_system(u32* p, u32 v, AMK_SITE) {
  cpu::store<u32, 1>(p, v, cpu::Ordering::kRelaxed, cpu::Scope::kSystem, AMK_HERE);
}

inline void add_release(u32* p, u32 v, AMK_SITE) {
  machine::update_word(p, sizeof v, cpu::Update::kAdd, v, cpu::Ordering::kRelease,
                       cpu::Scope::kGpu, AMK_HERE);
}
inline u32 load_acquire(const u32* p, AMK_SITE) {
  return cpu::load<u32, 1, u32>(p, cpu::Ordering::kAcquire, cpu::Scope::kGpu, AMK_HERE);
}

inline u64 load_relaxed_ranks(const u64* p, AMK_SITE) {
  return cpu::load<u64, 1, u64>(p, cpu::Ordering::kRelaxed, cpu::kOfRanks, AMK_HERE);
}
inline void store_relaxed_ranks(u64* p, u64 v, AMK_SITE) {
  cpu::store<u64, 1>(p, v, cpu::Ordering::kRelaxed, cpu::kOfRanks, AMK_HERE);
}
inline void add_release_ranks(u32* p, u32 v, AMK_SITE) {
  machine::update_word(p, sizeof v, cpu::Update::kAdd, v, cpu::Ordering::kRelease, cpu::kOfRanks,
                       AMK_HERE);
}
inline u32 load_acquire_ranks(const u32* p, AMK_SITE) {
  return cpu::load<u32, 1, u32>(p, cpu::Ordering::kAcquire, cpu::kOfRanks, AMK_HERE);
}

inline void add_relaxed(u32* p, u32 v, AMK_SITE) {
  machine::update_word(p, sizeof v, cpu::Update::kAdd, v, cpu::Ordering::kRelaxed,
                       cpu::Scope::kGpu, AMK_HERE);
}
inline void add_relaxed(u64* p, u64 v, AMK_SITE) {
  machine::update_word(p, sizeof v, cpu::Update::kAdd, v, cpu::Ordering::kRelaxed,
                       cpu::Scope::kGpu, AMK_HERE);
}
inline void max_relaxed(u64* p, u64 v, AMK_SITE) {
  machine::update_word(p, sizeof v, cpu::Update::kMax, v, cpu::Ordering::kRelaxed,
                       cpu::Scope::kGpu, AMK_HERE);
}

inline uint2 load_constant_8(const void* p, AMK_SITE) {
  return cpu::constant<uint2>(p, AMK_HERE);
}
template <class T>
inline T load_constant(const T* p, AMK_SITE) {
  return cpu::constant<T>(p, AMK_HERE);
}
inline u32 load_weights_4(const void* p, AMK_SITE) { return cpu::constant<u32>(p, AMK_HERE); }
inline uint4 load_streaming_16(const uint4* p) { return *p; }

// ---- fences -------------------------------------------------------------------------------------

inline void fence_block() { machine::fence_block(); }
inline void fence_proxy_async() {
#if AMK_BULK_COPY
  machine::fence_proxy_async(false);
#endif
}
inline void fence_proxy_async_shared() {
#if AMK_BULK_COPY
  machine::fence_proxy_async(true);
#endif
}

// ---- shared memory ------------------------------------------------------------------------------

inline u32 load_shared_acquire(const u32* p, AMK_SITE) {
  return cpu::load<u32, 1, u32>(p, cpu::Ordering::kAcquire, cpu::Scope::kBlock, AMK_HERE);
}
inline void store_shared_release(u32* p, u32 v, AMK_SITE) {
  cpu::store<u32, 1>(p, v, cpu::Ordering::kRelease, cpu::Scope::kBlock, AMK_HERE);
}
inline u32 load_shared_relaxed(const u32* p, AMK_SITE) {
  return cpu::load<u32, 1, u32>(p, cpu::Ordering::kRelaxed, cpu::Scope::kBlock, AMK_HERE);
}
inline void store_shared_relaxed(u32* p, u32 v, AMK_SITE) {
  cpu::store<u32, 1>(p, v, cpu::Ordering::kRelaxed, cpu::Scope::kBlock, AMK_HERE);
}
// A volatile access is a relaxed one.
inline u32 load_shared_volatile(const u32* p, AMK_SITE) {
  return cpu::load<u32, 1, u32>(p, cpu::Ordering::kRelaxed, cpu::Scope::kSystem, AMK_HERE);
}

inline void add_shared_relaxed(u32* p, u32 v, AMK_SITE) {
  machine::update_word(p, sizeof v, cpu::Update::kAdd, v, cpu::Ordering::kRelaxed,
                       cpu::Scope::kBlock, AMK_HERE);
}
inline void add_shared_relaxed(u64* p, u64 v, AMK_SITE) {
  machine::update_word(p, sizeof v, cpu::Update::kAdd, v, cpu::Ordering::kRelaxed,
                       cpu::Scope::kBlock, AMK_HERE);
}
inline u32 exchange_shared_relaxed(u32* p, u32 v, AMK_SITE) {
  return u32(machine::update_word(p, sizeof v, cpu::Update::kExchange, v, cpu::Ordering::kRelaxed,
                                  cpu::Scope::kBlock, AMK_HERE));
}

template <class T>
inline T load_partly_written(const T* p) {
  machine::read_partly_written(p, sizeof(T));
  T v;
  machine::copy_unseen(&v, p, sizeof v);
  return v;
}
inline void load_shared_8_if(uint2& to, const void* from, bool wanted) {
  if (wanted) to = *static_cast<const uint2*>(from);
}

// ---- clocks -------------------------------------------------------------------------------------

inline u64 global_timer_ns() { return machine::clock_ns(); }
inline u64 sm_clock() { return machine::clock_cycles(); }
inline long long cycle_count() { return static_cast<long long>(machine::clock_cycles()); }

}  // namespace amk
