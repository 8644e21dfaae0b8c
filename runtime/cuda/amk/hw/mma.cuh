// Tensor cores: products of small matrices that the lanes of a warp hold in registers, and of four
// warps with a matrix in shared memory (sm_90). No policy, no loops.
#pragma once

#include "thread.cuh"

#ifndef __CUDACC__
#include <amk_cpu/mma.h>
#else

namespace amk {

// ---- a warp (sm_80) -----------------------------------------------------------------------------

// d += A*B of m16n8k16, in fp32.
__device__ __forceinline__ void mma_bf16(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                         u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_fp16(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                         u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// d += A*B of m16n8k32, bytes: exact. Those of B have a sign; those of A have one, or none.
__device__ __forceinline__ void mma_s8(int (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                       u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_u8s8(int (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                         u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// A of m16n8k16: four matrices of 8 rows by 16 bytes in shared memory. Two, one after the other,
// are rows 0 to 7, with columns 0 to 7 and 8 to 15. Those of rows 8 to 15 are kNextRows bytes
// further.
template <int kNextRows = 256>
__device__ __forceinline__ uint4 load_matrices(const void* matrices, int lane) {
  // A lane says where a row is, and the registers alternate between the halves of rows.
  const int row = (lane & 7) * 16 + (lane & 8) * (kNextRows / 8) + (lane & 16) * 8;
  uint4 a;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a.x), "=r"(a.y), "=r"(a.z), "=r"(a.w)
               : "r"(shared_address(matrices) + row));
  return a;
}
// The same where nobody may have written some of it.
template <int kNextRows>
__device__ __forceinline__ uint4 load_matrices_partly_written(const void* matrices, int lane) {
  return load_matrices<kNextRows>(matrices, lane);
}

// Transposes an 8x8 matrix of 16-bit values held one register per lane.
__device__ __forceinline__ u32 transpose8x8(u32 a) {
  u32 d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
  return d;
}

// ---- four warps (sm_90) -------------------------------------------------------------------------

// An operand of a product, in shared memory: blocks of eight columns, of which each row has 16
// bytes. The next columns of the product's 16, and the next eight rows of the operand, are
// kNextColumns and kNextRows bytes further.
using WideOperand = u64;
template <u32 kNextColumns, u32 kNextRows>
__device__ __forceinline__ WideOperand wide_operand(const void* p) {
  constexpr u64 kColumns = kNextColumns, kRows = kNextRows;
  return u64(shared_address(p) >> 4 & 0x3fff) | kColumns >> 4 << 16 | kRows >> 4 << 32;
}
// The operand that begins n bytes further in shared memory.
__device__ __forceinline__ WideOperand further(WideOperand operand, u32 n) {
  return operand & ~u64(0xffffffff) | u32(u32(operand) + (n >> 4));
}

// d = A*B, or d += A*B, in fp32, of A with 64 rows by 16 columns and of B with as many rows as d
// has twice: begun, and done after wgmma_wait. A is in shared memory, or in registers as that of
// m16n8k16, of which each warp has 16 rows.
#define AMK_WIDE_TEXT(SHAPE, TYPE, SUMS, A, B, ADDS, MAJOR)                               \
  "{\n .reg .pred p;\n setp.ne.b32 p, %" ADDS ", 0;\n"                                       \
  "wgmma.mma_async.sync.aligned." SHAPE ".f32." TYPE "." TYPE " {" SUMS "}, " A ", %" B      \
  ", p, 1, 1, " MAJOR ";\n}"
// N0 to N5 are the numbers of the operands after the sums.
#define AMK_WIDE(NAME, TYPE, SHAPE, COUNT, SUMS, OUT, N0, N1, N2, N3, N4, N5)                  \
  __device__ __forceinline__ void NAME(float (&d)[COUNT], WideOperand a, WideOperand b,         \
                                       bool adds) {                                             \
    asm volatile(AMK_WIDE_TEXT(SHAPE, TYPE, SUMS, "%" N0, N1, N2, "0, 0")                   \
                 : OUT                                                                          \
                 : "l"(a), "l"(b), "r"(int(adds)));                                             \
  }                                                                                             \
  __device__ __forceinline__ void NAME(float (&d)[COUNT], uint4 a, WideOperand b, bool adds) {  \
    asm volatile(AMK_WIDE_TEXT(SHAPE, TYPE, SUMS,                                           \
                                   "{%" N0 ", %" N1 ", %" N2 ", %" N3 "}", N4, N5, "0")         \
                 : OUT                                                                          \
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b), "r"(int(adds)));             \
  }
#define AMK_SUMS_16                                                                               \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define AMK_OUT_16                                                                                \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),             \
  "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),         \
  "+f"(d[14]), "+f"(d[15])
#define AMK_SUMS_32                                                                               \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "                   \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define AMK_OUT_32                                                                                \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),             \
  "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),         \
  "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),                   \
  "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),                   \
  "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define AMK_SUMS_64                                                                               \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "                   \
  "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                   \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "                   \
  "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "                   \
  "%62, %63"
#define AMK_OUT_64                                                                                \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),             \
  "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),         \
  "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),                   \
  "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),                   \
  "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),                   \
  "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]),                   \
  "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),                   \
  "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),                   \
  "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),                   \
  "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]),                   \
  "+f"(d[62]), "+f"(d[63])
AMK_WIDE(wgmma_bf16, "bf16", "m64n32k16", 16, AMK_SUMS_16,
          AMK_OUT_16, "16", "17", "18", "19", "20", "21")
AMK_WIDE(wgmma_fp16, "f16", "m64n32k16", 16, AMK_SUMS_16,
          AMK_OUT_16, "16", "17", "18", "19", "20", "21")
AMK_WIDE(wgmma_bf16, "bf16", "m64n64k16", 32, AMK_SUMS_32,
          AMK_OUT_32, "32", "33", "34", "35", "36", "37")
AMK_WIDE(wgmma_fp16, "f16", "m64n64k16", 32, AMK_SUMS_32,
          AMK_OUT_32, "32", "33", "34", "35", "36", "37")
AMK_WIDE(wgmma_bf16, "bf16", "m64n128k16", 64, AMK_SUMS_64,
          AMK_OUT_64, "64", "65", "66", "67", "68", "69")
AMK_WIDE(wgmma_fp16, "f16", "m64n128k16", 64, AMK_SUMS_64,
          AMK_OUT_64, "64", "65", "66", "67", "68", "69")
#undef AMK_WIDE_TEXT
#undef AMK_WIDE
#undef AMK_SUMS_16
#undef AMK_OUT_16
#undef AMK_SUMS_32
#undef AMK_OUT_32
#undef AMK_SUMS_64
#undef AMK_OUT_64
// Orders writes of registers before the products that read them.
__device__ __forceinline__ void wgmma_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// The products since the last commit are a group. wgmma_wait waits for all but the last kLeft.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

}  // namespace amk

#endif
