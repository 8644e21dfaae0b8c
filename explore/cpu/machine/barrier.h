// What the rest of the machine asks of barriers.
#pragma once

#include "scheduler.h"

namespace machine {

// An mbarrier. A phase is complete when no arrivals and no bytes are missing.
struct PhaseBarrier {
  u64* address;
  u32 arrivals;  // of a phase
  u32 pending;   // of them, in the phase under way
  int64_t bytes = 0;  // that copies have still to bring
  u64 completed = 0;  // phases
};

// Before a launch.
void barriers_begin();
// A thread of the block has ended: those that are left may be all that are waited for.
void leave_barriers(Block& block);
// A copy has brought its bytes.
void complete_bytes(u64* barrier, u32 bytes, Site site);

}  // namespace machine
