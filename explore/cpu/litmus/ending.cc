// The end of a step and of a launch: the words of all SMs' best logits, the token that is chosen,
// whether the launch ends, the word to the host; and launches that are aborted. A third block plays
// the host.
#include "litmus.h"

#define AMK_EAGER_ABORT 1
#include "schedule.h"
#include "model_config.h"

#include "amk/ending.cuh"
#include "blocks.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr int kHost = kSMs, kSteps = 3, kStopId = 4;
constexpr Page kValues{0, 256, 1}, kIndices{256, 256, 1}, kNever{512, 256, 1};

struct Head {
  static constexpr int kRows = kVocab, kGrain = 8, kRotation = 0, kRotationStep = 0, kTasks = kSMs;
};

struct HostMemory {
  u32* abort = litmus::allocate<u32>(1, "abort word of the host");
  u32* told = litmus::allocate<u32>(kSteps, "tokens for the host");
  u32* tokens = litmus::allocate<u32>(kSteps, "tokens");
  int* stop_ids = litmus::allocate<int>(1, "ids that end a launch");
};
HostMemory& host() {
  static HostMemory* one = new HostMemory;
  return *one;
}

void prepare(u64 spin_limit_ns) {
  device().clear();
  Launch& launch = device().launch;
  launch.abort = host().abort;
  launch.host_tokens = host().told;
  launch.tokens = host().tokens;
  launch.stop_ids = host().stop_ids;
  launch.n_stop = 1;
  launch.steps = kSteps;
  launch.spin_limit_ns = spin_limit_ns;
  litmus::fill(host().abort, 1, 0u);
  litmus::fill(host().told, kSteps, 0u);
  litmus::fill(host().tokens, kSteps, ~0u);
  litmus::fill(host().stop_ids, 1, kStopId);
}
constexpr u64 kLimit = 1000000000, kNoLimit = ~u64(0) / 4;

// ---- the end of a step ----------------------------------------------------------------------------

enum class How {
  kRight,
  kStopRead,     // whether the launch ends is read before the join's barrier
  kNoBarrier,    // and there is no barrier before the end of a block's step
  kHostReads,    // the host reads other memory on the strength of its word
  kAbort,        // the host gives the launch up while an SM waits
  kAbortUntold,  // and that SM publishes what it has
};

// SM step % 2 has the best logit of a step, for token 3 + step: the second step ends the launch.
litmus::Test steps(const char* name, How how) {
  const bool aborts = how == How::kAbort || how == How::kAbortUntold;
  auto test = test_of_blocks(name, [=](C& c) {
    if (c.sm == kHost) {
      if (c.tid != 0) return;
      if (aborts) return store_system(host().abort, 1);
      for (int step = 0; step < 2; ++step) {
        while (load_system(host().told + step) == 0) {
        }
        seen[40 + step] = how == How::kHostReads ? host().tokens[step] : load_system(host().told + step) - 1;
      }
      return;
    }
    u64 done = 0;
    for (int step = 0; step < c.launch.steps; ++step) {
      c.begin_step(step);
      wait_joined(c);
      if (aborts && c.sm == 0 && c.tid == 32) poll_word<Bf16>(c, kNever, 0);
      c.advance(kSMs);
      Best best;
      if (c.tid == 70) best.of[0] = Candidate{c.sm == step % 2 ? 2.0f : 1.0f, c.sm == step % 2 ? 3 + step : 9};
      if (how == How::kAbortUntold && c.sm == 0) {
        consumer_barrier();
        if (c.tid == 0) {
          store_relaxed(reinterpret_cast<u64*>(c.launch.exchange + kValues.offset), WordOf<Fp32>::make(3, c.epoch));
          store_relaxed(reinterpret_cast<u64*>(c.launch.exchange + kIndices.offset), u64(9) | u64(c.epoch) << 32);
        }
      } else {
        publish_best<Head>(c, best, kValues, kIndices);
      }
      sample(c, kValues, kIndices);
      stop(c);
      emit(c);
      bool early = false;
      if (how == How::kStopRead) early = c.tid == 100 && stopped(c);
      if (how == How::kNoBarrier) {
        if (c.tid == kJoiner) add_release(step_counter(c.launch.exchange), 1);
      } else {
        join_step(c);
      }
      tell_host(c);
      ++done;
      if (c.tid == 0) seen[c.sm * 16 + step] = u64(u32(c.shared.chosen[0]));
      if (stopped(c) || early) break;
    }
    if (c.tid == 0) seen[32 + c.sm] = done;
  }, [](C& c) {
    // The producer ends with the launch, and copies nothing of a step that there is not.
    if (c.sm == kHost) return;
    Producer<C> p(c);
    int step = 0;
    while (step + 1 < c.launch.steps && !p.stopped) p.wait_step(u32(++step));
    seen[36 + c.sm] = u64(step) * 10 + p.stopped;
    p.drain();
  }, [=]() -> std::string {
    const u64 none = u32(kVoid);
    for (u64 sm = 0; sm < kSMs; ++sm) {
      if (seen[32 + sm] != (aborts ? 1 : 2)) return "an SM has another number of steps";
      if (seen[36 + sm] % 10 == 0) return "a producer goes on after the end of the launch";
      if (aborts && seen[sm * 16] != none) return "a step of a launch that was aborted has a token";
      if (!aborts && (seen[sm * 16] != 3 || seen[sm * 16 + 1] != 4)) return "an SM has another token";
    }
    if (aborts && (host().told[0] || host().tokens[0] != ~0u)) return "the host has a token of a launch that was aborted";
    if (aborts) return "";
    if (host().tokens[0] != 3 || host().tokens[1] != 4 || host().tokens[2] != ~0u) return "the host finds other tokens";
    return seen[40] == 3 && seen[41] == 4 ? "" : "the host is told another token";
  });
  test.blocks = kSMs + 1;
  test.bound = 1;
  test.setup = [=] { prepare(aborts ? kNoLimit : kLimit); };
  return test;
}

// ---- waits that are aborted ------------------------------------------------------------------------

enum class Abort {
  kLimit,       // nobody comes, and time is over
  kHost,        // the host gives the launch up
  kNotPassed,   // and block 0, which looks, does not tell the others
  kTwoRecords,  // two warps of a block write a record
};

// Two warps of each SM wait for words that never come.
litmus::Test aborted(const char* name, Abort how) {
  litmus::Test test;
  test.name = name;
  test.blocks = kSMs + 1;
  test.threads = 64;
  test.shared = kSharedBytes;
  test.bound = 1;
  test.setup = [=] { prepare(how == Abort::kHost ? kNoLimit : kLimit); };
  test.kernels.push_back([=] {
    C c(device().launch);
    if (c.tid == 0) init_waits(c.launch, c.shared);
    block_sync();
    if (c.lane != 0) return;
    if (c.sm == kHost) {
      if (c.tid == 0 && how != Abort::kLimit) store_system(host().abort, 1);
      return;
    }
    c.begin_step(0);
    c.stage = 1 + u32(c.warp);
    if (how == Abort::kNotPassed) {
      // By hand what a wait does, but for the word to the others.
      const u32* word = reinterpret_cast<const u32*>(c.launch.exchange);
      const u64 begin = global_timer_ns();
      while (load_relaxed(word) == 0) {
        if (load_relaxed(c.launch.abort_device) || (c.sm == 0 && load_system(c.launch.abort))) break;
        if (global_timer_ns() - begin > c.launch.spin_limit_ns) {
          if (c.warp == 0) c.launch.stalls[c.sm] = Stall{1, c.stage, 0, 0, 1, 0, 1, 0};
          break;
        }
      }
      return;
    }
    poll_word<Bf16>(c, kNever, c.warp * 16);
    if (how == Abort::kTwoRecords) c.launch.stalls[c.sm] = Stall{2, c.stage, 0, 0, 1, 0, 1, u32(c.warp)};
    seen[c.sm * 2 + c.warp] = 1;
  });
  test.outcome = [=]() -> std::string {
    bool by_limit = false;
    for (u64 sm = 0; sm < kSMs; ++sm) {
      const Stall& s = device().launch.stalls[sm];
      by_limit |= s.valid == 1;
      if (how == Abort::kNotPassed) continue;
      if (seen[sm * 2] != 1 || seen[sm * 2 + 1] != 1) return "a wait does not end";
      if (s.valid == 0 || s.stage != 1 + s.warp) return "an SM leaves no record, or a mixed one";
    }
    if (how == Abort::kNotPassed) return by_limit ? "an SM does not hear that the launch was aborted" : "";
    if (how == Abort::kHost && by_limit) return "an SM does not hear that the launch was aborted";
    if (how == Abort::kLimit && !by_limit) return "no SM says that it waited in vain";
    return *device().launch.abort_device ? "" : "other SMs are not told";
  };
  return test;
}

void tests() {
  litmus::holds(steps("the end of steps and of a launch", How::kRight));
  litmus::fails(steps("a stop word that is read before the barrier", How::kStopRead), "race");
  litmus::fails(steps("the end of a step without its barrier", How::kNoBarrier), "race");
  litmus::fails(steps("a host that reads other memory after its word", How::kHostReads), "race");
  litmus::holds(steps("a launch that is aborted within a step", How::kAbort));
  litmus::fails(steps("an SM that has aborted publishes what it has", How::kAbortUntold), "outcome");

  litmus::holds(aborted("waits end by their limit", Abort::kLimit));
  litmus::holds(aborted("waits end when the host says so", Abort::kHost));
  litmus::fails(aborted("a host that SM 0 alone hears", Abort::kNotPassed), "outcome");
  litmus::fails(aborted("two records of one SM", Abort::kTwoRecords), "race");
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "ending", tests); }
