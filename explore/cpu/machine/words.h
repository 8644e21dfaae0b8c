// What an operation on a word says of itself, for kernels and for the memory model.
#pragma once

#include <cstdint>

namespace machine {

enum class Ordering : uint8_t { kRelaxed, kAcquire, kRelease, kBoth };
enum class Scope : uint8_t { kBlock, kGpu, kSystem };
enum class Update : uint8_t {
  kAdd, kExchange, kMax, kMin, kMaxSigned, kMinSigned, kAnd, kOr, kXor, kCompareAndSwap
};

}  // namespace machine
