// Stacks, and the switch between them. The switch saves what a function call has to keep: kernels
// change no rounding modes, so that the control words of the floating-point units stay as they are.
#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace machine {

namespace {
std::vector<void*> free_stacks;
}

void* take_stack() {
  if (!free_stacks.empty()) {
    void* stack = free_stacks.back();
    free_stacks.pop_back();
    return stack;
  }
  const size_t guard = size_t(sysconf(_SC_PAGESIZE));
  void* p = mmap(nullptr, guard + kStackBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED || mprotect(p, guard, PROT_NONE) != 0) {
    perror("libamkcpu: no memory for the stack of a fiber");
    abort();
  }
  return static_cast<char*>(p) + guard;
}

void give_stack(void* stack) { free_stacks.push_back(stack); }

#if defined(__x86_64__)

asm(R"(
.text
.p2align 4
.globl amk_switch_stack
.hidden amk_switch_stack
.type amk_switch_stack, @function
amk_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size amk_switch_stack, .-amk_switch_stack
)");
extern "C" void amk_switch_stack(void** from, void** to);

void prepare(Context& context, void* stack, void (*entry)()) {
  auto top = reinterpret_cast<uintptr_t>(stack) + kStackBytes;
  auto* p = reinterpret_cast<void**>(top & ~uintptr_t(15));
  *--p = nullptr;                          // entry has no caller, and finds the stack as after a call
  *--p = reinterpret_cast<void*>(entry);   // where the switch returns to
  for (int i = 0; i < 6; ++i) *--p = nullptr;
  context.stack_pointer = p;
}

void switch_context(Context& from, Context& to) {
  amk_switch_stack(&from.stack_pointer, &to.stack_pointer);
}

#elif defined(__aarch64__)

asm(R"(
.text
.p2align 4
.globl amk_switch_stack
.hidden amk_switch_stack
.type amk_switch_stack, %function
amk_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  ldr x9, [x1]
  mov sp, x9
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size amk_switch_stack, .-amk_switch_stack
)");
extern "C" void amk_switch_stack(void** from, void** to);

void prepare(Context& context, void* stack, void (*entry)()) {
  auto top = reinterpret_cast<uintptr_t>(stack) + kStackBytes;
  auto* p = reinterpret_cast<void**>((top & ~uintptr_t(15)) - 160);
  for (int i = 0; i < 20; ++i) p[i] = nullptr;
  p[11] = reinterpret_cast<void*>(entry);  // x30, where the switch returns to
  context.stack_pointer = p;
}

void switch_context(Context& from, Context& to) {
  amk_switch_stack(&from.stack_pointer, &to.stack_pointer);
}

#else

namespace {
ucontext_t* of(Context& context) {
  if (!context.stack_pointer) context.stack_pointer = new ucontext_t;
  return static_cast<ucontext_t*>(context.stack_pointer);
}
}  // namespace

void prepare(Context& context, void* stack, void (*entry)()) {
  ucontext_t* c = of(context);
  getcontext(c);
  c->uc_stack.ss_sp = stack;
  c->uc_stack.ss_size = kStackBytes;
  c->uc_link = nullptr;
  makecontext(c, entry, 0);
}

void switch_context(Context& from, Context& to) { swapcontext(of(from), of(to)); }

#endif

}  // namespace machine
