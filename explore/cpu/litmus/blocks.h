// A test of whole blocks: eight warps of consumers and one of the producer for each SM, as a decode
// kernel has them.
#pragma once

#include "device.h"

namespace amk {

// `consumer` is what each thread of the consumers does, `producer` what one thread does that copies,
// or without bulk copies a warp. The scratch is prepared as a kernel prepares it.
inline litmus::Test test_of_blocks(const char* name, std::function<void(C&)> consumer,
                                   std::function<void(C&)> producer,
                                   std::function<std::string()> outcome) {
  litmus::Test test;
  test.name = name;
  test.blocks = kAllSMs;
  test.gpus = kGPUs;
  test.threads = kThreads;
  test.shared = kSharedBytes;
  test.setup = [] { device().clear(); };
  test.kernels.push_back([=] {
    C c(launch_of_block());
#ifdef LITMUS_BARRIERS
    init_barriers(c.shared, thread_index());
#endif
    init_scratch(c.launch, c.shared);
    c.begin_step(0);
    if (c.tid < kConsumers) consumer(c);
    else if (producer && (!AMK_BULK_COPY || c.tid == C::kProducerThread)) producer(c);
  });
  test.outcome = [=] {
    const std::string stalled = device().stalled();
    return stalled.empty() ? outcome() : stalled;
  };
  return test;
}

inline void nothing(C&) {}

}  // namespace amk
