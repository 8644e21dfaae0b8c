#include "crash.h"

#include <cstdio>
#include <ucontext.h>

#include "findings.h"
#include "scheduler.h"

namespace machine {

namespace {

const void* instruction(void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
  (void)context;
  return nullptr;
#endif
}

// The machine is not in the middle of anything when a kernel's access faults, so that it may go on
// from here. A fault of its own, or outside of a launch, is for the handler before.
struct sigaction* before[2];

void on_fault(int signal, siginfo_t* info, void* context) {
  if (!self) {
    sigaction(signal, before[signal == SIGBUS], nullptr);
    return;
  }
  const auto* stack = static_cast<const char*>(current().stack);
  const auto* at = static_cast<const char*>(info->si_addr);
  char text[96];
  if (at < stack && stack - at <= (64 << 10)) {
    snprintf(text, sizeof text, "the stack of a thread is full");
  } else {
    snprintf(text, sizeof text, "an access to memory that is not there, at address %p",
             info->si_addr);
  }
  report_fatal(kCrash, text, {CodePlace{{}, instruction(context), self->block, self->thread}});
}

}  // namespace

CrashGuard::CrashGuard() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &segv_);
  sigaction(SIGBUS, &action, &bus_);
  before[0] = &segv_;
  before[1] = &bus_;
}

CrashGuard::~CrashGuard() {
  sigaction(SIGSEGV, &segv_, nullptr);
  sigaction(SIGBUS, &bus_, nullptr);
}

}  // namespace machine
