// The entry points of a CUDA driver that package driver binds, for one imaginary GPU. Everything is
// done at once, in the call: a launch has run when it returns. Device addresses are addresses of
// the arena.
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "arena.h"
#include "crash.h"
#include "device.h"
#include "host.h"
#include "model.h"
#include "modules.h"
#include "results.h"
#include "scheduler.h"
#include "tensor.h"

using namespace machine;

namespace {

// Codes of cuda.h.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotSupported = 801,
  kLaunchOutOfResources = 701,
  kCooperativeTooLarge = 720,
  kLaunchFailed = 719,
  kOperatingSystem = 304,
};
struct Text {
  int code;
  const char *name, *text;
};
constexpr Text kTexts[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {kCooperativeTooLarge, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many blocks in cooperative launch"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kOperatingSystem, "CUDA_ERROR_OPERATING_SYSTEM",
     "OS call failed or operation not supported on this OS"},
};

bool initialised = false;

struct Event {
  bool recorded = false;
  u64 ns = 0;
};
struct Stream {
  u64 unused = 0;
};

// Whether a range of device memory that the host names is there: of an allocation, or of a variable
// of a module.
bool is_device(const void* p, size_t bytes) {
  if (!in_arena(p)) return is_in_module(p, bytes);
  return bytes == 0 || order().is_inside(p, bytes);
}

u32 allocations = 0;

int allocate(void** p, size_t bytes, RegionKind kind, const char* what) {
  if (bytes == 0) return kInvalidValue;
  u8* memory = arena_allocate(bytes);
  if (!memory) return kOutOfMemory;
  order().add_region(kind, memory, bytes, what + (" " + std::to_string(++allocations)));
  *p = memory;
  return kSuccess;
}

int release(void* p) {
  if (!p) return kSuccess;
  if (!arena_bytes(p)) return kInvalidValue;
  order().remove_region(p);
  arena_free(p);
  return kSuccess;
}

// The arguments of a launch say what allocations are for: all kernels have a struct whose first
// words are weights and cache, and those that take a Launch have its pointers in this order
// (launch.cuh).
void name_regions(const Kernel& kernel, const u64* words) {
  static constexpr const char* kNames[] = {
      "weights", "cache", "exchange", "logits", "trace", "forced", "tokens", "host_tokens",
      "abort", "abort_device", "stalls", "stop_ids", "sampling", "choices", "rounds",
      "embeddings", "hidden"};
  static constexpr const char* kOfLaunch[] = {"amk_decode", "amk_ceiling", "amk_trace",
                                              "amk_profile", "amk_drain", "amk_part", "amk_prompt"};
  bool takes_launch = false;
  for (const char* name : kOfLaunch) takes_launch |= kernel.name == name;
  const u32 n = takes_launch ? sizeof kNames / sizeof *kNames : 3;
  for (u32 i = 0; i < n; ++i) {
    void* p = reinterpret_cast<void*>(words[i]);
    if (!arena_bytes(p)) continue;
    const bool pinned = !strcmp(kNames[i], "host_tokens") || !strcmp(kNames[i], "abort");
    const RegionKind kind = i == 0   ? RegionKind::kWeights
                            : i == 1 ? RegionKind::kCache
                            : pinned ? RegionKind::kPinned
                                     : RegionKind::kGlobal;
    order().name_region(p, kind, takes_launch || i < 2 ? kNames[i] : "scratch");
  }
}

// As many of the bytes at p as there are, up to kParameterBytes: how many the kernel takes is not
// known.
void copy_parameters(const void* p, void* to) {
  iovec local{to, kParameterBytes}, remote{const_cast<void*>(p), kParameterBytes};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) > 0) return;
  memcpy(to, p, 256);
}

int launch(Kernel* kernel, u32 blocks, u32 threads, u32 shared, void** parameters, bool cooperative) {
  if (!kernel || !parameters || !parameters[0] || blocks == 0) return kInvalidValue;
  if (threads == 0 || threads > device.threads_per_block) return kInvalidValue;
  if (shared > u32(kernel->dynamic_shared) || shared > device.shared_per_block) return kInvalidValue;
  if (cooperative && blocks > device.sms) return kCooperativeTooLarge;
  alignas(16) static u64 words[kParameterBytes / 8];
  copy_parameters(parameters[0], words);
  name_regions(*kernel, words);
  host_sees(words, sizeof words);
  Launch l;
  l.body = [kernel] { call_kernel(*kernel, words); };
  l.blocks = blocks;
  l.threads = threads;
  l.shared_bytes = shared;
  l.at_once = device.sms < blocks ? device.sms : blocks;
  if (cooperative && blocks == device.sms) l.gpus = device.gpus;
  const u64 before = steps();
  CrashGuard guard;
  const Outcome outcome = run(l);
  note_launch(steps() - before, outcome);
  return outcome == Outcome::kDone ? kSuccess : kLaunchFailed;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  std::string why;
  const char* settings = getenv("AMK_CPU_DEVICE");
  if (settings && !initialised && !set_device(settings, why)) {
    fprintf(stderr, "libamkcpu: AMK_CPU_DEVICE: %s\n", why.c_str());
    return kInvalidValue;
  }
  if (!arena_begin()) return kOutOfMemory;
  initialised = true;
  return kSuccess;
}
int cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }

int cuGetErrorName(int code, const char** text) {
  for (const Text& t : kTexts) {
    if (t.code == code) return *text = t.name, kSuccess;
  }
  return *text = nullptr, kInvalidValue;
}
int cuGetErrorString(int code, const char** text) {
  for (const Text& t : kTexts) {
    if (t.code == code) return *text = t.text, kSuccess;
  }
  return *text = nullptr, kInvalidValue;
}

// ---- the device -----------------------------------------------------------------------------------

int cuDeviceGetCount(int* n) { return *n = 1, initialised ? kSuccess : kNotInitialized; }
int cuDeviceGet(int* d, int ordinal) { return *d = 0, ordinal == 0 ? kSuccess : kInvalidDevice; }
int cuDeviceGetName(char* name, int bytes, int) {
  snprintf(name, size_t(bytes), "%s", device.name.c_str());
  return kSuccess;
}
int cuDeviceGetPCIBusId(char* id, int bytes, int) {
  snprintf(id, size_t(bytes), "0000:00:00.0");
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = kArenaBytes, kSuccess; }

int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {  // CUdevice_attribute of cuda.h
    case 1: *value = int(device.threads_per_block); break;
    case 16: *value = int(device.sms); break;
    case 38: *value = int(device.l2_bytes); break;
    case 75: *value = int(device.arch / 10); break;
    case 76: *value = int(device.arch % 10); break;
    case 81: *value = int(device.shared_per_sm); break;
    case 82: *value = int(device.registers); break;
    case 95: *value = 1; break;  // cooperative launches
    case 97: *value = int(device.shared_per_block); break;
    default: return kInvalidValue;
  }
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &device, kSuccess; }
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuCtxSetCurrent(void*) { return kSuccess; }

// ---- memory ---------------------------------------------------------------------------------------

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = arena_free_bytes();
  *total = kArenaBytes;
  return kSuccess;
}
int cuMemAlloc_v2(void** p, size_t bytes) {
  return allocate(p, bytes, RegionKind::kGlobal, "allocation");
}
int cuMemFree_v2(void* p) { return release(p); }
int cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  return allocate(p, bytes, RegionKind::kPinned, "host allocation");
}
int cuMemFreeHost(void* p) { return release(p); }
int cuMemHostGetDevicePointer_v2(void** p, void* host, unsigned) {
  return *p = host, arena_bytes(host) ? kSuccess : kInvalidValue;
}

int cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t bytes, Stream*) {
  if (!is_device(to, bytes)) return kInvalidValue;
  order().host_write(to, bytes);
  memcpy(to, from, bytes);
  return kSuccess;
}
int cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t bytes, Stream*) {
  if (!is_device(from, bytes)) return kInvalidValue;
  order().host_read(from, bytes);
  memcpy(to, from, bytes);
  return kSuccess;
}
int cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t bytes, Stream*) {
  if (!is_device(to, bytes) || !is_device(from, bytes)) return kInvalidValue;
  order().host_read(from, bytes);
  order().host_write(to, bytes);
  memmove(to, from, bytes);
  return kSuccess;
}
int cuMemsetD8Async(void* p, unsigned char value, size_t n, Stream*) {
  if (!is_device(p, n)) return kInvalidValue;
  order().host_write(p, n);
  memset(p, value, n);
  return kSuccess;
}
int cuMemsetD32Async(void* p, unsigned value, size_t n, Stream*) {
  if (!is_device(p, n * 4)) return kInvalidValue;
  order().host_write(p, n * 4);
  for (size_t i = 0; i < n; ++i) static_cast<u32*>(p)[i] = value;
  return kSuccess;
}

int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* address, const u64* dims,
                           const u64* strides, const unsigned* box, const unsigned* element_strides,
                           int interleave, int swizzle, int promotion, int fill) {
  if (promotion < 0 || promotion > 3) return kInvalidValue;
  switch (encode_tensor({type, rank, address, dims, strides, box, element_strides, interleave, swizzle, fill},
                        map)) {
    case Encoded::kDone: return kSuccess;
    case Encoded::kInvalid: return kInvalidValue;
    default: return kNotSupported;
  }
}

// ---- modules --------------------------------------------------------------------------------------

int cuModuleLoadDataEx(Module** module, const void* image, unsigned n, const int* options,
                       void** values) {
  std::string why;
  *module = load_module(image, why);
  if (*module) return kSuccess;
  char* log = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < n; ++i) {  // CU_JIT_ERROR_LOG_BUFFER and its size
    if (options[i] == 5) log = static_cast<char*>(values[i]);
    if (options[i] == 6) bytes = reinterpret_cast<size_t>(values[i]);
  }
  if (log && bytes) snprintf(log, bytes, "%s", why.c_str());
  return kInvalidImage;
}
int cuModuleUnload(Module* module) { return unload_module(module), kSuccess; }
int cuModuleGetFunction(Kernel** kernel, Module* module, const char* name) {
  *kernel = find_kernel(module, name);
  return *kernel ? kSuccess : kNotFound;
}
int cuModuleGetGlobal_v2(void** p, size_t* bytes, Module* module, const char* name) {
  u64 size = 0;
  *p = find_global(module, name, size);
  if (!*p) return kNotFound;
  if (bytes) *bytes = size;
  return kSuccess;
}

int cuFuncGetAttribute(int* value, int attribute, Kernel* kernel) {
  switch (attribute) {  // CUfunction_attribute of cuda.h
    case 0: *value = int(device.threads_per_block); break;
    case 5:
    case 6: *value = int(device.arch); break;
    case 8: *value = kernel->dynamic_shared; break;
    default: *value = 0;
  }
  return kSuccess;
}
int cuFuncSetAttribute(Kernel* kernel, int attribute, int value) {
  if (attribute != 8 || value < 0 || u32(value) > device.shared_per_block) return kInvalidValue;
  kernel->dynamic_shared = value;
  return kSuccess;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, Kernel*, int threads, size_t shared) {
  *n = threads > 0 && u32(threads) <= device.threads_per_block && shared <= device.shared_per_block;
  return kSuccess;
}

int cuLaunchKernel(Kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, Stream*, void** parameters, void** extra) {
  if (extra || gy * gz * by * bz != 1) return kInvalidValue;
  return launch(kernel, gx, bx, shared, parameters, false);
}
int cuLaunchCooperativeKernel(Kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, Stream*,
                              void** parameters) {
  if (gy * gz * by * bz != 1) return kInvalidValue;
  return launch(kernel, gx, bx, shared, parameters, true);
}

// ---- streams and events: all is done when a call returns ------------------------------------------

int cuStreamCreate(Stream** s, unsigned) { return *s = new Stream, kSuccess; }
int cuStreamDestroy_v2(Stream* s) { return delete s, kSuccess; }
int cuStreamSynchronize(Stream*) { return kSuccess; }
int cuStreamQuery(Stream*) { return kSuccess; }
int cuEventCreate(Event** e, unsigned) { return *e = new Event, kSuccess; }
int cuEventDestroy_v2(Event* e) { return delete e, kSuccess; }
int cuEventRecord(Event* e, Stream*) { return e->recorded = true, e->ns = clock_ns(), kSuccess; }
int cuEventSynchronize(Event*) { return kSuccess; }
int cuEventQuery(Event*) { return kSuccess; }
int cuEventElapsedTime(float* ms, Event* a, Event* b) {
  if (!a->recorded || !b->recorded) return kInvalidHandle;
  *ms = float(double(b->ns - a->ns) * 1e-6);
  return kSuccess;
}
}
