// The plain read: the whole grid reads a range of memory repeatedly, and only adds it up. The
// bandwidth that it measures is reported alongside the ceiling. Must not know what the bytes are.
#pragma once

#include "hw/memory.cuh"

namespace amk {

constexpr int kReadThreads = 512;
constexpr int kReadBlocks = 2;  // on an SM

// Argument of the kernel. Mirrored by the launcher's host packages.
struct Read {
  const u8* data;
  u64 bytes;   // multiple of 16
  u32* sum;    // keeps the loads alive
  u32 passes;
  u32 reserved;
};
static_assert(sizeof(Read) == 32, "the launcher builds this struct byte by byte");

__device__ __forceinline__ void plain_read(const Read& r) {
  constexpr int kAtOnce = 8;  // loads of a thread in flight
  const uint4* data = reinterpret_cast<const uint4*>(r.data);
  const u64 words = r.bytes / sizeof(uint4);
  const u64 stride = u64(block_count()) * kReadThreads;
  u32 sum = 0;
#pragma unroll 1
  for (u32 pass = 0; pass < r.passes; ++pass) {
    u64 at = u64(block_index()) * kReadThreads + thread_index();
#pragma unroll 1
    for (; at + (kAtOnce - 1) * stride < words; at += kAtOnce * stride) {
      uint4 v[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) v[i] = load_streaming_16(data + at + i * stride);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) sum += v[i].x + v[i].y + v[i].z + v[i].w;
    }
#pragma unroll 1
    for (; at < words; at += stride) {
      const uint4 v = load_streaming_16(data + at);
      sum += v.x + v.y + v.z + v.w;
    }
  }
  constexpr u32 kSeldom = 0x9e3779b9;
  if (sum == kSeldom) *r.sum = sum;
}

}  // namespace amk
