// The rounds of a choice: tallies that all SMs add to, and the join that ends a round.
#include "litmus.h"

#include "schedule.h"
#include "model_config.h"

#include "amk/search.cuh"
#include "blocks.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr int kWriter = 200, kReader = 100, kBin = 5, kRounds = 4;

enum class How {
  kRight,
  kNoBarrier,  // an SM arrives before all of its threads have counted
  kRelaxed,    // its arrival is not a release
  kNoJoin,     // nobody waits for the others
  kEarly,      // a tally is cleared one round early
  kLate,       // or is not cleared
};

// The join of a round by hand.
void join_round_by(const Site& at, Pool& pool, u32 turn, How how) {
  if (how == How::kRight) return join_round(at, pool);
  Rounds& rounds = *at.launch.rounds;
  if (how != How::kNoBarrier) consumer_barrier();
  if (thread_index() == 0) {
    if (how == How::kRelaxed) add_relaxed(&rounds.joined, 1u);
    else add_release(&rounds.joined, 1);
    Waiter waiter = at.waiter;
    Spin spin;
    while (how != How::kNoJoin && int(load_acquire(&rounds.joined) - (turn + 1) * kSMs) < 0) {
      if (spin.cancelled(waiter, Wait::kExchange, turn, (turn + 1) * kSMs)) break;
    }
  }
  consumer_barrier();
  if (at.sm == 0 && how != How::kLate) {
    Tally& old = rounds.of[(turn + (how == How::kEarly ? 1 : 2)) % 3][0];
    old.amount[thread_index()] = 0;
    old.count[thread_index()] = 0;
    if (thread_index() == 0) old.largest = 0;
  }
}

Rounds* all_rounds() {
  static Rounds* p = litmus::allocate<Rounds>(1, "rounds");
  return p;
}

// In each round every SM adds to a bin, and reads what all have added. Half way the number of the
// round is found from the counter, as each step finds it.
litmus::Test rounds(const char* name, How how) {
  auto test = test_of_blocks(name, [=](C& c) {
    const Site at(c, 0, 0);
    Pool& pool = pool_of(c.shared);
    for (int round = 0; round < kRounds; ++round) {
      if (round % 2 == 0 && how == How::kRight) {
        if (c.tid == 0) pool.turn = load_relaxed(&at.launch.rounds->joined) / kSMs;
        consumer_barrier();
      }
      const u32 turn = how == How::kRight ? pool.turn : u32(round);
      Tally& tally = at.launch.rounds->of[turn % 3][0];
      if (c.tid == kWriter) add_relaxed(&tally.amount[kBin], u64(1 + c.sm + 10 * round));
      if (c.tid == kWriter && how != How::kNoBarrier) max_relaxed(&tally.largest, u64(1 + c.sm + 10 * round));
      join_round_by(at, pool, turn, how);
      if (c.tid == kReader) {
        seen[c.sm * 8 + round] = load_relaxed(&tally.amount[kBin]);
        if (how != How::kNoBarrier) seen[32 + c.sm * 8 + round] = load_relaxed(&tally.largest);
      }
      consumer_barrier();
    }
  }, nothing, [=] {
    for (u64 sm = 0; sm < kSMs; ++sm) {
      for (u64 round = 0; round < kRounds; ++round) {
        if (seen[sm * 8 + round] != 3 + 20 * round)
          return std::string("an SM has another tally than what all have added in the round");
        if (how != How::kNoBarrier && seen[32 + sm * 8 + round] != 2 + 10 * round)
          return std::string("an SM has another maximum than that of the round");
      }
    }
    return std::string();
  });
  test.bound = 2;
  test.setup = [] {
    device().clear();
    device().launch.rounds = all_rounds();
    litmus::fill(reinterpret_cast<u8*>(all_rounds()), u32(sizeof(Rounds)), u8(0));
  };
  return test;
}

// All of a search: what top-k and top-p leave of 16 tokens, eight of each SM. Every SM finds the
// same, under every schedule.
litmus::Test search() {
  static Sampling* sampling = litmus::allocate<Sampling>(1, "sampling");
  static Choice* choices = litmus::allocate<Choice>(1, "choices");
  static float* logits = litmus::allocate<float>(kVocab, "logits");
  auto test = test_of_blocks("a search", [=](C& c) {
    const int first = c.sm * kVocab / kSMs, end = (c.sm + 1) * kVocab / kSMs;
    if (c.tid == 0) {
      for (int id = first; id < end; ++id) logits[id] = float(id * 5 % 16);
    }
    consumer_barrier();
    const Site at(c, first, end);
    Pool& pool = pool_of(c.shared);
    // Partial sums lie there before.
    for (u32 i = u32(c.tid); i < sizeof pool / 4; i += kConsumers) reinterpret_cast<u32*>(&pool)[i] = 0;
    consumer_barrier();
    find_left(at, pool);
    if (c.tid != kReader) return;
    const Left& left = pool.of[0].left;
    u64 ids = 0;
    for (int id = 0; id < kVocab; ++id) {
      const double score = at.chooser(0).score(float(id * 5 % 16), id);
      const Place place = place_of(score, left.largest, id);
      if (left.bounded && !place.is_after(left.last)) ids |= u64(1) << id;
    }
    seen[c.sm] = ids;
  }, nothing, [=] {
    u64 largest = 0;  // the ids of the four largest logits
    for (int id = 0; id < kVocab; ++id) largest |= u64(id * 5 % 16 >= 12) << id;
    if (seen[0] != largest || seen[1] != largest) return std::string("an SM has found other tokens than are left");
    return std::string();
  });
  test.bound = 1;
  test.setup = [=] {
    device().clear();
    Launch& launch = device().launch;
    launch.rounds = all_rounds();
    launch.sampling = sampling;
    launch.choices = choices;
    launch.logits = logits;
    litmus::fill(reinterpret_cast<u8*>(all_rounds()), u32(sizeof(Rounds)), u8(0));
    litmus::fill(sampling, 1, Sampling{1.0, 1});
    Choice choice = {};
    choice.set = 1;
    choice.top_k = 4;
    choice.repetition = 1;
    litmus::fill(choices, 1, choice);
    litmus::forget(logits, kVocab);
  };
  return test;
}

void tests() {
  litmus::holds(rounds("rounds", How::kRight));
  litmus::fails(rounds("an SM that arrives before it has counted", How::kNoBarrier), "outcome");
  litmus::fails(rounds("an arrival that is not a release", How::kRelaxed), "race");
  litmus::fails(rounds("no join", How::kNoJoin), "race");
  litmus::fails(rounds("a tally that is cleared one round early", How::kEarly), "race");
  litmus::fails(rounds("a tally that is not cleared", How::kLate), "outcome");
  litmus::holds(search());
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "rounds", tests); }
