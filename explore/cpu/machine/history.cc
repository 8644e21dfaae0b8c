// The stores of words: their order, who has seen which, and those that are pending.
#include <algorithm>

#include "state.h"

namespace machine {
namespace {

u64 read_slot(const u8* slot) {
  u64 value;
  std::memcpy(&value, slot, sizeof value);
  return value;
}
// A slot's eight bytes with those of a word replaced.
u64 replaced(u64 slot, u8 halves, u64 word) {
  if (halves == 3) return word;
  if (halves == 2) return u64(u32(slot)) | word << 32;
  return (slot & ~u64(0xffffffffu)) | u32(word);
}

}  // namespace

void free_slots(Slot* slots) { delete[] slots; }

void Order::State::touch_slots(Page& page, const Accessing& a, const u8* p, u32 bytes,
                               bool writes) {
  const u8* end = p + bytes;
  for (u8* at = slot_address(p); at < end; at += kSlotBytes) {
    Slot& slot = page.slots[reinterpret_cast<uintptr_t>(at) % kPageBytes / kSlotBytes];
    if (!slot.newest && !slot.pending) continue;
    const u8 halves = u8((p < at + 4) | (end > at + 4 && p < at + 8 ? 2 : 0));
    const u8 touched = end > at + 4 ? halves : u8(halves & 1);
    for (u32 i = slot.pending; i;) {
      const u32 next = stores[i].next;
      if ((stores[i].halves & touched) && a.view->orders(stores[i].actor, stores[i].epoch)) {
        commit(i);
        i = slot.pending;
      } else {
        i = next;
      }
    }
    if (!writes) continue;
    // Memory is what there is now. What was stored to the other half stays known.
    u32 kept = slot.newest;
    while (kept && !(stores[kept].halves & ~touched)) {
      const u32 older = stores[kept].next;
      forget_seen(stores[kept]);
      stores.give(kept);
      kept = older;
    }
    slot.newest = kept;
    for (; kept; kept = stores[kept].next) stores[kept].halves &= u8(~touched);
    trim(slot, 1);
  }
}

Slot& Order::State::slot_of(Page& page, const u8* p) {
  if (!page.slots) page.slots = new Slot[kSlots];
  return page.slots[reinterpret_cast<uintptr_t>(p) % kPageBytes / kSlotBytes];
}

// ---- who has seen what --------------------------------------------------------------------------

bool Order::State::is_seen(const Store& s, const Thread& t) const {
  auto& list = const_cast<Numbered<Seen>&>(seen);
  for (u32 i = s.seen; i; i = list[i].next) {
    if (t.view[kGeneric].orders(list[i].actor, list[i].epoch)) return true;
  }
  return false;
}

void Order::State::see(u32 store, const Thread& t) {
  for (u32 i = stores[store].seen; i; i = seen[i].next) {
    if (seen[i].actor == t.actor) return;
  }
  const u32 i = seen.take();
  seen[i] = {t.actor, t.epoch, stores[store].seen};
  stores[store].seen = i;
}

bool Order::State::must_see(const Store& s, const Thread& t) const {
  return t.view[kGeneric].orders(s.actor, s.epoch) || is_seen(s, t);
}

// ---- commits ------------------------------------------------------------------------------------

void Order::State::forget_seen(Store& s) {
  for (u32 i = s.seen; i;) {
    const u32 next = seen[i].next;
    seen.give(i);
    i = next;
  }
  s.seen = 0;
}

// Keeps the newest stores of a slot, and of the others the newest to each half: loads that see no
// newer one acquire from it, but none goes back to it.
void Order::State::trim(Slot& slot, u32 limit) {
  u8 halves = 0;
  u32 count = 0;
  for (u32* link = &slot.newest; *link;) {
    const u32 number = *link;
    Store& s = stores[number];
    const bool is_newest = (s.halves & ~halves) != 0;
    halves |= s.halves;
    if (count < limit && s.halves) {
      ++count;
    } else if (is_newest) {
      s.old = true;
    } else {
      *link = s.next;
      forget_seen(s);
      stores.give(number);
      continue;
    }
    link = &s.next;
  }
}

// Makes a store the newest of its slot. It is not in the list of pending ones.
void Order::State::place(Slot& slot, u32 number) {
  u8* at = stores[number].slot;
  const u64 before = read_slot(at);
  if (!slot.newest) written.push_back(at);
  else stores[slot.newest].value = before;  // a plain write may have come since
  u8 lacking = stores[number].halves;
  for (u32 i = slot.newest; i; i = stores[i].next) lacking &= u8(~stores[i].halves);
  if (lacking) {  // what memory holds is what loads may see that see no store
    const u32 base = stores.take();
    Store& b = stores[base];
    b.slot = at;
    b.value = before;
    b.halves = lacking;
    b.next = slot.newest;
    slot.newest = base;
  }
  Store& s = stores[number];
  s.delay = Delay::kNone;
  s.value = replaced(before, s.halves, s.value);
  s.time = time;
  s.next = slot.newest;
  slot.newest = number;
  std::memcpy(at, &s.value, kSlotBytes);
  const u8* word = at + (s.halves == 2 ? 4 : 0);
  const u8 halves = s.halves;
  const Actor actor = s.actor;
  trim(slot, bounds.stores);
  listener->changed(word);
  commit_held(slot, halves, actor);
}

void Order::State::commit(u32 number) {
  const Store& s = stores[number];
  Page* page = shadow.page(s.slot);
  Slot& slot = slot_of(*page, s.slot);
  // Before it, those that its thread has stored there before.
  for (u32 i = slot.pending; i != number; i = stores[i].next) {
    if (stores[i].actor == stores[number].actor && (stores[i].halves & stores[number].halves)) {
      commit(i);
      return commit(number);
    }
  }
  u32* link = &slot.pending;
  while (*link != number) link = &stores[*link].next;
  *link = stores[number].next;
  auto& among = those_of(stores[number].delay);
  among.erase(std::find(among.begin(), among.end(), number));
  place(slot, number);
}

// Of other threads, those that are held until another one has stored to their word.
void Order::State::commit_held(Slot& slot, u8 halves, Actor other_than) {
  for (u32 i = slot.pending; i;) {
    const Store& s = stores[i];
    if (s.delay == Delay::kHeld && (s.halves & halves) && s.actor != other_than) {
      commit(i);
      i = slot.pending;
    } else {
      i = s.next;
    }
  }
}

void Order::State::commit_before(Slot& slot, const Thread& t, u8 halves) {
  for (u32 i = slot.pending; i;) {
    const Store& s = stores[i];
    if ((s.halves & halves) && must_see(s, t)) {
      commit(i);
      i = slot.pending;
    } else {
      i = s.next;
    }
  }
}

void Order::State::commit_all() {
  for (auto* list : {&pending, &held}) {
    while (!list->empty()) commit(list->front());
  }
}

// Of pending stores, those that somebody waits for, or one of them: a choice.
bool Order::State::commit_awaited() {
  std::vector<u32> awaited;
  for (const auto* list : {&pending, &held}) {
    for (u32 number : *list) {
      const Store& s = stores[number];
      if (listener->is_awaited(s.slot + (s.halves == 2 ? 4 : 0), s.halves == 3 ? 8 : 4))
        awaited.push_back(number);
    }
  }
  if (awaited.empty()) return false;
  constexpr u32 kMost = 8;  // that a choice is among
  const u32 chosen = listener->choose(1 + std::min(u32(awaited.size()), kMost), Weak::kWake);
  if (chosen) {
    commit(awaited[chosen - 1]);
    return true;
  }
  for (u32 number : awaited) {
    if (stores[number].delay != Delay::kNone) commit(number);  // not with one before it
  }
  return true;
}

bool Order::State::settle() {
  bool any = !pending.empty() || !held.empty();
  commit_all();
  for (u8* at : written) {
    Slot& slot = slot_of(*shadow.page(at), at);
    if (slot.newest == 0 || stores[slot.newest].next == 0) continue;
    const u32 second = stores[slot.newest].next;
    if (stores[second].old) continue;
    any = true;
    trim(slot, 1);
    listener->changed(at);
    listener->changed(at + 4);
  }
  return any;
}

// What is in memory is all there is: at the end of a launch, or of shared memory.
void Order::State::forget_stores(const u8* begin, const u8* end) {
  for (auto* list : {&pending, &held}) {
    for (size_t i = 0; i < list->size();) {
      const u8* at = stores[(*list)[i]].slot;
      if (at >= begin && at < end) {
        commit((*list)[i]);
        i = 0;
      } else {
        ++i;
      }
    }
  }
  size_t kept = 0;
  for (u8* at : written) {
    if (at < begin || at >= end) {
      written[kept++] = at;
      continue;
    }
    Slot& slot = slot_of(*shadow.page(at), at);
    while (slot.newest) {
      const u32 number = slot.newest;
      slot.newest = stores[number].next;
      forget_seen(stores[number]);
      stores.give(number);
    }
  }
  written.resize(kept);
}

}  // namespace machine
