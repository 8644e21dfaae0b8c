// A launch of several steps: rows of the cache that a step writes and the next one copies, and the
// join between them. By bulk copies, or by relaxed loads, as AMK_BULK_COPY says.
#include "litmus.h"

#include "schedule.h"
#include "model_config.h"

#include "amk/ending.cuh"
#include "blocks.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr int kSteps = 3, kRowBytes = 64, kWriter = 100;

u8* cache() {
  static u8* p = litmus::allocate<u8>(kSteps * kRowBytes, "cache", machine::RegionKind::kCache);
  return p;
}

enum class How {
  kRight,
  kNoBarrier,     // an SM arrives before all of its threads are done
  kRelaxedJoin,   // its arrival is not a release
  kNoJoin,        // nobody waits for the others
  kRelaxedStep,   // the producer is told by a relaxed store
  kNoFence,       // the producer copies without a proxy fence
  kNoWait,        // or without waiting for the step
};

void join_step_by(C& c, How how) {
  if (how != How::kNoBarrier && how != How::kRelaxedJoin) return join_step(c);
  if (how == How::kRelaxedJoin) consumer_barrier();
  if (c.tid != kJoiner) return;
  if (how == How::kRelaxedJoin) add_relaxed(step_counter(c.launch.exchange), 1u);
  else add_release(step_counter(c.launch.exchange), 1);
}

void wait_joined_by(C& c, How how) {
  if (how != How::kNoJoin && how != How::kRelaxedStep) return wait_joined(c);
  if (c.step == 0) return;
  if (c.tid == kJoiner) {
    const u32 target = u32(c.launch.first_epoch + c.step) * kSMs;
    Spin spin;
    while (how != How::kNoJoin && int(load_acquire(step_counter(c.launch.exchange)) - target) < 0) {
      if (spin.cancelled(c, Wait::kStep, c.step, target)) break;
    }
    if (how == How::kRelaxedStep) store_shared_relaxed(&c.shared.acquired_step, u32(c.step));
    else store_shared_release(&c.shared.acquired_step, u32(c.step));
  }
  consumer_barrier();
}

void wait_step_by(Producer<C>& p, u32 step, How how) {
  if (how == How::kNoWait) return;
  if (how != How::kNoFence) return p.wait_step(step);
  while (load_shared_acquire(&p.c.shared.acquired_step) < step) {
  }
}

// ---- rows of the cache ----------------------------------------------------------------------------

// In each step SM 0 writes a row, and SM 1 copies the row of the step before, or all rows up to the
// one that is being written, and looks at `looked_at` of them.
litmus::Test rows(const char* name, How how, int copied = 1, int looked_at = 1) {
  auto test = test_of_blocks(name, [=](C& c) {
    for (int step = 0; step < kSteps; ++step) {
      c.begin_step(step);
      wait_joined_by(c, how);
      if (c.sm == 0 && c.tid == kWriter) {
        const u32 v = 0x01010101u * u32(step + 1);
        for (int i = 0; i < kRowBytes / 16; ++i)
          reinterpret_cast<uint4*>(cache() + step * kRowBytes)[i] = make_uint4(v, v, v, v);
      }
      if (c.sm == 1 && step > 0 && c.warp == 0) {
        wait_full(c, c.slot, c.phase);
        if (c.lane == 0) {
          u64 sum = 0;
          for (int row = 0; row < looked_at; ++row) sum = sum * 10 + c.ring[c.slot * kSlotBytes + row * kRowBytes + 5];
          seen[step] = sum;
        }
        release(c, c.slot, kSlotArrivals);
        advance_slot(c.slot, c.phase);
      }
      join_step_by(c, how);
    }
  }, [=](C& c) {
    if (c.sm != 1) return;
    Producer<C> p(c);
    for (int step = 1; step < kSteps; ++step) {
      wait_step_by(p, u32(step), how);
      p.copy(cache() + (step - 1) * kRowBytes, u32(copied * kRowBytes));
    }
    p.drain();
  }, [] {
    for (u64 step = 1; step < kSteps; ++step) {
      if (seen[step] != step) return std::string("a step uses bytes of another row than that of the step before");
    }
    return std::string();
  });
  test.bound = AMK_BULK_COPY ? 2 : 1;
  // Rows that nobody has written are copied with the others; a load of them is of what the host has
  // cleared.
  test.setup = [] {
    device().clear();
    if (AMK_BULK_COPY) litmus::forget(cache(), kSteps * kRowBytes);
    else litmus::fill(cache(), kSteps * kRowBytes, u8(0));
  };
  return test;
}

// ---- words of the last exchange -------------------------------------------------------------------

// Every SM publishes a word and reads all. The next step does the same on the same page, and nothing
// else: what keeps the words of a step until all have read them is the join.
litmus::Test words(const char* name, How how) {
  constexpr Page kBest{0, 1280, 1};
  auto test = test_of_blocks(name, [=](C& c) {
    for (int step = 0; step < kSteps; ++step) {
      c.begin_step(step);
      wait_joined_by(c, how);
      if (c.tid == 0) publish<Fp32>(c, kBest, c.sm * 8, float(10 * step + c.sm));
      c.advance(kSMs);
      u64 sum = 0;
      for (int sm = 0; sm < kSMs && c.tid == 32; ++sm)
        sum = sum * 100 + u64(poll_word<Fp32>(c, kBest, sm * 8));
      if (c.tid == 32) seen[c.sm * kSteps + step] = sum;
      join_step_by(c, how);
    }
  }, nothing, [] {
    for (u64 i = 0; i < u64(kSMs * kSteps); ++i) {
      const u64 step = i % kSteps;
      if (seen[i] != 1000 * step + 10 * step + 1) return std::string("a step has a word of another step");
    }
    return std::string();
  });
  test.bound = 2;
  return test;
}

// ---- launches -------------------------------------------------------------------------------------

// Two launches of a step each. What the first one has written is there for copies of the second,
// without a wait; counters go on, here past 2^32.
litmus::Test launches() {
  constexpr u64 kFirst = 0x7fffffff;
  auto test = test_of_blocks("two launches", nothing, nothing, [] {
    if (seen[0] != 1) return std::string("a launch does not have the row that the one before has written");
    return std::string();
  });
  test.kernels.clear();
  for (u64 number = 0; number < 2; ++number) {
    test.kernels.push_back([=] {
      Launch launch = device().launch;
      launch.first_epoch = kFirst + number;
      launch.steps = 2;
      C c(launch);
      init_scratch(c.launch, c.shared);
      if (c.tid >= kConsumers) {
        if (AMK_BULK_COPY && c.tid != kConsumers) return;
        Producer<C> p(c);
        if (number == 1 && c.sm == 1) p.copy(cache(), kRowBytes);
        p.drain();
        return;
      }
      for (int step = 0; step < 1; ++step) {
        c.begin_step(step);
        wait_joined(c);
        if (number == 0 && c.sm == 0 && c.tid == kWriter) cache()[0] = 1;
        if (number == 1 && c.sm == 1 && c.warp == 0) {
          wait_full(c, c.slot, c.phase);
          if (c.lane == 0) seen[0] = c.ring[0];
          release(c, c.slot, kSlotArrivals);
        }
        join_step(c);
      }
      // A step more waits for the end of this one, past the place where the counter wraps.
      c.begin_step(1);
      wait_joined(c);
    });
  }
  test.bound = 2;
  test.setup = [] {
    device().clear();
    litmus::fill(cache(), kRowBytes, u8(0));
    reinterpret_cast<u32*>(device().launch.exchange + kCounterOffset)[kExchangesPerStep] = u32(kFirst) * kSMs;
  };
  return test;
}

void tests() {
  litmus::holds(rows("rows of the step before", How::kRight));
  // Bytes that nothing orders are torn ones; without that assumption they are races.
  const auto lacks = [](const char* name, How how) {
    auto test = rows(name, how);
    // Without bulk copies, thousands of schedules come before the one.
    if (AMK_BULK_COPY || how != How::kNoBarrier) litmus::fails(test, "outcome");
    test.without = "torn-cache-rows";
    litmus::fails(test, "race");
  };
  lacks("a row, and an SM that arrives before it is done", How::kNoBarrier);
  lacks("a row, and an arrival that is not a release", How::kRelaxedJoin);
  lacks("a row, and no join", How::kNoJoin);
  lacks("a row, and a producer told by a relaxed store", How::kRelaxedStep);
  lacks("a row, and a producer that does not wait", How::kNoWait);
#if AMK_BULK_COPY
  litmus::fails(rows("a row, and a producer without the proxy fence", How::kNoFence), "outcome");
  auto unfenced = rows("a row, and a producer without the proxy fence", How::kNoFence);
  unfenced.without = "torn-cache-rows";
  litmus::fails(unfenced, "proxy");
#endif

  auto torn = rows("a block of rows, one of which is being written", How::kRight, 2);
  litmus::holds(torn);
  torn.without = "torn-cache-rows";
  litmus::fails(torn, "race");
  litmus::fails(rows("a row that is used while it is written", How::kRight, 2, 2), "outcome");

#if AMK_BULK_COPY  // the same with and without
  litmus::holds(words("words of the last exchange of a step", How::kRight));
  litmus::fails(words("words of the last exchange, and no join", How::kNoJoin), "outcome");
#endif
  litmus::holds(launches());
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "steps", tests); }
