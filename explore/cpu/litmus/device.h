// What the tests of the device runtime share: the arguments of a launch, and an SM's state. Include
// it after litmus.h, schedule.h and model_config.h.
#pragma once

#include "amk/step.cuh"

namespace amk {

using C = Context<Mode::kDecode>;

// The arguments of a launch on each rank, and the memory that they point to.
struct Device {
  Launch ranks[kGPUs] = {};
  Launch& launch = ranks[0];
  u32* abort = litmus::allocate<u32>(1, "abort word of the host", machine::RegionKind::kPinned);

  Device() {
    for (Launch& l : ranks) {
      l.exchange = litmus::allocate<u8>(kExchangeBytes, "exchange");
      l.abort = abort;
      l.abort_device = litmus::allocate<u32>(1, "abort word");
      l.stalls = litmus::allocate<Stall>(kSMs, "stall records");
      l.spin_limit_ns = 1000000000;
      l.steps = 1;
    }
#if AMK_RANKS
    for (Launch& l : ranks) {
      l.rank = int(&l - ranks);
      for (int rank = 0; rank < kGPUs; ++rank) l.peers[rank] = ranks[rank].exchange;
    }
#endif
  }
  // As the host leaves it before the first launch.
  void clear() {
    for (Launch& l : ranks) {
      l.first_epoch = 0;
      l.steps = 1;
      litmus::fill(l.exchange, kExchangeBytes, u8(0));
      litmus::fill(l.abort_device, 1, 0u);
      litmus::fill(l.stalls, kSMs, Stall{});
    }
    *abort = 0;
  }
  // Who has waited in vain, or nothing.
  std::string stalled() const {
    for (int sm = 0; sm < kAllSMs; ++sm) {
      const Stall& s = ranks[sm / kSMs].stalls[sm % kSMs];
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

// Of the rank that a block runs on. Without ranks a block behind the last SM may stand for the host.
inline const Launch& launch_of_block() {
  return device().ranks[AMK_RANKS ? block_index() / kSMs : 0];
}

// A test of one warp for each SM, whose first lane alone does something: body has an SM's context.
// Waits end by their bounds, and leave a stall record, which is an outcome that must not happen.
inline litmus::Test test_of_lanes(const char* name, std::function<void(C&)> body,
                                  std::function<std::string()> outcome) {
  litmus::Test test;
  test.name = name;
  test.blocks = kAllSMs;
  test.gpus = kGPUs;
  test.shared = kSharedBytes;
  test.setup = [] { device().clear(); };
  test.kernels.push_back([=] {
    if (thread_index() != 0) return;
    C c(launch_of_block());
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
