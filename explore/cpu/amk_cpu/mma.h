// hw/mma.cuh on a CPU: the last lane of a warp computes for all of them (machine/mma.h). What wgmma
// computes is there after wgmma_wait (machine/wide.h).
#pragma once

#include "../machine/machine.h"
#include "../machine/mma.h"
#include "vectors.h"

namespace amk {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

namespace cpu {
// T: what the sums are, float or int.
template <class T>
inline void multiply(void (*compute)(machine::MmaLane*), T (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3,
                     u32 b0, u32 b1, machine::Site site) {
  machine::MmaLane lane{{a0, a1, a2, a3}, {b0, b1}, {}};
  __builtin_memcpy(lane.d, d, sizeof d);
  lane = machine::warp_compute(machine::Collective::kMatrix, lane, compute, site);
  __builtin_memcpy(d, lane.d, sizeof d);
}
}  // namespace cpu

inline void mma_bf16(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, AMK_SITE) {
  cpu::multiply(machine::mma_bf16, d, a0, a1, a2, a3, b0, b1, AMK_HERE);
}
inline void mma_fp16(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, AMK_SITE) {
  cpu::multiply(machine::mma_fp16, d, a0, a1, a2, a3, b0, b1, AMK_HERE);
}
inline void mma_s8(int (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, AMK_SITE) {
  cpu::multiply(machine::mma_s8, d, a0, a1, a2, a3, b0, b1, AMK_HERE);
}
inline void mma_u8s8(int (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, AMK_SITE) {
  cpu::multiply(machine::mma_u8s8, d, a0, a1, a2, a3, b0, b1, AMK_HERE);
}
// Each lane reads what it gets, and not the row that it says: the same bytes in all.
template <int kNextRows = 256>
inline uint4 load_matrices(const void* matrices, int lane) {
  const u32* const of = static_cast<const u32*>(matrices) + lane;
  const u32* const next = of + kNextRows / 4;
  return make_uint4(of[0], next[0], of[32], next[32]);
}
template <int kNextRows>
inline uint4 load_matrices_partly_written(const void* matrices, int lane) {
  const auto row = [=](u32 at) {
    const u8* const from = static_cast<const u8*>(matrices) + at + lane * 4;
    machine::read_partly_written(from, sizeof(u32));
    u32 v;
    machine::copy_unseen(&v, from, sizeof v);
    return v;
  };
  return make_uint4(row(0), row(kNextRows), row(128), row(kNextRows + 128));
}
inline u32 transpose8x8(u32 a, AMK_SITE) {
  return machine::warp_compute(machine::Collective::kTranspose, a, machine::movmatrix, AMK_HERE);
}

// A descriptor, as on a GPU; addresses are those in the dynamic shared memory of the block.
using WideOperand = u64;
template <u32 kNextColumns, u32 kNextRows>
inline WideOperand wide_operand(const void* p, AMK_SITE) {
  static_assert(kNextColumns % 16 == 0 && kNextColumns < 1 << 18, "what a descriptor can say");
  static_assert(kNextRows % 16 == 0 && kNextRows < 1 << 18, "what a descriptor can say");
  return machine::wide_descriptor(p, kNextColumns, kNextRows, AMK_HERE);
}
inline WideOperand further(WideOperand operand, u32 bytes) { return operand + (bytes >> 4); }

namespace cpu {
template <int kSums>
inline void multiply_wide(machine::Half type, float (&d)[kSums], WideOperand a, WideOperand b,
                          bool adds, machine::Site site) {
  static_assert(kSums % 4 == 0 && kSums <= 128, "there are products for 8 to 256 rows of B");
  machine::wide_multiply({type, 2 * kSums, nullptr, a, b, adds}, d, site);
}
template <int kSums>
inline void multiply_wide(machine::Half type, float (&d)[kSums], uint4 a, WideOperand b, bool adds,
                          machine::Site site) {
  static_assert(kSums % 4 == 0 && kSums <= 128, "there are products for 8 to 256 rows of B");
  const u32 registers[4] = {a.x, a.y, a.z, a.w};
  machine::wide_multiply({type, 2 * kSums, registers, 0, b, adds}, d, site);
}
}  // namespace cpu
// A: four registers of each lane, or an operand in shared memory.
template <int kSums, class A>
inline void wgmma_bf16(float (&d)[kSums], A a, WideOperand b, bool adds, AMK_SITE) {
  cpu::multiply_wide(machine::Half::kBf16, d, a, b, adds, AMK_HERE);
}
template <int kSums, class A>
inline void wgmma_fp16(float (&d)[kSums], A a, WideOperand b, bool adds, AMK_SITE) {
  cpu::multiply_wide(machine::Half::kFp16, d, a, b, adds, AMK_HERE);
}
inline void wgmma_begin(AMK_SITE) { machine::wide_begin(AMK_HERE); }
inline void wgmma_commit(AMK_SITE) { machine::wide_commit(AMK_HERE); }
template <int kLeft>
inline void wgmma_wait(AMK_SITE) {
  machine::wide_wait(kLeft, AMK_HERE);
}

}  // namespace amk
