// What a quantised matrix consists of, as the descriptors of schedule.h say it, which includes this
// before anything else. Must not know how its bytes lie.
#pragma once

namespace amk {

enum ElementType { kFp32, kFp16, kBf16, kInt4, kInt8, kE4m3 };

// Elements, and for every `group` columns of a row a scale, and perhaps a zero point. Of a matrix
// that is not quantised, group is 0.
struct WeightFormat {
  ElementType element;
  int group;
  ElementType scale;
  bool zeros;
};

}  // namespace amk
