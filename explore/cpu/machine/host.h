// What the host does while a launch runs: stores to words of pinned memory, at steps that the
// schedule names. Must not know what the words are for.
#pragma once

#include <vector>

#include "machine.h"

namespace machine {

struct HostStore {
  u64 step;        // of all steps since the schedule began
  u32 pointer_at;  // byte of the kernel's argument where the address of the word is
  u32 value;
};

// Those of the schedule, in the order of their steps.
void set_host_stores(std::vector<HostStore> stores);
// The argument of the launch that begins.
void host_sees(const void* argument, u32 bytes);
// Carries out those that are due, in the launch that runs. One that falls between launches is
// carried out in the next.
void host_acts();
// The step of the first that is not carried out, as steps() counts; none: no step.
extern u64 host_acts_at;

}  // namespace machine
