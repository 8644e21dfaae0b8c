#include "shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace machine {
namespace {

// Parts of lines are allocated in groups of cells.
constexpr u32 kCellsAtOnce = 4096;

}  // namespace

Shadow::Shadow(void* arena, size_t bytes) : arena_(static_cast<u8*>(arena)), bytes_(bytes) {
  const size_t entries = (bytes + kPageBytes - 1) / kPageBytes;
  void* table = mmap(nullptr, entries * sizeof(uintptr_t), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) throw std::bad_alloc();
  table_ = static_cast<uintptr_t*>(table);
}

Shadow::~Shadow() {
  while (!regions_.empty()) remove(Region(regions_.back()));
  munmap(table_, (bytes_ + kPageBytes - 1) / kPageBytes * sizeof(uintptr_t));
  for (Page* page : free_pages_) std::free(page);
  for (Cell* cells : blocks_) std::free(cells);
}

void Shadow::add(const Region& region) {
  const auto at = std::lower_bound(regions_.begin(), regions_.end(), region.begin,
                                   [](const Region& r, const u8* p) { return r.begin < p; });
  regions_.insert(at, region);
  uintptr_t all = kUntouched;
  if (region.kind == RegionKind::kWeights) all = kWeightsPage;
  if (region.kind == RegionKind::kPinned) all = kPinnedPage;
  const size_t first = page_number(region.begin);
  const size_t pages = (region.bytes + kPageBytes - 1) / kPageBytes;
  for (size_t i = 0; i < pages; ++i) table_[first + i] = all;
  // Of the last page, what is after the region.
  const size_t tail = region.bytes % kPageBytes;
  if (tail == 0) return;
  Page* page = make_page(first + pages - 1);
  for (size_t at_line = tail / kLineBytes; at_line < kLines; ++at_line) {
    Cell& line = page->lines[at_line];
    const u32 inside = at_line == tail / kLineBytes ? u32(tail % kLineBytes) : 0;
    if (inside == 0) {
      line = Cell{};
      line.written_by = tag_of(kOutsideBytes, 0);
      continue;
    }
    const Cells cells = this->cells(line, inside, kLineBytes - inside);
    for (u32 i = 0; i < cells.count; ++i) cells.first[i].written_by = tag_of(kOutsideBytes, 0);
  }
}

void Shadow::remove(const Region& region) {
  const size_t first = page_number(region.begin);
  const size_t pages = (region.bytes + kPageBytes - 1) / kPageBytes;
  for (size_t i = 0; i < pages; ++i) free_page(table_[first + i]);
  regions_.erase(std::find_if(regions_.begin(), regions_.end(),
                              [&](const Region& r) { return r.begin == region.begin; }));
}

const Region* Shadow::region_of(const void* p) const {
  auto at = std::upper_bound(regions_.begin(), regions_.end(), static_cast<const u8*>(p),
                             [](const u8* q, const Region& r) { return q < r.begin; });
  if (at == regions_.begin()) return nullptr;
  --at;
  return static_cast<const u8*>(p) < at->begin + at->bytes ? &*at : nullptr;
}

// Between launches: a region that becomes weights loses its shadow, one that no longer is has been
// written by the host.
void Shadow::rename(const Region& region, RegionKind kind, std::string name) {
  Region renamed = region;
  renamed.name = std::move(name);
  renamed.kind = kind;
  const auto at = std::find_if(regions_.begin(), regions_.end(),
                               [&](const Region& r) { return r.begin == region.begin; });
  const auto has_shadow = [](RegionKind k) {
    return k != RegionKind::kWeights && k != RegionKind::kPinned;
  };
  if (kind == region.kind || (has_shadow(kind) && has_shadow(region.kind))) {
    *at = renamed;
    for (size_t i = 0; i < region.bytes; i += kPageBytes) {
      const uintptr_t e = entry(region.begin + i);
      if (e >= kFirstPage) reinterpret_cast<Page*>(e)->kind = kind;
    }
    return;
  }
  remove(region);
  add(renamed);
  set(renamed.begin, renamed.bytes, true);
}

const u8* Shadow::find_unwritten(const void* p, size_t bytes) {
  const u8* at = static_cast<const u8*>(p);
  for (size_t i = 0; i < bytes;) {
    const size_t left = kPageBytes - reinterpret_cast<uintptr_t>(at + i) % kPageBytes;
    const uintptr_t e = entry(at + i);
    if (e == kUntouched) return at + i;
    if (e < kFirstPage) {
      i += left;
      continue;
    }
    const u32 offset = u32(reinterpret_cast<uintptr_t>(at + i) % kLineBytes);
    const Cell& line = Shadow::line(*reinterpret_cast<Page*>(e), at + i);
    const Cell& cell = line.kind() == kSplit ? parts(line)[offset >> shift_of(line)] : line;
    if (cell.is_unwritten()) return at + i;
    const u32 size = line.kind() == kSplit ? 1u << shift_of(line) : kLineBytes;
    i += size - offset % size;
  }
  return nullptr;
}

Page* Shadow::make_page(size_t number) {
  const uintptr_t before = table_[number];
  if (before >= kFirstPage) return reinterpret_cast<Page*>(before);
  if (before == kNoRegion) return nullptr;
  const Region* region = region_of(arena_ + number * kPageBytes);
  Page* page;
  if (free_pages_.empty()) {
    page = static_cast<Page*>(std::aligned_alloc(64, (sizeof(Page) + 63) / 64 * 64));
    if (!page) throw std::bad_alloc();
  } else {
    page = free_pages_.back();
    free_pages_.pop_back();
  }
  new (page) Page{};
  page->block = region->kind == RegionKind::kShared ? region->block : kAnyBlock;
  page->kind = region->kind;
  u32 tag = 0;
  if (before == kHostWritten || before == kPinnedPage) tag = tag_of(AccessKind::kHost, 0);
  if (before == kWeightsPage) tag = tag_of(kReadOnlyBytes, 0);
  if (tag != 0) {
    for (Cell& line : page->lines) line.written_by = tag;
  }
  table_[number] = reinterpret_cast<uintptr_t>(page);
  return page;
}

void Shadow::free_page(uintptr_t& entry) {
  if (entry >= kFirstPage) {
    Page* page = reinterpret_cast<Page*>(entry);
    for (Cell& line : page->lines) reset_line(line, 0);
    if (page->slots) free_slots(page->slots);
    free_pages_.push_back(page);
  }
  entry = kNoRegion;
}

void Shadow::reset_line(Cell& line, u32 tag) {
  Cell whole;
  whole.written_by = tag;
  unite(line, whole);
}

void Shadow::set(void* p, size_t bytes, bool written) {
  const u32 tag = written ? tag_of(AccessKind::kHost, 0) : 0;
  u8* at = static_cast<u8*>(p);
  while (bytes > 0) {
    const size_t in_page = reinterpret_cast<uintptr_t>(at) % kPageBytes;
    const size_t n = std::min(bytes, kPageBytes - in_page);
    uintptr_t& entry = table_[page_number(at)];
    if (n == kPageBytes && (entry == kUntouched || entry == kHostWritten)) {
      entry = written ? kHostWritten : kUntouched;
    } else if (entry != kNoRegion && entry != kWeightsPage && entry != kPinnedPage &&
               !(entry == kHostWritten && written) && !(entry == kUntouched && !written)) {
      Page* page = this->page(at);
      for (size_t i = 0; i < n;) {
        const u32 offset = u32(reinterpret_cast<uintptr_t>(at + i) % kLineBytes);
        const u32 part = u32(std::min<size_t>(n - i, kLineBytes - offset));
        Cell& line = Shadow::line(*page, at + i);
        // Bytes outside and read-only ones stay what they are.
        const u32 kind = line.kind();
        if (part == kLineBytes && kind < kReadOnlyBytes) {
          reset_line(line, tag);
        } else if (kind < kReadOnlyBytes || kind == kSplit) {
          const Cells cells = this->cells(line, offset, part);
          for (u32 c = 0; c < cells.count; ++c) {
            Cell& cell = cells.first[c];
            if (cell.kind() >= kReadOnlyBytes) continue;
            clear_users(cell);
            cell = Cell{};
            cell.written_by = tag;
          }
        }
        i += part;
      }
    }
    at += n;
    bytes -= n;
  }
}

void Shadow::age() {
  const auto forget = [this](Cell& cell) {
    clear_users(cell);
    cell.written_epoch = 0;
  };
  for (const Region& region : regions_) {
    for (size_t at = 0; at < region.bytes; at += kPageBytes) {
      const uintptr_t e = entry(region.begin + at);
      if (e < kFirstPage) continue;
      for (Cell& line : reinterpret_cast<Page*>(e)->lines) {
        if (line.kind() != kSplit) {
          forget(line);
          continue;
        }
        Cell* cells = parts(line);
        for (u32 i = 0; i < kLineBytes >> shift_of(line); ++i) forget(cells[i]);
      }
    }
  }
}

void Shadow::split(Cell& line, u32 shift) {
  const u32 n = kLineBytes >> shift;
  Cell* fine = take_parts(shift);
  const bool was_split = line.kind() == kSplit;
  const u32 old_shift = was_split ? shift_of(line) : 4;
  Cell* coarse = was_split ? parts(line) : &line;
  for (u32 i = 0; i < n; ++i) {
    const Cell& from = coarse[i << shift >> old_shift];
    fine[i] = from;
    if (from.more_users) copy_crowd(fine[i], from);
  }
  for (u32 i = 0; i < kLineBytes >> old_shift; ++i) clear_users(coarse[i]);
  if (was_split) give_parts(coarse, old_shift);
  line = Cell{};
  set_parts(line, fine, shift);
}

void Shadow::unite(Cell& line, const Cell& cell) {
  if (line.kind() == kSplit) {
    Cell* cells = parts(line);
    for (u32 i = 0; i < kLineBytes >> shift_of(line); ++i) clear_users(cells[i]);
    give_parts(cells, shift_of(line));
  } else {
    clear_users(line);
  }
  line = cell;
}

void Shadow::copy_crowd(Cell& to, const Cell& from) {
  to.more_users = from.more_users & Cell::kStores;
  for (u32 i = from.list(); i; i = crowds_[i].next) {
    const u32 copy = take_crowd();
    crowds_[copy] = {crowds_[i].users, to.list(), to.list() ? crowds_[to.list()].length + 1 : 1};
    to.more_users = (to.more_users & Cell::kStores) | copy;
  }
}

void Shadow::add_to_crowd(Cell& cell, const Accessing& a, u32 kind) {
  const Users user{tag_of(kind, a.actor & ~31u), 1u << (a.actor & 31), a.epoch, a.where};
  const u32 stores = is_strong_store(kind) ? Cell::kStores : cell.more_users & Cell::kStores;
  u32 list = cell.list(), seen = 0;
  for (u32 i = list; i && seen < kSeenAtOnce; i = crowds_[i].next, ++seen) {
    Users& u = crowds_[i].users;
    if (u.tag != user.tag || u.epoch != user.epoch) continue;
    u.lanes |= user.lanes;
    u.where = user.where;
    // The next one is likely to be of the same warp.
    std::swap(u, cell.used_by);
    return;
  }
  // All of a long list are looked at when it has become twice as long.
  const u32 length = list ? crowds_[list].length : 0;
  if ((length & (length - 1)) == 0) list = thin_out(list, a, kind);
  if (cell.used_by.empty() || may_forget(cell.used_by, a, kind)) {
    cell.used_by = user;
  } else {
    const u32 own = take_crowd();
    crowds_[own] = {cell.used_by, list, list ? crowds_[list].length + 1 : 1};
    cell.used_by = user;
    list = own;
  }
  cell.more_users = list | stores;
}

// Leaves out of a list who may be forgotten, and makes one of those that are the same warp at the
// same epoch: add_to_crowd() has not seen all of a long list.
u32 Shadow::thin_out(u32 list, const Accessing& a, u32 kind) {
  const bool merges = list && crowds_[list].length > kSeenAtOnce;
  merged_.clear();
  u32 length = 0;
  for (u32 i = list, before = 0; i;) {
    const u32 next = crowds_[i].next;
    const Users& u = crowds_[i].users;
    bool leaves = may_forget(u, a, kind);
    if (merges && !leaves) {
      const auto [first, is_new] = merged_.emplace(u64(u.tag) << 32 | u.epoch, i);
      leaves = !is_new;
      if (leaves) crowds_[first->second].users.lanes |= u.lanes;
    }
    if (leaves) {
      (before ? crowds_[before].next : list) = next;
      crowds_[i].next = 0;
      free_crowds_.push_back(i);
    } else {
      before = i;
      ++length;
    }
    i = next;
  }
  if (list) crowds_[list].length = length;
  return list;
}

// A list is given back as a whole, and taken from node by node.
void Shadow::clear_crowd(Cell& cell) {
  if (cell.list()) free_crowds_.push_back(cell.list());
  cell.more_users = 0;
}

u32 Shadow::take_crowd() {
  if (free_crowds_.empty()) {
    crowds_.emplace_back();
    return u32(crowds_.size() - 1);
  }
  const u32 i = free_crowds_.back();
  if (crowds_[i].next) free_crowds_.back() = crowds_[i].next;
  else free_crowds_.pop_back();
  return i;
}

Cell* Shadow::take_parts(u32 shift) {
  auto& free = free_parts_[shift];
  if (free.empty()) {
    const u32 n = kLineBytes >> shift;
    auto* cells = static_cast<Cell*>(std::aligned_alloc(64, kCellsAtOnce * sizeof(Cell)));
    if (!cells) throw std::bad_alloc();
    blocks_.push_back(cells);
    for (u32 i = kCellsAtOnce; i > 0; i -= n) free.push_back(cells + i - n);
  }
  Cell* parts = free.back();
  free.pop_back();
  return parts;
}
void Shadow::give_parts(Cell* parts, u32 shift) { free_parts_[shift].push_back(parts); }

}  // namespace machine
