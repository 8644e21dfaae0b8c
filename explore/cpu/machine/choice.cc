// Strategies. A run with the same schedule makes the same choices in the same order, so that the
// number of a choice identifies it.
#include "choice.h"

#include <algorithm>

namespace machine {

namespace {

Schedule schedule;
u64 index_ = 0;  // of the next choice
std::vector<Deviation> made;
u64 random_state = 1;

u64 draw() {  // xorshift64*
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 0x2545f4914f6cdd1dull;
}
u32 draw_below(u32 n) { return u32(((draw() >> 32) * n) >> 32); }

u32 note(u32 value) {
  if (value) made.push_back({index_, value});
  ++index_;
  return value;
}

// ---- random -------------------------------------------------------------------------------------

// How often each kind deviates, of 2^32, and how many deviations are left until that is drawn anew.
struct Rate {
  u32 rate, left, drawn;
};
Rate rates[size_t(Choice::kKinds)];
constexpr u32 kDeviations = 4096;  // of a kind, at a rate

// Half of the time, down to once in 2048 times, or never; and half as often with each drawing, so
// that the list of deviations of a long run is not as long as the run.
void draw_rate(Rate& r) {
  const u32 power = draw_below(12);
  r.rate = power == 11 ? 0 : ~u32(0) >> std::min(1 + power + r.drawn, 31u);
  r.left = kDeviations;
  ++r.drawn;
}

u32 random_choice(u32 n, Choice kind) {
  if (kind == Choice::kOld) return draw_below(n);  // once in a launch
  Rate& r = rates[size_t(kind)];
  const u64 drawn = draw();
  if (u32(drawn) >= r.rate) return 0;
  if (--r.left == 0) draw_rate(r);
  return 1 + u32(((drawn >> 32) * (n - 1)) >> 32);
}

// ---- priorities ---------------------------------------------------------------------------------

std::vector<u32> priority;        // of each warp, or of each block; the largest runs
bool by_block = false;            // a seed draws it
u32 warps_of_block = 1;
constexpr u32 kNoBlock = ~u32(0);
u32 last_block = kNoBlock;        // the block that runs only when no other can
std::vector<u64> changes;         // choices at which the warp that would run comes last of all
u32 turn_rate = 0;                // of 2^32: how often a warp comes last that turns
u32 lowest = 0;                   // priority given at the next change

u32 unit_of(u16 warp) {
  const u32 unit = by_block ? warp / warps_of_block : warp;
  while (priority.size() <= unit) priority.push_back((u32(draw()) | 1u << 31));
  return unit;
}
u32 priority_of(u16 warp) {
  const u32 p = priority[unit_of(warp)];
  return warp / warps_of_block == last_block ? p >> 2 : p;
}
void make_last(u16 warp) { priority[unit_of(warp)] = --lowest; }

u32 first_of_priority(const u16* warps, u32 n) {
  u32 best = 0;
  for (u32 i = 1; i < n; ++i) {
    if (priority_of(warps[i]) > priority_of(warps[best])) best = i;
  }
  return best;
}

// ---- exhaustive ---------------------------------------------------------------------------------

struct Branch {
  u32 value, ways;
};
std::vector<Branch> path;  // of the choices so far; those of the run before, beyond index_

u32 exhaustive_choice(u32 n) {
  if (index_ == path.size()) path.push_back({0, n});
  path[index_].ways = n;
  return std::min(path[index_].value, n - 1);
}

// ---- replay -------------------------------------------------------------------------------------

size_t replayed = 0;

u32 replayed_choice(u32 n) {
  while (replayed < schedule.deviations.size() && schedule.deviations[replayed].index < index_) {
    ++replayed;
  }
  if (replayed == schedule.deviations.size() || schedule.deviations[replayed].index != index_) {
    return 0;
  }
  return std::min(schedule.deviations[replayed].value, n - 1);
}

void begin_run() {
  index_ = 0;
  made.clear();
  replayed = 0;
}

}  // namespace

void begin_schedule(Schedule s) {
  schedule = std::move(s);
  random_state = schedule.seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
  if (!random_state) random_state = 1;
  for (int i = 0; i < 4; ++i) draw();
  priority.clear();
  changes.clear();
  if (schedule.strategy == Strategy::kPriorities) {
    for (u32 i = 0; i < schedule.depth; ++i) changes.push_back(draw() % std::max<u64>(schedule.expected, 1));
    std::sort(changes.begin(), changes.end());
    by_block = draw() >> 63 && !schedule.last;
    lowest = 1u << 31;
  }
  path.clear();
  begin_run();
}

void begin_launch_of_schedule(u32 blocks, u32 warps) {
  warps_of_block = warps;
  last_block = schedule.last ? (schedule.last - 1) % blocks : kNoBlock;
  if (schedule.strategy == Strategy::kPriorities) {
    const u32 power = draw_below(10);
    turn_rate = power == 9 ? 0 : ~u32(0) >> (1 + power);
  }
  for (Rate& r : rates) {
    r.drawn = 0;
    draw_rate(r);
  }
}

bool next_schedule() {
  if (schedule.strategy != Strategy::kExhaustive) return false;
  path.resize(std::min<size_t>(path.size(), index_));
  u32 deviations = 0;
  for (const Branch& b : path) deviations += b.value != 0;
  while (!path.empty()) {
    Branch& last = path.back();
    const u32 before = deviations - (last.value != 0);
    if (last.value + 1 < last.ways && before < schedule.depth) {
      ++last.value;
      begin_run();
      return true;
    }
    deviations = before;
    path.pop_back();
  }
  return false;
}

bool is_reduced() { return schedule.reduced; }

u32 choose(u32 n, Choice kind) {
  if (n < 2) return 0;
  switch (schedule.strategy) {
    case Strategy::kRandom:
    case Strategy::kPriorities:  // they are of warps alone (choose_warp)
      return note(random_choice(n, kind));
    case Strategy::kExhaustive:
      return note(exhaustive_choice(n));
    case Strategy::kReplay:
      return note(replayed_choice(n));
  }
  return 0;
}

u32 choose_warp(const u16* warps, u32 n, Choice kind) {
  if (n < 2) return 0;
  if (schedule.strategy != Strategy::kPriorities) return choose(n, kind);
  u32 best = first_of_priority(warps, n);
  while (!changes.empty() && changes.front() <= index_) {
    changes.erase(changes.begin());
    make_last(warps[best]);
    best = first_of_priority(warps, n);
  }
  return note(best);
}

void warp_turns(u16 warp) {
  if (schedule.strategy == Strategy::kPriorities && u32(draw()) < turn_rate) make_last(warp);
}

u64 choices() { return index_; }
const std::vector<Deviation>& deviations() { return made; }

}  // namespace machine
