// Kernels for driver_test.cc, in the words of the device runtime.
#define AMK_BULK_COPY 1
#include <amk_cpu/copy.h>
#include <amk_cpu/memory.h>

using namespace amk;

struct Arguments {
  const u32* in;
  u8* unused;
  u32* out;
  u32 n;
  u32 reserved;
};

extern "C" {

__device__ u32 scale = 3;
__device__ u32 table[]{1, 2, 3, 4};

// out[i] = in[i] * scale, through static and dynamic shared memory. An array stays when there is another one.
__global__ void __launch_bounds__(64, 1) scaled(const __grid_constant__ Arguments a) {
  struct Tag;
  struct Other;
  u32(&first)[64] = shared_array<Tag, u32, 64>();
  u32* second = reinterpret_cast<u32*>(block_memory());
  const u32 t = thread_index(), i = block_index() * block_threads() + t;
  first[t] = i < a.n ? load_constant(a.in + i) : 0;
  block_sync();
  u32(&third)[64] = shared_array<Other, u32, 64>();
  third[t] = first[63 - t];
  block_sync();
  second[63 - t] = third[t] * scale;
  block_sync();
  if (i < a.n) a.out[i] = second[t];
}

// Two warps write a word.
__global__ void racy(const __grid_constant__ Arguments a) {
  if (thread_index() % 32 == 0) a.out[block_index()] = thread_index();
}

__global__ void outside(const __grid_constant__ Arguments a) {
  if (thread_index() == 0) a.out[a.n] = 1;
}

__global__ void far_outside(const __grid_constant__ Arguments a) {
  if (thread_index() == 0) a.out[size_t(1) << 24] = 1;
}

// What a block finds in shared memory, read as any bytes or as some that may not have been written.
__global__ void finds(const __grid_constant__ Arguments a) {
  const u32* shared = reinterpret_cast<const u32*>(block_memory());
  if (thread_index() == 0) a.out[0] = a.n ? shared[4] : load_partly_written(shared + 4);
}

// Each warp adds 1 in two steps, between which others may come.
__global__ void forgetful(const __grid_constant__ Arguments a) {
  if (thread_index() % 32) return;
  const u32 n = load_relaxed(a.out);
  store_relaxed(a.out, n + 1);
}

// All blocks wait for one another: they run at the same time.
__global__ void joined(const __grid_constant__ Arguments a) {
  if (thread_index() != 0) return;
  add_release(a.out, 1);
  while (load_acquire(a.out) < block_count()) {
  }
}

}  // extern "C"
