// Copies that are under way.
#pragma once

#include "scheduler.h"

namespace machine {

void copies_begin();  // before a launch
// Of the block that runs, those that complete on a barrier: lands them, unless a choice says later.
bool land_copies_of(const u64* barrier);
// Bulk copies under way; a part of one of them lands, in the way that a choice says.
u32 copies_under_way();
void land_part(u32 which);
bool land_oldest();  // false: there is none
void thread_leaves_copies(Fiber& fiber);
void block_leaves_copies(const Block& block);

}  // namespace machine
