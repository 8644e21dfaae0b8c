// wgmma: products that four warps begin and wait for. Each warp has its part of them: 16 of the 64
// rows. Operands in shared memory are read by the async proxy.
#pragma once

#include <vector>

#include "machine.h"
#include "mma.h"

namespace machine {

// One that has begun, as a warp has it.
struct WideProduct {
  WideOperands of;  // as lane 0 has named them
  SharedOperand a, b;
  u32 registers[32][4];  // A, if it is not in shared memory
  u32 sums;   // which of the warp's
  u64 group;  // which of its groups, from 0
  Site site;
};

// Sums of products that have begun: where the lanes have them, and what they are to be. Until they
// are waited for the lanes have a NaN of its own kind instead.
struct WideAccumulator {
  float* registers[32];
  u32 count;  // of each lane
  u32 values[32 * kMostWideColumns / 2];
  u32 products = 0;  // that it still waits for; 0: nobody's
};

// What all four warps of a group begin alike.
struct WideBegun {
  u64 a, b;
  int columns;
  Half type;
  bool adds;
  Site site;
};

// What a warp has begun and not waited for. A launch begins with none.
struct WideState {
  std::vector<WideProduct> products;
  std::vector<WideAccumulator> sums;
  u64 begun = 0;             // products
  u64 groups = 0;            // committed
  u64 done = 0;              // waited for
  bool fenced = false;       // since the last wait
  u32 copy = 0;              // of the open group, in the memory model, plus 1
  std::vector<u32> copies;   // of committed groups
  u64 barrier = 0;           // its address is that of an mbarrier, which tells that copies are over
  // Of the first warp of four: what one of them has begun and not all.
  std::vector<WideBegun> log;
  u64 logged = 0;  // products before these
};

}  // namespace machine
