#include "scheduler.h"

#include <algorithm>
#include <cstring>

#include "barrier.h"
#include "findings.h"
#include "host.h"

namespace machine {

Self* self = nullptr;

namespace {

const Launch* launch = nullptr;
std::vector<std::unique_ptr<Block>> blocks;
std::vector<std::unique_ptr<Warp>> warps;
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<std::unique_ptr<Fiber>> fiber_pool;
std::vector<std::unique_ptr<Warp>> warp_pool;

// Warps with a lane that can run. The one that runs is the first.
std::vector<u16> queue;

Context outside;  // of whoever launches
Outcome outcome;
u64 step_count = 0, most_steps = ~u64(0), first_step = 0;
u64 jumped_ns = 0;
u64 idle_steps = 0;  // of the launch, in which all looked once more whether a wait was over
u32 quiet = 0;  // times that all slept, and were woken, since the launch made progress

constexpr u64 kJumpNs = 8000000000;  // more than most limits
constexpr u32 kMostJumps = 16;  // the clock has gone days ahead

// ---- who runs next ------------------------------------------------------------------------------

Fiber* lane_after(const Warp& warp, u32 lane) {
  const u32 later = warp.ready & ~(~u32(0) >> (31 - lane));
  return warp.lanes[__builtin_ctz(later ? later : warp.ready)];
}

void switch_to(Fiber* next) {
  Fiber& from = current();
  if (&from == next) return;
  self = next;
  switch_context(from.context, next->context);
}

[[noreturn]] void leave(Outcome how) {
  outcome = how;
  Context nowhere;
  switch_context(nowhere, outside);
  __builtin_unreachable();
}

std::string describe_waits() {
  std::string text;
  for (const auto& warp : warps) {
    u32 told = 0;
    for (u32 lane = 0; lane < kWarpSize; ++lane) {
      const Fiber* f = warp->lanes[lane];
      if (!f || f->state == State::kDone || (told >> lane & 1)) continue;
      u32 same = 0;
      for (u32 other = lane; other < kWarpSize; ++other) {
        const Fiber* g = warp->lanes[other];
        if (g && g->state == f->state && g->waits_at.line == f->waits_at.line) same |= 1u << other;
      }
      told |= same;
      if (text.size() > 4000) return text + "; and others";
      if (!text.empty()) text += "; ";
      text += "block " + std::to_string(warp->home->index) + ", " +
              std::to_string(__builtin_popcount(same)) + " lanes from thread " +
              std::to_string(f->thread) + " on: " + (f->waits_for ? f->waits_for : "nothing");
      if (f->waits_at.file) {
        text += std::string(" at ") + f->waits_at.file + ":" + std::to_string(f->waits_at.line);
      }
    }
  }
  return text;
}

// Nobody can run. What has been delayed happens that somebody waits for; then all that sleep look
// again; then all happens; then the clock goes on, until the runtime's own limit on a wait is over.
void unblock() {
  if (what_is_awaited_happens()) return;
  if (quiet == 0) {
    ++quiet;
    if (wake_sleepers(0)) return;
  }
  if (all_happens()) return;
  const u32 kPollsOfALook = 600;  // the runtime looks at the clock once in 256 polls
  if (quiet <= kMostJumps) {
    jumped_ns += kJumpNs << (quiet - 1);
    ++quiet;
    const u32 sleepers = wake_sleepers(kPollsOfALook);
    idle_steps += u64(sleepers) * kPollsOfALook;
    if (sleepers) return;
  }
  report(kStall, "nobody can go on: " + describe_waits(), {});
  leave(Outcome::kAbandoned);
}

// ---- reduced schedules --------------------------------------------------------------------------

// A choice is among warps whose lanes are all poised: about to do something that others can see.
// What they do up to there commutes with all that others do, as plain accesses and barriers of a
// block do, or is a race, which clocks find in any order. So one order of it stands for all. Lanes
// of a warp act together, one after the other: what is to be in any order is of several warps.

Warp* acting = nullptr;  // the one that was chosen last
u32 to_act = 0;          // its lanes that have not acted since

Fiber* first_not_poised() {
  for (u16 number : queue) {
    const Warp& warp = *warps[number];
    if (const u32 lanes = warp.ready & ~warp.poised) return warp.lanes[__builtin_ctz(lanes)];
  }
  return nullptr;
}

// The fiber that acts next, or null if none can run. The plain way is a lane of the warp that acted
// last, or else of the first one.
Fiber* next_to_act() {
  static std::vector<Warp*> all;
  for (;;) {
    if (Fiber* fiber = first_not_poised()) return fiber;
    if (const u32 lanes = acting ? to_act & acting->ready : 0) {
      to_act = lanes & (lanes - 1);
      return acting->lanes[__builtin_ctz(lanes)];
    }
    if (queue.empty()) {
      const u32 ways = ways_to_happen();
      if (ways == 0) return nullptr;
      happens(choose(ways, Choice::kLate));
      continue;
    }
    all.clear();
    for (const auto& warp : warps) {
      if (!warp->ready) continue;
      all.push_back(warp.get());
      if (warp.get() == acting) std::swap(all.front(), all.back());
    }
    const u32 taken = choose(u32(all.size()) + ways_to_happen(), Choice::kSwitch);
    if (taken < all.size()) {
      acting = all[taken];
      to_act = acting->ready;
    } else {
      happens(taken - u32(all.size()));
    }
  }
}

void switch_to_front(Fiber* next) {
  const auto at = std::find(queue.begin(), queue.end(), next->warp->number);
  std::rotate(queue.begin(), at, at + 1);
  switch_to(next);
}

// ---- handing over -------------------------------------------------------------------------------

void something_may_happen() {
  const u32 ways = ways_to_happen();
  if (ways == 0) return;
  if (const u32 taken = choose(1 + ways, Choice::kLate)) happens(taken - 1);
}

// The fiber that runs cannot go on.
void run_next() {
  Fiber& from = current();
  Warp& warp = *from.warp;
  if (is_reduced()) {
    if (!warp.ready) queue.erase(queue.begin());
    Fiber* next;
    while (!(next = next_to_act())) unblock();
    return switch_to_front(next);
  }
  if (warp.ready) return switch_to(lane_after(warp, from.lane));
  queue.erase(queue.begin());
  while (queue.empty()) unblock();
  const u32 taken = choose_warp(queue.data(), u32(queue.size()), Choice::kNext);
  std::rotate(queue.begin(), queue.begin() + taken, queue.begin() + taken + 1);
  const Warp& next = *warps[queue.front()];
  switch_to(lane_after(next, kWarpSize - 1));
}

// ---- the life of a fiber ------------------------------------------------------------------------

void end_fiber() {
  Fiber& fiber = current();
  Warp& warp = *fiber.warp;
  fiber_ends(fiber);
  fiber.state = State::kDone;
  fiber.waits_for = nullptr;
  warp.present &= ~(1u << fiber.lane);
  warp.ready &= ~(1u << fiber.lane);
  Block& home = *fiber.home;
  progress();
  if (--home.live) {
    leave_barriers(home);
  } else {
    block_ends(home);
    bool live = false;
    for (const auto& block : blocks) live |= block->live != 0;
    if (!live) leave(Outcome::kDone);
  }
  run_next();
  __builtin_unreachable();
}

void fiber_entry() {
  launch->body();
  end_fiber();
}

// Takes the blocks `first` to `end` and makes all their threads ready.
void populate(u32 first, u32 end) {
  blocks.clear();
  queue.clear();
  for (auto& f : fibers) fiber_pool.push_back(std::move(f));
  for (auto& w : warps) warp_pool.push_back(std::move(w));
  fibers.clear();
  warps.clear();
  for (u32 b = first; b < end; ++b) {
    auto block = std::make_unique<Block>();
    block->index = b;
    block->live = launch->threads;
    block->dynamic_bytes = launch->shared_bytes;
    block->place = b - first;
    block->memory = begin_shared(*block);
    begin_registers(*block, launch->threads);
    for (u32 t = 0; t < launch->threads; ++t) {
      if (t % kWarpSize == 0) {
        if (warp_pool.empty()) warp_pool.push_back(std::make_unique<Warp>());
        warps.push_back(std::move(warp_pool.back()));
        warp_pool.pop_back();
        Warp& w = *warps.back();
        w.number = u16(warps.size() - 1);
        w.home = block.get();
        std::fill(std::begin(w.lanes), std::end(w.lanes), nullptr);
        w.present = w.ready = w.poised = w.arrived = w.turn = 0;
        w.has_stored = false;
        begin_registers(w, launch->threads);
        begin_products(w);
        queue.push_back(w.number);
      }
      if (fiber_pool.empty()) {
        fiber_pool.push_back(std::make_unique<Fiber>());
        fiber_pool.back()->stack = take_stack();
      }
      fibers.push_back(std::move(fiber_pool.back()));
      fiber_pool.pop_back();
      Fiber& f = *fibers.back();
      static_cast<Self&>(f) = {t, b, launch->threads, launch->blocks, block->memory};
      f.warp = warps.back().get();
      f.home = block.get();
      f.id = b * launch->threads + t;
      f.lane = t % kWarpSize;
      f.state = State::kReady;
      f.waits_for = nullptr;
      f.polls.count = f.polls.patience = f.copy_group = 0;
      f.copies.clear();
      f.warp->lanes[f.lane] = &f;
      f.warp->present |= 1u << f.lane;
      f.warp->ready |= 1u << f.lane;
      prepare(f.context, f.stack, fiber_entry);
    }
    blocks.push_back(std::move(block));
  }
}

}  // namespace

const std::vector<std::unique_ptr<Block>>& blocks_at_once() { return blocks; }
const std::vector<std::unique_ptr<Warp>>& warps_at_once() { return warps; }
bool running() { return self != nullptr; }

Outcome run(const Launch& l) {
  launch = &l;
  first_step = step_count;
  idle_steps = 0;
  outcome = Outcome::kDone;
  reset_polls();
  begin_launch_of_schedule(l.at_once, (l.threads + kWarpSize - 1) / kWarpSize);
  launch_begins(l);
  for (u32 first = 0; first < l.blocks && outcome == Outcome::kDone; first += l.at_once) {
    populate(first, std::min(first + l.at_once, l.blocks));
    quiet = 0;
    acting = nullptr;
    self = fibers.front().get();
    switch_context(outside, fibers.front()->context);
    self = nullptr;
  }
  launch_ends(outcome == Outcome::kDone);
  return outcome;
}

void choice_point(Next what) {
  const u64 steps_of_launch = ++step_count - first_step;
  if (steps_of_launch > idle_steps && steps_of_launch - idle_steps > most_steps) {
    report_fatal(kEndless, "the run has more steps than it may have: " + describe_waits(), {});
  }
  if (step_count >= host_acts_at) host_acts();
  Fiber& fiber = current();
  Warp& warp = *fiber.warp;
  if (is_reduced()) {
    if (what == Next::kCommutes) return;
    const u32 lane = 1u << fiber.lane;
    warp.poised |= lane;
    switch_to_front(next_to_act());
    warp.poised &= ~lane;
    return;
  }
  something_may_happen();
  if (const u32 taken = choose_warp(queue.data(), u32(queue.size()), Choice::kSwitch)) {
    std::rotate(queue.begin(), queue.begin() + taken, queue.begin() + taken + 1);
    return switch_to(lane_after(*warps[queue.front()], kWarpSize - 1));
  }
  Fiber* next = &fiber;
  for (u32 n = choose(u32(__builtin_popcount(warp.ready)), Choice::kLane); n; --n) {
    next = lane_after(warp, next->lane);
  }
  switch_to(next);
}

void wait(State state, const char* what, Site site) {
  Fiber& fiber = current();
  fiber.state = state;
  fiber.waits_for = what;
  fiber.waits_at = site;
  fiber.warp->ready &= ~(1u << fiber.lane);
  run_next();
  fiber.waits_for = nullptr;
}

void wake(Fiber& fiber) {
  fiber.state = State::kReady;
  Warp& warp = *fiber.warp;
  const bool queued = warp.ready != 0;
  warp.ready |= 1u << fiber.lane;
  if (!queued) queue.push_back(warp.number);
}

void abandon() { leave(Outcome::kAbandoned); }

void progress() { quiet = 0; }

u64 clock_ns() { return 1000000000 + step_count * 4 + jumped_ns; }
u64 clock_cycles() { return step_count * 8; }
u64 steps() { return step_count; }
void limit_steps(u64 most) { most_steps = most; }

}  // namespace machine
