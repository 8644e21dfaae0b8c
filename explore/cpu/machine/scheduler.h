// Fibers, warps and blocks of a launch, and who of them runs. One OS thread runs one fiber at a
// time; a fiber yields where its primitives say that it may (choice_point), or where it has to
// wait (wait). Must not know memory orders, and not what a fiber waits for.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "choice.h"
#include "fiber.h"
#include "machine.h"
#include "poll.h"
#include "wide.h"

namespace machine {

enum class State : u8 { kReady, kConverging, kAtBarrier, kAsleep, kDone };

struct Warp;
struct Block;

// A copy of 16 bytes by cp.async (copy.cc).
struct AsyncCopy {
  u32 id, group;
  u8* to;
  const u8* from;
  bool landed;
};

struct Fiber : Self {
  Context context;
  void* stack = nullptr;
  Warp* warp = nullptr;
  Block* home = nullptr;
  u32 id = 0;  // of the launch
  u32 lane = 0;
  State state = State::kReady;
  const char* waits_for = nullptr;  // in words, while it waits
  Site waits_at = {};
  Polls polls;
  std::vector<AsyncCopy> copies;
  u32 copy_group = 0;  // that is open
};

constexpr u32 kWarpSize = 32;
constexpr u32 kMostExchanged = 256;  // bytes of a lane at a collective

struct Warp {
  u16 number = 0;  // among the warps that run
  Block* home = nullptr;
  Fiber* lanes[kWarpSize] = {};
  u32 present = 0;  // lanes that have not ended
  u32 ready = 0;    // lanes that can run
  u32 poised = 0;   // of those, lanes at an operation that others can see; of a reduced schedule
  u32 meeting = 0;  // lanes counted at a barrier that completes
  // The collective that lanes are coming to (warp.cc).
  u32 arrived = 0;
  Collective collective = {};
  Site site = {};
  u32 turn = 0;
  bool has_stored = false;  // words that other blocks may look for, since it has looked for theirs
  u32 registers = 0;        // of each lane
  WideState wide;  // of wgmma (wide.cc)
  alignas(16) u8 slots[2][kWarpSize * kMostExchanged];
};

// Fibers that wait for one another at bar.sync, and those that have come by bar.arrive and gone on
// (barrier.cc).
struct NamedBarrier {
  u32 expected = 0;
  Site site = {};
  std::vector<Fiber*> arrived, gone_on;
  bool begun = false;  // whether the memory model knows what those have released
  bool any_says = false, any = false;  // of those that have come, and of those that came last
};
constexpr u32 kNamedBarriers = 16;

struct SharedArray {
  const void* key;
  u8* memory;
};

struct Block {
  u32 index = 0;
  u32 place = 0;         // among the blocks that run at the same time
  u8* memory = nullptr;  // shared memory, of the arena
  u32 dynamic_bytes = 0;
  u32 live = 0;  // threads that have not ended
  u32 free_registers = 0;
  NamedBarrier barriers[kNamedBarriers];
  std::vector<SharedArray> arrays;
  u32 array_bytes = 0;
};

struct Launch {
  std::function<void()> body;  // of a thread
  u32 blocks = 1, threads = 1, shared_bytes = 0;
  u32 at_once = 1;  // blocks that run at the same time
  u32 gpus = 1;     // that the blocks run on, as many on each
};

// Runs a launch to its end, or until a fiber or the scheduler abandons it.
enum class Outcome : u8 { kDone, kAbandoned };
Outcome run(const Launch& launch);

inline Fiber& current() { return *static_cast<Fiber*>(self); }
// All fibers that run now, for reports.
const std::vector<std::unique_ptr<Block>>& blocks_at_once();
const std::vector<std::unique_ptr<Warp>>& warps_at_once();
bool running();

// The fiber that runs may yield to another one: a choice. What it does next may commute with
// what all others do, or be seen by them.
enum class Next : u8 { kSeen, kCommutes };
void choice_point(Next next = Next::kSeen);
// It waits until wake(), and others run.
void wait(State state, const char* what, Site site);
void wake(Fiber& fiber);
// Gives the launch up: nothing of it runs any more. Does not return.
[[noreturn]] void abandon();

// The launch made progress: a wait may end.
void progress();
// Choice points since the machine began, and the most that a launch may have, besides those of waits
// that end because nobody can go on.
u64 steps();
void limit_steps(u64 most);

// ---- what the rest of the machine does about it (launch.cc) -----------------------------------

void launch_begins(const Launch& launch);
void launch_ends(bool completed);
// Dynamic shared memory of a block.
u8* begin_shared(const Block& block);
// A warp begins with no product of wgmma, no lane ends before one is waited for, and no block before
// all four warps of a group have begun it (wide.cc).
void begin_products(Warp& warp);
void thread_leaves_products(Fiber& fiber);
void block_leaves_products(const Block& block);
// Each lane of a block begins with as many registers as a kernel of so many threads may have (warp.cc).
void begin_registers(Block& block, u32 threads);
void begin_registers(Warp& warp, u32 threads);
void fiber_ends(Fiber& fiber);
void block_ends(Block& block);
// At a choice point something that has been delayed may happen: in how many ways, and one of them.
u32 ways_to_happen();
void happens(u32 way);
// Nobody can run: what has been delayed happens, if somebody waits for it or anyway. Returns whether
// anything has changed.
bool what_is_awaited_happens();
bool all_happens();

}  // namespace machine
