// A CUDA driver over host memory, for the tests of package driver. It implements the entry points that the package
// binds, and is strict where a real driver is forgiving:
//   - every call that needs a context fails on a thread on which none is current;
//   - asynchronous work really is late: it runs when the stream or a later event of it is synchronised, so that reusing
//     a buffer too early shows up as wrong bytes;
//   - device addresses are host addresses with a bit set, so that mixing the two up crashes.
// The fake_* functions at the end are for the tests. Build: cc -shared -fPIC -o libcuda.so.1 fakecuda.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int CUresult;
typedef uint64_t Ptr;

#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif

enum { kMaxOps = 2048, kLogBytes = 1 << 16, kStreams = 32 };
#define DEVICE (1ull << 62)

static char log_text[kLogBytes];
static size_t log_used;
static long context_tid = -1;   // thread of the first call that needed the context
static int foreign_calls;       // calls from any other thread
static char fail_call[64];
static int fail_code, fail_after, sticky_code;
static int devices = 2;
static long allocations, pinned, streams, events, retained;
static uint64_t free_bytes = 1ull << 30;
static unsigned char params[4096];
static size_t params_used;
static unsigned launch_shape[8];  // grid, block, shared, cooperative
static __thread void* current;

static void note(const char* call) {
  log_used += snprintf(log_text + log_used, kLogBytes - log_used, "%s\n", call);
  if (log_used > kLogBytes - 128) log_used = 0;
}

static CUresult injected(const char* call) {
  note(call);
  if (strcmp(call, fail_call) != 0) return 0;
  if (fail_after-- > 0) return 0;
  fail_call[0] = 0;
  return fail_code;
}

// Opens every entry point: log, fail when told to.
#define ENTER(call)                       \
  do {                                    \
    CUresult r_ = injected(call);         \
    if (r_) return r_;                    \
  } while (0)

// Opens one that needs a context.
#define ENTER_CONTEXT(call)                             \
  do {                                                  \
    long tid_ = syscall(SYS_gettid);                    \
    if (context_tid < 0) context_tid = tid_;            \
    if (tid_ != context_tid) foreign_calls++;           \
    if (!current) return 201;                           \
    if (sticky_code) { note(call); return sticky_code; } \
    ENTER(call);                                        \
  } while (0)

// ---------------------------------------------------------------------------------------------
// streams: a queue of late work each

typedef struct Event { int recorded, passed; double ms; } Event;
typedef struct Op { int kind; void *dst, *src; size_t n; uint32_t value; Event* event; void (*run)(void*); } Op;
typedef struct Stream { Op ops[kMaxOps]; int n; } Stream;
enum { kCopy, kSet8, kSet32, kRecord, kKernel };  // kKernel is for files that include this one

static double now_ms;
static Stream* all[kStreams];

static void run_first(Stream* s) {
  Op op = s->ops[0];
  memmove(s->ops, s->ops + 1, --s->n * sizeof(Op));
  if (op.kind == kCopy) memcpy(op.dst, op.src, op.n);
  if (op.kind == kSet8) memset(op.dst, op.value, op.n);
  if (op.kind == kSet32)
    for (size_t i = 0; i < op.n; i++) ((uint32_t*)op.dst)[i] = op.value;
  if (op.kind == kRecord) op.event->passed = 1, op.event->ms = now_ms += 1.5;
  if (op.kind == kKernel) op.run(op.dst);
}

static CUresult queue(Stream* s, Op op) {
  if (!s || s->n == kMaxOps) return 400;
  s->ops[s->n++] = op;
  return 0;
}

static void* host(Ptr p) { return (void*)(uintptr_t)(p & ~DEVICE); }

// ---------------------------------------------------------------------------------------------
// initialisation and devices

CUresult cuInit(unsigned flags) { ENTER("cuInit"); return devices ? 0 : 100; }
CUresult cuDriverGetVersion(int* v) { ENTER("cuDriverGetVersion"); *v = FAKE_VERSION; return 0; }

static const struct { int code; const char *name, *text; } codes[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
};

CUresult cuGetErrorName(int code, const char** out) {
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (codes[i].code == code) { *out = codes[i].name; return 0; }
  *out = NULL;
  return 1;
}

CUresult cuGetErrorString(int code, const char** out) {
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (codes[i].code == code) { *out = codes[i].text; return 0; }
  *out = NULL;
  return 1;
}

CUresult cuDeviceGetCount(int* n) { ENTER("cuDeviceGetCount"); *n = devices; return 0; }
CUresult cuDeviceGet(int* dev, int ordinal) { ENTER("cuDeviceGet"); *dev = 10 + ordinal; return 0; }

CUresult cuDeviceGetName(char* name, int len, int dev) {
  ENTER("cuDeviceGetName");
  snprintf(name, len, "Fake %c", 'A' + dev - 10);
  return 0;
}

CUresult cuDeviceGetPCIBusId(char* id, int len, int dev) {
  ENTER("cuDeviceGetPCIBusId");
  snprintf(id, len, "0000:%02X:00.0", dev);
  return 0;
}

CUresult cuDeviceTotalMem_v2(size_t* n, int dev) { ENTER("cuDeviceTotalMem"); *n = 4ull << 30; return 0; }

CUresult cuDeviceGetAttribute(int* v, int attribute, int dev) {
  static const int known[][2] = {{1, 1024}, {13, 1980000}, {16, 132}, {37, 6144}, {38, 50 << 20}, {75, 9},
                                 {76, 0}, {81, 228 << 10}, {82, 65536}, {95, 1}, {97, 227 << 10}};
  ENTER("cuDeviceGetAttribute");
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i][0] == attribute) { *v = known[i][1]; return 0; }
  return 1;  // 36, the memory clock, is refused: it must not matter
}

CUresult cuDevicePrimaryCtxRetain(void** ctx, int dev) {
  ENTER("cuDevicePrimaryCtxRetain");
  retained++;
  *ctx = (void*)(uintptr_t)(1000 + dev);
  return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(int dev) {
  ENTER("cuDevicePrimaryCtxRelease");
  int code = sticky_code;
  if (--retained == 0) sticky_code = 0;  // as if the next one were in another process
  return code;
}

CUresult cuCtxSetCurrent(void* ctx) { ENTER("cuCtxSetCurrent"); current = ctx; return 0; }

static int peers = 2;  // 0: out of reach, 1: over PCIe, 2: over NVLink

CUresult cuDeviceCanAccessPeer(int* can, int dev, int peer) {
  ENTER("cuDeviceCanAccessPeer");
  *can = dev != peer && peers > 0;
  return 0;
}
CUresult cuDeviceGetP2PAttribute(int* value, int attribute, int dev, int peer) {
  ENTER("cuDeviceGetP2PAttribute");
  if (attribute != 3) return 1;
  *value = dev != peer && peers > 1;
  return 0;
}
CUresult cuCtxEnablePeerAccess(void* ctx, unsigned flags) {
  ENTER_CONTEXT("cuCtxEnablePeerAccess");
  return !ctx || ctx == current || flags ? 1 : 0;
}

// ---------------------------------------------------------------------------------------------
// memory

CUresult cuMemGetInfo_v2(size_t* free_, size_t* total) {
  ENTER_CONTEXT("cuMemGetInfo");
  *free_ = free_bytes;
  *total = 4ull << 30;
  return 0;
}

CUresult cuMemAlloc_v2(Ptr* p, size_t n) {
  ENTER_CONTEXT("cuMemAlloc");
  if (n > free_bytes) return 2;
  allocations++;
  *p = (Ptr)(uintptr_t)malloc(n) | DEVICE;
  memset(host(*p), 0xEE, n);
  return 0;
}

CUresult cuMemFree_v2(Ptr p) { ENTER_CONTEXT("cuMemFree"); allocations--; free(host(p)); return 0; }

CUresult cuMemHostAlloc(void** p, size_t n, unsigned flags) {
  ENTER_CONTEXT("cuMemHostAlloc");
  if (flags != 3) return 1;
  pinned++;
  *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);
  memset(*p, 0xDD, n);
  return 0;
}

CUresult cuMemFreeHost(void* p) { ENTER_CONTEXT("cuMemFreeHost"); pinned--; free(p); return 0; }

CUresult cuMemHostGetDevicePointer_v2(Ptr* p, void* h, unsigned flags) {
  ENTER_CONTEXT("cuMemHostGetDevicePointer");
  *p = (Ptr)(uintptr_t)h | DEVICE;
  return 0;
}

CUresult cuMemcpyHtoDAsync_v2(Ptr dst, const void* src, size_t n, Stream* s) {
  ENTER_CONTEXT("cuMemcpyHtoDAsync");
  return queue(s, (Op){.kind = kCopy, .dst = host(dst), .src = (void*)src, .n = n});
}

CUresult cuMemcpyDtoHAsync_v2(void* dst, Ptr src, size_t n, Stream* s) {
  ENTER_CONTEXT("cuMemcpyDtoHAsync");
  return queue(s, (Op){.kind = kCopy, .dst = dst, .src = host(src), .n = n});
}

CUresult cuMemcpyDtoDAsync_v2(Ptr dst, Ptr src, size_t n, Stream* s) {
  ENTER_CONTEXT("cuMemcpyDtoDAsync");
  return queue(s, (Op){.kind = kCopy, .dst = host(dst), .src = host(src), .n = n});
}

CUresult cuMemsetD8Async(Ptr p, unsigned char v, size_t n, Stream* s) {
  ENTER_CONTEXT("cuMemsetD8Async");
  return queue(s, (Op){.kind = kSet8, .dst = host(p), .n = n, .value = v});
}

CUresult cuMemsetD32Async(Ptr p, unsigned v, size_t n, Stream* s) {
  ENTER_CONTEXT("cuMemsetD32Async");
  return queue(s, (Op){.kind = kSet32, .dst = host(p), .n = n, .value = v});
}

// A map is a word, and then what it was made of.
CUresult cuTensorMapEncodeTiled(uint32_t* map, int type, unsigned rank, Ptr at, const uint64_t* sizes,
                                const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                                int swizzle, int promotion, int fill) {
  ENTER("cuTensorMapEncodeTiled");
  if ((uintptr_t)map % 64 || type != 1 || rank < 1 || rank > 5 || at % 16 || interleave || swizzle || fill) return 1;
  memset(map, 0, 128);
  map[0] = 0x3a9, map[1] = rank, map[2] = (uint32_t)promotion;
  for (unsigned i = 0; i < rank; i++) {
    if (!sizes[i] || box[i] < 1 || box[i] > 256 || steps[i] != 1 || (i + 1 < rank && strides[i] % 16)) return 1;
    map[3 + i] = (uint32_t)sizes[i], map[8 + i] = box[i];
    if (i + 1 < rank) map[13 + i] = (uint32_t)strides[i];
  }
  return 0;
}

// ---------------------------------------------------------------------------------------------
// modules: an image is the text "FAKE"; the kernels and the variable are fixed

typedef struct Kernel { const char* name; int n; size_t sizes[8]; int dynamic; } Kernel;
static Kernel kernels[] = {
    {"by_struct", 1, {48}, 0}, {"by_args", 5, {8, 4, 4, 8, 4}, 0}, {"no_args", 0, {0}, 0},
};
static uint32_t variable[4];

CUresult cuModuleLoadDataEx(void** mod, const void* image, unsigned n, int* options, void** values) {
  ENTER_CONTEXT("cuModuleLoadDataEx");
  if ((uintptr_t)image % 8) return 1;
  if (n != 2 || options[0] != 5 || options[1] != 6) return 1;
  if (memcmp(image, "FAKE", 4) != 0) {
    snprintf(values[0], (size_t)values[1], "ptxas error: not a fake\n");
    return atoi(image);  // an image that is a number fails with it
  }
  *mod = kernels;
  return 0;
}

CUresult cuModuleUnload(void* mod) { ENTER_CONTEXT("cuModuleUnload"); return mod == kernels ? 0 : 400; }

CUresult cuModuleGetFunction(Kernel** f, void* mod, const char* name) {
  ENTER_CONTEXT("cuModuleGetFunction");
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (strcmp(kernels[i].name, name) == 0) { *f = &kernels[i]; return 0; }
  return 500;
}

CUresult cuModuleGetGlobal_v2(Ptr* p, size_t* n, void* mod, const char* name) {
  ENTER_CONTEXT("cuModuleGetGlobal");
  if (strcmp(name, "variable") != 0) return 500;
  *p = (Ptr)(uintptr_t)variable | DEVICE;
  *n = sizeof variable;
  return 0;
}

CUresult cuFuncGetAttribute(int* v, int attribute, Kernel* f) {
  ENTER_CONTEXT("cuFuncGetAttribute");
  *v = attribute == 8 ? f->dynamic : 100 + attribute;
  return 0;
}

CUresult cuFuncSetAttribute(Kernel* f, int attribute, int v) {
  ENTER_CONTEXT("cuFuncSetAttribute");
  if (attribute != 8 || v > 227 << 10) return 1;
  f->dynamic = v;
  return 0;
}

#ifndef FAKE_NO_PARAM_INFO
CUresult cuFuncGetParamInfo(Kernel* f, size_t i, size_t* offset, size_t* size) {
  ENTER_CONTEXT("cuFuncGetParamInfo");
  if (i >= (size_t)f->n) return 1;
  *size = f->sizes[i];
  return 0;
}
#endif

#ifndef FAKE_NO_OCCUPANCY
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, Kernel* f, int threads, size_t shared) {
  ENTER_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  *n = 2048 / threads;
  if (shared && (228 << 10) / shared < (size_t)*n) *n = (228 << 10) / shared;
  return 0;
}
#endif

static CUresult launch(Kernel* f, const unsigned shape[7], int cooperative, void** args) {
  memcpy(launch_shape, shape, 7 * sizeof *shape);
  launch_shape[7] = cooperative;
  params_used = 0;
  for (int i = 0; i < f->n; i++) {
    memcpy(params + params_used, args[i], f->sizes[i]);
    params_used += f->sizes[i];
  }
  return 0;
}

CUresult cuLaunchKernel(Kernel* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, Stream* s, void** args, void** extra) {
  ENTER_CONTEXT("cuLaunchKernel");
  if (extra || !s) return 1;
  return launch(f, (unsigned[]){gx, gy, gz, bx, by, bz, shared}, 0, args);
}

CUresult cuLaunchCooperativeKernel(Kernel* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, Stream* s, void** args) {
  ENTER_CONTEXT("cuLaunchCooperativeKernel");
  if (gx > 264) return 720;
  return launch(f, (unsigned[]){gx, gy, gz, bx, by, bz, shared}, 1, args);
}

// ---------------------------------------------------------------------------------------------
// streams and events

CUresult cuStreamCreate(Stream** s, unsigned flags) {
  ENTER_CONTEXT("cuStreamCreate");
  if (flags != 1) return 1;
  *s = calloc(1, sizeof **s);
  for (int i = 0; i < kStreams; i++)
    if (!all[i]) { all[i] = *s; break; }
  streams++;
  return 0;
}

CUresult cuStreamSynchronize(Stream* s) {
  ENTER_CONTEXT("cuStreamSynchronize");
  while (s->n) run_first(s);
  return sticky_code;  // of what ran in it
}

CUresult cuStreamQuery(Stream* s) { ENTER_CONTEXT("cuStreamQuery"); return s->n ? 600 : 0; }

CUresult cuStreamDestroy_v2(Stream* s) {
  ENTER_CONTEXT("cuStreamDestroy");
  for (int i = 0; i < kStreams; i++)
    if (all[i] == s) all[i] = NULL;
  streams--;
  free(s);
  return 0;
}

CUresult cuEventCreate(Event** e, unsigned flags) {
  ENTER_CONTEXT("cuEventCreate");
  events++;
  *e = calloc(1, sizeof **e);
  return 0;
}

CUresult cuEventDestroy_v2(Event* e) { ENTER_CONTEXT("cuEventDestroy"); events--; free(e); return 0; }

CUresult cuEventRecord(Event* e, Stream* s) {
  ENTER_CONTEXT("cuEventRecord");
  e->recorded = 1, e->passed = 0;
  return queue(s, (Op){.kind = kRecord, .event = e});
}

// Runs no more of a stream than the event demands.
CUresult cuEventSynchronize(Event* e) {
  ENTER_CONTEXT("cuEventSynchronize");
  for (int i = 0; i < kStreams && e->recorded && !e->passed; i++)
    while (all[i] && all[i]->n && !e->passed) {
      int waits = 0;
      for (int k = 0; k < all[i]->n; k++) waits |= all[i]->ops[k].event == e;
      if (!waits) break;
      run_first(all[i]);
    }
  return 0;
}

CUresult cuEventQuery(Event* e) { ENTER_CONTEXT("cuEventQuery"); return e->recorded && !e->passed ? 600 : 0; }

CUresult cuEventElapsedTime(float* ms, Event* a, Event* b) {
  ENTER_CONTEXT("cuEventElapsedTime");
  if (!a->passed || !b->passed) return 600;
  *ms = b->ms - a->ms;
  return 0;
}

// ---------------------------------------------------------------------------------------------
// for the tests

// The call fails with code, after it has succeeded `after` times; once.
void fake_fail(const char* call, int code, int after) {
  snprintf(fail_call, sizeof fail_call, "%s", call);
  fail_code = code, fail_after = after;
}

void fake_sticky(int code) { sticky_code = code; }
void fake_devices(int n) { devices = n; }
void fake_peers(int how) { peers = how; }
const char* fake_log(void) { return log_text; }
void fake_clear_log(void) { log_used = 0, log_text[0] = 0; }

// 0 context thread, 1 calls from other threads, 2 allocations, 3 pinned, 4 streams, 5 events, 6 retained contexts
long fake_count(int what) {
  long v[] = {context_tid, foreign_calls, allocations, pinned, streams, events, retained};
  return v[what];
}

// Copies the bytes of the last launch's arguments, and its shape.
size_t fake_launch(unsigned char* bytes, unsigned* shape) {
  memcpy(bytes, params, params_used);
  memcpy(shape, launch_shape, sizeof launch_shape);
  return params_used;
}
