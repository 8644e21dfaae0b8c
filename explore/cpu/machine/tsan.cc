// What a compiler calls before plain accesses, with -fsanitize=thread. Kernels are compiled with it
// and linked with this instead of its library. Stacks are not in the arena: the first comparison
// ends most calls.
#include <cstring>

#include "arena.h"
#include "model.h"
#include "scheduler.h"

namespace {

using namespace machine;

inline Where caller(const void* pc) { return Where(reinterpret_cast<uintptr_t>(pc)); }

inline void reads(const void* p, u32 bytes, const void* pc) {
  if (in_arena(p) && self) order().read(current().id, p, bytes, caller(pc));
}
inline void writes(void* p, u32 bytes, const void* pc) {
  if (in_arena(p) && self) order().write(current().id, p, bytes, caller(pc));
}

}  // namespace

#define PC __builtin_return_address(0)
#define HOOKS(bytes)                                                                \
  void __tsan_read##bytes(void* p) { reads(p, bytes, PC); }                         \
  void __tsan_write##bytes(void* p) { writes(p, bytes, PC); }                       \
  void __tsan_volatile_read##bytes(void* p) { reads(p, bytes, PC); }                \
  void __tsan_volatile_write##bytes(void* p) { writes(p, bytes, PC); }              \
  void __tsan_unaligned_read##bytes(void* p) { reads(p, bytes, PC); }               \
  void __tsan_unaligned_write##bytes(void* p) { writes(p, bytes, PC); }             \
  void __tsan_unaligned_volatile_read##bytes(void* p) { reads(p, bytes, PC); }      \
  void __tsan_unaligned_volatile_write##bytes(void* p) { writes(p, bytes, PC); }    \
  void __tsan_read_write##bytes(void* p) { reads(p, bytes, PC), writes(p, bytes, PC); } \
  void __tsan_unaligned_read_write##bytes(void* p) { reads(p, bytes, PC), writes(p, bytes, PC); }

extern "C" {
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void* p, size_t bytes) { reads(p, u32(bytes), PC); }
void __tsan_write_range(void* p, size_t bytes) { writes(p, u32(bytes), PC); }

// What compilers make of several stores, or of a copy; kernels are linked with --wrap.
void* __wrap_memset(void* p, int value, size_t bytes) {
  writes(p, u32(bytes), PC);
  return memset(p, value, bytes);
}
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  reads(from, u32(bytes), PC), writes(to, u32(bytes), PC);
  return memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  reads(from, u32(bytes), PC), writes(to, u32(bytes), PC);
  return memmove(to, from, bytes);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
