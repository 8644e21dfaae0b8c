// Runs the plain kernels of a build on the CPU, in float32: blocks one after the other, of one warp, whose lanes are
// contexts that take turns. Prints the logits after each of the ids. The test defines KERNELS, a list of
// {name, function}.
#include <csetjmp>
#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

using std::max;
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __shared__ static

constexpr int kLanes = 32;
struct Index {
  unsigned x;
};
static Index threadIdx, blockIdx, blockDim{kLanes};
static float shuffled[kLanes];
static ucontext_t starts[kLanes], done;
static jmp_buf lanes[kLanes];
static bool started[kLanes];

// A lane that has come to a barrier lets the next one run. When it has its turn again all have come to theirs. A context
// is for a lane's beginning alone: swapping one asks the system for the signal mask, and lanes take turns often.
void __syncthreads() {
  const unsigned lane = threadIdx.x, block = blockIdx.x, next = (lane + 1) % kLanes;
  threadIdx.x = next;
  if (_setjmp(lanes[lane]) == 0) {
    if (started[next]) _longjmp(lanes[next], 1);
    started[next] = true;
    setcontext(&starts[next]);
  }
  threadIdx.x = lane;
  blockIdx.x = block;
}
float __shfl_xor_sync(unsigned, float v, int offset) {
  shuffled[threadIdx.x] = v;
  __syncthreads();
  v = shuffled[threadIdx.x ^ offset];
  __syncthreads();
  return v;
}
float rsqrtf(float v) { return 1 / sqrtf(v); }
float __uint_as_float(unsigned u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
unsigned __float_as_uint(float f) {
  unsigned u;
  memcpy(&u, &f, 4);
  return u;
}
float __fdividef(float a, float b) { return a / b; }
size_t __cvta_generic_to_shared(const void*) { abort(); }

// The 16-bit types are named by element.cuh, and no build of this test has them.
struct __nv_bfloat162 {};
struct __half2 {};
struct Half {};
template <class T> T __hmul2(T, T) { abort(); }
Half __float2bfloat16_rn(float) { abort(); }
Half __float2half_rn(float) { abort(); }
Half __ushort_as_half(unsigned short) { abort(); }
unsigned short __bfloat16_as_ushort(Half) { abort(); }
unsigned short __half_as_ushort(Half) { abort(); }
float __half2float(Half) { abort(); }

#include "reference.cu"

using namespace amk;

static const std::map<std::string, void (*)(Reference)> kernels{KERNELS};
static std::vector<u8> weights, cache(kCacheBytes);
alignas(256) static u8 scratch[sizeof(Values)];

static void launch(const Operation& o, const Reference& r) {
  for (u32 block = 0; block < o.blocks; ++block) {
    blockIdx.x = block;
    kernels.at(o.kernel)(r);
    __syncthreads();
  }
}

// One lane's part of all steps.
static int n;
static char** ids;
static void decode() {
  constexpr int kOperations = sizeof amk_reference_step / sizeof *amk_reference_step;
  constexpr int kKinds = sizeof amk_reference_kinds / sizeof *amk_reference_kinds;
  for (int position = 0; position < n; ++position) {
    Reference r{weights.data(), cache.data(), scratch, 0, position, atoi(ids[position]), 0};
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
    if (threadIdx.x != 0) continue;
    const Result& logits = amk_reference_step[kOperations - 1].result;
    for (u32 i = 0; i < logits.elements; ++i)
      printf("%.9g\n", reinterpret_cast<float*>(scratch + logits.offset)[i]);
  }
}

int main(int argc, char** argv) {
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  u64 header;
  memcpy(&header, text.data(), 8);
  weights.assign(text.begin() + 8 + header, text.end());
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
