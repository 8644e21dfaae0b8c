// libamkcpu.so as a driver: modules, memory and launches by its entry points, and what the explorer
// hears of them. The argument is the path of driver_test.cu, compiled.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "../machine/control.h"
#include "../machine/mutant.h"

extern "C" {
int cuInit(unsigned);
int cuDeviceGetAttribute(int*, int, int);
int cuMemAlloc_v2(void**, size_t);
int cuMemFree_v2(void*);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemcpyHtoDAsync_v2(void*, const void*, size_t, void*);
int cuMemcpyDtoHAsync_v2(void*, const void*, size_t, void*);
int cuMemsetD32Async(void*, unsigned, size_t, void*);
int cuModuleLoadDataEx(void**, const void*, unsigned, const int*, void**);
int cuModuleUnload(void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuModuleGetGlobal_v2(void**, size_t*, void*, const char*);
int cuFuncSetAttribute(void*, int, int);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                   void**, void**);
int cuLaunchCooperativeKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, void*, void**);
}

namespace {

int failures = 0;
void check(bool ok, const char* what, int line) {
  if (ok) return;
  ++failures;
  printf("line %d: %s\n%s\n", line, what, amk_explore_result());
}
#define CHECK(x) check(x, #x, __LINE__)

size_t found(const std::string& kind) {
  const std::string text = amk_explore_result(), what = "\"kind\":\"" + kind + "\"";
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}
bool says(const char* text) { return strstr(amk_explore_result(), text) != nullptr; }

constexpr int kSuccess = 0, kInvalidValue = 1, kInvalidImage = 200, kNotFound = 500,
              kLaunchFailed = 719, kTooLarge = 720;

struct Arguments {
  const uint32_t* in;
  uint8_t* unused;
  uint32_t* out;
  uint32_t n, reserved;
};

void* function(void* module, const char* name) {
  void* f = nullptr;
  CHECK(cuModuleGetFunction(&f, module, name) == kSuccess);
  return f;
}

int launch(void* f, unsigned blocks, unsigned threads, unsigned shared, Arguments a) {
  void* parameters[] = {&a};
  return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, nullptr, parameters, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return puts("usage: driver_test KERNELS"), 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> image((std::istreambuf_iterator<char>(file)), {});

  CHECK(amk_explore_device("{\"arch\":89,\"sms\":3}") == nullptr);
  CHECK(amk_explore_device("{\"arch\":89,\"cores\":3}") != nullptr);
  CHECK(cuInit(0) == kSuccess);
  int major = 0, minor = 0, sms = 0;
  cuDeviceGetAttribute(&sms, 16, 0);
  cuDeviceGetAttribute(&major, 75, 0);
  cuDeviceGetAttribute(&minor, 76, 0);
  CHECK(major == 8 && minor == 9 && sms == 3);

  for (const char* wrong : {"{", "{\"strategy\":\"luck\"}", "{\"seed\":\"7\"}", "{\"speed\":7}",
                            "{\"deviations\":[[4,1],[4,2]]}", "{\"assume\":{\"luck\":true}}"}) {
    CHECK(amk_explore_schedule(wrong) != nullptr);
  }
  CHECK(amk_explore_schedule("{\"strategy\":\"random\",\"seed\":7}") == nullptr);

  // Modules.
  char log[256] = "";
  const int options[] = {5, 6};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  void* module = nullptr;
  CHECK(cuModuleLoadDataEx(&module, "no image at all, whatever it is; an ELF header would be 64 bytes", 2,
                           options, values) == kInvalidImage);
  CHECK(strstr(log, "ELF") != nullptr);
  CHECK(cuModuleLoadDataEx(&module, image.data(), 2, options, values) == kSuccess);
  void* f = nullptr;
  CHECK(cuModuleGetFunction(&f, module, "absent") == kNotFound);
  void* variable = nullptr;
  size_t bytes = 0;
  CHECK(cuModuleGetGlobal_v2(&variable, &bytes, module, "table") == kSuccess && bytes == 16);
  uint32_t table[4] = {};
  CHECK(cuMemcpyDtoHAsync_v2(table, variable, bytes, nullptr) == kSuccess && table[3] == 4);

  // Memory.
  constexpr uint32_t kCount = 7 * 64 - 5;
  void *in = nullptr, *out = nullptr;
  CHECK(cuMemAlloc_v2(&in, kCount * 4) == kSuccess && cuMemAlloc_v2(&out, kCount * 4) == kSuccess);
  std::vector<uint32_t> words(kCount);
  for (uint32_t i = 0; i < kCount; ++i) words[i] = i;
  CHECK(cuMemcpyHtoDAsync_v2(in, words.data(), kCount * 4, nullptr) == kSuccess);
  CHECK(cuMemcpyHtoDAsync_v2(in, words.data(), kCount * 4 + 1, nullptr) == kInvalidValue);
  const Arguments a{static_cast<uint32_t*>(in), nullptr, static_cast<uint32_t*>(out), kCount, 0};

  // Seven blocks on three SMs.
  f = function(module, "scaled");
  CHECK(launch(f, 7, 64, 300 << 10, a) == kInvalidValue);
  CHECK(launch(f, 7, 0, 256, a) == kInvalidValue);
  CHECK(launch(f, 7, 64, 256, a) == kSuccess);
  CHECK(says("\"findings\":[]") && says("\"launches\":1"));
  CHECK(cuMemcpyDtoHAsync_v2(words.data(), out, kCount * 4, nullptr) == kSuccess);
  for (uint32_t i = 0; i < kCount; ++i) CHECK(words[i] == 3 * i);

  f = function(module, "joined");
  void* parameters[] = {const_cast<Arguments*>(&a)};
  cuMemsetD32Async(out, 0, kCount, nullptr);
  CHECK(cuLaunchCooperativeKernel(f, 4, 1, 1, 32, 1, 1, 0, nullptr, parameters) == kTooLarge);
  CHECK(cuLaunchCooperativeKernel(f, 3, 1, 1, 32, 1, 1, 0, nullptr, parameters) == kSuccess);
  CHECK(says("\"findings\":[]"));

  // All schedules with at most two deviations: some lose a sum, and one of those again by its script.
  CHECK(amk_explore_schedule("{\"strategy\":\"exhaustive\",\"depth\":2}") == nullptr);
  f = function(module, "forgetful");
  uint32_t sum = 0;
  std::string script;
  int runs = 0, lost = 0;
  const auto add = [&] {
    cuMemsetD32Async(out, 0, 1, nullptr);
    CHECK(launch(f, 1, 64, 0, a) == kSuccess);
    cuMemcpyDtoHAsync_v2(&sum, out, 4, nullptr);
  };
  do {
    add();
    ++runs;
    if (sum == 1 && ++lost == 1) {
      script = amk_explore_result();
      const size_t from = script.find("\"deviations\"");
      script = "{" + script.substr(from, script.find("]]", from) + 2 - from) + "}";
    }
  } while (amk_explore_next() && runs < 100000);
  CHECK(lost > 0 && lost < runs && runs > 10 && runs < 100000);
  CHECK(amk_explore_schedule(script.c_str()) == nullptr);
  add();
  CHECK(sum == 1);
  CHECK(amk_explore_schedule("{}") == nullptr);
  add();
  CHECK(sum == 2);

  // What nobody has written is found, unless the kernel says that it may be so; and it differs.
  f = function(module, "finds");
  Arguments any = a;
  CHECK(launch(f, 1, 32, 256, any) == kSuccess && says("\"kind\":\"unwritten\""));
  // It is listed once more after it has been returned, and once alone until then.
  const size_t once = found("unwritten");
  for (int i = 0; i < 2; ++i) CHECK(launch(f, 1, 32, 256, any) == kSuccess);
  CHECK(once > 0 && found("unwritten") == 2 * once);
  any.n = 0;
  std::set<uint32_t> garbage;
  for (int seed = 1; seed <= 50; ++seed) {
    const std::string schedule = "{\"strategy\":\"random\",\"seed\":" + std::to_string(seed) + "}";
    CHECK(amk_explore_schedule(schedule.c_str()) == nullptr);
    CHECK(launch(f, 1, 32, 256, any) == kSuccess && says("\"findings\":[]"));
    cuMemcpyDtoHAsync_v2(&sum, out, 4, nullptr);
    garbage.insert(sum);
  }
  CHECK(garbage.size() >= 4);
  CHECK(amk_explore_schedule("{}") == nullptr);

  // Findings say where.
  CHECK(launch(function(module, "racy"), 1, 64, 0, a) == kSuccess);
  CHECK(says("\"kind\":\"race\"") && says("\"module\":\"kernels.so\""));
  CHECK(amk_explore_schedule("{}") == nullptr && says("\"findings\":[]"));
  CHECK(launch(function(module, "outside"), 1, 32, 0, a) == kSuccess && says("\"kind\":\"outside\""));
  CHECK(launch(function(module, "far_outside"), 1, 32, 0, a) == kLaunchFailed);
  CHECK(says("\"kind\":\"crash\"") && says("\"abandoned\":true"));

  // The GPU can still be used.
  CHECK(amk_explore_schedule("{}") == nullptr);
  CHECK(launch(function(module, "scaled"), 7, 64, 256, a) == kSuccess && says("\"findings\":[]"));

  // Kernels of mutated sources ask which mutant is on, and count where they come.
  CHECK(amk_explore_schedule("{\"mutant\":3}") == nullptr && amk_mutant == 3);
  ++amk_mutant_reached[5];
  CHECK(says("\"reached\":[5]"));
  CHECK(amk_explore_schedule("{}") == nullptr && amk_mutant == 0 && says("\"reached\":[]"));

  CHECK(cuModuleUnload(module) == kSuccess);
  CHECK(cuMemFree_v2(in) == kSuccess && cuMemFree_v2(out) == kSuccess);
  CHECK(cuMemFree_v2(out) == kInvalidValue);
  if (failures == 0) puts("ok");
  return failures != 0;
}
