// Accesses to memory that is not there, while a launch runs.
#pragma once

#include <csignal>

namespace machine {

// While one lives, a fault of memory ends the launch with a report.
class CrashGuard {
 public:
  CrashGuard();
  ~CrashGuard();

 private:
  struct sigaction segv_, bus_;
};

}  // namespace machine
