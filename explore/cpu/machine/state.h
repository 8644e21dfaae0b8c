// What an Order consists of. Only its own files include this.
#pragma once

#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "shadow.h"

namespace machine {

// Who has seen a store: a list.
struct Seen {
  Actor actor = 0;
  u32 epoch = 0;
  u32 next = 0;
};

// Whose releases a store publishes: to all, or within its block alone.
enum Reach : u32 { kEverybody, kOwnBlock, kReaches };

// Whether a store is pending, in the order of the choices (Weak::kStore).
enum class Delay : u8 { kNone, kPending, kHeld, kWays };

// A store to a word, which lies in a slot of eight bytes.
struct Store {
  u8* slot = nullptr;  // its address
  u64 value = 0;       // of a store that is committed: of all eight bytes, after it; else its own
  u64 time = 0;        // of its commit; of a pending one, of its issue
  u32 next = 0;        // the one before it in the order of the slot; of a pending one, the one after
  u32 seen = 0;
  Actor actor = kNobody;
  u32 epoch = 0;
  Where where = 0;
  u8 halves = 3;       // of the slot that it writes, a bit for each
  bool atomic = false;
  bool old = false;       // no load goes back to it
  Delay delay = Delay::kNone;
  Scope scope = Scope::kSystem;
  Ref<Stamp> release[kReaches];
};

struct Slot {
  u32 newest = 0;   // of the committed stores, or 0: memory is all there is
  u32 pending = 0;  // the oldest
};
constexpr u32 kSlotBytes = 8, kSlots = kPageBytes / kSlotBytes;
inline u8* slot_address(const void* p) {
  return reinterpret_cast<u8*>(reinterpret_cast<uintptr_t>(p) & ~uintptr_t(kSlotBytes - 1));
}

struct Thread {
  Actor actor = kNobody;
  u32 block = 0;
  u32 epoch = 0;
  u32 groups = 0;  // of cp.async that have been closed
  View view[kViews];
  // What its last release to a word has published: its later stores to that word publish it, too.
  struct Released {
    const u8* word;
    Ref<Stamp> stamp[kReaches];
  };
  std::vector<Released> released;
  Ref<Stamp> fenced[kReaches];  // what a fence has released for the stores after it
  std::unique_ptr<Stamp> seen;  // what loads have brought, for an acquire fence after them
  Ref<Stamp> acquired;          // the last one: asked for again and again
};

// A copy under way.
struct Copy {
  bool is_bulk = false;
  u32 thread = 0;
  Actor actor = kNobody;
  u32 epoch = 0;
  Where where = 0;
  View view[kViews];  // all of cp.async is in the first
};

// A place among the actors of a block that is not a thread's.
struct Place {
  u32 thread = 0;
  u32 epoch = 0;
  bool busy = false;
  bool is_bulk = false;
};
struct BlockActors {
  std::vector<Place> places;  // after those of threads
};

struct Mbarrier {
  Stamp under_way;
  Ref<Stamp> complete;
};

// Assumptions, in the order of the table.
enum Assumed : u32 {
  kOwnStoresInL2,
  kStoresInL2,
  kSharedInOnePlace,
  kTornRows,
  kOverlappingWords,
  kAssumptions
};

struct Order::State {
  Shadow shadow;
  Listener* listener;
  Bounds bounds;
  std::vector<Assumption> assumptions;
  Counts counts;

  // ---- the launch
  u32 blocks = 0, threads_per_block = 1;
  u32 blocks_of_gpu = 0;
  u32 warp_places = 32;  // threads of a block, rounded up to warps
  u32 first = 1;         // epoch that it began with
  u32 last = 1;          // the largest of any actor
  std::vector<Thread> threads;
  std::vector<BlockActors> actors;
  std::vector<Copy> copies;
  std::vector<u32> free_copies;
  std::unordered_map<const void*, Mbarrier> barriers;
  const void* last_barrier = nullptr;
  Mbarrier* last_found = nullptr;

  // ---- words
  Numbered<Store> stores;
  Numbered<Seen> seen;
  std::vector<u32> pending;      // in the order of their issue
  std::vector<u32> held;         // the same of those that are held
  std::vector<u8*> written;      // slots that have stores
  u64 time = 0;                  // loads, stores and updates so far

  std::unordered_set<u64> reported;
  std::vector<Component> components;  // join's own
  struct Acquired {
    Ref<Vector> before, stamp, after;
  };
  Acquired last_acquired[kViews];

  State(void* arena, size_t bytes, Listener* l);

  bool holds(Assumed a) const { return assumptions[a].on; }
  Accessing accessing(u32 thread, AccessKind kind, Where where) const {
    const Thread& t = threads[thread];
    return {&t.view[kGeneric], nullptr, t.actor, t.epoch, kind, where};
  }

  // ---- findings (faults.cc)
  u32 thread_of(Actor actor) const;
  AccessKind kind_of_copy(Actor actor) const;
  void report(Fault fault, const Access& first, const Accessing& a, bool writes, const void* p,
              u32 bytes);
  void report_writer(Fault fault, const Cell& cell, const Accessing& a, bool writes, const void* p,
                     u32 bytes);
  void report_user(Fault fault, const Users& u, const Accessing& a, bool writes, const void* p,
                   u32 bytes);
  void report_store(Fault fault, const Store& s, const Accessing& a, bool writes, const void* p,
                    u32 bytes);

  // ---- plain accesses (plain.cc)
  void read(const Accessing& a, const u8* p, u32 bytes);
  void write(const Accessing& a, u8* p, u32 bytes);
  void make_any(u8* p, u32 bytes, u32& noise);
  void check_users(Cell& cell, const Accessing& a, bool writes, const void* p, u32 bytes);
  void check_read(Cell& cell, const Accessing& a, const void* p, u32 bytes);
  void check_write(Cell& cell, const Accessing& a, const void* p, u32 bytes);
  Page* page_for(const Accessing& a, const void* p, u32 bytes, bool writes);
  void copy_bytes(Copy& c, u8* to, const u8* from, u32 bytes);

  // ---- words (strong.cc, history.cc)
  Loaded load(u32 thread, const u8* p, u32 bytes, Ordering ordering, Scope scope, Where where);
  void store(u32 thread, u8* p, u32 bytes, u64 value, Ordering ordering, Scope scope, Where where);
  u64 update(u32 thread, u8* p, u32 bytes, Update op, u64 operand, Ordering ordering, Scope scope,
             Where where, u64 expected);
  // A plain access to a page that has slots: what it does to their stores.
  void touch_slots(Page& page, const Accessing& a, const u8* p, u32 bytes, bool writes);
  std::vector<u32>& those_of(Delay delay) { return delay == Delay::kHeld ? held : pending; }
  void commit(u32 store);
  void commit_all();
  bool commit_awaited();
  bool settle();
  void forget_stores(const u8* begin, const u8* end);

  // The host may access pinned memory at any time: what is not of system scope races with that.
  // Plain writes are left alone, for the host reads records of stalls after the launch.
  void check_host(const Accessing& a, const void* p, u32 bytes, bool writes, Scope scope);
  // Whether a word's access may go on, and how.
  enum class Word { kTracked, kRaw, kTorn, kNothing };
  Word check_word(const Accessing& a, const u8* p, u32 bytes, bool reads, bool writes, Scope scope,
                  Page*& page);
  Slot& slot_of(Page& page, const u8* p);
  bool in_scope(const Store& s, Actor actor, Scope scope) const;
  bool is_seen(const Store& s, const Thread& t) const;
  void see(u32 store, const Thread& t);
  bool must_see(const Store& s, const Thread& t) const;
  // Commits the pending stores of a slot that this thread's next access comes after.
  void commit_before(Slot& slot, const Thread& t, u8 halves);
  void check_strong(const Store& s, const Accessing& a, u8 halves, Scope scope, bool writes,
                    const u8* p, u32 bytes);
  void check_stores(Slot& slot, const Accessing& a, u8 halves, Scope scope, bool writes,
                    const u8* p, u32 bytes);
  void release_of(Store& s, Thread& t, Ordering ordering, Scope scope);
  void acquire_of(const Store& s, Thread& t, Ordering ordering, Scope scope);
  void place(Slot& slot, u32 store);
  void commit_held(Slot& slot, u8 halves, Actor other_than);
  void trim(Slot& slot, u32 limit);
  void forget_seen(Store& s);
  u64 torn(u64 value, const void* p);

  // ---- synchronisation (order.cc)
  void tick(Thread& t) {
    if (++t.epoch > last) last = t.epoch;
  }
  Stamp stamp_of(const Thread& t) const;
  void acquire(Thread& t, const Ref<Stamp>& stamp);
  Mbarrier& barrier(const void* at);
  // ---- copies (agents.cc)
  u32 take_copy();
  u32 take_place(const Thread& t, u32 thread, bool is_bulk);
};

}  // namespace machine
