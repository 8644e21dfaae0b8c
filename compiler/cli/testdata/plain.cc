// Runs the plain kernels of a build, in float32. Prints the logits after each of the ids. It is given the path of the
// weights and the ids.
#include "grid.h"

#include "reference.cu"

using namespace amk;

extern "C" int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                              void**);

// Reads the tensors of a safetensors file, behind the length of its header and the header.
static const u8* read_weights(const char* path) {
  FILE* file = fopen(path, "rb");
  u64 header;
  if (!file || fread(&header, 8, 1, file) != 1 || fseek(file, 0, SEEK_END) != 0) fail("no weights");
  const size_t bytes = ftell(file) - 8 - header;
  void* const weights = allocate(bytes);
  if (fseek(file, 8 + header, SEEK_SET) != 0 || fread(weights, 1, bytes, file) != bytes) fail("too few weights");
  written(weights, bytes);
  return static_cast<u8*>(weights);
}

// Memory in which nothing is written yet.
static u8* allocate_unwritten(size_t bytes) {
  void* p = nullptr;
  if (cuMemAlloc_v2(&p, bytes) != 0) fail("no room");
  return static_cast<u8*>(p);
}

extern "C" int amk_main(void* module, int argc, char** argv) {
  if (argc < 2) fail("no weights");
  begin_grid(module, 4, 0);
  Reference r{read_weights(argv[1]), allocate_unwritten(kCacheBytes), allocate_unwritten(sizeof(Values))};
  const auto launch = [&](const Operation& o) {
    void *kernel = nullptr, *parameters[] = {&r};
    if (cuModuleGetFunction(&kernel, module, o.kernel) != 0) fail(o.kernel);
    const int result = cuLaunchKernel(kernel, o.blocks, 1, 1, kReferenceThreads, 1, 1, 0, nullptr, parameters, nullptr);
    if (result != 0 || !strstr(amk_explore_result(), "\"findings\":[]")) fail(o.kernel);
  };
  constexpr int kOperations = sizeof amk_reference_step / sizeof *amk_reference_step;
  constexpr int kKinds = sizeof amk_reference_kinds / sizeof *amk_reference_kinds;
  for (r.position = 0; r.position < argc - 2; ++r.position) {
    r.token = atoi(argv[2 + r.position]);
    for (int first = 0, end; first < kOperations; first = end) {
      const bool layers = amk_reference_step[first].repeats != kOnce;
      for (end = first + 1; layers && amk_reference_step[end].repeats != kOnce;) ++end;
      for (r.layer = 0; r.layer < (layers ? kLayers : 1); ++r.layer) {
        for (int i = first; i < end; ++i) {
          const Operation& o = amk_reference_step[i];
          if (o.repeats == kObserves || layers && o.kind != amk_reference_kinds[r.layer % kKinds]) continue;
          launch(o);
        }
      }
    }
    const Result& logits = amk_reference_step[kOperations - 1].result;
    const auto* of = reinterpret_cast<const float*>(r.scratch + logits.offset);
    for (u32 i = 0; i < logits.elements; ++i) printf("%.9g\n", of[i]);
  }
  return 0;
}
