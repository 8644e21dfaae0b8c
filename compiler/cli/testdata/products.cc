// Runs products with a quad of each format on the CPU, one warp, on tensor cores and without them. Each sum of a
// quarter is held to that of the elements that the plain kernels find, in double precision. Prints what differs.
#include "made_up.h"

#include "amk/gemv.cuh"
#include "amk/reference_weights.cuh"

// ---- a quad and its activations ----

alignas(16) static u8 quad[8192];
static float x[kQuadColumns], value[kTileRows][kQuadColumns];
static int failures;

// Every bit of elements and zero points is as likely as another; no number in e4m3 is NaN.
template <class W>
static void fill(const WeightFormat& format) {
  for (u8& b : quad) b = random_bits();
  for (int i = 0; i < W::kScales; ++i)
    if (W::kFloats && quad[i] % 128 == 127) quad[i] = 1;
  for (int i = 0; i < kTileRows * W::kGroups; ++i)
    put<typename W::Scale>(quad + W::kScales + i * W::Scale::kBytes, random_value(-9, -5));
  for (int row = 0; row < kTileRows; ++row)
    for (int column = 0; column < kQuadColumns; ++column) {
      value[row][column] = quantised_at(format, quad, row, column);
      const float at = W::at(quad, row, column);
      if (at == value[row][column]) continue;
      ++failures;
      printf("element %d, row %d, column %d: %g, want %g\n", format.element, row, column, at, value[row][column]);
    }
}

static void compare(const char* what, const WeightFormat& f, float largest, float got) {
  const int row = threadIdx.x / 4, first = threadIdx.x % 4 * 32;
  double want = 0, size = 0, weights = 0;
  for (int column = first; column < first + 32; ++column) {
    want += double(value[row][column]) * x[column];
    size += fabs(double(value[row][column]) * x[column]);
    weights += fabs(value[row][column]);
  }
  const double fixed = f.element == kE4m3 ? 0 : weights * largest / 65024;  // by which integers are off
  if (fabs(got - want) <= fixed + size * 0x1p-21) return;
  ++failures;
  printf("%s, element %d, group %d, scales %d, zeros %d, row %d, column %d: %g, want %g\n", what, f.element, f.group,
         f.scale, f.zeros, row, first, got, want);
}

// The same with a vector of which five quads, all of them this one, are kept in shared memory.
template <class F>
static void compare_kept(const WeightFormat& format, const float* own, float largest) {
  constexpr int kQuads = 5;
  alignas(16) static u8 kept[kQuads * kDigitQuadBytes];
  const int lane = threadIdx.x;
  uint2 four[kQuads];
  for (uint2& f : four) f = make_uint2(pack2(own[0], own[1]), pack2(own[2], own[3]));
  F::keep(kept, four, lane);
  typename F::Weights w;
  F::load(w, quad, lane, 1);
  typename F::Vector v;
  for (int i = 0; i < kQuads; ++i) {
    F::recall(v, kept + i * kDigitQuadBytes, lane);
    typename F::Sum sum;
    F::add(sum, F::multiply(sum, w, v), lane);
    compare("kept", format, largest, F::total(sum, lane));
  }
  __syncwarp();
}

template <class W>
static void multiply(const WeightFormat& format) {
  const int lane = threadIdx.x;
  if (lane == 0) fill<W>(format);
  __syncwarp();
  const int ranges[][2] = {{-3, 0}, {-20, 10}, {-99, -95}, {60, 70}};  // of exponents
  for (const auto& range : ranges) {
    if (kSame<Element, Fp16> && abs(range[0]) > 20) continue;
    if (lane == 0)
      for (float& v : x) v = rounded<Element>(random_value(range[0], range[1]));
    __syncwarp();
    float largest = 0;
    for (float v : x) largest = max(largest, fabsf(v));
#if AMK_TENSOR_CORES
    using F = Fragments<W>;
    const float* own = x + F::column(lane);
    typename F::Weights w;
    F::load(w, quad, lane, 1);
    const auto v = F::vector(make_uint2(pack2(own[0], own[1]), pack2(own[2], own[3])), lane);
    typename F::Sum sum;
    const auto product = F::multiply(sum, w, v);
    F::add(sum, product, lane);
    compare("tensor cores", format, largest, F::total(sum, lane));
    if constexpr (!W::kFloats) compare_kept<F>(format, own, largest);
#endif
    const auto activation = [](int column) { return x[column]; };
    if constexpr (W::kFloats) {
      compare("fma", format, largest, add_dot32<W>(0, quad, lane, activation));
    } else {
      compare("fma", format, largest, add_quarter<W>(0, quad, lane, activation));
    }
    __syncwarp();
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
static void warp() {
  if (threadIdx.x < 32) {
    integers<kInt4, 32>(), integers<kInt4, 64>(), integers<kInt4, 128>();
    integers<kInt8, 32>(), integers<kInt8, 64>(), integers<kInt8, 128>();
    with_scales<kE4m3, 128, false>();
  }
  end_of_block();
}

int main() {
  run_block(warp);
  return failures > 0;
}
