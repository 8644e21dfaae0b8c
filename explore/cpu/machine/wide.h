// wgmma: products that four warps begin and wait for. Each warp has its part of them. Their operand B
// is read by the async proxy, from shared memory.
#pragma once

#include <vector>

#include "machine.h"
#include "mma.h"

namespace machine {

// One that has begun: a warp's 16 rows.
struct WideProduct {
  Half type;
  bool adds;
  const u8* b;
  SharedOperand operand;
  u32 a[32][4];
  u32 sums;   // which of the warp's
  u64 group;  // which of its groups, from 0
  Site site;
};

// Sums of products that have begun: where the lanes have them, and what they are to be. Until they
// are waited for the lanes have a NaN of its own kind instead.
struct WideAccumulator {
  float* registers[32];
  u32 values[32][kWideSums];
  u32 products;  // that it still waits for
};

// What a warp has begun and not waited for. A launch begins with none.
struct WideState {
  std::vector<WideProduct> products;
  std::vector<WideAccumulator> sums;
  u64 groups = 0;            // committed
  u64 done = 0;              // waited for
  bool fenced = false;       // since the last wait
  u32 copy = 0;              // of the open group, in the memory model, plus 1
  std::vector<u32> copies;   // of committed groups
  u64 barrier = 0;           // its address is that of an mbarrier, which tells that copies are over
};

}  // namespace machine
