// Runs the readers of attention's heads on the CPU: the threads of a block are contexts that take turns, and meet at
// barriers and shuffles. Each form of norm and rotation is held to what it is by definition, in double precision.
// Prints what differs. The test replaces inline assembly in a copy of the headers.
#include <math.h>
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
#define __shared__
#define __align__(n)

// ---- threads ----

constexpr unsigned kThreadsOfBlock = 256;
struct Index {
  unsigned x;
};
static Index threadIdx, blockIdx;
static ucontext_t contexts[kThreadsOfBlock], done;
static bool ended[kThreadsOfBlock];

static void next_thread() {
  const unsigned from = threadIdx.x;
  unsigned to = from;
  do to = (to + 1) % kThreadsOfBlock;
  while (to != from && ended[to]);
  if (to == from) return;
  threadIdx.x = to;
  swapcontext(&contexts[from], &contexts[to]);
  threadIdx.x = from;
}
struct Gate {
  unsigned come = 0, opened = 0;
  void pass(unsigned threads) {
    const unsigned before = opened;
    if (++come == threads) come = 0, ++opened;
    while (opened == before) next_thread();
  }
};
static Gate of_block, of_warp[kThreadsOfBlock / 32];
void block_barrier() { of_block.pass(kThreadsOfBlock); }
void __syncwarp() { of_warp[threadIdx.x / 32].pass(32); }
template <class T> T shuffled(T v, unsigned from) {
  static T values[kThreadsOfBlock];
  values[threadIdx.x] = v;
  __syncwarp();
  v = values[threadIdx.x / 32 * 32 + from];
  __syncwarp();
  return v;
}
float __shfl_xor_sync(unsigned, float v, int mask) { return shuffled(v, threadIdx.x % 32 ^ mask); }
float __shfl_sync(unsigned, float v, int lane) { return shuffled(v, lane); }

// ---- what CUDA has ----

struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
float2 make_float2(float x, float y) { return {x, y}; }
uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> T atomicExch(T*, T) { abort(); }
bool __all_sync(unsigned, bool) { abort(); }
bool __any_sync(unsigned, bool) { abort(); }
int __ffs(unsigned v) { return __builtin_ffs(v); }
float rsqrtf(float v) { return 1 / sqrtf(v); }
float __fdividef(float a, float b) { return a / b; }
float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
size_t __cvta_generic_to_shared(const void*) { abort(); }
unsigned __byte_perm(unsigned a, unsigned b, unsigned choice) {
  const uint64_t both = uint64_t(b) << 32 | a;
  unsigned v = 0;
  for (int i = 0; i < 4; ++i) v |= unsigned(both >> (choice >> 4 * i & 7) * 8 & 255) << 8 * i;
  return v;
}
struct Half { unsigned short bits; };
Half __float2bfloat16_rn(float v) {  // of finite values
  const unsigned u = __float_as_uint(v);
  return {static_cast<unsigned short>((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}
unsigned short __bfloat16_as_ushort(Half h) { return h.bits; }
struct __nv_bfloat162 {};
struct __half2 {};
template <class T> T __hmul2(T, T) { abort(); }
Half __float2half_rn(float) { abort(); }
Half __ushort_as_half(unsigned short) { abort(); }
unsigned short __half_as_ushort(Half) { abort(); }
float __half2float(Half) { abort(); }

#include "schedule.h"
#include "model_config.h"
#include "pages.h"

#if AMK_TENSOR_CORES
#include "amk/unit_reader.cuh"
#else
#include "amk/attention_fma.cuh"
#endif

namespace amk {
alignas(1024) u8 shared[kSharedLimit];
}
using namespace amk;

// ---- a unit, read and by definition ----

enum class Norm { kRms, kWholeRms, kCentred, kShifted };
template <Norm kNorm, bool kRotated, bool kOwn = false>
struct Form : Attn {
  static constexpr bool kWholeNorm = kNorm == Norm::kWholeRms, kRotates = kRotated, kOwnGains = kOwn || kWholeNorm;
  static constexpr bool kNormShifted = kNorm == Norm::kShifted, kNormCentred = kNormShifted || kNorm == Norm::kCentred;
  static constexpr int kAngles = 0;
};
constexpr int kRows = (kHeads + 2 * kKVHeads) * kHeadDim, kUnitRows = (kGroupHeads + 2) * kHeadDim;
static float qkv[kRows], got[kUnitRows];
static u8 exchange[kExchangeBytes];
alignas(16) static WeightElement::Bits q_gain[kHeads * kHeadDim], k_gain[kKVHeads * kHeadDim],
    q_shift[kHeads * kHeadDim], k_shift[kKVHeads * kHeadDim];
static Launch launch;
static int failures;

// Of a head of q or k, from its first row on: `all` rows from `whole` on, if they are normalised together.
template <class S>
static double by_definition(int first, int d, int whole, int all, const WeightElement::Bits* gain,
                            const WeightElement::Bits* shift) {
  const int from = S::kWholeNorm ? whole : first, n = S::kWholeNorm ? all : kHeadDim;
  double mean = 0, squares = 0;
  for (int i = 0; S::kNormCentred && i < n; ++i) mean += double(qkv[from + i]) / n;
  for (int i = 0; i < n; ++i) squares += (qkv[from + i] - mean) * (qkv[from + i] - mean);
  const auto normed = [&](int d) {
    const int weight = S::kOwnGains ? first - whole + d : d;
    return (qkv[first + d] - mean) / sqrt(squares / n + S::kNormEps) * WeightElement::to_float(gain[weight]) +
           (S::kNormShifted ? WeightElement::to_float(shift[weight]) : 0);
  };
  if (!S::kRotates) return normed(d);
  const float2 turn = block_scratch().rotation[0][d / 2];
  return d % 2 == 0 ? normed(d) * turn.x - normed(d + 1) * turn.y : normed(d) * turn.x + normed(d - 1) * turn.y;
}

template <class S>
static void compare(int unit) {
  const double slack = Element::kBytes == 2 ? 0x1p-8 : 0x1p-20;
  for (int e = 0; e < kUnitRows; ++e) {
    const int h = e / kHeadDim, d = e % kHeadDim;
    double want = qkv[v_row(unit) + d];
    if (h < kGroupHeads) {
      want = by_definition<S>((unit * kGroupHeads + h) * kHeadDim, d, 0, kHeads * kHeadDim, q_gain, q_shift);
    } else if (h == kGroupHeads) {
      want = by_definition<S>(k_row(unit), d, kHeads * kHeadDim, kKVHeads * kHeadDim, k_gain, k_shift);
    }
    if (fabs(got[e] - want) <= slack * fabs(want) + 0x1p-20) continue;
    ++failures;
    printf("whole %d centred %d shifted %d own gains %d rotates %d unit %d head %d element %d: %g, want %g\n",
           S::kWholeNorm, S::kNormCentred, S::kNormShifted, S::kOwnGains, S::kRotates, unit, h, d, got[e], want);
  }
}

template <class S, class C>
static void read(C& c) {
  const NormedHeads heads{kQkv, reinterpret_cast<u8*>(q_gain), reinterpret_cast<u8*>(k_gain),
                          reinterpret_cast<u8*>(q_shift), reinterpret_cast<u8*>(k_shift)};
  for (int unit = 0; unit < kKVHeads; ++unit) {
    const Unit<S> u{unit, c.position};
#if AMK_TENSOR_CORES
    UnitReader<S, NormedHeads> reader(c, heads, u);
    auto words = quad_poll<reader.kQuads>(page_copy(c, heads.in), [&](int i) {
      const int quad = reader.quad(c.tid, i);
      return quad < kUnitQuads ? unit_word(u.head(), quad) : -1;
    });
    reader.poll(c, heads, words);
    reader.take(c, words);
    for (int i = 0; i < reader.kQuads; ++i) {
      const int e = reader.quad(c.tid, i) * 4;
      if (e >= kUnitRows) continue;
      const uint2 four = reader.values(words, i);
      for (int j = 0; j < 4; ++j) got[e + j] = Element::to_float(u16((j < 2 ? four.x : four.y) >> j % 2 * 16));
    }
#else
    UnitReader<S, NormedHeads>::fill(c, heads, u, got);
#endif
    consumer_barrier();
    if (c.tid == 0) compare<S>(unit);
    consumer_barrier();
  }
}

static void block() {
  Context<Mode::kDecode> c(launch);
  c.begin_step(0);
  read<Form<Norm::kRms, true>>(c);
  read<Form<Norm::kRms, false, true>>(c);
  read<Form<Norm::kWholeRms, true>>(c);
  read<Form<Norm::kWholeRms, false>>(c);
  read<Form<Norm::kCentred, true, true>>(c);
  read<Form<Norm::kCentred, false>>(c);
  read<Form<Norm::kShifted, true>>(c);
  read<Form<Norm::kShifted, false, true>>(c);
  ended[threadIdx.x] = true;
  next_thread();
  setcontext(&done);
}

static unsigned seed = 1;
static float random_value(float scale) {
  seed = seed * 1664525 + 1013904223;
  return rounded<Element>(scale * (int(seed >> 8 & 0xffff) - 0x8000) / 0x8000);
}

int main() {
  launch.exchange = exchange;
  launch.position = 5;
  Context<Mode::kDecode> c(launch);
  c.begin_step(0);
  for (int row = 0; row < kRows; ++row) {
    qkv[row] = rounded<Element>(1 + random_value(row < kHeads * kHeadDim ? 3 : 0.5f));  // of a mean
    for (int copy = 0; copy < kQkv.copies; ++copy) {
      using Word = WordOf<Element>;
      reinterpret_cast<Word::Type*>(exchange + kQkv.offset + copy * kQkv.bytes)[row] = Word::make(qkv[row], c.epoch);
    }
  }
  for (auto& g : q_gain) g = WeightElement::from_float(random_value(2));
  for (auto& g : k_gain) g = WeightElement::from_float(random_value(2));
  for (auto& b : q_shift) b = WeightElement::from_float(random_value(1));
  for (auto& b : k_shift) b = WeightElement::from_float(random_value(1));
  for (int pair = 0; pair < kHeadDim / 2; ++pair) {
    const float angle = random_value(3);
    block_scratch().rotation[0][pair] = {cosf(angle), sinf(angle)};
  }
  static char stacks[kThreadsOfBlock][1 << 16];
  for (unsigned thread = 0; thread < kThreadsOfBlock; ++thread) {
    getcontext(&contexts[thread]);
    contexts[thread].uc_stack.ss_sp = stacks[thread];
    contexts[thread].uc_stack.ss_size = sizeof stacks[thread];
    makecontext(&contexts[thread], block, 0);
  }
  volatile bool began = false;
  getcontext(&done);
  if (!began) {
    began = true;
    threadIdx.x = 0;
    setcontext(&contexts[0]);
  }
  return failures > 0;
}
