// Shadow memory: for every byte of a region who wrote it last with a plain access, and who has read it
// since, or accessed it with strong ones. A line is 16 bytes. It has one cell while it is accessed as a
// whole, and 2 to 16 of them once somebody accesses less. Must not know what orders accesses: views do.
#pragma once

#include <cstring>
#include <unordered_map>

#include "clock.h"

namespace machine {

// What is in the upper four bits of a cell's tags: an AccessKind, or one of these.
constexpr u32 kStrongStore = 11;      // of a word, where kRelaxed is a load
constexpr u32 kCopiedUnwritten = 12;  // a copy has brought bytes that nobody has written
constexpr u32 kReadOnlyBytes = 13;    // of weights
constexpr u32 kOutsideBytes = 14;     // of no region
constexpr u32 kSplit = 15;            // the line has cells of its own

constexpr u32 tag_of(u32 kind, u32 who) { return kind << 28 | who; }
constexpr u32 tag_of(AccessKind kind, u32 who) { return tag_of(u32(kind), who); }
constexpr u32 kind_of(u32 tag) { return tag >> 28; }
constexpr u32 who_of(u32 tag) { return tag & 0x0fffffff; }

// Whether accesses of a kind are stores to words: atomics are.
constexpr bool is_strong_store(u32 kind) {
  return kind == kStrongStore || kind == u32(AccessKind::kAtomic);
}
constexpr bool is_strong(u32 kind) {
  return is_strong_store(kind) || kind == u32(AccessKind::kRelaxed);
}

// Lanes of a warp that have accessed bytes at the same epoch: read them, or stored words. `tag` has
// the kind and, as an actor, the first of the warp.
struct Users {
  u32 tag = 0;
  u32 lanes = 0;  // 0: nobody
  u32 epoch = 0;
  Where where = 0;

  bool empty() const { return lanes == 0; }
  u32 kind() const { return kind_of(tag); }
  bool ordered_before(const View& view) const {
    return view.orders_lanes(block_of(who_of(tag)), place_of(who_of(tag)) / 32, lanes, epoch);
  }
};

struct Cell {
  u32 written_by = 0;    // tag with the actor, kind kNone: nobody
  u32 more_users = 0;    // a list of them; and whether there are stores of words
  u32 written_epoch = 0;
  Where written_where = 0;
  Users used_by;

  u32 kind() const { return kind_of(written_by); }
  static constexpr u32 kStores = 1u << 31;
  u32 list() const { return more_users & ~kStores; }
  bool unused() const { return used_by.empty() && more_users == 0; }
  bool has_stores() const { return more_users & kStores; }
  bool is_unwritten() const { return kind() == 0 || kind() == kCopiedUnwritten; }
};
static_assert(sizeof(Cell) == 32, "two cells in a line of the cache");

// Words of a page with strong accesses (history.cc).
struct Slot;
void free_slots(Slot* slots);

struct Region {
  RegionKind kind;
  u8* begin;
  size_t bytes;
  std::string name;
  u32 block;
};

constexpr u32 kPageBytes = 4096, kLineBytes = 16, kLines = kPageBytes / kLineBytes;
constexpr u32 kAnyBlock = ~0u;

struct Page {
  u32 block;          // whose shared memory it is, or kAnyBlock
  RegionKind kind;
  Slot* slots;        // words with strong accesses, or null
  Cell lines[kLines];
};

// Entry of the page table: a page, or what holds for all of its bytes.
enum : uintptr_t {
  kNoRegion,
  kUntouched,     // nobody has written them
  kHostWritten,   // the host has, and no kernel has accessed them
  kWeightsPage,
  kPinnedPage,
  kFirstPage      // what is not less is a pointer
};

// An access as it is checked.
struct Accessing {
  const View* view;
  const View* generic;  // of a copy: what orders its thread's generic accesses; or null
  Actor actor;
  u32 epoch;
  AccessKind kind;
  Where where;
  bool any = false;  // bytes that nobody has written may be read
};

// A pool of objects that a number of 32 bits names; 0 is none.
template <class T>
class Numbered {
 public:
  Numbered() : objects_(1) {}
  T& operator[](u32 i) { return objects_[i]; }
  u32 take() {
    if (free_.empty()) {
      objects_.emplace_back();
      return u32(objects_.size() - 1);
    }
    const u32 i = free_.back();
    free_.pop_back();
    return i;
  }
  void give(u32 i) {
    objects_[i] = T{};
    free_.push_back(i);
  }

 private:
  std::vector<T> objects_;
  std::vector<u32> free_;
};

struct Crowd {
  Users users;
  u32 next = 0;
  u32 length = 0;  // of the list that begins here, when it was put at its head
};

class Shadow {
 public:
  Shadow(void* arena, size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;

  bool in_arena(const void* p) const {
    return size_t(static_cast<const u8*>(p) - arena_) < bytes_;
  }
  uintptr_t entry(const void* p) const { return table_[page_number(p)]; }
  // The page of an address, which is made if there is an entry for all of its bytes. Not of weights
  // or pinned memory.
  Page* page(const void* p) {
    const uintptr_t e = entry(p);
    return e >= kFirstPage ? reinterpret_cast<Page*>(e) : make_page(page_number(p));
  }
  static Cell& line(Page& page, const void* p) {
    return page.lines[reinterpret_cast<uintptr_t>(p) % kPageBytes / kLineBytes];
  }

  void add(const Region& region);
  void remove(const Region& region);
  // Makes bytes of a region written by the host, or by nobody.
  void set(void* p, size_t bytes, bool written);

  // Cells of part of a line, which is split if it has to be.
  struct Cells {
    Cell* first;
    u32 count;
    u32 bytes;  // of each
  };
  Cells cells(Cell& line, u32 offset, u32 bytes) {
    const u32 shift = u32(__builtin_ctz(offset | bytes | kLineBytes));
    if (line.kind() != kSplit) {
      if (shift == 4) return {&line, 1, kLineBytes};
      split(line, shift);
    } else if (shift_of(line) > shift) {
      split(line, shift);
    }
    const u32 own = shift_of(line);
    return {parts(line) + (offset >> own), bytes >> own, 1u << own};
  }
  // Makes all that is known as old as can be: when epochs begin anew.
  void age();
  // Gives a line one cell again.
  void unite(Cell& line, const Cell& cell);
  static u32 shift_of(const Cell& line) { return who_of(line.written_by); }

  // Adds an access that is not a plain write. Those before it that its view orders are forgotten, if
  // what races with them races with it: what comes after it comes after them.
  void add_user(Cell& cell, const Accessing& a, u32 kind) {
    const u32 tag = tag_of(kind, a.actor & ~31u), lane = 1u << (a.actor & 31);
    Users& u = cell.used_by;
    if (u.tag == tag && u.epoch == a.epoch) {
      u.lanes |= lane;
      u.where = a.where;
      return;
    }
    // Of an earlier launch: so are all before it.
    if (cell.list() != 0 && u.epoch < a.view->first) clear_crowd(cell);
    if (cell.list() == 0 && (u.empty() || may_forget(u, a, kind))) {
      u = Users{tag, lane, a.epoch, a.where};
      cell.more_users = is_strong_store(kind) ? Cell::kStores : 0;
      return;
    }
    add_to_crowd(cell, a, kind);
  }
  void clear_users(Cell& cell) {
    cell.used_by.lanes = 0;
    cell.used_by.epoch = 0;
    if (cell.more_users) clear_crowd(cell);
  }
  // Calls f for all of them.
  template <class F>
  void each_user(Cell& cell, F&& f) {
    if (!cell.used_by.empty()) f(cell.used_by);
    for (u32 i = cell.list(); i; i = crowds_[i].next) f(crowds_[i].users);
  }

  const Region* region_of(const void* p) const;
  void rename(const Region& region, RegionKind kind, std::string name);
  // The first byte that nobody has written, or null.
  const u8* find_unwritten(const void* p, size_t bytes);

 private:
  size_t page_number(const void* p) const {
    return size_t(static_cast<const u8*>(p) - arena_) / kPageBytes;
  }
  // In place of what one cell has of its last write.
  static Cell* parts(const Cell& line) {
    Cell* p;
    std::memcpy(&p, &line.written_epoch, sizeof p);
    return p;
  }
  static void set_parts(Cell& line, Cell* p, u32 shift) {
    line.written_by = tag_of(kSplit, shift);
    std::memcpy(&line.written_epoch, &p, sizeof p);
  }
  static bool may_forget(const Users& u, const Accessing& a, u32 kind) {
    // What has read by .nc races with all writes of the launch, ordered or not.
    if (u.kind() == u32(AccessKind::kConstant) && u.epoch >= a.view->first) return false;
    // A plain write races with all, and a store of a word with plain reads, and they with it.
    if (u.kind() != u32(AccessKind::kRelaxed) && is_strong_store(u.kind()) != is_strong_store(kind))
      return u.epoch < a.view->first;
    if (!is_strong(u.kind()) && is_strong(kind)) return u.epoch < a.view->first;
    return u.ordered_before(*a.view);
  }
  Page* make_page(size_t number);
  void free_page(uintptr_t& entry);
  void reset_line(Cell& line, u32 tag);
  void split(Cell& line, u32 shift);
  void copy_crowd(Cell& to, const Cell& from);
  void add_to_crowd(Cell& cell, const Accessing& a, u32 kind);
  u32 thin_out(u32 list, const Accessing& a, u32 kind);
  void clear_crowd(Cell& cell);
  u32 take_crowd();
  Cell* take_parts(u32 shift);
  void give_parts(Cell* parts, u32 shift);

  u8* arena_;
  size_t bytes_;
  uintptr_t* table_;
  // Thousands of warps read what a matrix is multiplied with, and each would look at all before it.
  static constexpr u32 kSeenAtOnce = 4;
  std::vector<Crowd> crowds_{1};  // 0 is none
  std::vector<u32> free_crowds_;  // lists of them
  std::unordered_map<u64, u32> merged_;  // thin_out's own
  std::vector<Cell*> free_parts_[5];
  std::vector<Page*> free_pages_;
  std::vector<Region> regions_;  // by address
  std::vector<Cell*> blocks_;    // of cells, all that were allocated
};

}  // namespace machine
