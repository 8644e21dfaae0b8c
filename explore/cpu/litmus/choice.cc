// The choices of a router: its SM's producer reads which experts they are before it copies anything
// of them, and the consumers read their weights. A block of eight warps and the producer's, which
// choose in two layers, for one token or for two.
#include "litmus.h"

#define LITMUS_SMS 1
#define AMK_EXPERTS 1
#include "schedule.h"
#include "model_config.h"

#include "amk/router.cuh"
#include "blocks.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr u32 kChunk = 64;
constexpr int kChoices = 2;
constexpr Page kScores = {0, 1024, 1};
// Of each layer and token: the scores of the experts, and which are chosen.
constexpr float kScoresOf[kChoices][2][kExperts] = {{{0, 2, 1}, {1, 0, 2}}, {{2, 0, 1}, {1, 2, 0}}};
constexpr int kChosenOf[kChoices][2][kMostChosen] = {{{1, 2}, {2, 0}}, {{0, 2}, {1, 0}}};
constexpr u64 kSeen = kTokens == 1 ? 6252 : 62705260;  // 5 is added to whom is weighed most

struct Router {
  static constexpr int kExperts = amk::kExperts, kChosen = kMostChosen;
  static constexpr bool kOfChosen = true, kRenormalised = false;
};

enum class How {
  kRight,
  kNoBarrierBefore,  // a choice while others still read the one before
  kRelaxed,          // a number of choices that is not a release
  kEarly,            // or is stored before the choice
  kOneWarp,          // or after that of one token alone
  kNoWait,           // a producer that does not wait
  kLate,             // one that looks at the choice after its last copy
};

u8* matrices() {
  static u8* p = litmus::allocate<u8>(kExperts * kChunk, "experts", machine::RegionKind::kWeights);
  return p;
}

void route_by(C& c, How how) {
  if (how == How::kRight || how == How::kNoWait || how == How::kLate) return route<Router>(c, kScores);
  const auto score = [&](int token) { return c.lane < kExperts ? token * kExperts + c.lane : -1; };
  if (how != How::kNoBarrierBefore) consumer_barrier();
  if (const int token = c.warp; token < kTokens) {
    auto words = word_poll<Fp32, 1>(page_copy(c, kScores), [&](int) { return score(token); });
    poll_all(c, words);
    const auto count = [&] {
      if (c.tid > 0) return;
      if (how == How::kRelaxed) store_shared_relaxed(&c.shared.choices, u32(c.layer) + 1);
      else store_shared_release(&c.shared.choices, u32(c.layer) + 1);
    };
    if (how == How::kEarly) count();
    if (c.lane < kMostChosen) {
      c.shared.experts[token][c.lane] = kChosenOf[c.layer][token][c.lane];
      c.shared.shares[token][c.lane] = c.lane == 0 ? 0.75f : 0.25f;
    }
    warp_sync();
    if (how != How::kEarly) count();
  }
  consumer_barrier();
}

litmus::Test choices(const char* name, How how) {
  litmus::Test test = test_of_blocks(
      name,
      [=](C& c) {
        u64 sum = 0;
        for (c.layer = 0; c.layer < kChoices; ++c.layer) {
          for (int token = 0; token < kTokens; ++token) {
            if (c.warp == 1 && c.lane < kExperts)
              publish<Fp32>(c, kScores, token * kExperts + c.lane, kScoresOf[c.layer][token][c.lane]);
          }
          c.advance(1);
          route_by(c, how);
          for (int i = 0; i < kTokens * kMostChosen; ++i) {
            wait_full(c, c.slot, c.phase);
            if (c.lane == 0) {
              sum = sum * 10 + c.ring[c.slot * kSlotBytes];
              if (c.shared.shares[i / kMostChosen][i % kMostChosen] > 0.5f) sum += 5;
            }
            release(c, c.slot, 1);
            advance_slot(c.slot, c.phase);
          }
        }
        if (c.lane == 0) seen[c.warp] = sum;
      },
      [=](C& c) {
        Producer<C> p(c);
        for (u32 layers = 1; layers <= u32(kChoices); ++layers) {
          if (how != How::kNoWait) p.wait_choice(layers);
          int expert = 0;
          for (int i = 0; i < kTokens * kMostChosen; ++i) {
            if (how != How::kLate || i == 0) expert = p.expert(layers, i / kMostChosen, i % kMostChosen);
            p.copy(matrices() + expert * kChunk, kChunk);
          }
          if (how == How::kLate) seen[32 + layers] = u64(p.expert(layers, 0, 1));
        }
        p.drain();
      },
      [] {
        for (int warp = 0; warp < kConsumerWarps; ++warp) {
          if (seen[warp] != kSeen) return std::string("a warp has read other experts than were chosen");
        }
        return std::string();
      });
  test.bound = 1;
  const auto setup = test.setup;
  test.setup = [=] {
    setup();
    for (int i = 0; i < kExperts; ++i) matrices()[i * kChunk] = u8(i);
  };
  return test;
}

void tests() {
  litmus::holds(choices("choices of a router", How::kRight));
  litmus::fails(choices("a choice while the one before is read", How::kNoBarrierBefore), "race");
  litmus::fails(choices("a number of choices that is not a release", How::kRelaxed), "race");
  litmus::fails(choices("a number of choices before the choice", How::kEarly), "race");
  if (kTokens > 1)
    litmus::fails(choices("a number of choices before that of another token", How::kOneWarp), "race");
  litmus::fails(choices("a producer that does not wait for the choice", How::kNoWait), "race");
  litmus::fails(choices("a producer that reads the choice after its copies", How::kLate), "race");
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "choice", tests); }
