// The memory model: which accesses are ordered, what a load may see, and when a store becomes
// visible. It is that of the PTX ISA (relaxed, acquire and release operations with a scope; the
// generic proxy and the async proxy), without stores that move ahead of earlier loads. An Order
// knows addresses, threads and clocks. Must not know fibers, warps or how a barrier waits: whoever
// runs the threads calls it in the order in which things happen.
//
//   clock.{h,cc}    vector clocks
//   shadow.{h,cc}   the last accesses of each byte
//   plain.cc        plain accesses, and those of copies
//   strong.cc       loads, stores and updates of words: what they see, release and acquire
//   history.cc      the stores of words, old ones and pending ones
//   agents.cc       copies
//   faults.cc       findings
//   order.cc        threads, regions, synchronisation
//
// Rules for callers:
//   * Call before the access takes place. Plain accesses are the caller's, after the call. Loads,
//     stores and updates of words, and the bytes of copies, are moved by the Order itself.
//   * Addresses outside the arena are nobody's: a word there is read and written as it is, and
//     other accesses are ignored.
//   * Findings do not stop anything. One place is reported once per pair of `where`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "words.h"

namespace machine {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

// Where in the code an access is, in the caller's numbers: it comes back in findings. Plain accesses
// and the others may number apart, for AccessKind tells them apart.
using Where = u32;

// ---- what is found ------------------------------------------------------------------------------

enum class AccessKind : u8 {
  kNone,       // there is no access: bytes that nobody has written
  kHost,       // by the host, between launches
  kPlain,
  kConstant,   // ld.global.nc
  kRelaxed,    // a word: a load or a store, whatever its order
  kAtomic,     // a word: read and written at once
  kBulkCopy,   // async proxy; `thread` has issued it
  kAsyncCopy,  // cp.async; `thread` has issued it
  kBarrier,    // an operation on an mbarrier
};

struct Access {
  u32 thread = 0;
  AccessKind kind = AccessKind::kNone;
  bool writes = false;
  Where where = 0;
};

enum class Fault : u8 {
  kRace,         // two accesses that nothing orders, one of them a write, not both strong
  kProxy,        // the same: ordered, but not for the async proxy: a proxy fence is missing
  kUnwritten,    // a read of bytes that nobody has written
  kOutside,      // an access to bytes of no region, or of another block's shared memory
  kReadOnly,     // a write to weights by a kernel
  kConstant,     // a .nc load of bytes that this launch writes
  kMisaligned,   // a word that is not naturally aligned
  kWidth,        // concurrent strong accesses of 4 and of 8 bytes that overlap (overlapping-words off)
};

struct Finding {
  Fault fault;
  Access first;    // the earlier one
  Access second;   // the one that is made now
  const void* address;  // of the first byte of the second access that is at fault
  u32 bytes;            // of the second access
  std::string place;    // the address in words: "exchange + 0x40", "shared memory of block 3 + 0x10"
};

// In English, without the place: "data race", "read of bytes that nobody has written".
const char* name_of(Fault fault);
const char* name_of(AccessKind kind);

// ---- what may happen in more than one way ---------------------------------------------------------

enum class Weak : u8 {
  kStore,  // 0: a relaxed store commits at once; 1: it is pending; 2: and held
  kWake,   // of pending stores that somebody waits for. 0: all of them commit; i: the i-th does
  kLoad,   // 0: a load sees the newest store; i: one that is i stores older
  kBytes,  // 0: bytes that are read while they are written, or that nobody has written, are what
           // memory holds; 1 to 3: others
};

// What the Order asks and tells. Without a machine everything is the default.
struct Listener {
  virtual ~Listener() = default;
  virtual u32 choose(u32 n, Weak kind) { return (void)n, (void)kind, 0; }
  virtual void found(const Finding& finding) { (void)finding; }
  // A load of this word can see what none could before: a store was committed, or an old one can
  // no longer be seen.
  virtual void changed(const void* word) { (void)word; }
  // Whether a thread waits for this word of 4 or 8 bytes to change.
  virtual bool is_awaited(const void* word, u32 bytes) { return (void)word, (void)bytes, false; }
};

// How far loads go back. Stores have no bound: a pending one commits when the machine says so
// (commit), when somebody has to see it, or when nobody can go on otherwise (settle).
struct Bounds {
  u32 stale = 2000;  // loads, stores and updates of words by all threads from the commit of a store
                     // to when no load sees the one before it
  u32 stores = 4;    // of a word that a load chooses from, with the newest
};

// What amkc's argument rests on beyond PTX. Off: the hardware may do what PTX allows.
struct Assumption {
  const char* name;
  const char* meaning;
  bool on;
};

// ---- memory -------------------------------------------------------------------------------------

enum class RegionKind : u8 {
  kGlobal,    // cuMemAlloc: unwritten until somebody writes it
  kWeights,   // the host alone writes it. It has no shadow: bytes count as written
  kCache,     // as kGlobal, but a copy or a relaxed load may read bytes that are being written, if
              // torn-cache-rows is on
  kPinned,    // host memory that kernels reach: the host may write it at any time
  kShared,    // of one block and launch: unwritten at first
};

// ---- operations ---------------------------------------------------------------------------------

enum class Proxy : u8 { kShared, kAll };  // fence.proxy.async.shared::cta, fence.proxy.async
struct Loaded {
  u64 value;
  bool newest;  // of the stores that have been committed: a poll that asks again finds nothing new
                // until changed() says so
};

class Order {
 public:
  // All regions lie in the arena, which may be reserved and not committed. One Order at a time may
  // have a given arena.
  Order(void* arena, size_t bytes, Listener* listener);
  ~Order();
  Order(const Order&) = delete;

  // ---- set up

  void set_bounds(const Bounds& bounds);
  const std::vector<Assumption>& assumptions() const;
  bool assume(const char* name, bool on);  // false: there is no such assumption

  // Regions begin at a multiple of 4096 bytes and share no page of that size. `block` is the owner
  // of shared memory. Adding one forgets what was known of its bytes.
  void add_region(RegionKind kind, void* begin, size_t bytes, std::string name, u32 block = 0);
  void remove_region(void* begin);
  // Says what a region is, once the arguments of a launch tell.
  void name_region(void* begin, RegionKind kind, std::string name);
  // Whether all these bytes are of one region.
  bool is_inside(const void* p, size_t bytes) const;
  std::string describe(const void* p) const;

  // By the host, between launches: cuMemcpy and cuMemset. A read of bytes that nobody has written
  // is found.
  void host_write(void* p, size_t bytes);
  void host_read(const void* p, size_t bytes);
  // Bytes count as unwritten again.
  void forget(void* p, size_t bytes);

  // ---- launches

  // Threads are numbered from 0: thread t of a launch is thread t % threads of block t / threads.
  // All that the host and earlier launches have done is ordered before. Shared memory is added
  // after this call and removed before or after end_launch. Blocks are those of several GPUs, one
  // GPU after another, and gpu scope is within one.
  void begin_launch(u32 blocks, u32 threads, u32 gpus = 1);
  void end_launch();  // commits what is pending
  u32 threads() const;

  // ---- plain accesses, of any size and alignment

  void read(u32 thread, const void* p, u32 bytes, Where where);
  void write(u32 thread, void* p, u32 bytes, Where where);
  // As read, of bytes of which some may be unwritten, because what they hold does not matter: those
  // become any bytes, and that is not a finding.
  void read_any(u32 thread, void* p, u32 bytes, Where where);
  // ld.global.nc, also of weights.
  void read_constant(u32 thread, const void* p, u32 bytes, Where where);

  // ---- words of 4 or 8 bytes: strong accesses. A vector is its words, one by one. Volatile
  // accesses are relaxed ones of system scope.

  Loaded load(u32 thread, const void* p, u32 bytes, Ordering ordering, Scope scope, Where where);
  void store(u32 thread, void* p, u32 bytes, u64 value, Ordering ordering, Scope scope,
             Where where);
  // Returns what was there before. `expected` is of compare-and-swap.
  u64 update(u32 thread, void* p, u32 bytes, Update op, u64 operand, Ordering ordering,
             Scope scope, Where where, u64 expected = 0);

  // ---- pending stores. The machine commits them when its schedule says so; happens-before and the
  // rules of coherence do it otherwise. One that is held is not the machine's to commit: it does
  // when another thread has stored to its word, right after that store, which nobody has seen then.

  u32 pending_count() const;  // without those that are held
  void commit(u32 which);     // 0 is the oldest
  // When nobody can go on otherwise: commits those that somebody waits for; and commits all, and
  // lets loads see the newest stores alone. Both return whether anything has changed.
  bool commit_awaited();
  bool settle();

  // ---- fences of a thread

  void fence(u32 thread, Ordering ordering, Scope scope);
  void fence_proxy(u32 thread, Proxy proxy);

  // ---- synchronisation

  // All that any of these threads has done is ordered before all that any of them does next:
  // bar.sync when its last thread has come, and warp_sync. Shuffles and votes order nothing.
  void join(const u32* threads, u32 n);

  // An mbarrier at an address in shared memory. init is a plain write of its 8 bytes; the other
  // operations race with it if nothing orders them. The caller counts arrivals and bytes.
  void barrier_init(u32 thread, void* barrier, Where where);
  void barrier_arrive(u32 thread, void* barrier, Where where);  // releases, for the phase under way
  void barrier_complete(void* barrier);  // the phase is complete: its arrivals are what waits see
  void barrier_wait(u32 thread, const void* barrier, Where where);  // a wait has succeeded: acquires
  void barrier_poll(u32 thread, const void* barrier, Where where);  // one has not: orders nothing

  // ---- copies. A copy moves its bytes after it is begun, in pieces, in any order, at any time.

  // cp.async.bulk: async proxy. What it reads and writes has to be ordered before the issue for that
  // proxy. complete_tx is copy_end: it releases into the barrier's phase under way.
  u32 bulk_begin(u32 thread, Where where);
  void bulk_end(u32 copy, void* barrier);
  // It will complete on this barrier, whose initialisation has to be ordered before the issue, too.
  void bulk_completes_on(u32 copy, const void* barrier);
  // cp.async: generic proxy, ordered for its own thread by wait_copies, for nobody before. The copy
  // is of the group that async_commit closes next.
  u32 async_begin(u32 thread, Where where);
  void async_end(u32 copy);
  void async_commit(u32 thread);
  // All groups but the newest `left` are over: their copies must have ended.
  void async_wait(u32 thread, u32 left);
  // Moves bytes. Those that nobody has written stay unwritten at their new place.
  void copy_bytes(u32 copy, void* to, const void* from, u32 bytes);

  // ---- counts of a launch, for reports

  struct Counts {
    u64 plain = 0;         // accesses
    u64 loads = 0;         // of words
    u64 stores = 0;        // of words, with updates
    u64 delayed = 0;       // stores that were pending
    u64 stale = 0;         // loads that saw an old store
    u64 syncs = 0;         // releases, acquires, joins
    u64 copied = 0;        // bytes
    u64 torn = 0;          // reads of bytes that were being written (torn-cache-rows)
  };
  Counts counts() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace machine
