// Copies: actors of their own, which begin with what their thread knows.
#include <algorithm>

#include "state.h"

namespace machine {

u32 Order::State::take_copy() {
  if (!free_copies.empty()) {
    const u32 number = free_copies.back();
    free_copies.pop_back();
    return number;
  }
  copies.emplace_back();
  return u32(copies.size() - 1);
}

// A place for what the thread begins: none, or one whose last use the thread knows to be over.
u32 Order::State::take_place(const Thread& t, u32 thread, bool is_bulk) {
  auto& places = actors[t.block].places;
  u32 i = 0;
  while (i < places.size() &&
         (places[i].busy || !is_bulk || !places[i].is_bulk ||
          !t.view[kGeneric].orders(actor_of(t.block, warp_places + i), places[i].epoch)))
    ++i;
  if (i == places.size()) places.push_back({thread, first - 1, false, is_bulk});
  places[i].thread = thread;
  places[i].busy = true;
  if (++places[i].epoch > last) last = places[i].epoch;
  return i;
}

u32 Order::bulk_begin(u32 thread, Where where) {
  State& s = *state_;
  Thread& t = s.threads[thread];
  const u32 place = s.take_place(t, thread, true);
  const u32 number = s.take_copy();
  Copy& c = s.copies[number];
  c.is_bulk = true;
  c.thread = thread;
  c.actor = actor_of(t.block, s.warp_places + place);
  c.epoch = s.actors[t.block].places[place].epoch;
  c.where = where;
  for (u32 k = 0; k < kViews; ++k) {
    c.view[k] = t.view[k];
    // What it knows of its thread's cp.async is put among the others.
    if (t.view[k].other != kNobody) {
      const Component known{t.view[k].other, t.view[k].other_epoch};
      c.view[k].v = raise(t.view[k].v, &known, 1);
    }
    c.view[k].other = c.actor;
    c.view[k].other_epoch = c.epoch;
  }
  c.view[kGeneric].self_epoch = t.epoch;
  s.tick(t);
  return number;
}

void Order::bulk_completes_on(u32 copy, const void* barrier) {
  State& s = *state_;
  if (!s.shadow.in_arena(barrier)) return;
  const Copy& c = s.copies[copy];
  s.read({&c.view[kAsyncShared], &c.view[kGeneric], c.actor, c.epoch, AccessKind::kBulkCopy,
          c.where}, static_cast<const u8*>(barrier), 8);
}

void Order::bulk_end(u32 copy, void* barrier) {
  State& s = *state_;
  Copy& c = s.copies[copy];
  ++s.counts.syncs;
  s.barrier(barrier).under_way.add(Stamp::Extra{c.actor, {c.epoch, c.epoch, c.epoch}});
  s.actors[block_of(c.actor)].places[place_of(c.actor) - s.warp_places].busy = false;
  c = Copy{};
  s.free_copies.push_back(copy);
}

u32 Order::async_begin(u32 thread, Where where) {
  State& s = *state_;
  Thread& t = s.threads[thread];
  View& view = t.view[kGeneric];
  if (view.other == kNobody) {
    const u32 place = s.take_place(t, thread, false);
    for (View& each : t.view) each.other = actor_of(t.block, s.warp_places + place);
  }
  const u32 number = s.take_copy();
  Copy& c = s.copies[number];
  c.thread = thread;
  c.actor = view.other;
  c.epoch = s.first + t.groups;
  if (c.epoch > s.last) s.last = c.epoch;
  c.where = where;
  c.view[kGeneric] = view;
  c.view[kGeneric].self_epoch = t.epoch;
  c.view[kGeneric].other_now = c.epoch;
  s.tick(t);
  return number;
}

void Order::async_end(u32 copy) {
  state_->copies[copy] = Copy{};
  state_->free_copies.push_back(copy);
}

void Order::async_commit(u32 thread) { ++state_->threads[thread].groups; }

void Order::async_wait(u32 thread, u32 left) {
  State& s = *state_;
  Thread& t = s.threads[thread];
  View& view = t.view[kGeneric];
  if (t.groups <= left || view.other == kNobody) return;
  ++s.counts.syncs;
  view.other_epoch = std::max(view.other_epoch, s.first + t.groups - left - 1);
}

void Order::copy_bytes(u32 copy, void* to, const void* from, u32 bytes) {
  state_->copy_bytes(state_->copies[copy], static_cast<u8*>(to), static_cast<const u8*>(from),
                     bytes);
}

}  // namespace machine
