// Call sites of primitives, by number: the `Where` of strong accesses in the memory model.
#pragma once

#include "machine.h"

namespace machine {

u32 number_of(Site site);
Site site_of(u32 number);
// A module has been unloaded: other names may take the addresses of its own.
void forget_addresses();

// The part of a file's path that does not depend on where the build is: "amk/ring.cuh".
const char* short_name(const char* file);

}  // namespace machine
