#include "tensor.h"

#include <algorithm>
#include <cstring>

namespace machine {
namespace {

constexpr u64 kMark = 0x7e4502a1c93b68d7;

struct Encoding {
  u64 mark;
  u8* address;
  u32 dims[kMostRank];  // less 1
  u16 sides[kMostRank];
  u8 rank, element;
  u64 strides[kMostRank - 1];
};
static_assert(sizeof(Encoding) <= kTensorMapBytes, "what a CUtensorMap holds");

// Of CUtensorMapDataType: bytes of u8 to bf16. What follows would change bits.
constexpr u8 kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};

bool is_aligned(const void* p, u32 to) { return reinterpret_cast<uintptr_t>(p) % to == 0; }

}  // namespace

Encoded encode_tensor(const TensorArguments& a, void* map) {
  if (!map || !is_aligned(map, 64) || !a.address || !is_aligned(a.address, 16) || a.rank == 0 ||
      a.rank > kMostRank || a.type < 0)
    return Encoded::kInvalid;
  if (size_t(a.type) >= sizeof kElementBytes || a.interleave != 0 || a.swizzle != 0 || a.fill != 0)
    return Encoded::kNotModelled;
  Encoding e{};
  e.mark = kMark;
  e.address = static_cast<u8*>(a.address);
  e.rank = u8(a.rank);
  e.element = kElementBytes[a.type];
  for (u32 i = 0; i < a.rank; ++i) {
    if (a.dims[i] == 0 || a.dims[i] > u64(1) << 32 || a.box[i] == 0 || a.box[i] > kMostBox)
      return Encoded::kInvalid;
    if (a.element_strides[i] != 1)
      return a.element_strides[i] == 0 || a.element_strides[i] > 8 ? Encoded::kInvalid : Encoded::kNotModelled;
    e.dims[i] = u32(a.dims[i] - 1);
    e.sides[i] = u16(a.box[i]);
  }
  if (a.box[0] * e.element % 16 != 0) return Encoded::kInvalid;
  for (u32 i = 0; i + 1 < a.rank; ++i) {
    e.strides[i] = a.strides[i];
    if (e.strides[i] % 16 != 0 || e.strides[i] >= u64(1) << 40) return Encoded::kInvalid;
  }
  memset(map, 0, kTensorMapBytes);
  memcpy(map, &e, sizeof e);
  return Encoded::kDone;
}

const char* find_box(const void* map, const int32_t* at, u32 rank, Box& box) {
  if (!is_aligned(map, 64)) return "a tensor map that is not aligned to 64 bytes";
  Encoding e;
  memcpy(&e, map, sizeof e);
  if (e.mark != kMark) return "a tensor map that the driver has not made";
  if (e.rank != rank) return "a copy of a box with another number of dimensions than the tensor map's";
  box = {};
  box.address = e.address;
  box.rank = rank;
  box.element = e.element;
  for (u32 i = 0; i < rank; ++i) {
    box.dims[i] = u64(e.dims[i]) + 1;
    box.strides[i] = i == 0 ? e.element : e.strides[i - 1];
    box.sides[i] = e.sides[i];
    box.at[i] = at[i];
  }
  return nullptr;
}

u32 Box::bytes() const {
  u32 n = element;
  for (u32 i = 0; i < rank; ++i) n *= sides[i];
  return n;
}

Box::Run Box::run(u32 offset, u32 end) const {
  const u32 row = sides[0] * element, in_row = offset % row;
  const u32 bytes = std::min(end - offset, row - in_row);
  const u8* from = address;
  u32 rest = offset / row;
  for (u32 i = 1; i < rank; ++i) {
    const int64_t index = int64_t(at[i]) + rest % sides[i];
    rest /= sides[i];
    if (index < 0 || index >= int64_t(dims[i])) return {nullptr, bytes};
    from += index * int64_t(strides[i]);
  }
  // Of the row, the elements that there are.
  const int64_t first = int64_t(at[0]) * element + in_row, all = int64_t(dims[0]) * element;
  if (first < 0) return {nullptr, u32(std::min(int64_t(bytes), -first))};
  if (first >= all) return {nullptr, bytes};
  return {from + first, u32(std::min(int64_t(bytes), all - first))};
}

}  // namespace machine
