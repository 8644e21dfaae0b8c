// Copies that are under way.
#pragma once

#include <optional>

#include "scheduler.h"
#include "tensor.h"

namespace machine {

// A bulk copy under way.
struct BulkCopy {
  struct Range {
    u32 begin, end;
  };
  u32 id;
  u8* to;
  const u8* from;          // of contiguous bytes
  std::optional<Box> box;  // or what is copied
  u32 bytes;
  u64* barrier;
  const Block* home;
  Site site;
  std::vector<Range> left;
};

void copies_begin();  // before a launch
// The oldest that completes on a barrier, or null.
const BulkCopy* copy_to(const u64* barrier);
// Of the block that runs, those that complete on a barrier: lands them, unless a choice says later.
bool land_copies_of(const u64* barrier);
// Bulk copies under way; a part of one of them lands, in the way that a choice says.
u32 copies_under_way();
void land_part(u32 which);
bool land_oldest();  // false: there is none
void thread_leaves_copies(Fiber& fiber);
void block_leaves_copies(const Block& block);

}  // namespace machine
