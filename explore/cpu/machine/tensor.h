// Tensor maps: tensors in memory, and boxes of them that copies bring to shared memory, as
// cuTensorMapEncodeTiled has them. What its 128 bytes hold is opaque to hosts and kernels. Must not
// know a thread, a schedule or the memory model.
#pragma once

#include "machine.h"

namespace machine {

constexpr u32 kMostRank = 5, kMostBox = 256, kTensorMapBytes = 128;
constexpr u32 kMostRowBytes = kMostBox * 8;

// The arguments of cuTensorMapEncodeTiled that count. The innermost dimension comes first; strides are
// of the others, in bytes.
struct TensorArguments {
  int type;
  u32 rank;
  void* address;
  const u64* dims;
  const u64* strides;
  const u32* box;
  const u32* element_strides;
  int interleave, swizzle, fill;
};
enum class Encoded : u8 { kDone, kInvalid, kNotModelled };
Encoded encode_tensor(const TensorArguments& arguments, void* map);

// A box of a tensor, at some coordinates.
struct Box {
  u8* address;
  u32 rank, element;  // element: bytes of one
  u64 dims[kMostRank], strides[kMostRank];
  u32 sides[kMostRank];
  int32_t at[kMostRank];

  u32 bytes() const;
  // The bytes of the box from an offset on that follow one another in memory, no more than up to `end`.
  // Null: they are outside of the tensor, and zeros.
  struct Run {
    const u8* from;
    u32 bytes;
  };
  Run run(u32 offset, u32 end) const;
};
// Returns what is wrong, or null.
const char* find_box(const void* map, const int32_t* at, u32 rank, Box& box);

}  // namespace machine
