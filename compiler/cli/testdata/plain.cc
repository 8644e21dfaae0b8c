// Runs the plain kernels of a build on the CPU, in float32: blocks one after the other, of one warp, whose lanes are
// contexts that take turns. Prints the logits after each of the ids. The test defines KERNELS, a list of
// {name, function}. It is compiled once for each model, and the headers of C++ would take more time than all else: with
// libstdc++, math.h is all of cmath.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

template <class T> constexpr T max(T a, T b) { return a < b ? b : a; }
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __grid_constant__

constexpr int kLanes = 32;
static unsigned lane_now, block_now;
static float shuffled[kLanes];
static ucontext_t starts[kLanes], done;
static jmp_buf lanes[kLanes];
static bool started[kLanes];

// A lane that has come to a barrier lets the next one run. When it has its turn again all have come to theirs. A context
// is for a lane's beginning alone: swapping one asks the system for the signal mask, and lanes take turns often.
static void next_lane() {
  const unsigned lane = lane_now, block = block_now, next = (lane + 1) % kLanes;
  lane_now = next;
  if (_setjmp(lanes[lane]) == 0) {
    if (started[next]) _longjmp(lanes[next], 1);
    started[next] = true;
    setcontext(&starts[next]);
  }
  lane_now = lane;
  block_now = block;
}
float rsqrtf(float v) { return 1 / sqrtf(v); }

// Of hw/*.cuh, what the kernels use. The 16-bit types are named by element.cuh, and no build of this test has them but for
// bf16 as a scale.
#include "amk/hw/thread.cuh"
struct uint4 {};
namespace amk {
u32 thread_index() { return lane_now; }
u32 block_index() { return block_now; }
u32 block_threads() { return kLanes; }
void block_sync() { next_lane(); }
float shuffle_xor(float v, int mask) {
  shuffled[lane_now] = v;
  next_lane();
  v = shuffled[lane_now ^ mask];
  next_lane();
  return v;
}
template <class Tag, class T, int kCount> T (&shared_array())[kCount] {
  static T values[kCount];
  return values;
}
float float_of_bits(u32 bits) {
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
u32 bits_of(float v) {
  u32 bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
float divide_fast(float n, float d) { return n / d; }
int float_to_int(float v) { return v != v ? 0 : int(nearbyintf(v)); }
u16 float_to_bf16(float v) {  // of finite values
  const u32 bits = bits_of(v);
  return u16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
u16 float_to_fp16(float) { abort(); }
float fp16_to_float(u16) { abort(); }
u32 mul2_bf16(u32, u32) { abort(); }
u32 mul2_fp16(u32, u32) { abort(); }
u32 sub2_bf16(u32, u32) { abort(); }
u32 sub2_fp16(u32, u32) { abort(); }
u32 fma2_bf16(u32, u32, u32) { abort(); }
u32 fma2_fp16(u32, u32, u32) { abort(); }
void mma_bf16(float (&)[4], u32, u32, u32, u32, u32, u32) { abort(); }
void mma_fp16(float (&)[4], u32, u32, u32, u32, u32, u32) { abort(); }
using WideOperand = u64;
void wgmma_bf16(float (&)[32], const uint4&, WideOperand, bool) { abort(); }
void wgmma_fp16(float (&)[32], const uint4&, WideOperand, bool) { abort(); }
}  // namespace amk

#include "reference.cu"

using namespace amk;

static const struct {
  const char* name;
  void (*run)(Reference);
} kernels[] = {KERNELS};
alignas(256) static u8 scratch[sizeof(Values)], cache[kCacheBytes];
static u8* weights;

static void launch(const Operation& o, const Reference& r) {
  int kernel = 0;
  while (strcmp(kernels[kernel].name, o.kernel) != 0) ++kernel;
  for (u32 block = 0; block < o.blocks; ++block) {
    block_now = block;
    kernels[kernel].run(r);
    next_lane();
  }
}

// One lane's part of all steps.
static int n;
static char** ids;
static void decode() {
  constexpr int kOperations = sizeof amk_reference_step / sizeof *amk_reference_step;
  constexpr int kKinds = sizeof amk_reference_kinds / sizeof *amk_reference_kinds;
  for (int position = 0; position < n; ++position) {
    Reference r{weights, cache, scratch, 0, position, atoi(ids[position]), 0};
    for (int first = 0, end; first < kOperations; first = end) {
      const bool layers = amk_reference_step[first].repeats != kOnce;
      for (end = first + 1; layers && amk_reference_step[end].repeats != kOnce;) ++end;
      for (r.layer = 0; r.layer < (layers ? kLayers : 1); ++r.layer) {
        for (int i = first; i < end; ++i) {
          const Operation& o = amk_reference_step[i];
          if (o.repeats == kObserves || layers && o.kind != amk_reference_kinds[r.layer % kKinds]) continue;
          launch(o, r);
        }
      }
    }
    if (lane_now != 0) continue;
    const Result& logits = amk_reference_step[kOperations - 1].result;
    for (u32 i = 0; i < logits.elements; ++i)
      printf("%.9g\n", reinterpret_cast<float*>(scratch + logits.offset)[i]);
  }
}

// Reads the tensors of a safetensors file, behind the length of its header and the header.
static bool read_weights(const char* path) {
  FILE* file = fopen(path, "rb");
  u64 header;
  if (!file || fread(&header, 8, 1, file) != 1 || fseek(file, 0, SEEK_END) != 0) return false;
  const size_t bytes = ftell(file) - 8 - header;
  weights = static_cast<u8*>(aligned_alloc(256, (bytes + 255) / 256 * 256));
  return fseek(file, 8 + header, SEEK_SET) == 0 && fread(weights, 1, bytes, file) == bytes;
}

int main(int argc, char** argv) {
  if (!read_weights(argv[1])) return 1;
  n = argc - 2;
  ids = argv + 2;
  static char stacks[kLanes][1 << 16];
  for (int lane = 0; lane < kLanes; ++lane) {
    getcontext(&starts[lane]);
    starts[lane].uc_stack.ss_sp = stacks[lane];
    starts[lane].uc_stack.ss_size = sizeof stacks[lane];
    starts[lane].uc_link = &done;  // lane 0 is done first, with its last print
    makecontext(&starts[lane], decode, 0);
  }
  started[0] = true;
  swapcontext(&done, &starts[0]);
}
