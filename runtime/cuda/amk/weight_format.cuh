// What a quantised matrix consists of, for the descriptors of schedule.h, which includes this
// header first. Must not know the layout of its bytes.
#pragma once

namespace amk {

enum ElementType { kFp32, kFp16, kBf16, kInt4, kInt5, kInt6, kInt8, kE4m3, kE2m1, kE8m0 };

// Elements, and for every `group` columns of a row a scale, and possibly a zero point or a minimum,
// which is added to the products. With steps, a scale and a minimum are an integer times a number
// that the groups of a row's block share. In a matrix that is not quantised, group is 0.
struct WeightFormat {
  ElementType element;
  int group;
  ElementType scale;
  bool zeros;
  bool mins = false;
  bool steps = false;
};

}  // namespace amk
