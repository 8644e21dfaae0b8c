// What the tests of the device runtime share: the arguments of a launch, and an SM's state. Include
// it after litmus.h, schedule.h and model_config.h.
#pragma once

#include "amk/step.cuh"

namespace amk {

using C = Context<Mode::kDecode>;

// The arguments of a launch, and the memory that they point to.
struct Device {
  Launch launch = {};
  u32* abort = litmus::allocate<u32>(1, "abort word of the host", machine::RegionKind::kPinned);

  Device() {
    launch.exchange = litmus::allocate<u8>(kExchangeBytes, "exchange");
    launch.abort = abort;
    launch.abort_device = litmus::allocate<u32>(1, "abort word");
    launch.stalls = litmus::allocate<Stall>(kSMs, "stall records");
    launch.spin_limit_ns = 1000000000;
    launch.steps = 1;
  }
  // As the host leaves it before the first launch.
  void clear() {
    launch.first_epoch = 0;
    launch.steps = 1;
    litmus::fill(launch.exchange, kExchangeBytes, u8(0));
    litmus::fill(launch.abort_device, 1, 0u);
    litmus::fill(launch.stalls, kSMs, Stall{});
    *abort = 0;
  }
  // Who has waited in vain, or nothing.
  std::string stalled() const {
    for (int sm = 0; sm < kSMs; ++sm) {
      const Stall& s = launch.stalls[sm];
      if (s.valid != 1) continue;
      return "SM " + std::to_string(sm) + " waits in vain, kind " + std::to_string(s.wait) + ", for " +
             std::to_string(s.index) + " of " + std::to_string(s.expected);
    }
    return "";
  }
};

inline Device& device() {
  static Device* one = new Device;
  return *one;
}

// A test of one warp for each SM, whose first lane alone does something: body has an SM's context.
// Waits end by their bounds, and leave a stall record, which is an outcome that must not happen.
inline litmus::Test test_of_lanes(const char* name, std::function<void(C&)> body,
                                  std::function<std::string()> outcome) {
  litmus::Test test;
  test.name = name;
  test.blocks = kSMs;
  test.shared = kSharedBytes;
  test.setup = [] { device().clear(); };
  test.kernels.push_back([=] {
    if (thread_index() != 0) return;
    C c(device().launch);
    init_waits(c.launch, block_waits());
    c.begin_step(0);
    body(c);
  });
  test.outcome = [=] {
    const std::string stalled = device().stalled();
    return stalled.empty() ? outcome() : stalled;
  };
  return test;
}

// Polls one word of a page.
template <class E>
float poll_word(C& c, const Page page, int index) {
  auto word = word_poll<E, 1>(page_copy(c, page), [index](int) { return index; });
  poll_all(c, word);
  return word.value(0);
}

}  // namespace amk
