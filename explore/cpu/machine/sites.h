// Call sites of primitives: each has a number. Must not know what primitives do.
#pragma once

#include <string>
#include <vector>

#include "machine.h"

namespace machine {

struct CallSite {
  const char* primitive;
  Site site;
  u32 number;
  u64 calls = 0;
};

// The site of a call, and counts it. `primitive` is a literal.
CallSite& call_site(const char* primitive, Site site);
CallSite& call_site(u32 number);
// A module has been unloaded: others may come to lie where its names were.
void forget_addresses();
u32 call_sites();

// The part of a file's path that does not depend on where the build lies: "amk/ring.cuh".
const char* short_name(const char* file);

}  // namespace machine
