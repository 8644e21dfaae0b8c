// The memory model of the machine, and what it asks and tells.
#pragma once

#include "order.h"

namespace machine {

// Of the one arena. arena_begin comes before.
Order& order();

// Whether shared memory of the block that runs has all these bytes.
bool running_inside(const void* p, u32 bytes);

}  // namespace machine
