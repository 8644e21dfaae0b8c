#include "order.h"

#include <algorithm>
#include <cstdio>

#include "state.h"

namespace machine {
namespace {

// Launches that come to this epoch begin anew: clocks compare epochs as signed numbers.
constexpr u32 kManyEpochs = 1u << 30;

const std::vector<Assumption> kTable = {
    {"l2-single-copy",
     "a load at gpu scope of a word that its own SM has stored is served by L2, where that store "
     "precedes the effects of the load",
     true},
    {"l2-store-atomicity",
     "a store that another SM has seen is in L2, where all SMs see it and later stores come after",
     true},
    {"shared-single-copy",
     "a word in shared memory is in one place: a store is there at once, and a load sees the newest",
     true},
    {"torn-cache-rows",
     "a copy, or a relaxed load, may read bytes of the cache that are being written: it brings any "
     "bytes, and is not a race",
     true},
    {"overlapping-words",
     "words of 4 and of 8 bytes at one place are one word of memory: each store to them is seen "
     "whole or not at all, and in one order",
     true},
};

}  // namespace

Order::State::State(void* arena, size_t bytes, Listener* l)
    : shadow(arena, bytes), listener(l), assumptions(kTable) {}

// ---- set up -------------------------------------------------------------------------------------

Order::Order(void* arena, size_t bytes, Listener* listener)
    : state_(std::make_unique<State>(arena, bytes, listener)) {}
Order::~Order() = default;

void Order::set_bounds(const Bounds& bounds) { state_->bounds = bounds; }
const std::vector<Assumption>& Order::assumptions() const { return state_->assumptions; }

bool Order::assume(const char* name, bool on) {
  for (Assumption& each : state_->assumptions) {
    if (std::strcmp(each.name, name) != 0) continue;
    each.on = on;
    return true;
  }
  return false;
}

void Order::add_region(RegionKind kind, void* begin, size_t bytes, std::string name, u32 block) {
  state_->shadow.add({kind, static_cast<u8*>(begin), bytes, std::move(name), block});
}
void Order::remove_region(void* begin) {
  State& s = *state_;
  const Region* region = s.shadow.region_of(begin);
  if (!region) return;
  s.forget_stores(region->begin, region->begin + region->bytes);
  if (region->kind == RegionKind::kShared) {
    for (auto at = s.barriers.begin(); at != s.barriers.end();) {
      const u8* p = static_cast<const u8*>(at->first);
      at = p >= region->begin && p < region->begin + region->bytes ? s.barriers.erase(at)
                                                                    : std::next(at);
    }
    s.last_barrier = nullptr;
  }
  s.shadow.remove(Region(*region));
}
void Order::name_region(void* begin, RegionKind kind, std::string name) {
  if (const Region* region = state_->shadow.region_of(begin))
    state_->shadow.rename(Region(*region), kind, std::move(name));
}

bool Order::is_inside(const void* p, size_t bytes) const {
  const Region* region = state_->shadow.in_arena(p) ? state_->shadow.region_of(p) : nullptr;
  return region && bytes <= size_t(region->begin + region->bytes - static_cast<const u8*>(p));
}

std::string Order::describe(const void* p) const {
  const Region* region = state_->shadow.in_arena(p) ? state_->shadow.region_of(p) : nullptr;
  if (!region) return "no allocation";
  char offset[32];
  std::snprintf(offset, sizeof offset, " + 0x%zx",
                size_t(static_cast<const u8*>(p) - region->begin));
  return region->name + offset;
}

void Order::host_write(void* p, size_t bytes) {
  if (state_->shadow.in_arena(p)) state_->shadow.set(p, bytes, true);
}
void Order::forget(void* p, size_t bytes) {
  if (state_->shadow.in_arena(p)) state_->shadow.set(p, bytes, false);
}
void Order::host_read(const void* p, size_t bytes) {
  State& s = *state_;
  if (!s.shadow.in_arena(p)) return;
  const u8* unwritten = s.shadow.find_unwritten(p, bytes);
  if (!unwritten) return;
  const Accessing a{nullptr, nullptr, kNobody, 0, AccessKind::kHost, 0};
  s.report(Fault::kUnwritten, Access{}, a, false, unwritten, u32(std::min<size_t>(bytes, ~0u)));
}

// ---- launches -----------------------------------------------------------------------------------

void Order::begin_launch(u32 blocks, u32 threads, u32 gpus) {
  State& s = *state_;
  if (s.last >= kManyEpochs) {
    s.shadow.age();
    s.last = 0;
  }
  s.first = s.last + 1;
  s.last = s.first;
  s.blocks = blocks;
  s.blocks_of_gpu = blocks / gpus;
  s.threads_per_block = threads;
  s.warp_places = (threads + 31) / 32 * 32;
  s.counts = Counts{};
  s.reported.clear();
  s.barriers.clear();
  s.last_barrier = nullptr;
  s.copies.clear();
  s.free_copies.clear();
  s.actors.assign(blocks, BlockActors{});
  s.threads.clear();
  forget_joins();
  for (auto& each : s.last_acquired) each = {};
  s.threads.resize(size_t(blocks) * threads);
  const Ref<Vector> nothing = Vector::make(blocks);
  for (u32 block = 0; block < blocks; ++block) {
    for (u32 i = 0; i < threads; ++i) {
      Thread& t = s.threads[size_t(block) * threads + i];
      t.block = block;
      t.actor = actor_of(block, i);
      t.epoch = s.first;
      for (View& view : t.view) {
        view.v = nothing;
        view.first = s.first;
        view.self = t.actor;
      }
      t.view[kGeneric].self_epoch = ~0u;
    }
  }
}

void Order::end_launch() {
  State& s = *state_;
  s.commit_all();
  s.forget_stores(nullptr, reinterpret_cast<const u8*>(~uintptr_t(0)));
}

u32 Order::threads() const { return u32(state_->threads.size()); }

// ---- accesses -----------------------------------------------------------------------------------

Loaded Order::load(u32 thread, const void* p, u32 bytes, Ordering ordering, Scope scope,
                   Where where) {
  return state_->load(thread, static_cast<const u8*>(p), bytes, ordering, scope, where);
}
void Order::store(u32 thread, void* p, u32 bytes, u64 value, Ordering ordering, Scope scope,
                  Where where) {
  state_->store(thread, static_cast<u8*>(p), bytes, value, ordering, scope, where);
}
u64 Order::update(u32 thread, void* p, u32 bytes, Update op, u64 operand, Ordering ordering,
                  Scope scope, Where where, u64 expected) {
  return state_->update(thread, static_cast<u8*>(p), bytes, op, operand, ordering, scope, where,
                        expected);
}

u32 Order::pending_count() const { return u32(state_->pending.size()); }
void Order::commit(u32 which) { state_->commit(state_->pending[which]); }
bool Order::commit_awaited() { return state_->commit_awaited(); }
bool Order::settle() { return state_->settle(); }

// ---- synchronisation ----------------------------------------------------------------------------

Stamp Order::State::stamp_of(const Thread& t) const {
  Stamp stamp;
  for (u32 k = 0; k < kViews; ++k) stamp.v[k] = t.view[k].v;
  stamp.add(Stamp::Extra{
      t.actor, {t.epoch, t.view[kAsyncShared].self_epoch, t.view[kAsyncGlobal].self_epoch}});
  if (t.view[kGeneric].other != kNobody) {
    stamp.add(Stamp::Extra{t.view[kGeneric].other,
                           {t.view[kGeneric].other_epoch, t.view[kAsyncShared].other_epoch,
                            t.view[kAsyncGlobal].other_epoch}});
  }
  return stamp;
}

void Order::State::acquire(Thread& t, const Ref<Stamp>& stamp) {
  if (t.acquired == stamp) return;
  ++counts.syncs;
  t.acquired = stamp;
  stamp->fold();
  for (u32 k = 0; k < kViews; ++k) {
    // Lanes of a warp acquire one after the other, and know the same.
    Acquired& last = last_acquired[k];
    if (last.before != t.view[k].v || last.stamp != stamp->v[k])
      last = {t.view[k].v, stamp->v[k], machine::join(t.view[k].v, stamp->v[k])};
    t.view[k].v = last.after;
  }
}

void Order::fence(u32 thread, Ordering ordering, Scope scope) {
  State& s = *state_;
  Thread& t = s.threads[thread];
  if (ordering == Ordering::kAcquire || ordering == Ordering::kBoth) {
    if (t.seen) s.acquire(t, Stamp::make(*t.seen));
    t.seen.reset();
  }
  if (ordering == Ordering::kRelease || ordering == Ordering::kBoth) {
    ++s.counts.syncs;
    t.fenced[scope == Scope::kBlock ? kOwnBlock : kEverybody] = Stamp::make(s.stamp_of(t));
    s.tick(t);
  }
}

void Order::fence_proxy(u32 thread, Proxy proxy) {
  State& s = *state_;
  Thread& t = s.threads[thread];
  ++s.counts.syncs;
  const View& generic = t.view[kGeneric];
  for (u32 k : {u32(kAsyncShared), u32(kAsyncGlobal)}) {
    if (k == kAsyncGlobal && proxy == Proxy::kShared) continue;
    t.view[k].v = generic.v;
    t.view[k].self_epoch = t.epoch;
    t.view[k].other_epoch = generic.other_epoch;
  }
  s.tick(t);
}

void Order::join(const u32* who, u32 n) {
  State& s = *state_;
  ++s.counts.syncs;
  std::vector<Component>& components = s.components;
  u32 epoch = 0;
  for (u32 i = 0; i < n; ++i) epoch = std::max(epoch, s.threads[who[i]].epoch);
  for (u32 k = 0; k < kViews; ++k) {
    Ref<Vector> all = s.threads[who[0]].view[k].v;
    const Vector* last = all.get();
    components.clear();
    for (u32 i = 0; i < n; ++i) {
      const Thread& t = s.threads[who[i]];
      const View& view = t.view[k];
      if (view.v.get() != last) {
        last = view.v.get();
        all = machine::join(all, view.v);
      }
      const u32 own = k == kGeneric ? t.epoch : view.self_epoch;
      if (own) components.push_back({t.actor, own});
      if (view.other_epoch) components.push_back({view.other, view.other_epoch});
    }
    all = raise(all, components.data(), components.size());
    for (u32 i = 0; i < n; ++i) s.threads[who[i]].view[k].v = all;
  }
  for (u32 i = 0; i < n; ++i) s.threads[who[i]].epoch = epoch + 1;
  s.last = std::max(s.last, epoch + 1);
}

Mbarrier& Order::State::barrier(const void* at) {
  if (at == last_barrier) return *last_found;
  Mbarrier& b = barriers[at];
  if (!b.complete) {
    const Ref<Vector> nothing = Vector::make(blocks);
    for (auto& v : b.under_way.v) v = nothing;
    b.complete = Stamp::make(b.under_way);
  }
  last_barrier = at;
  last_found = &b;
  return b;
}

void Order::barrier_init(u32 thread, void* barrier, Where where) {
  State& s = *state_;
  if (s.shadow.in_arena(barrier))
    s.write(s.accessing(thread, AccessKind::kBarrier, where), static_cast<u8*>(barrier), 8);
  s.barriers.erase(barrier);
  s.last_barrier = nullptr;
}
void Order::barrier_arrive(u32 thread, void* barrier, Where where) {
  State& s = *state_;
  barrier_poll(thread, barrier, where);
  Thread& t = s.threads[thread];
  ++s.counts.syncs;
  s.barrier(barrier).under_way.add(s.stamp_of(t));
  s.tick(t);
}
void Order::barrier_complete(void* barrier) {
  Mbarrier& b = state_->barrier(barrier);
  // What has arrived for a phase counts for those after it, too.
  b.under_way.fold();
  b.complete = Stamp::make(b.under_way);
}
void Order::barrier_wait(u32 thread, const void* barrier, Where where) {
  State& s = *state_;
  barrier_poll(thread, barrier, where);
  s.acquire(s.threads[thread], s.barrier(barrier).complete);
}
void Order::barrier_poll(u32 thread, const void* barrier, Where where) {
  State& s = *state_;
  Page* page = nullptr;
  s.check_word(s.accessing(thread, AccessKind::kBarrier, where), static_cast<const u8*>(barrier), 8,
               true, false, Scope::kBlock, page);
}

// ---- counts --------------------------------------------------------------------------------------

Order::Counts Order::counts() const { return state_->counts; }

}  // namespace machine
