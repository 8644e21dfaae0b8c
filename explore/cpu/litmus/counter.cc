// Exchanges that a counter announces: a vector's words, and whatever else a block has written.
#include "litmus.h"

#define LITMUS_FLAGGED false
#include "schedule.h"
#include "model_config.h"

#include "blocks.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr Page kA{0, 256, 1};
constexpr int kWriter = 200, kReader = 100;  // threads of warps that neither signal nor await

enum class Signal { kRight, kRelaxed, kNoBarrier };
void signal_by(C& c, Signal how) {
  if (how == Signal::kRight) return signal(c);
  if (how != Signal::kNoBarrier) consumer_barrier();
  if (c.tid != 0) return;
  u32* counter = reinterpret_cast<u32*>(c.launch.exchange + kCounterOffset) + c.ordinal;
  if (how == Signal::kRelaxed) add_relaxed(counter, 1u);
  else add_release(counter, 1);
}

enum class Await { kRight, kRelaxed, kNoBarrier, kTooFew };
void await_by(C& c, Await how) {
  if (how == Await::kRight) return await(c);
  if (c.tid == 0) {
    const u32 target = how == Await::kTooFew ? c.producers - 1 : c.producers;
    const u32* counter = reinterpret_cast<const u32*>(c.launch.exchange + kCounterOffset) + (c.ordinal - 1);
    Spin spin;
    while (int((how == Await::kRelaxed ? load_relaxed(counter) : load_acquire(counter)) - target) < 0) {
      if (spin.cancelled(c, Wait::kExchange, c.ordinal - 1, target)) break;
    }
  }
  if (how != Await::kNoBarrier) consumer_barrier();
}

// Each SM writes a word of the vector and a plain value, by two warps, and reads what the others
// have written.
litmus::Test counted(const char* name, Signal signals, Await awaits, bool plain) {
  static float* values = litmus::allocate<float>(kSMs, "values");
  auto test = test_of_blocks(name, [=](C& c) {
    if (c.tid == kWriter) {
      publish<Bf16>(c, kA, c.sm * 32, float(3 + c.sm));
      if (plain) values[c.sm] = float(5 + c.sm);
    }
    signal_by(c, signals);
    c.advance(kSMs);
    await_by(c, awaits);
    if (c.tid == kReader) {
      const int other = (c.sm + 1) % kSMs;
      seen[c.sm * 2] = u64(poll_word<Bf16>(c, kA, other * 32));
      if (plain) seen[c.sm * 2 + 1] = u64(values[other]);
    }
  }, nothing, [=] {
    for (u64 sm = 0; sm < kSMs; ++sm) {
      const u64 other = (sm + 1) % kSMs;
      if (seen[sm * 2] != 3 + other || (plain && seen[sm * 2 + 1] != 5 + other))
        return std::string("a reader has an old value of a vector that was announced");
    }
    return std::string();
  });
  test.setup = [] { device().clear(), litmus::fill(values, kSMs, 0.0f); };
  return test;
}

// Counters are never reset: a launch goes on from what they are, also past 2^32.
litmus::Test wraps() {
  auto test = counted("a counter that wraps", Signal::kRight, Await::kRight, true);
  const auto setup = test.setup;
  test.setup = [=] {
    setup();
    device().launch.first_epoch = 0x7fffffff;  // times two SMs is 2^32 - 2
    *reinterpret_cast<u32*>(device().launch.exchange + kCounterOffset) = 0x7fffffffu * kSMs;
  };
  return test;
}

void tests() {
  litmus::holds(counted("an exchange by counter", Signal::kRight, Await::kRight, true));
  litmus::fails(counted("a relaxed counter, words", Signal::kRelaxed, Await::kRight, false), "outcome");
  litmus::fails(counted("a relaxed counter, plain values", Signal::kRelaxed, Await::kRight, true), "race");
  litmus::fails(counted("a signal without its barrier", Signal::kNoBarrier, Await::kRight, false), "outcome");
  litmus::fails(counted("a relaxed wait", Signal::kRight, Await::kRelaxed, true), "race");
  litmus::fails(counted("a wait without its barrier", Signal::kRight, Await::kNoBarrier, false), "outcome");
  litmus::fails(counted("a wait for all producers but one", Signal::kRight, Await::kTooFew, false), "outcome");
  litmus::holds(wraps());
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "counter", tests); }
