// Runs products with a quad of each format on the CPU, one warp, on tensor cores and without them. Each sum of a
// quarter is held to that of the elements that the plain kernels find, in double precision. Prints what differs.
#include "made_up.h"

#include "amk/gemv.cuh"
#include "amk/reference_weights.cuh"

// ---- a quad and its activations ----

static Array<u8, 8192> quad;
static float x[kQuadColumns], value[kTileRows][kQuadColumns];
static int failures;

constexpr int kQuads = 5, kKeptBytes = kQuads * 304;  // of the vector, in shared memory
static WeightFormat format;  // of the quad

// Every bit of elements and zero points is as likely as another; no number in e4m3 is NaN.
template <class W>
static void fill() {
  for (u8& b : quad) b = random_bits();
  for (int i = 0; i < W::kScales; ++i)
    if (W::kFloats && W::kBits == 8 && quad[i] % 128 == 127) quad[i] = 1;
  using Scale = typename W::Scale;
  const int from = W::kSteps ? W::kShared : W::kScales;  // of scales and minima
  for (int at = from; at < (W::kSteps ? W::kScales : W::kZeroPoints); at += Scale::kBytes)
    if constexpr (Scale::kBytes == 1) quad[at] = 118 + quad[at] % 8;  // powers of two
    else put<Scale>(quad.all + at, random_value(-9, -5));
  quad.write();
}

// A lane has every 32nd column.
template <class W>
static void find_elements() {
  for (int row = 0; row < kTileRows; ++row)
    for (int column = thread_index(); column < kQuadColumns; column += 32) {
      value[row][column] = quantised_at(format, quad.all, row, column);
      const float at = W::at(quad.all, row, column);
      if (at == value[row][column]) continue;
      ++failures;
      printf("element %d, row %d, column %d: %g, want %g\n", format.element, row, column, at, value[row][column]);
    }
}

static float largest;  // of the vector
static void compare(const char* what, float got) {
  const WeightFormat& f = format;
  const int row = int(thread_index()) / 4, first = int(thread_index()) % 4 * 32;
  double want = 0, size = 0, weights = 0;
  for (int column = first; column < first + 32; ++column) {
    want += double(value[row][column]) * x[column];
    size += fabs(double(value[row][column]) * x[column]);
    weights += fabs(value[row][column]);
  }
  const double fixed = f.element >= kE4m3 ? 0 : weights * largest / 65024;  // by which integers are off
  if (fabs(got - want) <= fixed + size * 0x1p-21) return;
  ++failures;
  printf("%s, element %d, group %d, scales %d, zeros %d, row %d, column %d: %g, want %g\n", what, f.element, f.group,
         f.scale, f.zeros, row, first, got, want);
}

// The same with a vector of which five quads, all of them this one, are kept in shared memory.
template <class W, class F>
static void compare_kept(const float* own) {
  u8* const kept = block_memory();
  const int lane = int(thread_index());
  uint2 four[kQuads];
  for (uint2& f : four) f = make_uint2(pack2(own[0], own[1]), pack2(own[2], own[3]));
  F::keep(kept, four, lane);
  typename F::Weights w;
  F::load(w, quad.all, lane, 1);
  typename F::Vector v;
  for (int i = 0; i < kQuads; ++i) {
    F::recall(v, kept + i * kDigitQuadBytes<W>, lane);
    typename F::Sum sum;
    F::add(sum, F::multiply(sum, w, v), lane);
    compare("kept", F::total(sum, lane));
  }
  warp_sync();
}

template <class W>
static void multiply_on_warp() {
  const int lane = thread_index();
#if AMK_TENSOR_CORES
  using F = Fragments<W>;
  const float* own = x + F::column(lane);
  typename F::Weights w;
  F::load(w, quad.all, lane, 1);
  const auto v = F::vector(make_uint2(pack2(own[0], own[1]), pack2(own[2], own[3])), lane);
  typename F::Sum sum;
  const auto product = F::multiply(sum, w, v);
  F::add(sum, product, lane);
  compare("tensor cores", F::total(sum, lane));
  if constexpr (!W::kFloats) compare_kept<W, F>(own);
#endif
  const auto activation = [](int column) { return x[column]; };
  if constexpr (W::kFloats) {
    compare("fma", add_dot32<W>(0, quad.all, lane, activation));
  } else {
    compare("fma", add_quarter<W>(0, quad.all, lane, activation));
  }
}

template <class W>
static void multiply(const WeightFormat& of) {
  format = of;
  fill<W>();
  run_grid(1, 32, kKeptBytes, find_elements<W>);
  const int ranges[][2] = {{-3, 0}, {-20, 10}, {-99, -95}, {60, 70}};  // of exponents
  for (const auto& range : ranges) {
    if (kSame<Element, Fp16> && abs(range[0]) > 20) continue;
    largest = 0;
    for (float& v : x) {
      v = rounded<Element>(random_value(range[0], range[1]));
      largest = max(largest, fabsf(v));
    }
    run_grid(1, 32, kKeptBytes, multiply_on_warp<W>);
  }
}

template <ElementType kElement, int kGroup, bool kZeros>
static void with_scales() {
  multiply<typename QuantisedOf<kElement, kGroup, Fp16, kZeros>::Format>({kElement, kGroup, kFp16, kZeros});
  multiply<typename QuantisedOf<kElement, kGroup, Bf16, kZeros>::Format>({kElement, kGroup, kBf16, kZeros});
  multiply<typename QuantisedOf<kElement, kGroup, Fp32, kZeros>::Format>({kElement, kGroup, kFp32, kZeros});
}
template <ElementType kElement, int kGroup>
static void integers() {
  with_scales<kElement, kGroup, false>();
  with_scales<kElement, kGroup, true>();
}
// As files of GGUF have them.
template <ElementType kElement, int kGroup, bool kMins, bool kSteps, ElementType kScale = kFp16>
static void stored() {
  using Scale = typename ElementOf<kScale>::Type;
  multiply<typename QuantisedOf<kElement, kGroup, Scale, false, kMins, kSteps>::Format>(
      {kElement, kGroup, kScale, false, kMins, kSteps});
}
extern "C" int amk_main(void* module) {
  begin(module);
  quad.make();
  integers<kInt4, 32>(), integers<kInt4, 64>(), integers<kInt4, 128>();
  integers<kInt8, 32>(), integers<kInt8, 64>(), integers<kInt8, 128>();
  stored<kInt5, 32, false, false>(), stored<kInt4, 32, true, false>(), stored<kInt5, 32, true, false>();
  stored<kInt4, 32, true, true>(), stored<kInt5, 32, true, true>(), stored<kInt6, 16, false, true>(),
      stored<kInt6, 16, true, true>();
  stored<kInt4, 16, true, true>(), stored<kInt4, 16, false, true>(), stored<kInt8, 32, false, true>();
  stored<kInt5, 16, false, false, kFp32>();
  stored<kInt5, 16, true, true>(), stored<kInt5, 32, false, false, kBf16>(), stored<kInt8, 16, false, true>();
  with_scales<kE4m3, 32, false>(), with_scales<kE4m3, 64, false>(), with_scales<kE4m3, 128, false>();
  with_scales<kE2m1, 32, false>(), with_scales<kE2m1, 64, false>(), with_scales<kE2m1, 128, false>();
  stored<kE2m1, 32, false, false, kE8m0>();
  return failures > 0;
}
