// Words that ranks push to each other, and the step that all of them end: two GPUs of two SMs.
#include "litmus.h"

#define LITMUS_RANKS 2
#include "schedule.h"
#include "model_config.h"

#include "amk/ending.cuh"
#include "amk/ranks.cuh"
#include "blocks.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr Page kSums{0, 256, 1}, kAnswers{256, 256, 1}, kOut{512, 256, 1};
constexpr int kFar = 16;  // a word of another line
const char* const kOld = "a word of an exchange before";

std::string unless(bool right, const char* what) { return right ? std::string() : std::string(what); }

// What an SM is called here: a rank, and a number in it.
bool is(C& c, int rank, int sm) { return rank_of(c) == rank && c.sm == sm; }

float read(C& c, const Page page, int index) {
  auto word = pushed_poll<1>(page_copy(c, page), [index](int) { return index; });
  poll_all(c, word);
  return word.value(0);
}

// ---- a word ---------------------------------------------------------------------------------------

// Rank 0 pushes two words, and both ranks read them. A reader that does not look at the epoch takes
// what was there before.
litmus::Test word(bool looks_at_epoch) {
  auto test = test_of_lanes(looks_at_epoch ? "words that a rank pushes" : "words without their epoch", [=](C& c) {
    if (is(c, 0, 0)) push(c, kSums, 0, 3), push(c, kSums, kFar, 4);
    c.advance(1);
    if (c.sm != 1) return;
    for (int i = 0; i < 2; ++i) {
      const float v = looks_at_epoch ? read(c, kSums, i * kFar)
                                     : WordOf<Fp32>::value(load_relaxed_ranks(word_of(c, rank_of(c), kSums, i * kFar)));
      seen[rank_of(c) * 2 + i] = u64(v);
    }
  }, [] { return unless(seen[0] == 3 && seen[1] == 4 && seen[2] == 3 && seen[3] == 4, kOld); });
  return test;
}

// The value and the epoch as two words: the epoch comes before the value.
litmus::Test flag_before_data() {
  return test_of_lanes("the epoch in front of its value", [](C& c) {
    const u32 epoch = c.next_epoch();
    if (is(c, 0, 0)) {
      for (int rank = 0; rank < kGPUs; ++rank) {
        store_system(reinterpret_cast<u32*>(word_of(c, rank, kSums, 0)), 3u);
        store_system(reinterpret_cast<u32*>(word_of(c, rank, kSums, 0)) + 1, epoch);
      }
    }
    if (is(c, 1, 0)) {
      const u32* at = reinterpret_cast<const u32*>(word_of(c, 1, kSums, 0));
      for (int polls = 0; load_system(at + 1) != epoch; ++polls)
        if (polls > 100) return;
      seen[0] = load_system(at);
    }
  }, [] { return unless(seen[0] == 3 || seen[0] == ~u64(0), "the value from before the epoch"); });
}

// Stores or loads of gpu scope do not reach from one GPU to another.
litmus::Test narrow(const char* name, bool stores) {
  return test_of_lanes(name, [=](C& c) {
    const u64 word = WordOf<Fp32>::make(3, c.next_epoch());
    if (is(c, 0, 0)) {
      if (stores) store_relaxed(word_of(c, 1, kSums, 0), word);
      else push(c, kSums, 0, 3);
    }
    c.advance(1);
    if (!is(c, 1, 0)) return;
    if (stores) {
      seen[0] = u64(read(c, kSums, 0));
    } else {
      auto poll = word_poll<Fp32, 1>(page_copy(c, kSums), [](int) { return 0; });
      poll_all(c, poll);
    }
  }, [] { return std::string(); });
}

// ---- reuse ----------------------------------------------------------------------------------------

// Rank 0 pushes a word, and once more when it has answers to the first: of an SM of each rank, or of
// its own alone. Then the other rank may find the second where it waits for the first.
litmus::Test reuse(bool both_answer) {
  return test_of_lanes(both_answer ? "a pushed word that all ranks have read is pushed again"
                                   : "a pushed word is pushed again that a rank has not read", [=](C& c) {
    if (is(c, 0, 0)) push(c, kSums, 0, 3);
    c.advance(1);
    if (c.sm == 1 && (both_answer || rank_of(c) == 0)) {
      seen[rank_of(c)] = u64(read(c, kSums, 0));
      push(c, kAnswers, rank_of(c) * kFar, 5);
    }
    if (c.sm == 1 && !both_answer && rank_of(c) == 1) seen[1] = u64(read(c, kSums, 0));
    c.advance(1);
    if (is(c, 0, 0)) {
      for (int rank = 0; rank < (both_answer ? kGPUs : 1); ++rank) read(c, kAnswers, rank * kFar);
      push(c, kSums, 0, 6);
    }
    c.advance(1);
    if (c.sm == 0) seen[2 + rank_of(c)] = u64(read(c, kSums, 0));
  }, [] { return unless(seen[0] == 3 && seen[1] == 3 && seen[2] == 6 && seen[3] == 6, kOld); });
}

// ---- sums -----------------------------------------------------------------------------------------

// A stage whose rows each rank has a part of, and the stage that adds them up, of the runtime.
struct Sums {
  static constexpr int kRows = 16, kGrain = 8, kRotation = 0, kRotationStep = 0, kTasks = 2;
};
litmus::Test sums() {
  auto test = test_of_blocks("sums that ranks push are added up", [](C& c) {
    if (c.tid < kTileRows) c.shared.residual[c.tid] = float(c.sm + 1);
    if (c.tid < kTileRows) push(c, kSums, rank_of(c) * Sums::kRows + c.sm * kTileRows + c.tid,
                                float(10 * (rank_of(c) + 1)));
    c.advance(kSMs);
    add_sums<Sums>(c, kSums, kOut);
    if (c.tid == 0) seen[rank_of(c) * 2 + c.sm] = u64(poll_word<Element>(c, kOut, (1 - c.sm) * kTileRows));
  }, nothing, [] {
    return unless(seen[0] == 32 && seen[1] == 31 && seen[2] == 32 && seen[3] == 31, "a sum without a part");
  });
  test.bound = 1;
  return test;
}

// ---- the end of a step ----------------------------------------------------------------------------

enum class How { kRight, kOwnRank, kNarrowArrival, kNarrowWait };

void join_by(C& c, How how) {
  if (how != How::kOwnRank && how != How::kNarrowArrival) return join_step(c);
  consumer_barrier();
  if (c.tid != kJoiner) return;
  for (int rank = 0; rank < kGPUs; ++rank) {
    u32* counter = step_counter(c.launch.peers[rank]);
    if (how == How::kNarrowArrival) add_release(counter, 1);
    else if (rank == rank_of(c)) add_release_ranks(counter, kGPUs);
  }
}

void wait_joined_by(C& c, How how) {
  if (how != How::kNarrowWait) return wait_joined(c);
  if (c.step > 0 && c.tid == kJoiner) {
    Spin spin;
    while (int(load_acquire(step_counter(c.launch.exchange)) - u32(c.step) * kAllSMs) < 0)
      if (spin.cancelled(c, Wait::kStep, c.step, 0)) break;
  }
  consumer_barrier();
}

// What a rank has stored in a step is read by another in the next one.
litmus::Test step(const char* name, How how) {
  static u32* plain = litmus::allocate<u32>(1, "memory of rank 0");
  auto test = test_of_blocks(name, [=](C& c) {
    for (int step = 0; step < 2; ++step) {
      c.begin_step(step);
      wait_joined_by(c, how);
      if (step == 0 && is(c, 0, 0) && c.tid == 0) *plain = 7;
      if (step == 1 && is(c, 1, 1) && c.tid == 0) seen[0] = *plain;
      join_by(c, how);
    }
  }, nothing, [] { return unless(seen[0] == 7, "what was there before the step"); });
  test.setup = [] {
    device().clear();
    litmus::fill(plain, 1, 0u);
  };
  test.bound = 1;
  return test;
}

void tests() {
  litmus::holds(word(true));
  litmus::fails(word(false), "outcome");
  litmus::fails(flag_before_data(), "outcome");
  litmus::fails(narrow("a word that is pushed at gpu scope", true), "race");
  litmus::fails(narrow("a pushed word that is polled at gpu scope", false), "race");

  litmus::holds(reuse(true));
  litmus::fails(reuse(false), "outcome");
  litmus::holds(sums());

  litmus::holds(step("a step that all ranks end", How::kRight));
  litmus::fails(step("a step that each rank ends alone", How::kOwnRank), "race");
  litmus::fails(step("a step whose arrivals are of gpu scope", How::kNarrowArrival), "race");
  litmus::fails(step("a step that is waited for at gpu scope", How::kNarrowWait), "race");
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "ranks", tests); }
