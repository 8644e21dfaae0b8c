// What happens at the beginning and the end of a launch, of its blocks and threads, and what was
// delayed and happens in between.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "arena.h"
#include "barrier.h"
#include "copy.h"
#include "device.h"
#include "findings.h"
#include "model.h"
#include "scheduler.h"

namespace machine {

namespace {

// Shared memory: of each block that runs, dynamic memory and after it static arrays.
constexpr u32 kMostDynamic = 228 << 10;
constexpr u32 kMostStatic = 256 << 10;
constexpr u32 kArrayStride = 4096;  // regions share no page of the memory model
constexpr u32 kSharedStride = 512 << 10;

std::vector<u8*> places;       // of blocks
std::vector<u8*> regions;      // of the launch

// What a block finds in shared memory: large numbers, NaNs, infinities, or anything, whatever the
// type. Nothing may depend on it.
void leave_garbage(u8* p, u32 bytes, u32 seed) {
  switch (choose(4, Choice::kBytes)) {
    case 0:
      memset(p, 0xee, bytes);
      return;
    case 1:
      memset(p, 0xff, bytes);
      return;
    case 2:
      for (u32 i = 0; i + 2 <= bytes; i += 2) p[i] = 0x80, p[i + 1] = 0x7f;
      return;
    default:
      u32 x = seed * 2 + 1;
      for (u32 i = 0; i < bytes; ++i) p[i] = u8((x = x * 1664525 + 1013904223) >> 24);
  }
}

void add_shared(u8* p, u32 bytes, const Block& block, const char* what) {
  leave_garbage(p, bytes, block.index);
  order().add_region(RegionKind::kShared, p, bytes,
                     what + (" of block " + std::to_string(block.index)), block.index);
  regions.push_back(p);
}

void remove_shared() {
  for (u8* p : regions) order().remove_region(p);
  regions.clear();
}

}  // namespace

// Loads, stores and updates by all threads for which an old store may still be seen: each costs time
// to know. Reduced schedules are short.
constexpr u32 kOld[] = {2000, 100, 20000, ~u32(0)};

void launch_begins(const Launch& launch) {
  tensor_core = tensor_core_of(int(device.arch));
  barriers_begin();
  copies_begin();
  Bounds bounds;
  bounds.stale = is_reduced() ? ~u32(0) : kOld[choose(std::size(kOld), Choice::kOld)];
  order().set_bounds(bounds);
  order().begin_launch(launch.blocks, launch.threads, launch.gpus);
}

void launch_ends(bool) {
  remove_shared();
  order().end_launch();
}

u8* begin_shared(const Block& block) {
  if (block.place == 0) remove_shared();  // of the blocks before
  while (places.size() <= block.place) {
    places.push_back(arena_allocate(kSharedStride));
    if (!places.back()) report_fatal(kRoom, "no room for the shared memory of blocks", {});
  }
  u8* p = places[block.place];
  if (block.dynamic_bytes) add_shared(p, (block.dynamic_bytes + 15) / 16 * 16, block, "shared memory");
  return p;
}

void* shared_array(const void* key, u32 bytes) {
  Block& block = *current().home;
  for (const SharedArray& a : block.arrays) {
    if (a.key == key) return a.memory;
  }
  u8* p = places[block.place] + kMostDynamic + block.array_bytes;
  block.array_bytes += (bytes + kArrayStride - 1) / kArrayStride * kArrayStride;
  if (block.array_bytes > kMostStatic) {
    report_fatal(kRoom, "more static shared memory than a block may have", {});
  }
  add_shared(p, (bytes + 15) / 16 * 16, block, "static shared memory");
  block.arrays.push_back({key, p});
  return p;
}

bool running_inside(const void* p, u32 bytes) {
  const Block& block = *current().home;
  return u64(static_cast<const u8*>(p) - block.memory) + bytes <= block.dynamic_bytes;
}

void fiber_ends(Fiber& fiber) {
  thread_leaves_copies(fiber);
  thread_leaves_products(fiber);
  if (fiber.warp->arrived) {
    report_fatal(kCollectives, "a lane ends while others of its warp are at a collective",
                 {here(fiber.warp->site), here(Site{})});
  }
}

void block_ends(Block& block) {
  block_leaves_copies(block);
  block_leaves_products(block);
}

constexpr u32 kMost = 8;  // copies, and stores, that a choice is among

u32 ways_to_happen() {
  return std::min(copies_under_way(), kMost) + std::min(order().pending_count(), kMost);
}

void happens(u32 way) {
  const u32 stores = std::min(order().pending_count(), kMost);
  if (way < stores) return order().commit(way);
  land_part(way - stores);
}

bool what_is_awaited_happens() { return land_oldest() || order().commit_awaited(); }
bool all_happens() { return order().settle(); }

}  // namespace machine
