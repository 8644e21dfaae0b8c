// The entry points of a CUDA driver that package driver binds, for one imaginary GPU or several that
// are alike. Everything is done at once, in the call: a launch has run when it returns. But where
// there are several GPUs, cooperative launches wait until each has one, and run as one launch.
// Device addresses are addresses of the arena, the same for all GPUs.
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
  kIllegalAddress = 700,
  kPeerAlreadyEnabled = 704,
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
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kPeerAlreadyEnabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
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
  u32 gpu;
};

constexpr u32 kMostGpus = 8;

// A GPU, and its context.
struct Gpu {
  bool reaches[kMostGpus] = {};  // whose memory
  // A cooperative launch that waits for those of the others.
  Kernel* waiting = nullptr;
  u32 threads = 0, shared = 0;
  alignas(16) u64 words[kParameterBytes / 8];
};
Gpu gpus[kMostGpus];
thread_local u32 current_gpu = 0;  // whose context is current

u32 sms_of_one() { return device.sms / device.gpus; }

// Whether some GPUs have begun what others have not. Until then the host may not write: a GPU may
// have written there, and what the host meant to come before it comes after it.
bool launching() {
  for (const Gpu& g : gpus) {
    if (g.waiting) return true;
  }
  return false;
}

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
void name_regions(const Kernel& kernel, const u64* words, const std::string& of = "") {
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
    order().name_region(p, kind, (takes_launch || i < 2 ? kNames[i] : "scratch") + of);
  }
}

// As many of the bytes at p as there are, up to kParameterBytes: how many the kernel takes is not
// known.
void copy_parameters(const void* p, void* to) {
  iovec local{to, kParameterBytes}, remote{const_cast<void*>(p), kParameterBytes};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) > 0) return;
  memcpy(to, p, 256);
}

int run_now(Launch& l) {
  const u64 before = steps();
  CrashGuard guard;
  const Outcome outcome = run(l);
  note_launch(steps() - before, outcome);
  return outcome == Outcome::kDone ? kSuccess : kLaunchFailed;
}

// The launches of all GPUs, each of which has a block for each of its SMs, as one: the blocks of a
// GPU come after those of the one before.
int launch_together() {
  Launch l;
  l.body = [] {
    const Gpu& g = gpus[self->block / sms_of_one()];
    call_kernel(*g.waiting, g.words);
  };
  l.blocks = l.at_once = device.sms;
  l.gpus = device.gpus;
  l.threads = gpus[0].threads;
  l.shared_bytes = gpus[0].shared;
  int result = kSuccess;
  for (u32 i = 0; i < device.gpus; ++i) {
    const Gpu& g = gpus[i];
    if (g.threads != l.threads || g.shared != l.shared_bytes) result = kInvalidValue;
    for (u32 k = 0; k < device.gpus; ++k) {
      if (k != i && !g.reaches[k]) result = kIllegalAddress;
    }
    name_regions(*g.waiting, g.words, " of GPU " + std::to_string(i));
  }
  host_sees(gpus[0].words, sizeof gpus[0].words);
  if (result == kSuccess) result = run_now(l);
  for (Gpu& g : gpus) g.waiting = nullptr;
  return result;
}

// Launches of each GPU come in any order, and a second one of the same after those of all others.
int launch_when_all_are_there(Kernel* kernel, u32 gpu, u32 threads, u32 shared, void** parameters) {
  Gpu& g = gpus[gpu];
  if (g.waiting) return kLaunchFailed;
  copy_parameters(parameters[0], g.words);
  g.waiting = kernel, g.threads = threads, g.shared = shared;
  for (u32 i = 0; i < device.gpus; ++i) {
    if (!gpus[i].waiting) return kSuccess;
  }
  return launch_together();
}

int launch(Kernel* kernel, u32 blocks, u32 threads, u32 shared, void** parameters, u32 gpu, bool cooperative) {
  if (!kernel || !parameters || !parameters[0] || blocks == 0) return kInvalidValue;
  if (threads == 0 || threads > device.threads_per_block) return kInvalidValue;
  if (shared > u32(kernel->dynamic_shared) || shared > device.shared_per_block) return kInvalidValue;
  if (cooperative && blocks > device.sms) return kCooperativeTooLarge;
  if (cooperative && device.gpus > 1 && blocks == sms_of_one())
    return launch_when_all_are_there(kernel, gpu, threads, shared, parameters);
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
  return run_now(l);
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

int cuDeviceGetCount(int* n) {
  return *n = int(device.gpus), initialised ? kSuccess : kNotInitialized;
}
int cuDeviceGet(int* d, int ordinal) {
  return *d = ordinal, ordinal >= 0 && u32(ordinal) < device.gpus ? kSuccess : kInvalidDevice;
}
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
    case 16: *value = int(sms_of_one()); break;
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

int cuDevicePrimaryCtxRetain(void** context, int d) { return *context = &gpus[d], kSuccess; }
int cuDevicePrimaryCtxRelease_v2(int d) {
  for (u32 i = 0; i < kMostGpus; ++i) gpus[d].reaches[i] = gpus[i].reaches[d] = false;
  return kSuccess;
}
int cuCtxSetCurrent(void* context) {
  if (context) current_gpu = u32(static_cast<Gpu*>(context) - gpus);
  return kSuccess;
}
int cuDeviceCanAccessPeer(int* can, int d, int peer) { return *can = d != peer, kSuccess; }
int cuDeviceGetP2PAttribute(int* value, int, int d, int peer) { return *value = d != peer, kSuccess; }
int cuCtxEnablePeerAccess(void* context, unsigned) {
  bool& reaches = gpus[current_gpu].reaches[static_cast<Gpu*>(context) - gpus];
  if (reaches) return kPeerAlreadyEnabled;
  return reaches = true, kSuccess;
}

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
  if (launching()) return kLaunchFailed;
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
  if (launching()) return kLaunchFailed;
  if (!is_device(to, bytes) || !is_device(from, bytes)) return kInvalidValue;
  order().host_read(from, bytes);
  order().host_write(to, bytes);
  memmove(to, from, bytes);
  return kSuccess;
}
int cuMemsetD8Async(void* p, unsigned char value, size_t n, Stream*) {
  if (launching()) return kLaunchFailed;
  if (!is_device(p, n)) return kInvalidValue;
  order().host_write(p, n);
  memset(p, value, n);
  return kSuccess;
}
int cuMemsetD32Async(void* p, unsigned value, size_t n, Stream*) {
  if (launching()) return kLaunchFailed;
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
                   unsigned bz, unsigned shared, Stream* s, void** parameters, void** extra) {
  if (extra || gy * gz * by * bz != 1) return kInvalidValue;
  return launch(kernel, gx, bx, shared, parameters, s ? s->gpu : 0, false);
}
int cuLaunchCooperativeKernel(Kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, Stream* s,
                              void** parameters) {
  if (gy * gz * by * bz != 1) return kInvalidValue;
  return launch(kernel, gx, bx, shared, parameters, s ? s->gpu : 0, true);
}

// ---- streams and events: all is done when a call returns ------------------------------------------

int cuStreamCreate(Stream** s, unsigned) { return *s = new Stream{current_gpu}, kSuccess; }
int cuStreamDestroy_v2(Stream* s) { return delete s, kSuccess; }
// A launch for whose end the host waits before all GPUs have theirs waits in vain.
int cuStreamSynchronize(Stream*) {
  if (!launching()) return kSuccess;
  for (Gpu& g : gpus) g.waiting = nullptr;
  return kLaunchFailed;
}
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
