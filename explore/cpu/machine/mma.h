// What tensor cores compute, as pure functions of the registers of a warp: m16n8k16 and wgmma with
// fp32 accumulators, m16n8k32 with integers, movmatrix. Fragments are those of the PTX ISA. Must
// not know a thread, a schedule or memory.
#pragma once

#include <cstdint>

namespace machine {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

// How a tensor core adds products of 16 bits to an fp32 accumulator. A step takes `products` of
// them and the accumulator at once, cuts each term toward zero to `fraction_bits` below the largest
// exponent, adds exactly, and cuts the sum to fp32. k is walked in steps, from 0.
struct TensorCore {
  int products, fraction_bits;
  bool verified;  // whether hardware has been seen to give these bits
};

// Compared with an H200: 430e9 outputs of mma.sync and wgmma, bf16 and fp16, no mismatch.
constexpr TensorCore kTensorCoreSm90{16, 25, true};
// UNVERIFIED: published models say so for Ampere and Ada (sm_80, sm_86, sm_89); nobody has compared
// these functions with such a GPU.
constexpr TensorCore kTensorCoreSm80{8, 24, false};
// UNVERIFIED: taken to be that of sm_90.
constexpr TensorCore kTensorCoreSm100{16, 25, false};

// That of a target, by the number of its architecture: 80, 89, 90, 120.
constexpr TensorCore tensor_core_of(int architecture) {
  return architecture < 90 ? kTensorCoreSm80
                           : architecture < 100 ? kTensorCoreSm90 : kTensorCoreSm100;
}

// That of the machine, which sets it before a launch.
extern TensorCore tensor_core;

enum class Half { kBf16, kFp16 };

// What a lane brings to a product of its warp: registers of A and of B, and the sums, which it takes
// with it: bits of floats or integers.
struct MmaLane {
  u32 a[4], b[2], d[4];
};

// d += A * B, 16 by 8 by 16.
void mma_m16n8k16(const TensorCore& core, Half type, MmaLane* lanes);
// d += A * B modulo 2^32, 16 by 8 by 32. The bytes of A have a sign or not, those of B have one.
void mma_m16n8k32(bool a_is_signed, MmaLane* lanes);
// The four products of the device runtime, by the tensor core of the machine.
void mma_bf16(MmaLane* lanes);
void mma_fp16(MmaLane* lanes);
void mma_s8(MmaLane* lanes);
void mma_u8s8(MmaLane* lanes);

// Transposes an 8x8 matrix of 16-bit elements, of which a lane has two.
void movmatrix(u32* lanes);

// One warp's part of wgmma m64nNk16: its 16 rows of A by the columns of B, of which there are a
// multiple of 8 up to 256. d has columns / 2 sums of each lane. Without `adds` they begin at +0.
constexpr int kWideRows = 16, kWideDepth = 16, kMostWideColumns = 256;
void wgmma_m64k16(const TensorCore& core, Half type, const u16 (*a)[kWideDepth],
                  const u16 (*b)[kWideDepth], int columns, bool adds, u32* d);
// The rows of A that the registers of a warp's lanes have.
void rows_of_registers(const u32 (*a)[4], u16 (*rows)[kWideDepth]);

// Where the elements of an operand are that a wgmma's descriptor names: K-major without a swizzle,
// which is 8 by 8 core matrices of 128 contiguous bytes. A row is one of A, or a column of B.
struct SharedOperand {
  u32 start;      // an address of shared memory, of 18 bits
  u32 next_k;     // bytes from a core matrix to the one with the next 8 of k
  u32 next_rows;  // bytes to the one with the next 8 rows
  // Offset of the eight elements k/8*8 to k/8*8 + 7 of a row.
  u32 offset(int row, int k) const {
    return u32(k / 8) * next_k + u32(row / 8) * next_rows + u32(row % 8) * 16;
  }
};
// Decodes a descriptor. What it asks for and is not modelled comes back as words for a finding;
// nullptr if there is nothing.
const char* decode_operand(u64 descriptor, SharedOperand& operand);

}  // namespace machine
