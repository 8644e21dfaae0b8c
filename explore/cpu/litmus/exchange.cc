// Flagged words: an exchange by words that carry their epoch, several copies of a page, the reuse of
// a page, two writes of one word, exchanges that are read late, and epochs that wrap.
#include "litmus.h"

#define LITMUS_SMS 3
#include "schedule.h"
#include "model_config.h"

#include "amk/exchange_quads.cuh"
#include "device.h"

using namespace amk;
using litmus::seen;

namespace {

// Pages of words, a line of the machine's polls apart.
constexpr Page kA{0, 256, 1}, kB{256, 256, 1}, kCopied{512, 256, 2};
constexpr int kFar = 16;  // words between two that are polled apart

template <class E = Bf16>
float read(C& c, const Page page, int index) {
  return poll_word<E>(c, page, index);
}

std::string unless(bool right, const char* what) { return right ? "" : what; }
const char* kOld = "a reader has seen the epoch and not the value of its exchange";

// ---- a word ---------------------------------------------------------------------------------------

template <class E>
litmus::Test word(const char* name) {
  return test_of_lanes(name, [](C& c) {
    if (c.sm == 0) {
      publish<E>(c, kA, 0, 3);
      publish<E>(c, kA, kFar, 5);
    }
    c.advance(1);
    if (c.sm == 1) seen[0] = u64(read<E>(c, kA, 0) * 10 + read<E>(c, kA, kFar));
    if (c.sm == 2) seen[1] = u64(read<E>(c, kA, kFar) * 10 + read<E>(c, kA, 0));
  }, [] { return unless(seen[0] == 35 && seen[1] == 53, kOld); });
}

// The value in one word and the epoch in another.
litmus::Test split_word() {
  return test_of_lanes("a value and its epoch as two words", [](C& c) {
    u32* at = reinterpret_cast<u32*>(c.launch.exchange);
    if (c.sm == 0) store_relaxed(at, 3u), store_relaxed(at + kFar, c.next_epoch());
    c.advance(1);
    if (c.sm != 1) return;
    Spin spin;
    while (load_relaxed(at + kFar) != c.epoch && !spin.cancelled(c, Wait::kExchange, 0, c.epoch)) {
    }
    seen[0] = load_relaxed(at);
  }, [] { return unless(seen[0] == ~u64(0) || seen[0] == 3, kOld); });
}

// A 64-bit word that is stored as two halves: the elements of a vector access are accesses.
litmus::Test halves() {
  return test_of_lanes("a 64-bit word as two of 32 bits", [](C& c) {
    u32* at = reinterpret_cast<u32*>(c.launch.exchange);
    const u64 w = WordOf<Fp32>::make(3, c.next_epoch());
    if (c.sm == 0) store_relaxed(at, u32(w)), store_relaxed(at + 1, u32(w >> 32));
    c.advance(1);
    if (c.sm == 1) seen[0] = u64(read<Fp32>(c, kA, 0));
  }, [] { return unless(seen[0] == ~u64(0) || seen[0] == 3, kOld); });
}

// Four words by one access, four by others, and a poll of all eight.
litmus::Test quads(bool checks_all) {
  return test_of_lanes(checks_all ? "quads of words" : "quads of which one word is looked at", [=](C& c) {
    if (c.sm == 0) publish_four<Bf16>(c, kA, 0, {1, 2, 3, 4});
    if (c.sm == 1) {
      for (int i = 0; i < 4; ++i) publish<Bf16>(c, kA, 4 + i, float(5 + i));
    }
    c.advance(2);
    if (c.sm != 2) return;
    auto poll = quad_poll<2>(page_copy(c, kA), [](int i) { return 4 * i; });
    if (checks_all) {
      poll_all(c, poll);
    } else {
      Spin spin;
      do poll.load();
      while (!(WordOf<Bf16>::fresh(poll.quad[0].x, c.epoch) && WordOf<Bf16>::fresh(poll.quad[1].x, c.epoch)) &&
             !spin.cancelled(c, Wait::kExchange, 0, c.epoch));
    }
    seen[0] = 0;
    for (int i = 0; i < 2; ++i) {
      const uint2 v = poll.pairs(i);
      for (u32 both : {v.x, v.y})
        seen[0] = seen[0] * 100 + u64(Bf16::to_float(u16(both))) * 10 + u64(Bf16::to_float(u16(both >> 16)));
    }
  }, [] { return unless(seen[0] == 12345678, kOld); });
}

// The same of quads that are each at a place that the compiler knows.
litmus::Test placed() {
  return test_of_lanes("quads at known places, and words with them", [](C& c) {
    if (c.sm == 0) publish_four<Bf16>(c, kA, 0, {1, 2, 3, 4});
    if (c.sm == 1) publish<Bf16>(c, kB, 0, 9);
    c.advance(2);
    if (c.sm != 2) return;
    auto four = placed_poll<1>(page_copy(c, kA), 0, [](int) { return 0; }, [](int) { return true; });
    auto one = word_poll<Bf16, 1>(page_copy(c, kB), [](int) { return 0; });
    poll_both(c, four, one);
    seen[0] = u64(one.value(0)) * 10 + u64(Bf16::to_float(u16(four.pairs(0).y >> 16)));
  }, [] { return unless(seen[0] == 94, kOld); });
}

// Plain memory on the strength of a flagged word.
litmus::Test plain_memory() {
  static float* logits = litmus::allocate<float>(1, "logits");
  auto test = test_of_lanes("plain memory read after a flagged word", [](C& c) {
    if (c.sm == 0) *logits = 7, publish<Bf16>(c, kA, 0, 3);
    c.advance(1);
    if (c.sm == 1) read(c, kA, 0), seen[0] = u64(*logits);
  }, [] { return std::string(); });
  test.setup = [] { device().clear(), litmus::fill(logits, 1, 0.0f); };
  return test;
}

// ---- reuse of a page ------------------------------------------------------------------------------

// SM 0 writes two words of a page, SM 1 reads both and answers, SM 0 writes both anew.
litmus::Test reuse(bool reads_first) {
  return test_of_lanes(reads_first ? "a page is written anew" : "a second poll after publishing", [=](C& c) {
    if (c.sm == 0) {
      publish<Bf16>(c, kA, 0, 3);
      publish<Bf16>(c, kA, kFar, 4);
    }
    c.advance(1);
    if (c.sm == 1) {
      seen[0] = u64(read(c, kA, 0));
      if (reads_first) seen[1] = u64(read(c, kA, kFar));
      publish<Bf16>(c, kB, 0, 5);
      if (!reads_first) seen[1] = u64(read(c, kA, kFar));
    }
    c.advance(1);
    if (c.sm == 0) {
      read(c, kB, 0);
      publish<Bf16>(c, kA, 0, 6);
      publish<Bf16>(c, kA, kFar, 7);
    }
    c.advance(1);
    if (c.sm == 2) seen[2] = u64(read(c, kA, 0)) * 10 + u64(read(c, kA, kFar));
  }, [] { return unless(seen[0] == 3 && seen[1] == 4 && seen[2] == 67, kOld); });
}

// SM 2 has no rows of a stage: its task reads all the same, or it publishes at once what lies on a
// page that others still read.
litmus::Test empty_task(bool polls) {
  return test_of_lanes(polls ? "a task without rows polls" : "a task without rows does not poll", [=](C& c) {
    if (c.sm == 0) publish<Bf16>(c, kA, 0, 3);
    c.advance(1);
    if (c.sm == 1) {
      seen[0] = u64(read(c, kA, 0));
      publish<Bf16>(c, kB, 0, 4);
    }
    c.advance(1);
    if (c.sm == 2) {
      if (polls) read(c, kB, 0);
      publish<Bf16>(c, kA, 0, 5);
    }
    c.advance(1);
    if (c.sm == 0) seen[1] = u64(read(c, kA, 0));
  }, [] { return unless(seen[0] == 3 && seen[1] == 5, kOld); });
}

// ---- two writes of one word -----------------------------------------------------------------------

// SM 0 writes a word, and SM 1 writes it anew, on the strength of a chain of polls from SM 0. In
// between another task reads the word: of SM 2, of SM 0 itself, or none.
litmus::Test two_writes(const char* name, int reader) {
  return test_of_lanes(name, [=](C& c) {
    if (c.sm == 0) publish<Bf16>(c, kA, 0, 3);
    if (c.sm == 0 && reader == -1) publish<Bf16>(c, kA, kFar, 4);
    c.advance(1);
    // The reader's answer is what SM 1 waits for.
    if (c.sm == (reader < 0 ? 2 : reader)) {
      seen[0] = u64(read(c, kA, reader < 0 ? kFar : 0));
      publish<Bf16>(c, kB, 0, 4);
    }
    c.advance(1);
    if (c.sm == 1) {
      read(c, kB, 0);
      publish<Bf16>(c, kA, 0, 5);
    }
    c.advance(1);
    if (c.sm != 1) seen[1 + c.sm] = u64(read(c, kA, 0));
  }, [] { return unless(seen[1] == 5 && seen[3] == 5, "a reader has the value of the write before"); });
}

// ---- copies of a page -----------------------------------------------------------------------------

// SM 0 writes a word of two copies, SM 1 writes it anew. SM 2 reads the first copy in between; the
// second one is SM 1's own, who reads it or does not.
litmus::Test copies(bool reads_both) {
  return test_of_lanes(reads_both ? "copies of a page, each with a reader" : "a copy of a page without a reader",
                       [=](C& c) {
    if (c.sm == 0) publish<Bf16>(c, kCopied, 0, 3);
    c.advance(1);
    if (c.sm == 2) {
      seen[0] = u64(read(c, kCopied, 0));
      publish<Bf16>(c, kB, 0, 4);
    }
    if (c.sm == 1 && reads_both) read(c, kCopied, 0);
    c.advance(1);
    if (c.sm == 1) {
      read(c, kB, 0);
      publish<Bf16>(c, kCopied, 0, 5);
    }
    c.advance(1);
    seen[1 + c.sm] = u64(read(c, kCopied, 0));
  }, [] { return unless(seen[0] == 3 && seen[1] == 5 && seen[2] == 5 && seen[3] == 5, kOld); });
}

// ---- words of other widths ------------------------------------------------------------------------

// A page has words of 16-bit elements, and then of 32-bit ones.
litmus::Test widths(const char* without) {
  auto test = test_of_lanes("a page of words of 4 and then of 8 bytes", [](C& c) {
    if (c.sm == 0) publish<Bf16>(c, kA, 0, 3), publish<Bf16>(c, kA, 1, 4);
    c.advance(1);
    if (c.sm == 1) {
      seen[0] = u64(read(c, kA, 0)) * 10 + u64(read(c, kA, 1));
      publish<Fp32>(c, kA, 0, 5);
    }
    c.advance(1);
    if (c.sm == 2) seen[1] = u64(read<Fp32>(c, kA, 0));
  }, [] { return unless(seen[0] == 34 && seen[1] == 5, kOld); });
  test.without = without;
  return test;
}

// ---- exchanges that are read late -----------------------------------------------------------------

enum class Late { kHeld, kNotHeld, kOverwritten };
litmus::Test held(const char* name, Late how) {
  return test_of_lanes(name, [=](C& c) {
    if (c.sm == 0) publish<Bf16>(c, kA, 0, 3);
    c.advance(1);
    if (c.sm == 1) publish<Bf16>(c, kB, 0, read(c, kA, 0) + 1);
    c.hold(1);
    c.advance(1);
    // The page of x belongs to it until all have read it.
    if (c.sm == 0 && how == Late::kOverwritten) read(c, kB, 0), publish<Bf16>(c, kA, 0, 9);
    if (c.sm == 2) {
      seen[0] = u64(read(c, kB, 0));
      if (how != Late::kNotHeld) c.swap_held(1);
      seen[1] = u64(read(c, kA, 0));
      if (how != Late::kNotHeld) c.swap_held(1);
      publish<Bf16>(c, kB, kFar, 7);
    }
    c.advance(1);
    if (c.sm == 0 && how == Late::kHeld) read(c, kB, kFar), publish<Bf16>(c, kA, 0, 9);
    c.advance(1);
    if (c.sm == 1 && how == Late::kHeld) seen[2] = u64(read(c, kA, 0));
  }, [=] {
    const bool late = how == Late::kHeld;
    return unless(seen[0] == 4 && seen[1] == 3 && (!late || seen[2] == 9), kOld);
  });
}

// ---- epochs ---------------------------------------------------------------------------------------

// Exchanges whose epochs go from 65534 over 65535 to 1. A stale word is one that was not written
// for 65535 exchanges: it has the epoch that is waited for. `wraps_to_0`: epochs by hand that do not
// skip 0, which cleared words have.
enum class Epochs { kWrap, kStale, kZero };
litmus::Test epochs(const char* name, Epochs how) {
  constexpr u64 kSteps = 65535 / kExchangesPerStep;  // its exchanges begin at 65532 of 65535
  auto test = test_of_lanes(name, [=](C& c) {
    Launch launch = c.launch;
    launch.first_epoch = kSteps;
    C late(launch);
    late.begin_step(0, 1);
    if (how == Epochs::kZero) {
      late.epoch = 65535;
      u32* at = reinterpret_cast<u32*>(c.launch.exchange);
      const u32 next = u16(late.epoch + 1);
      if (c.sm == 0) store_relaxed(at, WordOf<Bf16>::make(3, next));
      late.epoch = next;
      if (c.sm == 1) seen[2] = u64(read(late, kA, 0));
      return;
    }
    if (late.epoch != 65534) return;
    u32 expected = 65534;
    for (int round = 0; round < 3; ++round) {
      const Page page = round == 0 ? kA : round == 1 ? kB : kCopied;
      if (c.sm == round % 2) publish<Bf16>(late, page, 0, float(3 + round));
      late.advance(1);
      expected = expected == 65535 ? 1 : expected + 1;
      if (late.epoch != expected) return;
      if (c.sm != round % 2) seen[c.sm * 8 + round] = u64(read(late, page, 0));
    }
    seen[32 + c.sm] = late.epoch;
  }, [=] {
    if (how == Epochs::kZero) return unless(seen[2] == 3, "a cleared word is taken for data");
    for (u32 sm = 0; sm < 3; ++sm) {
      if (seen[32 + sm] != 2) return std::string("an epoch is another than the one of its exchange");
      for (u32 round = 0; round < 3; ++round) {
        if (sm != round % 2 && seen[sm * 8 + round] != 3 + round)
          return std::string("a word of 65535 exchanges ago is taken for one of this exchange");
      }
    }
    return std::string();
  });
  test.setup = [=] {
    device().clear();
    u32* words = reinterpret_cast<u32*>(device().launch.exchange);
    // What the exchange before the last one has left there, 65535 or 65534 exchanges ago.
    words[0] = WordOf<Bf16>::make(8, how == Epochs::kStale ? 65535 : 65533);
    if (how == Epochs::kZero) words[0] = 0;
  };
  return test;
}

void tests() {
  litmus::holds(word<Bf16>("words of 16-bit values"));
  litmus::holds(word<Fp32>("words of 32-bit values"));
  litmus::fails(split_word(), "outcome");
  litmus::fails(halves(), "outcome");
  litmus::holds(quads(true));
  litmus::fails(quads(false), "outcome");
  litmus::holds(placed());
  litmus::fails(plain_memory(), "race");

  litmus::holds(reuse(true));
  litmus::fails(reuse(false), "outcome");
  litmus::holds(empty_task(true));
  litmus::fails(empty_task(false), "outcome");

  litmus::holds(two_writes("a word is written again after a reader", 2));
  litmus::fails(two_writes("a word is written again that nobody has read", -1), "outcome");
  for (const char* off : {"l2-single-copy", "l2-store-atomicity"}) {
    const int reader = off[3] == 's' && off[4] == 'i' ? 0 : 2;
    const char* name = reader ? "a word is written again after a reader"
                              : "a word is written again after a reader of its own SM";
    auto test = two_writes(name, reader);
    litmus::holds(test);
    test.without = off;
    litmus::fails(test, "outcome");
  }
  litmus::holds(copies(true));
  litmus::fails(copies(false), "outcome");
  litmus::holds(widths(nullptr));
  litmus::fails(widths("overlapping-words"), "width");

  litmus::holds(held("an exchange that is read late", Late::kHeld));
  litmus::fails(held("an exchange that is read late by the epoch of another", Late::kNotHeld), "outcome");
  litmus::fails(held("an exchange that is read late from a page that is used anew", Late::kOverwritten), "outcome");

  litmus::holds(epochs("epochs go from 65535 to 1", Epochs::kWrap));
  litmus::fails(epochs("a word that was not written for 65535 exchanges", Epochs::kStale), "outcome");
  litmus::fails(epochs("an epoch of 0", Epochs::kZero), "outcome");
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "exchange", tests); }
