// Plain accesses, and those of copies: each byte against who has accessed it before.
#include <algorithm>

#include "state.h"

namespace machine {
namespace {

u32 offset_of(const void* p) { return u32(reinterpret_cast<uintptr_t>(p) % kLineBytes); }
u32 left_in_page(const void* p) {
  return u32(kPageBytes - reinterpret_cast<uintptr_t>(p) % kPageBytes);
}

}  // namespace

Page* Order::State::page_for(const Accessing& a, const void* p, u32 bytes, bool writes) {
  const uintptr_t entry = shadow.entry(p);
  if (entry == kNoRegion) {
    report(Fault::kOutside, Access{}, a, writes, p, bytes);
    return nullptr;
  }
  if (entry == kWeightsPage) {
    if (writes) report(Fault::kReadOnly, Access{}, a, writes, p, bytes);
    return nullptr;
  }
  if (entry == kPinnedPage) {
    if (!writes) check_host(a, p, bytes, writes, Scope::kBlock);
    return nullptr;
  }
  Page* page = shadow.page(p);
  if (page->block != kAnyBlock && page->block != block_of(a.actor)) {
    report(Fault::kOutside, Access{}, a, writes, p, bytes);
    return nullptr;
  }
  // The last page of pinned memory has lines for what is after it.
  if (page->kind == RegionKind::kPinned) {
    if (Shadow::line(*page, p).kind() == kOutsideBytes)
      report(Fault::kOutside, Access{}, a, writes, p, bytes);
    else if (!writes && a.kind != AccessKind::kRelaxed && a.kind != AccessKind::kAtomic)
      check_host(a, p, bytes, writes, Scope::kBlock);
    return nullptr;
  }
  return page;
}

void Order::State::check_host(const Accessing& a, const void* p, u32 bytes, bool writes,
                              Scope scope) {
  if (scope == Scope::kSystem) return;
  Access by_host;
  by_host.kind = AccessKind::kHost;
  by_host.writes = !writes;
  report(Fault::kRace, by_host, a, writes, p, bytes);
}

// Bytes that may be any become some. How is chosen once for an access.
constexpr u32 kUndecided = ~0u;
void Order::State::make_any(u8* p, u32 bytes, u32& noise) {
  if (noise == kUndecided) noise = listener->choose(4, Weak::kBytes);
  for (u32 i = 0; noise != 0 && i < bytes; ++i) {
    const u64 mixed = (reinterpret_cast<uintptr_t>(p + i) + time) * 0x9e3779b97f4a7c15u;
    if (noise == 1) p[i] = 0xff;
    if (noise == 3 || (noise == 2 && i % 2)) p[i] = u8(mixed >> 56);
  }
}

// Whether an access comes too early after, or must not be in a launch with, what others have done.
void Order::State::check_users(Cell& cell, const Accessing& a, bool writes, const void* p,
                               u32 bytes) {
  shadow.each_user(cell, [&](const Users& u) {
    const u32 kind = u.kind();
    if (!writes && !is_strong_store(kind)) return;
    const bool constant =
        (kind == u32(AccessKind::kConstant) || a.kind == AccessKind::kConstant) && u.epoch >= first;
    if (!u.ordered_before(*a.view)) report_user(Fault::kRace, u, a, writes, p, bytes);
    else if (constant) report_user(Fault::kConstant, u, a, writes, p, bytes);
  });
}

inline void Order::State::check_read(Cell& cell, const Accessing& a, const void* p, u32 bytes) {
  const u32 kind = cell.kind();
  if (kind >= kReadOnlyBytes) {
    if (kind == kOutsideBytes) report_writer(Fault::kOutside, cell, a, false, p, bytes);
    return;
  }
  if (!a.view->orders(who_of(cell.written_by), cell.written_epoch)) {
    report_writer(Fault::kRace, cell, a, false, p, bytes);
  } else if (cell.is_unwritten() && !a.any) {
    report_writer(Fault::kUnwritten, cell, a, false, p, bytes);
  } else if (a.kind == AccessKind::kConstant && cell.written_epoch >= first) {
    report_writer(Fault::kConstant, cell, a, false, p, bytes);
  }
  if (cell.has_stores()) check_users(cell, a, false, p, bytes);
  shadow.add_user(cell, a, u32(a.kind));
}

inline void Order::State::check_write(Cell& cell, const Accessing& a, const void* p, u32 bytes) {
  const u32 kind = cell.kind();
  if (kind >= kReadOnlyBytes) {
    report_writer(kind == kOutsideBytes ? Fault::kOutside : Fault::kReadOnly, cell, a, true, p,
                  bytes);
    return;
  }
  if (!a.view->orders(who_of(cell.written_by), cell.written_epoch))
    report_writer(Fault::kRace, cell, a, true, p, bytes);
  if (!cell.unused()) {
    if (cell.used_by.epoch >= first) check_users(cell, a, true, p, bytes);  // others: launches before
    shadow.clear_users(cell);
  }
  cell.written_by = tag_of(a.kind, a.actor);
  cell.written_epoch = a.epoch;
  cell.written_where = a.where;
}

void Order::State::read(const Accessing& a, const u8* p, u32 bytes) {
  u32 noise = kUndecided;
  while (bytes > 0) {
    const u32 n = std::min(bytes, left_in_page(p));
    if (Page* page = page_for(a, p, bytes, false)) {
      if (page->slots) touch_slots(*page, a, p, n, false);
      for (u32 i = 0; i < n;) {
        const u32 part = std::min(n - i, kLineBytes - offset_of(p + i));
        const auto cells = shadow.cells(Shadow::line(*page, p + i), offset_of(p + i), part);
        for (u32 c = 0; c < cells.count; ++c) {
          const u8* at = p + i + c * cells.bytes;
          check_read(cells.first[c], a, at, bytes);
          if (a.any && cells.first[c].is_unwritten())
            make_any(const_cast<u8*>(at), cells.bytes, noise);
        }
        i += part;
      }
    }
    p += n;
    bytes -= n;
  }
}

void Order::State::write(const Accessing& a, u8* p, u32 bytes) {
  while (bytes > 0) {
    const u32 n = std::min(bytes, left_in_page(p));
    if (Page* page = page_for(a, p, bytes, true)) {
      if (page->slots) touch_slots(*page, a, p, n, true);
      for (u32 i = 0; i < n;) {
        const u32 part = std::min(n - i, kLineBytes - offset_of(p + i));
        const auto cells = shadow.cells(Shadow::line(*page, p + i), offset_of(p + i), part);
        for (u32 c = 0; c < cells.count; ++c)
          check_write(cells.first[c], a, p + i + c * cells.bytes, bytes);
        i += part;
      }
    }
    p += n;
    bytes -= n;
  }
}

void Order::State::copy_bytes(Copy& c, u8* to, const u8* from, u32 bytes) {
  counts.copied += bytes;
  const AccessKind kind = c.is_bulk ? AccessKind::kBulkCopy : AccessKind::kAsyncCopy;
  const auto view_of = [&](const Page* page) {
    if (!c.is_bulk) return &c.view[kGeneric];
    return &c.view[page && page->kind == RegionKind::kShared ? kAsyncShared : kAsyncGlobal];
  };
  // A line that has been copied as a whole has one cell again, if it had many.
  const auto unite_if_fine = [&](const Shadow::Cells& cells, Cell& line) {
    if (cells.count <= 4 || cells.count * cells.bytes != kLineBytes) return;
    const Cell whole = cells.first[0];
    shadow.unite(line, whole);
  };
  u32 noise = kUndecided;
  while (bytes > 0) {
    u32 n = std::min(bytes, kLineBytes - std::max(offset_of(to), offset_of(from)));
    bool written = true, torn_bytes = false;
    Accessing at{&c.view[kGeneric], &c.view[kGeneric], c.actor, c.epoch, kind, c.where};
    Page* target = shadow.in_arena(to) ? page_for(at, to, n, true) : nullptr;
    if (shadow.in_arena(to) && !target) return;
    if (target && !target->slots && offset_of(to) == 0 && shadow.in_arena(from) &&
        shadow.entry(from) == kWeightsPage) {
      // The usual case: weights, to as much as there is of a page.
      n = std::min({bytes, left_in_page(to), left_in_page(from)});
      at.view = view_of(target);
      std::memmove(to, from, n);
      for (u32 i = 0; i < n; i += kLineBytes) {
        const auto cells =
            shadow.cells(Shadow::line(*target, to + i), 0, std::min(kLineBytes, n - i));
        for (u32 j = 0; j < cells.count; ++j)
          check_write(cells.first[j], at, to + i + j * cells.bytes, n);
        unite_if_fine(cells, Shadow::line(*target, to + i));
      }
      to += n;
      from += n;
      bytes -= n;
      continue;
    }
    if (shadow.in_arena(from)) {
      Accessing a = at;
      const uintptr_t entry = shadow.entry(from);
      if (entry == kUntouched) {
        written = false;
      } else if (Page* page = entry == kWeightsPage ? nullptr : page_for(a, from, n, false)) {
        a.view = view_of(page);
        const bool may_tear = page->kind == RegionKind::kCache && holds(kTornRows);
        if (page->slots) touch_slots(*page, a, from, n, false);
        auto cells = shadow.cells(Shadow::line(*page, from), offset_of(from), n);
        // The piece ends where bytes that nobody has written begin, or end.
        written = !cells.first->is_unwritten();
        for (u32 i = 0; i < cells.count; ++i) {
          Cell& cell = cells.first[i];
          if (cell.is_unwritten() == written) {
            n = i * cells.bytes;
            break;
          }
          if (may_tear && cell.kind() < kReadOnlyBytes) {
            torn_bytes |= !a.view->orders(who_of(cell.written_by), cell.written_epoch);
          } else if (written) {
            check_read(cell, a, from + i * cells.bytes, n);
          } else {
            shadow.add_user(cell, a, u32(a.kind));
          }
        }
      } else if (entry == kNoRegion) {
        return;
      }
    }
    if (target && target->slots) {
      at.view = view_of(target);
      touch_slots(*target, at, to, n, true);
    }
    std::memmove(to, from, n);
    if (torn_bytes) {
      ++counts.torn;
      make_any(to, n, noise);
    }
    if (target) {
      at.view = view_of(target);
      Cell& line = Shadow::line(*target, to);
      const auto cells = shadow.cells(line, offset_of(to), n);
      for (u32 i = 0; i < cells.count; ++i) {
        check_write(cells.first[i], at, to + i * cells.bytes, n);
        if (!written && cells.first[i].kind() < kReadOnlyBytes)
          cells.first[i].written_by = tag_of(kCopiedUnwritten, c.actor);
      }
      unite_if_fine(cells, line);
    }
    to += n;
    from += n;
    bytes -= n;
  }
}

// ---- of threads -----------------------------------------------------------------------------------

void Order::read(u32 thread, const void* p, u32 bytes, Where where) {
  State& s = *state_;
  if (!s.shadow.in_arena(p)) return;
  ++s.counts.plain;
  s.read(s.accessing(thread, AccessKind::kPlain, where), static_cast<const u8*>(p), bytes);
}
void Order::write(u32 thread, void* p, u32 bytes, Where where) {
  State& s = *state_;
  if (!s.shadow.in_arena(p)) return;
  ++s.counts.plain;
  s.write(s.accessing(thread, AccessKind::kPlain, where), static_cast<u8*>(p), bytes);
}
void Order::read_any(u32 thread, void* p, u32 bytes, Where where) {
  State& s = *state_;
  if (!s.shadow.in_arena(p)) return;
  ++s.counts.plain;
  Accessing a = s.accessing(thread, AccessKind::kPlain, where);
  a.any = true;
  s.read(a, static_cast<u8*>(p), bytes);
}
void Order::read_constant(u32 thread, const void* p, u32 bytes, Where where) {
  State& s = *state_;
  if (!s.shadow.in_arena(p)) return;
  ++s.counts.plain;
  s.read(s.accessing(thread, AccessKind::kConstant, where), static_cast<const u8*>(p), bytes);
}

}  // namespace machine
