// hw/thread.cuh on a CPU: who a thread is, what it exchanges with the lanes of its warp, the
// barriers of a block and the shared memory of one; and the keywords of CUDA. What they do is the
// machine's (machine/machine.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "../machine/machine.h"
#include "vectors.h"

#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
// -DAMK_CALLED=1 has functions called. What they do is the same, in as many steps; compilers, which
// are slow where a kernel is one large function, take a third of the time. Findings name no callers.
#if AMK_CALLED
#define __forceinline__ inline
#else
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define __noinline__ __attribute__((noinline))

// Without an include, as with nvcc.
using std::isfinite;
using std::isinf;
using std::isnan;

namespace amk {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

// ---- places -------------------------------------------------------------------------------------

inline u32 thread_index() { return machine::self->thread; }
inline u32 block_index() { return machine::self->block; }
inline u32 block_threads() { return machine::self->threads; }
inline u32 block_count() { return machine::self->blocks; }

// ---- barriers -----------------------------------------------------------------------------------

inline void block_sync(AMK_SITE) { machine::block_sync(AMK_HERE); }
inline void warp_sync(AMK_SITE) { machine::warp_sync(AMK_HERE); }
template <int kBarrier, int kThreads>
inline void named_barrier_sync(AMK_SITE) {
  machine::named_barrier_sync(kBarrier, kThreads, AMK_HERE);
}
template <int kThreads>
inline void named_barrier_sync(int barrier, AMK_SITE) {
  machine::named_barrier_sync(u32(barrier), kThreads, AMK_HERE);
}
template <int kThreads>
inline bool named_barrier_any(int barrier, bool v, AMK_SITE) {
  return machine::named_barrier_any(u32(barrier), kThreads, v, AMK_HERE);
}
template <int kThreads>
inline void named_barrier_arrive(int barrier, AMK_SITE) {
  machine::named_barrier_arrive(u32(barrier), kThreads, AMK_HERE);
}

// ---- warps: all lanes take part -----------------------------------------------------------------

template <class T>
inline T shuffle(T v, int lane, AMK_SITE) {
  return machine::warp_exchange(machine::Collective::kShuffle, v, AMK_HERE)[lane & 31];
}
template <class T>
inline T shuffle_xor(T v, int mask, AMK_SITE) {
  const int lane = int(thread_index() % 32) ^ mask;
  const T* lanes = machine::warp_exchange(machine::Collective::kShuffle, v, AMK_HERE);
  return lane < 32 ? lanes[lane] : v;
}
template <class T>
inline T shuffle_up(T v, int by, AMK_SITE) {
  const int lane = int(thread_index() % 32) - by;
  const T* lanes = machine::warp_exchange(machine::Collective::kShuffle, v, AMK_HERE);
  return lane >= 0 ? lanes[lane] : v;
}

inline u32 warp_ballot(bool v, AMK_SITE) {
  return machine::warp_compute<u32>(
      machine::Collective::kVote, v,
      [](u32* lanes) {
        u32 all = 0;
        for (int i = 0; i < 32; ++i) all |= (lanes[i] != 0) << i;
        for (int i = 0; i < 32; ++i) lanes[i] = all;
      },
      AMK_HERE);
}
inline bool warp_any(bool v, AMK_SITE) { return warp_ballot(v, file, line) != 0; }
inline bool warp_all(bool v, AMK_SITE) { return warp_ballot(v, file, line) == ~0u; }
inline u32 warp_max(u32 v, AMK_SITE) {
  return machine::warp_compute<u32>(
      machine::Collective::kMax, v,
      [](u32* lanes) {
        u32 most = 0;
        for (int i = 0; i < 32; ++i) most = lanes[i] > most ? lanes[i] : most;
        for (int i = 0; i < 32; ++i) lanes[i] = most;
      },
      AMK_HERE);
}

// ---- what the compiler of a GPU is told ---------------------------------------------------------

template <int kRegisters>
inline void raise_registers(AMK_SITE) {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256, "as PTX wants it");
  machine::raise_registers(kRegisters, AMK_HERE);
}
template <int kRegisters>
inline void lower_registers(AMK_SITE) {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256, "as PTX wants it");
  machine::lower_registers(kRegisters, AMK_HERE);
}
inline u32 opaque_zero() { return 0; }
inline void opaque(int&) {}
inline void opaque(float&) {}
inline void opaque(float&, int&) {}
inline void opaque(int&, int&, int&, int&) {}
template <class T>
inline T* opaque(T* p) {
  return p;
}
inline void opaque_in_order(float& a, AMK_SITE) { machine::wide_register(&a, AMK_HERE); }
inline void opaque_in_order(uint4& a, AMK_SITE) { machine::wide_register(&a, AMK_HERE); }
[[noreturn]] inline void unreachable() { __builtin_unreachable(); }

// ---- shared memory ------------------------------------------------------------------------------

inline u8* block_memory() { return machine::self->memory; }

// One array of the block for each Tag: it is known by the address of something of that Tag.
template <class Tag>
inline char kArrayOf = 0;
template <class Tag, class T, int kCount>
inline T (&shared_array())[kCount] {
  return *static_cast<T(*)[kCount]>(machine::shared_array(&kArrayOf<Tag>, sizeof(T[kCount])));
}

}  // namespace amk
