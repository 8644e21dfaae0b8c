// What kernels call: the one GPU that libamkcpu.so imagines, as the primitives of amk_cpu/*.h see
// it. The names there are those of the device runtime; here they are what the machine does. Each
// call that orders or communicates says where it stands in the source (Site): that is how findings
// name it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "words.h"

namespace machine {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

struct Site {
  const char* file;
  int line;
};

// ---- threads --------------------------------------------------------------------------------------

// What a thread is told of itself.
struct Self {
  u32 thread, block, threads, blocks;
  u8* memory;  // dynamic shared memory of the block
};
extern Self* self;  // of the thread that runs

// Static shared memory of the block: one place for each key, with the alignment of a cache line.
void* shared_array(const void* key, u32 bytes);

// ---- collectives of a warp ------------------------------------------------------------------------

enum class Collective : u8 { kSync, kShuffle, kVote, kMax, kMatrix, kTranspose, kWide, kRegisters };

// All 32 lanes come here, each with `bytes` of its own, at most 256. When they have, the last one
// calls compute with what all of them have brought, lane by lane, unless it is null. It may write
// its results there. Returns that place: it stays as it is until the lane's next collective.
void* converge(Collective kind, const void* mine, u32 bytes, void (*compute)(void* lanes),
               Site site);

// What the 32 lanes bring.
template <class T>
const T* warp_exchange(Collective kind, const T& mine, Site site) {
  static_assert(sizeof(T) <= 256, "what fits a lane");
  return static_cast<const T*>(converge(kind, &mine, sizeof(T), nullptr, site));
}
// One lane computes for all: compute has T (&lanes)[32] of what they bring, and leaves there what
// each takes with it.
template <class T>
T warp_compute(Collective kind, const T& mine,
               std::common_type_t<void (*)(T* lanes)> compute, Site site) {
  static_assert(sizeof(T) <= 256, "what fits a lane");
  const auto* lanes = static_cast<const T*>(
      converge(kind, &mine, sizeof(T), reinterpret_cast<void (*)(void*)>(compute), site));
  return lanes[self->thread % 32];
}

// The warp comes together, and what its lanes did before happens before what they do after.
void warp_sync(Site site);
// setmaxnreg: the warp goes on with as many registers a lane. One that raises their number waits until
// the block has them.
void raise_registers(u32 registers, Site site);
void lower_registers(u32 registers, Site site);

// ---- barriers of a block --------------------------------------------------------------------------

void block_sync(Site site);
void named_barrier_sync(u32 number, u32 threads, Site site);
bool named_barrier_any(u32 number, u32 threads, bool v, Site site);
void named_barrier_arrive(u32 number, u32 threads, Site site);

// ---- words ----------------------------------------------------------------------------------------

// n words of 4 or 8 bytes. A vector is several words, each by itself.
void load_words(const void* from, u32 bytes, u32 n, u64* values, Ordering ordering, Scope scope,
                Site site);
void store_words(void* to, u32 bytes, u32 n, const u64* values, Ordering ordering, Scope scope,
                 Site site);
// Returns what was there.
u64 update_word(void* word, u32 bytes, Update update, u64 operand, Ordering ordering, Scope scope,
                Site site);
// Bytes that nothing may write while the kernel runs: call it before they are read. copy_unseen
// then reads them without being seen as a plain access.
void read_constant(const void* from, u32 bytes, Site site);
void copy_unseen(void* to, const void* from, u32 bytes);
// Bytes of which some may not have been written, because nothing depends on those: as above.
void read_partly_written(const void* from, u32 bytes);

void fence_block();
void fence_proxy_async(bool shared_alone);

u64 clock_ns();
u64 clock_cycles();

// ---- barriers and copies in shared memory ---------------------------------------------------------

void barrier_init(u64* barrier, u32 arrivals, Site site);
void fence_barrier_init();
// Whether the phase of a parity is complete. One that may suspend waits a while.
bool barrier_wait(u64* barrier, u32 parity, u32 arrivals, bool may_suspend, Site site);
void barrier_arrive(u64* barrier, u32 n, u32 bytes, Site site);
void copy_bulk(void* to, const void* from, u32 bytes, u64* barrier, Site site);
// The box of a tensor map (tensor.h) at a coordinate of each dimension, the innermost first.
void copy_box(void* to, const void* map, const int32_t* at, u32 rank, u64* barrier, Site site);

// Reads nothing: it checks that the bytes are there.
void prefetch_bulk(const void* from, u32 bytes, Site site);

void copy_async_16(void* to, const void* from, Site site);
void commit_copies();
void wait_copies(u32 left);

// wgmma m64nNk16, of which each warp has a part (wide.cc). Sums are in d, columns / 2 of each lane,
// after a wait that leaves fewer groups than there are after the product's.
enum class Half;
struct WideOperands {
  Half type;
  int columns;       // of B
  const u32* a;      // four registers, or null: A is in shared memory
  u64 shared_a, b;   // descriptors
  bool adds;
};
// A descriptor of an operand in the dynamic shared memory of the block.
u64 wide_descriptor(const void* operand, u32 next_k, u32 next_rows, Site site);
void wide_begin(Site site);
void wide_multiply(const WideOperands& of, float* d, Site site);
void wide_commit(Site site);
void wide_wait(u32 left, Site site);
// A lane sets or uses a register of an operand or of sums here, as far as the compiler knows.
void wide_register(const void* at, Site site);

}  // namespace machine

// The arguments that tell a primitive where it is called.
#define AMK_SITE const char* file = __builtin_FILE(), int line = __builtin_LINE()
#define AMK_HERE \
  ::machine::Site { file, line }
