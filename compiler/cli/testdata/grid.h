// Launches on the CPU's machine (explore/cpu): memory of its GPU, and a kernel that runs what a program asks for. The
// program is loaded as kernels of a build are, so that the machine sees all accesses to that memory and to shared
// memory: whatever it finds, a data race or a read of what nobody has written, ends the program. Its own variables are
// known to nobody: kernels only read those that the host writes between launches.
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amk_cpu/thread.h>
#include <machine/control.h>

extern "C" {
int cuInit(unsigned);
int cuMemAlloc_v2(void**, size_t);
int cuMemFree_v2(void*);
int cuMemcpyHtoDAsync_v2(void*, const void*, size_t, void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuFuncSetAttribute(void*, int, int);
int cuLaunchCooperativeKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                              void**);
}

// Ends the program, and says what the machine has found.
[[noreturn]] static void fail(const char* what) {
  fflush(stdout);
  fprintf(stderr, "%s\n%s\n", what, amk_explore_result());
  exit(1);
}

// The host writes what is there already: bytes that nobody has written are written from here on.
static void written(void* device, size_t bytes) {
  if (cuMemcpyHtoDAsync_v2(device, device, bytes, nullptr) != 0) fail("no memory of the GPU");
}

// Memory of the GPU, of zeros.
static void* allocate(size_t bytes) {
  void* p = nullptr;
  if (cuMemAlloc_v2(&p, bytes) != 0) fail("no room");
  memset(p, 0, bytes);
  written(p, bytes);
  return p;
}

// An array of the GPU. The host reads and writes it between launches, and says what it has written.
template <class T, size_t kCount = 1>
struct Array {
  T* all = nullptr;
  static constexpr size_t kBytes = sizeof(T) * kCount;
  void make() { all = static_cast<T*>(allocate(kBytes)); }
  void write() { written(all, kBytes); }
  T& operator[](size_t i) { return all[i]; }
  T* begin() { return all; }
  T* end() { return all + kCount; }
};

// The argument of the kernel, whose first words the machine knows by their places (amk/launch.cuh).
struct Body {
  const void* weights;
  void* cache;
  void* exchange;
  void (*run)();
};
extern "C" __global__ void amk_test(const __grid_constant__ Body body) { body.run(); }

static void* kernel;
static Body body;

// Begins the program: there are so many SMs, as many on each of some GPUs.
static void begin_grid(void* module, int sms, size_t shared_bytes, int gpus = 1) {
  char text[64];
  snprintf(text, sizeof text, "{\"arch\":90,\"sms\":%d,\"gpus\":%d}", sms, gpus);
  if (const char* why = amk_explore_device(text)) fail(why);
  if (cuInit(0) != 0 || cuModuleGetFunction(&kernel, module, "amk_test") != 0 ||
      cuFuncSetAttribute(kernel, 8, int(shared_bytes)) != 0)
    fail("the machine does not begin");
}

// Runs `run` on all threads of as many blocks. Each launch has a schedule of its own: the first one the default, the
// others random ones.
static void run_grid(int blocks, int threads, size_t shared_bytes, void (*run)()) {
  static int launches;
  static char text[64];
  snprintf(text, sizeof text, launches ? "{\"strategy\":\"random\",\"seed\":%d}" : "{}", launches);
  ++launches;
  if (const char* why = amk_explore_schedule(text)) fail(why);
  body.run = run;
  void* parameters[] = {&body};
  const int result = cuLaunchCooperativeKernel(kernel, unsigned(blocks), 1, 1, unsigned(threads), 1, 1,
                                               unsigned(shared_bytes), nullptr, parameters);
  if (result != 0 || !strstr(amk_explore_result(), "\"findings\":[]")) fail(text);
}
