// The headers of a build, for programs that run parts of its kernel: launches on some of the SMs.
#pragma once

#include "schedule.h"
#include "model_config.h"
#include "pages.h"

#include "amk/step.cuh"

#include "grid.h"

using namespace amk;

#if AMK_PROMPT
constexpr size_t kOfBlock = kPromptSharedBytes;  // bytes of shared memory
#else
constexpr size_t kOfBlock = kSharedBytes;
#endif
static Launch launch;
static Array<Stall, kSMs> stalls;
static Array<u32, 2> aborts;  // the host's word, and that of SMs

static void begin(void* module) {
  begin_grid(module, kSMs, kOfBlock);
  stalls.make();
  aborts.make();
  launch.abort = aborts.all;
  launch.abort_device = aborts.all + 1;
  launch.stalls = stalls.all;
  launch.spin_limit_ns = 1000000000;
}

// The epoch of what a step reads first, and of what it hands over then.
static u32 first_epoch() {
  return u32(launch.first_epoch * kExchangesPerStep % Context<Mode::kDecode>::kMaxEpoch) + 1;
}
static u32 second_epoch() { return first_epoch() % Context<Mode::kDecode>::kMaxEpoch + 1; }

// ---- launches -----------------------------------------------------------------------------------------------------

// SMs that run next. So many of them run at once: the threads of all are more than the machine has stacks for.
constexpr int kMostAtOnce = 16;
static int sms[kSMs], listed, ran;
static void add_sm(int sm) { sms[listed++] = sm; }
static int this_sm() { return sms[ran + block_index()]; }

static void run_sms(void (*thread)(), int threads = kConsumers) {
  body.weights = launch.weights;
  body.cache = launch.cache;
  body.exchange = launch.exchange;
  for (ran = 0; ran < listed; ran += kMostAtOnce) {
    const int blocks = min(listed - ran, kMostAtOnce);
    run_grid(blocks, threads, kOfBlock, thread);
    for (int i = 0; i < blocks; ++i) {
      const Stall& s = stalls[i];
      if (s.valid == 0) continue;
      printf("SM %d gave up: wait %u for %u of %u, warp %u\n", sms[ran + i], s.wait, s.expected, s.index, s.warp);
      exit(1);
    }
  }
  listed = 0;
}

// ---- what a block does --------------------------------------------------------------------------------------------

// Its consumers compute.
template <class Consume>
static void run_consumers(Consume&& consume) {
  init_scratch(launch, block_scratch());
  Context<Mode::kDecode> c(launch);
  c.sm = this_sm();
  c.begin_step(0);
  consume(c);
}
