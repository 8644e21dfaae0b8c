// Blocks of the device runtime on the CPU: threads of a block are contexts that take turns, and meet at barriers, shuffles
// and products of tensor cores. Blocks of a grid take turns where one polls for what others have to do. The test replaces
// inline assembly in a copy of the headers.
#pragma once

// The headers of C are enough. With libstdc++, math.h is all of cmath, which takes the compiler more time than a kernel.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; }
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __CUDACC__  // what the headers have for CUDA
#define __align__(n)

// ---- threads ----

constexpr unsigned kThreadsOfBlock = 256;
struct Index {
  unsigned x, y;
};
static Index threadIdx, blockIdx, blockDim{kThreadsOfBlock}, gridDim;
static void next_thread();
struct Gate {
  unsigned come = 0, opened = 0;
  void pass(unsigned threads) {
    const unsigned before = opened;
    if (++come == threads) come = 0, ++opened;
    while (opened == before) next_thread();
  }
};
struct Block {
  ucontext_t contexts[kThreadsOfBlock];
  jmp_buf threads[kThreadsOfBlock];
  bool began[kThreadsOfBlock], ended[kThreadsOfBlock];
  Gate of_block, of_warp[kThreadsOfBlock / 32];
  char stacks[kThreadsOfBlock][1 << 17];

  void prepare(void (*thread)()) {
    for (unsigned i = 0; i < kThreadsOfBlock; ++i) {
      began[i] = i == 0;
      ended[i] = false;
      getcontext(&contexts[i]);
      contexts[i].uc_stack.ss_sp = stacks[i];
      contexts[i].uc_stack.ss_size = sizeof stacks[i];
      makecontext(&contexts[i], thread, 0);
    }
  }
};
static Block* this_block;  // whose threads take turns
static ucontext_t done;
void block_barrier() { this_block->of_block.pass(kThreadsOfBlock); }
void __syncthreads() { block_barrier(); }
void __threadfence_block() {}
void __syncwarp() { this_block->of_warp[threadIdx.x / 32].pass(32); }

// A context is for a thread's beginning alone: swapping one asks the system for the signal mask, and threads take turns
// often.
static void next_thread() {
  const unsigned from = threadIdx.x;
  unsigned to = from;
  do to = (to + 1) % kThreadsOfBlock;
  while (to != from && this_block->ended[to]);
  if (to == from) return;
  if (_setjmp(this_block->threads[from]) == 0) {
    threadIdx.x = to;
    if (this_block->began[to]) _longjmp(this_block->threads[to], 1);
    this_block->began[to] = true;
    setcontext(&this_block->contexts[to]);
  }
  threadIdx.x = from;
}
template <class T> T shuffled(T v, unsigned from) {
  static T values[kThreadsOfBlock];
  values[threadIdx.x] = v;
  __syncwarp();
  v = values[threadIdx.x / 32 * 32 + from];
  __syncwarp();
  return v;
}
template <class T> T __shfl_xor_sync(unsigned, T v, int mask) { return shuffled(v, threadIdx.x % 32 ^ mask); }
template <class T> T __shfl_sync(unsigned, T v, int lane) { return shuffled(v, lane); }
template <class T> T __shfl_up_sync(unsigned, T v, unsigned by) {
  const unsigned lane = threadIdx.x % 32;
  return shuffled(v, lane < by ? lane : lane - by);
}
template <class T, class Op> T over_warp(T v, Op op) {
  static T values[kThreadsOfBlock];
  values[threadIdx.x] = v;
  __syncwarp();
  const T* const lanes = values + threadIdx.x / 32 * 32;
  v = lanes[0];
  for (int lane = 1; lane < 32; ++lane) v = op(v, lanes[lane]);
  __syncwarp();
  return v;
}
unsigned __reduce_max_sync(unsigned, unsigned v) {
  return over_warp(v, [](unsigned a, unsigned b) { return max(a, b); });
}
bool __any_sync(unsigned, bool v) {
  return over_warp(v, [](bool a, bool b) { return a || b; });
}
unsigned __ballot_sync(unsigned, bool v) {
  return over_warp(v ? 1u << threadIdx.x % 32 : 0u, [](unsigned a, unsigned b) { return a | b; });
}

// ---- what CUDA has ----

struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct ulonglong2 { unsigned long long x, y; };
float2 make_float2(float x, float y) { return {x, y}; }
float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> T atomicExch(T*, T) { abort(); }
template <class T, class V> T atomicAdd(T* p, V v) { const T before = *p; *p += v; return before; }
template <class T, class V> T atomicMax(T* p, V v) { const T before = *p; *p = max(*p, T(v)); return before; }
bool __all_sync(unsigned, bool) { abort(); }
int __ffs(unsigned v) { return __builtin_ffs(v); }
float rsqrtf(float v) { return 1 / sqrtf(v); }
float __fdividef(float a, float b) { return a / b; }
extern "C" float __expf(float v) { return expf(v); }
float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
size_t __cvta_generic_to_shared(const void*) { abort(); }
long long clock64() { abort(); }
static int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += int8_t(a >> 8 * i) * int8_t(b >> 8 * i);
  return c;
}
unsigned __byte_perm(unsigned a, unsigned b, unsigned choice) {
  const uint64_t both = uint64_t(b) << 32 | a;
  unsigned v = 0;
  for (int i = 0; i < 4; ++i) v |= unsigned(both >> (choice >> 4 * i & 7) * 8 & 255) << 8 * i;
  return v;
}
struct Half { unsigned short bits; };
template <class To, class From> To bits_of(From v) { To to; memcpy(&to, &v, sizeof to); return to; }
Half __float2bfloat16_rn(float v) {
  const unsigned u = __float_as_uint(v);
  if (v != v) return {0x7fff};
  return {static_cast<unsigned short>((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}
float bfloat16_of(unsigned short bits) { return __uint_as_float(unsigned(bits) << 16); }
unsigned short __bfloat16_as_ushort(Half h) { return h.bits; }
Half __float2half_rn(float v) { return {bits_of<unsigned short>(_Float16(v))}; }
Half __ushort_as_half(unsigned short bits) { return {bits}; }
unsigned short __half_as_ushort(Half h) { return h.bits; }
float __half2float(Half h) { return bits_of<_Float16>(h.bits); }
int __float2int_rn(float v) { return v != v ? 0 : int(nearbyintf(v)); }
float __fdiv_rn(float a, float b) { return a / b; }
float __frcp_rn(float v) { return 1 / v; }
static long long __double_as_longlong(double v) { return bits_of<long long>(v); }
static double __longlong_as_double(long long v) { return bits_of<double>(v); }
static double __dadd_rn(double a, double b) { return a + b; }
static double __dmul_rn(double a, double b) { return a * b; }
static double __ddiv_rn(double a, double b) { return a / b; }
static double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static long long __double2ll_rn(double v) { return static_cast<long long>(nearbyint(v)); }
static float __double2float_rn(double v) { return float(v); }
static float __double2float_rd(double v) { return float(v) > v ? nextafterf(float(v), -INFINITY) : float(v); }
static float __double2float_ru(double v) { return float(v) < v ? nextafterf(float(v), INFINITY) : float(v); }
static float __ull2float_rn(unsigned long long v) { return float(v); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
// As far off as the instruction may be, in one direction or the other. The C library has the name.
#define __log2f log2f_of_gpu
static float __log2f(float v) {
  const float log = log2f(v), off = v > 0.5f && v < 2 ? 0x1p-22f : fabsf(log) * 0x1p-22f;
  return __float_as_uint(v) & 1 ? log + off : log - off;
}
struct __nv_bfloat162 { Half x, y; };
struct __half2 { Half x, y; };
template <class Op> __nv_bfloat162 pairwise(__nv_bfloat162 a, __nv_bfloat162 b, Op op) {
  return {__float2bfloat16_rn(op(bfloat16_of(a.x.bits), bfloat16_of(b.x.bits))),
          __float2bfloat16_rn(op(bfloat16_of(a.y.bits), bfloat16_of(b.y.bits)))};
}
template <class Op> __half2 pairwise(__half2 a, __half2 b, Op op) {
  return {__float2half_rn(op(__half2float(a.x), __half2float(b.x))),
          __float2half_rn(op(__half2float(a.y), __half2float(b.y)))};
}
template <class T> T __hmul2(T a, T b) { return pairwise(a, b, [](float x, float y) { return x * y; }); }
template <class T> T __hsub2(T a, T b) { return pairwise(a, b, [](float x, float y) { return x - y; }); }

// x * y + z of two numbers, as the programs here need it: what a float rounds of the sum is far below its last bit.
unsigned sums_of_bf16x2(unsigned x, unsigned y, unsigned z) {
  const auto sum = [&](int at) {
    const auto number = [at](unsigned v) { return bfloat16_of(v >> at & 0xffff); };
    return unsigned(__float2bfloat16_rn(float(double(number(x) * number(y)) + number(z))).bits) << at;
  };
  return sum(0) | sum(16);
}
unsigned sums_of_f16x2(unsigned x, unsigned y, unsigned z) {
  const auto sum = [&](int at) {
    const auto number = [at](unsigned v) { return __half2float({static_cast<unsigned short>(v >> at)}); };
    return unsigned(__float2half_rn(float(double(number(x) * number(y)) + number(z))).bits) << at;
  };
  return sum(0) | sum(16);
}

// Two numbers in e4m3 as fp16, the lower byte in the lower half.
unsigned halves_of_e4m3(unsigned two) {
  unsigned halves = 0;
  for (int i = 0; i < 2; ++i, two >>= 8) {
    const int exponent = two >> 3 & 15, mantissa = two & 7;
    const float v = exponent ? ldexpf(8 + mantissa, exponent - 10) : ldexpf(mantissa, -9);
    halves |= unsigned(__float2half_rn(two & 128 ? -v : v).bits) << 16 * i;
  }
  return halves;
}

// ---- tensor cores, by the fragments of the PTX ISA ----

template <class Number>
void product(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1,
             Number number) {
  static unsigned all[kThreadsOfBlock][6];
  const unsigned own[] = {a0, a1, a2, a3, b0, b1};
  memcpy(all[threadIdx.x], own, sizeof own);
  __syncwarp();
  const unsigned lane = threadIdx.x % 32, first = threadIdx.x - lane;
  const auto a = [&](unsigned row, unsigned k) {
    return number(all[first + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2] >> k % 2 * 16);
  };
  const auto b = [&](unsigned k, unsigned n) { return number(all[first + n * 4 + k % 8 / 2][4 + k / 8] >> k % 2 * 16); };
  float sum[4];
  for (int i = 0; i < 4; ++i) {
    sum[i] = d[i];
    for (unsigned k = 0; k < 16; ++k) sum[i] += a(lane / 4 + i / 2 * 8, k) * b(k, lane % 4 * 2 + i % 2);
  }
  __syncwarp();
  memcpy(d, sum, sizeof sum);
}
void product_of_bf16(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  product(d, a0, a1, a2, a3, b0, b1, [](unsigned bits) { return bfloat16_of(bits & 0xffff); });
}
void product_of_f16(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  product(d, a0, a1, a2, a3, b0, b1, [](unsigned bits) { return __half2float({static_cast<unsigned short>(bits)}); });
}
template <class A>
void product_of_bytes(int (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, uint2 b) {
  static unsigned all[kThreadsOfBlock][6];
  const unsigned own[] = {a0, a1, a2, a3, b.x, b.y};
  memcpy(all[threadIdx.x], own, sizeof own);
  __syncwarp();
  const unsigned lane = threadIdx.x % 32, first = threadIdx.x - lane;
  for (int i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 32; ++k) {
      const unsigned part = first + k % 16 / 4, byte = k % 4 * 8;
      d[i] += A(all[part + row % 8 * 4][row / 8 + k / 16 * 2] >> byte) *
              int8_t(all[part + column * 4][4 + k / 16] >> byte);
    }
  }
  __syncwarp();
}
void product_of_s8(int (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, uint2 b) {
  product_of_bytes<int8_t>(d, a0, a1, a2, a3, b);
}
void product_of_u8(int (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, uint2 b) {
  product_of_bytes<uint8_t>(d, a0, a1, a2, a3, b);
}
unsigned transposed(unsigned v) {
  static unsigned all[kThreadsOfBlock];
  all[threadIdx.x] = v;
  __syncwarp();
  const unsigned lane = threadIdx.x % 32, first = threadIdx.x - lane;
  const auto at = [&](unsigned row, unsigned column) {
    return all[first + row * 4 + column / 2] >> column % 2 * 16 & 0xffff;
  };
  v = at(lane % 4 * 2, lane / 4) | at(lane % 4 * 2 + 1, lane / 4) << 16;
  __syncwarp();
  return v;
}

// Runs `thread` on every thread of a block, and returns when all have called end_of_block.
void end_of_block() {
  this_block->ended[threadIdx.x] = true;
  next_thread();
  setcontext(&done);
}
void run_block(void (*thread)()) {
  static Block only;
  this_block = &only;
  only.prepare(thread);
  volatile bool running = false;
  getcontext(&done);
  if (!running) {
    running = true;
    threadIdx.x = 0;
    setcontext(&only.contexts[0]);
  }
}

// ---- a grid ----

static struct {
  bool runs;
  jmp_buf turn;      // where the next block is picked
  unsigned polling;  // the thread of the block that has given its turn away
} grid;

// A thread that polls for what other blocks have to do calls it.
void next_block() {
  if (!grid.runs) return;
  grid.polling = threadIdx.x;
  if (_setjmp(this_block->threads[threadIdx.x]) == 0) _longjmp(grid.turn, 1);
}

// Runs `thread` on every thread of as many blocks, and returns when all have called end_of_block. `enter` is called with
// a block's number before it has its turn, and `leave` behind that: they bring its shared memory, and take it away.
void run_grid(unsigned blocks, void (*thread)(), void (*enter)(unsigned), void (*leave)(unsigned)) {
  static Block* all[16];
  static bool ran[16], over[16];
  static unsigned polling[16];
  static volatile unsigned now, left;
  for (unsigned b = 0; b < blocks; ++b) {
    if (!all[b]) all[b] = new Block();
    all[b]->prepare(thread);
    ran[b] = over[b] = false;
  }
  grid.runs = true;
  static volatile bool running;
  running = false;
  now = blocks - 1;
  left = blocks;
  getcontext(&done);  // where a block ends
  if (running) over[now] = true, --left, leave(now);
  running = true;
  if (_setjmp(grid.turn) != 0) polling[now] = grid.polling, leave(now);
  if (left == 0) {
    grid.runs = false;
    return;
  }
  do now = (now + 1) % blocks;
  while (over[now]);
  this_block = all[now];
  enter(now);
  if (ran[now]) {
    threadIdx.x = polling[now];
    _longjmp(this_block->threads[threadIdx.x], 1);
  }
  ran[now] = true;
  threadIdx.x = 0;
  setcontext(&this_block->contexts[0]);
}
