// What a quantised matrix consists of, for the descriptors of schedule.h, which includes this
// header first. Must not know the layout of its bytes.
#pragma once

namespace amk {

enum ElementType { kFp32, kFp16, kBf16, kInt4, kInt8, kE4m3 };

// Elements, and for every `group` columns of a row a scale and possibly a zero point. In a matrix
// that is not quantised, group is 0.
struct WeightFormat {
  ElementType element;
  int group;
  ElementType scale;
  bool zeros;
};

}  // namespace amk
