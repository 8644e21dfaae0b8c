// Strong accesses: loads, stores and updates of words, and what they release and acquire.
#include <algorithm>

#include "state.h"

namespace machine {
namespace {

u64 read_word(const void* p, u32 bytes) {
  u64 value = 0;
  std::memcpy(&value, p, bytes);
  return value;
}
void write_word(void* p, u32 bytes, u64 value) { std::memcpy(p, &value, bytes); }

u8 halves_of(const void* p, u32 bytes) {
  if (bytes == 8) return 3;
  return reinterpret_cast<uintptr_t>(p) & 4 ? 2 : 1;
}
// Of a slot's eight bytes, those of a word.
u64 word_in(u64 slot, u8 halves) {
  return halves == 3 ? slot : halves == 2 ? slot >> 32 : u64(u32(slot));
}

u64 updated(Update op, u64 old, u64 operand, u64 expected, u32 bytes) {
  const auto as_signed = [bytes](u64 v) { return bytes == 4 ? int64_t(int32_t(v)) : int64_t(v); };
  switch (op) {
    case Update::kAdd: return old + operand;
    case Update::kExchange: return operand;
    case Update::kMax: return std::max(old, operand);
    case Update::kMin: return std::min(old, operand);
    case Update::kMaxSigned: return as_signed(old) < as_signed(operand) ? operand : old;
    case Update::kMinSigned: return as_signed(operand) < as_signed(old) ? operand : old;
    case Update::kAnd: return old & operand;
    case Update::kOr: return old | operand;
    case Update::kXor: return old ^ operand;
    case Update::kCompareAndSwap: return old == expected ? operand : old;
  }
  return old;
}

bool acquires(Ordering o) { return o == Ordering::kAcquire || o == Ordering::kBoth; }
bool releases(Ordering o) { return o == Ordering::kRelease || o == Ordering::kBoth; }

}  // namespace

// Whether each is in the other's scope.
bool Order::State::in_scope(const Store& s, Actor actor, Scope scope) const {
  if (s.actor == kNobody || block_of(s.actor) == block_of(actor)) return true;
  if (s.scope == Scope::kBlock || scope == Scope::kBlock) return false;
  return (s.scope == Scope::kSystem && scope == Scope::kSystem) ||
         block_of(s.actor) / blocks_of_gpu == block_of(actor) / blocks_of_gpu;
}

// ---- checks -------------------------------------------------------------------------------------

Order::State::Word Order::State::check_word(const Accessing& a, const u8* p, u32 bytes, bool reads,
                                            bool writes, Scope scope, Page*& page) {
  if (!shadow.in_arena(p)) return Word::kRaw;
  if (reinterpret_cast<uintptr_t>(p) % bytes != 0) {
    report(Fault::kMisaligned, Access{}, a, writes, p, bytes);
    return Word::kNothing;
  }
  const uintptr_t entry = shadow.entry(p);
  if (entry == kPinnedPage) {
    check_host(a, p, bytes, writes, scope);
    return Word::kRaw;
  }
  if (entry == kWeightsPage && !writes) return Word::kRaw;
  page = page_for(a, p, bytes, writes);
  if (!page) {  // the last page of pinned memory has lines, and no histories
    const Region* region = shadow.region_of(p);
    if (!region || region->kind != RegionKind::kPinned) return Word::kNothing;
    check_host(a, p, bytes, writes, scope);
    return Word::kRaw;
  }
  Word result = Word::kTracked;
  const u32 offset = u32(reinterpret_cast<uintptr_t>(p) % kLineBytes);
  const Shadow::Cells cells = shadow.cells(Shadow::line(*page, p), offset, bytes);
  const bool may_tear = page->kind == RegionKind::kCache && holds(kTornRows) && !writes;
  const u32 as = writes && a.kind != AccessKind::kAtomic ? kStrongStore : u32(a.kind);
  for (u32 i = 0; i < cells.count; ++i) {
    Cell& cell = cells.first[i];
    const u8* at = p + (cells.count > 1 ? i * cells.bytes : 0);
    if (cell.kind() >= kReadOnlyBytes) {
      if (cell.kind() == kReadOnlyBytes && !writes) return Word::kRaw;
      report_writer(cell.kind() == kReadOnlyBytes ? Fault::kReadOnly : Fault::kOutside, cell, a,
                    writes, at, bytes);
      return Word::kNothing;
    }
    if (!a.view->orders(who_of(cell.written_by), cell.written_epoch)) {
      if (may_tear) result = Word::kTorn;
      else report_writer(Fault::kRace, cell, a, writes, at, bytes);
    } else if (cell.is_unwritten()) {
      if (reads) report_writer(Fault::kUnwritten, cell, a, writes, at, bytes);
      // Who has stored is kept with the users. Of the bytes it is enough that somebody has.
      if (writes) cell.written_by = tag_of(AccessKind::kRelaxed, 0), cell.written_epoch = 0;
    }
    if (writes) {
      shadow.each_user(cell, [&](const Users& u) {
        if (is_strong(u.kind())) return;
        const bool constant = u.kind() == u32(AccessKind::kConstant) && u.epoch >= first;
        if (!u.ordered_before(*a.view)) report_user(Fault::kRace, u, a, true, at, bytes);
        else if (constant) report_user(Fault::kConstant, u, a, true, at, bytes);
      });
    }
    // What may be read while it is written is not kept.
    if (a.kind != AccessKind::kBarrier && !may_tear) shadow.add_user(cell, a, as);
  }
  return result;
}

void Order::State::check_strong(const Store& s, const Accessing& a, u8 halves, Scope scope,
                                bool writes, const u8* p, u32 bytes) {
  const bool scoped = in_scope(s, a.actor, scope);
  const bool same_width = s.halves == halves || s.actor == kNobody || holds(kOverlappingWords);
  if ((scoped && same_width) || a.view->orders(s.actor, s.epoch)) return;
  report_store(scoped ? Fault::kWidth : Fault::kRace, s, a, writes, p, bytes);
}

void Order::State::check_stores(Slot& slot, const Accessing& a, u8 halves, Scope scope, bool writes,
                                const u8* p, u32 bytes) {
  const bool narrow =
      scope == Scope::kBlock || !holds(kOverlappingWords) || blocks_of_gpu < blocks;
  for (const u32 list : {slot.newest, slot.pending}) {
    for (u32 i = list; i; i = stores[i].next) {
      const Store& s = stores[i];
      if ((s.halves & halves) && (narrow || s.scope == Scope::kBlock))
        check_strong(s, a, halves, scope, writes, p, bytes);
    }
  }
}

// ---- release and acquire ------------------------------------------------------------------------

// What a store publishes besides what it goes on with: what its thread has released by a fence before
// it, or by an earlier operation on the same word, or releases now.
void Order::State::release_of(Store& s, Thread& t, Ordering ordering, Scope scope) {
  const auto add = [&](u32 reach, const Ref<Stamp>& stamp) {
    if (!stamp || s.release[reach] == stamp) return;
    if (!s.release[reach]) {
      s.release[reach] = stamp;
      return;
    }
    Stamp both = *s.release[reach];
    both.add(*stamp);
    s.release[reach] = Stamp::make(both);
  };
  for (u32 reach = 0; reach < kReaches; ++reach) add(reach, t.fenced[reach]);
  Thread::Released* own = nullptr;
  const u8* word = s.slot + (s.halves == 2 ? 4 : 0);
  for (Thread::Released& r : t.released) {
    if (r.word == word) own = &r;
  }
  if (own) {
    for (u32 reach = 0; reach < kReaches; ++reach) add(reach, own->stamp[reach]);
  }
  if (!releases(ordering)) return;
  ++counts.syncs;
  const u32 reach = scope == Scope::kBlock ? kOwnBlock : kEverybody;
  const Ref<Stamp> stamp = Stamp::make(stamp_of(t));
  add(reach, stamp);
  if (!own) {
    t.released.push_back({word, {}});
    own = &t.released.back();
  }
  own->stamp[reach] = stamp;
  tick(t);
}

void Order::State::acquire_of(const Store& s, Thread& t, Ordering ordering, Scope scope) {
  if (s.epoch < first || !in_scope(s, t.actor, scope)) return;
  for (u32 reach = 0; reach < kReaches; ++reach) {
    if (!s.release[reach]) continue;
    if (reach == kOwnBlock && block_of(s.actor) != t.block) continue;
    if (acquires(ordering)) {
      acquire(t, s.release[reach]);
    } else if (!t.seen) {
      t.seen = std::make_unique<Stamp>(*s.release[reach]);
    } else {
      t.seen->add(*s.release[reach]);
    }
  }
}

// ---- operations ---------------------------------------------------------------------------------

u64 Order::State::torn(u64 value, const void* p) {
  ++counts.torn;
  const u64 noise = (reinterpret_cast<uintptr_t>(p) + time) * 0x9e3779b97f4a7c15u;
  switch (listener->choose(4, Weak::kBytes)) {
    case 0: return value;
    case 1: return ~u64(0);
    case 2: return (value & 0x00ff00ff00ff00ffu) | (noise & 0xff00ff00ff00ff00u);
    default: return noise ^ noise >> 29;
  }
}

Loaded Order::State::load(u32 thread, const u8* p, u32 bytes, Ordering ordering, Scope scope,
                          Where where) {
  ++counts.loads;
  ++time;
  Thread& t = threads[thread];
  const Accessing a = accessing(thread, AccessKind::kRelaxed, where);
  Page* page = nullptr;
  switch (check_word(a, p, bytes, true, false, scope, page)) {
    case Word::kNothing: return {0, true};
    case Word::kRaw: return {read_word(p, bytes), true};
    case Word::kTorn:
      return {word_in(torn(read_word(p, bytes), p), bytes == 8 ? 3 : 1), false};
    case Word::kTracked: break;
  }
  if (!page->slots) return {read_word(p, bytes), true};
  Slot& slot = slot_of(*page, p);
  if (!slot.newest && !slot.pending) return {read_word(p, bytes), true};
  const bool one_place = page->kind == RegionKind::kShared && holds(kSharedInOnePlace);

  const u8 halves = halves_of(p, bytes);
  check_stores(slot, a, halves, scope, false, p, bytes);

  // Pending stores. One that this load comes after is seen, or a newer one; to be seen it commits,
  // unless its own SM, or anybody, may see it before.
  const auto may_take = [&](const Store& s) {
    return (s.halves == halves || s.halves == 3) &&
           ((!holds(kOwnStoresInL2) && block_of(s.actor) == t.block) || !holds(kStoresInL2));
  };
  const auto take = [&](u32 number, bool is_newest) {
    const Store& s = stores[number];
    see(number, t);
    acquire_of(s, t, ordering, scope);
    return Loaded{s.halves == halves ? s.value : word_in(s.value, halves), is_newest};
  };
  u32 last_seen = 0;
  for (u32 i = slot.pending; i; i = stores[i].next) {
    if ((stores[i].halves & halves) && must_see(stores[i], t)) last_seen = i;
  }
  if (last_seen) {
    if (may_take(stores[last_seen])) return take(last_seen, true);
    commit_before(slot, t, halves);
  }

  // Stores that it may see: committed ones from the newest to the newest that it comes after, then
  // pending ones.
  constexpr u32 kMost = 32;
  u32 candidates[kMost] = {}, count = 0;
  if (slot.newest && stores[slot.newest].next &&
      time - stores[slot.newest].time > bounds.stale)
    trim(slot, 1);
  for (u32 i = slot.newest; i && count < kMost; i = stores[i].next) {
    const Store& s = stores[i];
    if (!(s.halves & halves) || (s.old && count > 0)) continue;
    candidates[count++] = i;
    if (one_place || must_see(s, t)) break;
  }
  if (count == 0) candidates[count++] = 0;  // memory
  const u32 committed = count;
  for (u32 i = slot.pending; i; i = stores[i].next) {
    if ((stores[i].halves & halves) && may_take(stores[i]) && count < kMost) candidates[count++] = i;
  }
  const u32 chosen = count > 1 ? listener->choose(count, Weak::kLoad) : 0;
  if (chosen >= committed) {
    ++counts.stale;
    return take(candidates[chosen], false);
  }
  const u32 number = candidates[chosen];
  if (number == 0) return {read_word(p, bytes), true};
  const Store& s = stores[number];
  if (s.next) see(number, t);
  acquire_of(s, t, ordering, scope);
  if (chosen == 0) return {read_word(p, bytes), true};
  ++counts.stale;
  return {word_in(s.value, halves), false};
}

void Order::State::store(u32 thread, u8* p, u32 bytes, u64 value, Ordering ordering, Scope scope,
                         Where where) {
  ++counts.stores;
  ++time;
  Thread& t = threads[thread];
  const Accessing a = accessing(thread, AccessKind::kRelaxed, where);
  Page* page = nullptr;
  switch (check_word(a, p, bytes, false, true, scope, page)) {
    case Word::kNothing: return;
    case Word::kRaw:
      write_word(p, bytes, value);
      listener->changed(p);
      return;
    default: break;
  }
  Slot& slot = slot_of(*page, p);
  const u8 halves = halves_of(p, bytes);
  check_stores(slot, a, halves, scope, true, p, bytes);
  // What other threads have stored before it is before it.
  for (u32 i = slot.pending; i;) {
    const Store& s = stores[i];
    if ((s.halves & halves) && s.actor != t.actor && must_see(s, t)) {
      commit(i);
      i = slot.pending;
    } else {
      i = s.next;
    }
  }
  const u32 number = stores.take();
  Store& s = stores[number];
  s.slot = slot_address(p);
  s.value = bytes == 4 ? u32(value) : value;
  s.time = time;
  s.actor = t.actor;
  s.epoch = t.epoch;
  s.where = where;
  s.halves = halves;
  s.scope = scope;
  release_of(s, t, ordering, scope);
  const bool one_place = page->kind == RegionKind::kShared && holds(kSharedInOnePlace);
  if (!releases(ordering) && !one_place)
    s.delay = Delay(listener->choose(u32(Delay::kWays), Weak::kStore));
  if (s.delay != Delay::kNone) {
    ++counts.delayed;
    u32* link = &slot.pending;
    while (*link) link = &stores[*link].next;
    *link = number;
    those_of(s.delay).push_back(number);
    if (!holds(kOwnStoresInL2) || !holds(kStoresInL2)) listener->changed(p);
    return;
  }
  for (u32 i = slot.pending; i;) {
    if (stores[i].actor == t.actor && (stores[i].halves & halves)) {
      commit(i);
      i = slot.pending;
    } else {
      i = stores[i].next;
    }
  }
  place(slot, number);
}

u64 Order::State::update(u32 thread, u8* p, u32 bytes, Update op, u64 operand, Ordering ordering,
                         Scope scope, Where where, u64 expected) {
  ++counts.stores;
  ++time;
  Thread& t = threads[thread];
  const Accessing a = accessing(thread, AccessKind::kAtomic, where);
  Page* page = nullptr;
  const Word word = check_word(a, p, bytes, true, true, scope, page);
  if (word == Word::kNothing) return 0;
  if (word == Word::kRaw) {
    const u64 old = read_word(p, bytes);
    write_word(p, bytes, updated(op, old, operand, expected, bytes));
    listener->changed(p);
    return old;
  }
  Slot& slot = slot_of(*page, p);
  const u8 halves = halves_of(p, bytes);
  check_stores(slot, a, halves, scope, true, p, bytes);
  commit_before(slot, t, halves);
  const u64 old = read_word(p, bytes);
  const u64 value = updated(op, old, operand, expected, bytes);
  u32 before = slot.newest;
  while (before && !(stores[before].halves & halves)) before = stores[before].next;
  if (before) acquire_of(stores[before], t, ordering, scope);
  if (op == Update::kCompareAndSwap && old != expected) {
    if (before && stores[before].next) see(before, t);
    return old;
  }

  const u32 number = stores.take();
  Store& s = stores[number];
  s.slot = slot_address(p);
  s.value = bytes == 4 ? u32(value) : value;
  s.actor = t.actor;
  s.epoch = t.epoch;
  s.where = where;
  s.halves = halves;
  s.scope = scope;
  s.atomic = true;
  // It goes on with what the store before it publishes.
  if (before && stores[before].epoch >= first && in_scope(stores[before], t.actor, scope)) {
    s.release[kEverybody] = stores[before].release[kEverybody];
    if (block_of(stores[before].actor) == t.block)
      s.release[kOwnBlock] = stores[before].release[kOwnBlock];
  }
  release_of(s, t, ordering, scope);
  place(slot, number);
  return old;
}

}  // namespace machine
