// What code compiled with -fsanitize=thread calls, doing nothing: to run it without a machine.
#include <cstddef>

#define AMK_HOOKS(NAME) \
  void __tsan_##NAME##1(void*) {} \
  void __tsan_##NAME##2(void*) {} \
  void __tsan_##NAME##4(void*) {} \
  void __tsan_##NAME##8(void*) {} \
  void __tsan_##NAME##16(void*) {}
extern "C" {
AMK_HOOKS(read)
AMK_HOOKS(write)
AMK_HOOKS(unaligned_read)
AMK_HOOKS(unaligned_write)
AMK_HOOKS(volatile_read)
AMK_HOOKS(volatile_write)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read_range(void*, size_t) {}
void __tsan_write_range(void*, size_t) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
