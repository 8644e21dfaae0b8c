// The choices of a run: everything that the machine may do in more than one way asks choose(). What
// it answers is the schedule. 0 is always the plain way, so that a schedule is the sparse list of
// answers that are not 0.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace machine {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

enum class Choice : u8 {
  kSwitch,  // 0: the warp that runs goes on
  kLane,    // 0: so does the lane
  kNext,    // 0: of the warps that can run, the one that could first
  kLoad,    // 0: a relaxed load sees the newest store
  kStore,   // 0: a relaxed store commits at once
  kWake,    // 0: when nobody can go on, all pending stores commit that somebody waits for
  kLate,    // 0: nothing that was delayed happens now
  kCopy,    // 0: a copy lands as a whole, when somebody waits for it
  kBytes,   // 0: bytes that are read while they are written are what memory holds
  kOld,     // 0: how long old stores may be seen in a launch is what it mostly is
  kKinds,
};

enum class Strategy : u8 {
  kRandom,      // a seed draws how often each kind of choice deviates, and when
  kPriorities,  // of warps or of blocks, which change at a few places that a seed draws (PCT)
  kExhaustive,  // depth first, over all schedules with at most n deviations
  kReplay,      // a list of deviations
};

struct Deviation {
  u64 index;  // of the choice in the run
  u32 value;
};

struct Schedule {
  Strategy strategy = Strategy::kReplay;
  u64 seed = 0;
  u32 depth = 3;          // places where priorities change, or the most deviations
  u32 last = 0;           // of priorities: block last - 1, modulo their number, runs only when
                          // no other can; 0: none
  u64 expected = 100000;  // choices of a run, about: where priorities change is drawn among them
  std::vector<Deviation> deviations;  // of a replay
  // Choices of threads are among operations that do not commute alone (scheduler.cc): fewer
  // schedules stand for all. Lists of deviations are then of such choices.
  bool reduced = false;
};

// Begins a schedule: of the launches that follow, until the next one.
void begin_schedule(Schedule schedule);
// Before each launch, of blocks of n warps: how often kinds of choices deviate is drawn anew.
// Warps are numbered block by block.
void begin_launch_of_schedule(u32 blocks, u32 warps);
// A warp that has stored words for other blocks is about to look for theirs: a place where its
// priority may change.
void warp_turns(u16 warp);
// With an exhaustive strategy: prepares the schedule that comes after the one that has just run.
// Returns false if there is none.
bool next_schedule();

// Whether the schedule that runs is a reduced one.
bool is_reduced();

// One of n ways, n >= 1.
u32 choose(u32 n, Choice kind);
// One of n warps that can run.
u32 choose_warp(const u16* warps, u32 n, Choice kind);

// Of the schedule so far.
u64 choices();
const std::vector<Deviation>& deviations();

}  // namespace machine
