// The join of all blocks of a pass over a prompt: what any thread has written before it is there for
// every thread after it, for plain loads and for cp.async.
#include "litmus.h"

#define AMK_PROMPT 1
#define AMK_PROMPT_TOKENS kMostPromptTokens
#include "schedule.h"
#include "model_config.h"

#include "amk/prompt_shape.cuh"

namespace amk {
constexpr int kMostPromptTokens = 128;
constexpr PromptSizes kPromptSizes{kMostPromptTokens * 16 * 2, 0};
constexpr Page kStepPages[] = {{}};
}  // namespace amk

#include "amk/prompt.cuh"
#include "device.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr int kWriter = 200, kReader = 100, kJoins = 3;

enum class How {
  kRight,
  kNoBarrierBefore,  // a block arrives before all of its threads are done
  kNoBarrierAfter,  // threads go on that have not waited
  kRelaxed,          // the arrival is not a release
  kNoJoin,           // nobody waits for the others
  kOld,              // a counter that the host has not cleared
  kNoWait,           // copies by cp.async that nobody waits for
  kOwnWait,          // or their own thread alone, with no barrier
};

void join_by(Prompt& c, How how) {
  if (how != How::kNoBarrierBefore && how != How::kNoBarrierAfter && how != How::kRelaxed && how != How::kNoJoin)
    return join(c);
  if (how != How::kNoBarrierBefore) block_sync();
  if (c.tid == 0) {
    u32* counter = reinterpret_cast<u32*>(c.launch.exchange);
    if (how == How::kRelaxed) add_relaxed(counter, 1u);
    else add_release(counter, 1);
    const u32 target = ++c.joined * kSMs;
    Spin spin;
    while (how != How::kNoJoin && int(load_acquire(counter) - target) < 0) {
      if (spin.cancelled(c, Wait::kJoin, c.joined, target)) break;
    }
  }
  if (how != How::kNoBarrierAfter) block_sync();
}

// Before each join a thread of each block writes a row of values. After it a thread of the other
// block reads it, and another one copies it to shared memory for a third. The same row is written
// anew after the join after the next.
litmus::Test joins(const char* name, How how) {
  static u8* workspace = litmus::allocate<u8>(kPromptPlaces.end, "workspace");
  litmus::Test test;
  test.name = name;
  test.blocks = kSMs;
  test.threads = kConsumers;
  test.shared = kPromptSharedBytes;
  test.bound = 3;
  test.setup = [=] {
    device().clear();
    device().launch.exchange = workspace;
    litmus::forget(workspace, u32(kPromptPlaces.end));
    litmus::fill(reinterpret_cast<u32*>(workspace), 1, how == How::kOld ? u32(kSMs) : 0u);
  };
  test.kernels.push_back([=] {
    const Launch& launch = device().launch;
    if (thread_index() == 0) init_waits(launch, block_waits());
    block_sync();
    Prompt c(launch);
    const auto row = [&](int block, int turn) { return c.residual(block * 2 + turn % 2); };
    for (int turn = 0; turn < kJoins; ++turn) {
      if (c.tid == kWriter) {
        for (int i = 0; i < 4; ++i) row(c.sm, turn)[i] = float(10 * turn + c.sm);
      }
      join_by(c, how);
      const int other = 1 - c.sm;
      if (c.tid == kReader) seen[c.sm * kJoins + turn] = u64(row(other, turn)[0]);
      if (c.tid == kReader + 64) {
        copy_async_16(c.ring, row(other, turn));
        commit_copies();
        if (how != How::kNoWait) wait_copies<0>();
      }
      if (how != How::kOwnWait) block_sync();
      if (c.tid == kReader + 96) seen[16 + c.sm * kJoins + turn] = u64(reinterpret_cast<float*>(c.ring)[3]);
    }
  });
  test.outcome = [] {
    for (u64 i = 0; i < u64(kSMs * kJoins); ++i) {
      const u64 right = 10 * (i % kJoins) + (1 - i / kJoins);
      if (seen[i] != right || seen[16 + i] != right)
        return std::string("a block has other values than those that were written before the join");
    }
    return device().stalled();
  };
  return test;
}

void tests() {
  litmus::holds(joins("joins of a prompt", How::kRight));
  litmus::fails(joins("a block that arrives before it is done", How::kNoBarrierBefore), "race");
  litmus::fails(joins("threads that have not waited", How::kNoBarrierAfter), "race");
  litmus::fails(joins("an arrival that is not a release", How::kRelaxed), "race");
  litmus::fails(joins("no join", How::kNoJoin), "race");
  litmus::fails(joins("a counter that was not cleared", How::kOld), "race");
  litmus::fails(joins("copies that nobody waits for", How::kNoWait), "unwritten");
  litmus::fails(joins("copies that their own thread alone waits for", How::kOwnWait), "unwritten");
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "prompt", tests); }
