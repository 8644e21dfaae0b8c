// Barriers of a block: bar.sync, which threads wait at, and mbarriers, which they poll.
#include <cstring>
#include <vector>

#include "barrier.h"
#include "copy.h"
#include "findings.h"
#include "model.h"
#include "scheduler.h"
#include "sites.h"

namespace machine {

// ---- bar.sync -------------------------------------------------------------------------------------

namespace {

// Threads of a warp execute the instruction together, so that a warp is there as a whole or not at all.
// Those that have gone on may have ended.
void check_warps(const std::vector<Fiber*>& fibers, bool went_on, Site site) {
  for (Fiber* f : fibers) ++f->warp->meeting;
  for (Fiber* f : fibers) {
    const u32 of_warp = f->warp->meeting;
    f->warp->meeting = 0;
    if (of_warp != 0 && of_warp != (went_on ? kWarpSize : u32(__builtin_popcount(f->warp->present))))
      report(kParticipants, "a barrier that only some lanes of a warp have come to", {here(site)});
  }
}

// All have come: what each did before happens before what those that wait do next.
void complete(NamedBarrier& b) {
  check_warps(b.arrived, false, b.site);
  if (b.gone_on.empty()) {
    std::vector<u32> ids;
    ids.reserve(b.arrived.size());
    for (Fiber* f : b.arrived) ids.push_back(f->id);
    order().join(ids.data(), u32(ids.size()));
  } else {
    // To the memory model an mbarrier: those that have gone on have arrived there.
    check_warps(b.gone_on, true, b.site);
    const u32 where = number_of(b.site);
    for (Fiber* f : b.arrived) order().barrier_arrive(f->id, &b, where);
    order().barrier_complete(&b);
    for (Fiber* f : b.arrived) order().barrier_wait(f->id, &b, where);
    b.gone_on.clear();
  }
  b.any = b.any_says;
  b.any_says = false;
  std::vector<Fiber*> arrived;
  arrived.swap(b.arrived);
  progress();
  for (Fiber* f : arrived) {
    if (f->state == State::kAtBarrier) wake(*f);
  }
  arrived.clear();
  b.arrived.swap(arrived);  // keeps the memory
}

void come(u32 number, u32 threads, bool waits, Site site) {
  choice_point(Next::kCommutes);
  polls_end();
  Fiber& fiber = current();
  NamedBarrier& b = fiber.home->barriers[number];
  if (b.arrived.empty() && b.gone_on.empty()) {
    b.expected = threads;
    b.site = site;
  } else if (b.expected != threads) {
    report_fatal(kParticipants,
                 "threads wait at barrier " + std::to_string(number) + " for " +
                     std::to_string(b.expected) + " and for " + std::to_string(threads) + " threads",
                 {here(b.site), here(site)});
  }
  if (waits) {
    b.arrived.push_back(&fiber);
  } else {
    if (!b.begun) order().barrier_init(fiber.id, &b, number_of(site));
    b.begun = true;
    order().barrier_arrive(fiber.id, &b, number_of(site));
    b.gone_on.push_back(&fiber);
  }
  if (b.arrived.size() + b.gone_on.size() == b.expected) return complete(b);
  if (waits) wait(State::kAtBarrier, number == 0 ? "the other threads of its block" : "a barrier", site);
}

}  // namespace

void block_sync(Site site) { come(0, current().home->live, true, site); }

namespace {

void come_to_named(u32 number, u32 threads, bool waits, Site site) {
  if (number >= kNamedBarriers || threads == 0 || threads % kWarpSize != 0) {
    report_fatal(kParticipants, "a barrier with a number or a count that there is not",
                 {here(site)});
  }
  come(number, threads, waits, site);
}

}  // namespace

void named_barrier_sync(u32 number, u32 threads, Site site) {
  come_to_named(number, threads, true, site);
}
// The result is read before the thread comes to the barrier again, which is before the next one.
bool named_barrier_any(u32 number, u32 threads, bool v, Site site) {
  if (number < kNamedBarriers && v) current().home->barriers[number].any_says = true;
  come_to_named(number, threads, true, site);
  return current().home->barriers[number].any;
}
void named_barrier_arrive(u32 number, u32 threads, Site site) {
  come_to_named(number, threads, false, site);
}

void leave_barriers(Block& block) {
  NamedBarrier& b = block.barriers[0];
  if (b.arrived.empty()) return;
  b.expected = block.live;
  if (b.arrived.size() == b.expected) complete(b);
}

// ---- mbarriers ------------------------------------------------------------------------------------

namespace {

std::vector<PhaseBarrier> barriers;  // of the launch
constexpr u64 kMark = 0xa3b1c5d7ull << 32;
constexpr int64_t kMostBytes = (1 << 20) - 1;  // that a phase may wait for

// What the 8 bytes of a barrier hold is opaque to kernels: its number here. Null: p is none.
PhaseBarrier* find_barrier(const u64* p) {
  const u32 number = u32(*p);
  if ((*p & ~u64(~u32(0))) != kMark || number >= barriers.size()) return nullptr;
  return barriers[number].address == p ? &barriers[number] : nullptr;
}
// That of the block that runs.
PhaseBarrier& barrier_at(const u64* p, Site site) {
  if (running_inside(p, sizeof *p)) {
    if (PhaseBarrier* b = find_barrier(p)) return *b;
  }
  report_fatal(kBarriers, "a barrier that was not initialised", {here(site)});
}

bool is_complete(const PhaseBarrier& b, u32 parity) { return (b.completed & 1) != parity; }

void complete_if_due(PhaseBarrier& b) {
  if (b.pending != 0 || b.bytes != 0) return;
  // What its bytes will be counted in is the next phase.
  if (const BulkCopy* copy = copy_to(b.address)) {
    report(kArrivals, "a phase of a barrier that ends before a copy to it, whose bytes nobody expects",
           {here(copy->site)});
  }
  b.pending = b.arrivals;
  ++b.completed;
  order().barrier_complete(b.address);
  changed(b.address);
}

}  // namespace

void barriers_begin() { barriers.clear(); }

void complete_bytes(u64* barrier, u32 bytes, Site site) {
  PhaseBarrier* b = find_barrier(barrier);
  if (!b) report_fatal(kBarriers, "a copy to a barrier that was not initialised", {here(site)});
  b->bytes -= bytes;
  complete_if_due(*b);
}

void barrier_init(u64* barrier, u32 arrivals, Site site) {
  polls_end();
  const u32 where = number_of(site);
  order().barrier_init(current().id, barrier, where);
  if (arrivals == 0 || !running_inside(barrier, sizeof *barrier)) {
    report_fatal(kBarriers, "a barrier of no arrivals, or outside of shared memory", {here(site)});
  }
  *barrier = kMark | barriers.size();
  barriers.push_back({barrier, arrivals, arrivals});
}

void fence_barrier_init() {
  order().fence_proxy(current().id, Proxy::kShared);
}

bool barrier_wait(u64* barrier, u32 parity, u32 arrivals, bool may_suspend, Site site) {
  const u32 where = number_of(site);
  const u32 thread = current().id;
  for (;;) {
    choice_point();
    PhaseBarrier& b = barrier_at(barrier, site);
    if (arrivals != b.arrivals) {
      report(kArrivals, "a wait for " + std::to_string(arrivals) + " arrivals on a barrier of " +
                            std::to_string(b.arrivals), {here(site)});
    }
    if (is_complete(b, parity)) {
      polls_end();
      order().barrier_wait(thread, barrier, where);
      return true;
    }
    if (may_suspend && b.pending == 0 && land_copies_of(barrier)) continue;
    order().barrier_poll(thread, barrier, where);
    const bool slept = may_suspend ? sleep_on(barrier, "a phase of a barrier", site)
                                   : polled(barrier, 8, b.completed, true, site);
    if (!slept) return false;
  }
}

void barrier_arrive(u64* barrier, u32 n, u32 bytes, Site site) {
  choice_point();
  polls_end();
  const u32 where = number_of(site);
  PhaseBarrier& b = barrier_at(barrier, site);
  if (n > b.pending) {
    report_fatal(kArrivals, std::to_string(n) + " arrivals on a barrier that waits for " +
                                std::to_string(b.pending), {here(site)});
  }
  order().barrier_arrive(current().id, barrier, where);
  b.bytes += bytes;
  if (b.bytes > kMostBytes) {
    report_fatal(kArrivals, "more than " + std::to_string(kMostBytes) + " bytes on a barrier",
                 {here(site)});
  }
  b.pending -= n;
  complete_if_due(b);
}

}  // namespace machine
