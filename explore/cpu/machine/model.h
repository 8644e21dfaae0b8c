// The memory model of the machine, and what it asks and tells.
#pragma once

#include "order.h"

namespace machine {

// Of the one arena. arena_begin comes before.
Order& order();

// While one lives, reads of bytes that nobody has written are not reported.
class UnwrittenAllowed {
 public:
  UnwrittenAllowed();
  ~UnwrittenAllowed();
};

// Whether shared memory of the block that runs has all these bytes.
bool running_inside(const void* p, u32 bytes);

}  // namespace machine
