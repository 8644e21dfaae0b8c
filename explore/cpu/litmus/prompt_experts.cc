// The list of a prompt's router: copying warps go by it while they copy for the products that follow,
// and the router of the next layer writes it again. A block that has nothing to copy in between, so
// that no slot of the ring orders the two: eight warps that compute and three that copy, for two
// layers.
#include "litmus.h"

#define LITMUS_SMS 1
#define AMK_EXPERTS 1
#define AMK_PROMPT 1
#define AMK_PROMPT_TOKENS kMostPromptTokens
#define AMK_WGMMA 1
#include "schedule.h"
#include "model_config.h"

namespace amk {
constexpr int kMostPromptTokens = 128;
}  // namespace amk

#include "amk/prompt_shape.cuh"

namespace amk {
constexpr PromptSizes kPromptSizes{1024, 1024};
constexpr Page kStepPages[] = {{}};
}  // namespace amk

#include "amk/prompt_experts.cuh"
#include "device.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr int kRouters = 2, kWriter = 200;
constexpr Page kScores = {0, 1024, 1};
// Of each layer: the scores of the experts, and what the list has of each: its number and one more, or
// 0 where nobody has chosen it.
constexpr float kScoresOf[kRouters][kExperts] = {{0, 2, 1}, {2, 0, 1}};
constexpr u64 kSeenOf[kRouters] = {23, 103};

struct Router {
  static constexpr int kExperts = amk::kExperts, kChosen = kMostChosen;
  static constexpr bool kOfChosen = true, kRenormalised = false;
};
// The products that go by the list.
struct Up {
  using Format = WeightElement;
  static constexpr int kRows = 32, kColumns = 16, kWarps = 8, kSelected = kMostChosen;
};

enum class How {
  kRight,
  kUnread,       // a router that does not wait for the copying warps
  kRelaxedWait,  // or not by acquire
  kLate,         // or when it has written the list
  kNoBarrier,    // a product that begins before the list is complete
  kRelaxedRead,  // a copying warp whose number is not a release
  kEarly,        // or is stored before its last look
  kNoStart,      // or that does not wait for the start of the product
};

u8* workspace() {
  static u8* p = litmus::allocate<u8>(kPromptPlaces.end, "workspace");
  return p;
}

void await_readers_by(Prompt& c, How how) {
  if (how != How::kRelaxedWait) return await_readers(c);
  for (const u32& read : c.shared.read) {
    while (load_shared_relaxed(&read) < c.listed) {
    }
  }
}

// What route does, without the choice.
void list_by(Prompt& c, How how) {
  if (c.tid == 0 && how != How::kUnread && how != How::kLate) await_readers_by(c, how);
  join(c);
  if (c.tid < kListTiles) {
    const int expert = c.tid;
    c.shared.listed[c.tid] = expert < kExperts && kScoresOf[c.layer][expert] > 0 ? u16(expert + 1) : u16(0);
  }
  if (c.tid == 0 && how == How::kLate) await_readers(c);
  if (how != How::kNoBarrier) consumer_barrier();
}

void computes(Prompt& c, How how) {
  for (c.layer = 0; c.layer < kRouters; ++c.layer) {
    if (how == How::kRight) {
      if (c.tid == kWriter) {
        for (int i = 0; i < kExperts; ++i) c.values<Fp32>(kScores)[i] = bits_of(kScoresOf[c.layer][i]);
      }
      join(c);
      route<Router>(c, kScores);
    } else {
      list_by(c, how);
    }
    ++c.products;
    if (c.tid == 0) store_shared_release(&c.shared.started, c.products);
    c.listed = c.products;
  }
}

void copies(PromptCopies& c, How how) {
  for (int layer = 0; layer < kRouters; ++layer) {
    if (how == How::kNoStart) ++c.products;
    else c.await_operand<true>();
    if (how == How::kEarly) PromptTiles<Up>::done(c.warp, c.products);
    u64 sum = 0;
    for (int tile = 0; tile < kExperts; ++tile) sum = sum * 10 + u64(listed_expert(tile) + 1);
    seen[c.warp * kRouters + layer] = sum;
    if (how == How::kRelaxedRead) store_shared_relaxed(&block_waits().read[c.warp], c.products);
    else if (how != How::kEarly) PromptTiles<Up>::done(c.warp, c.products);
  }
}

litmus::Test lists(const char* name, How how) {
  litmus::Test test;
  test.name = name;
  test.blocks = kSMs;
  test.threads = kConsumers + 32 * kCopyWarps;
  test.shared = kPromptSharedBytes;
  test.bound = 1;
  test.setup = [] {
    device().clear();
    device().launch.exchange = workspace();
    litmus::forget(workspace(), u32(kPromptPlaces.end));
    litmus::fill(reinterpret_cast<u32*>(workspace()), 1, 0u);
  };
  test.kernels.push_back([=] {
    const Launch& launch = device().launch;
    if (thread_index() == 0) {
      init_waits(launch, block_waits());
      init_prompt_ring(block_waits());
    }
    block_sync();
    if (thread_index() < u32(kConsumers)) {
      Prompt c(launch);
      return computes(c, how);
    }
    if (thread_index() % 32 > 0) return;
    PromptCopies c(launch, (thread_index() - kConsumers) / 32, nullptr);
    copies(c, how);
  });
  test.outcome = [] {
    for (u32 i = 0; i < kCopyWarps * kRouters; ++i) {
      if (seen[i] != kSeenOf[i % kRouters]) return std::string("a warp has gone by another list");
    }
    return device().stalled();
  };
  return test;
}

void tests() {
  litmus::holds(lists("the list of a prompt's router", How::kRight));
  litmus::fails(lists("a list that is written before the one before is read", How::kUnread), "outcome");
  litmus::fails(lists("readers that are not awaited by acquire", How::kRelaxedWait), "race");
  litmus::fails(lists("readers that are awaited when the list is written", How::kLate), "race");
  litmus::fails(lists("a product that begins before the list is complete", How::kNoBarrier), "race");
  litmus::fails(lists("a reader whose number is not a release", How::kRelaxedRead), "race");
  litmus::fails(lists("a reader whose number is before its last look", How::kEarly), "race");
  litmus::fails(lists("a copying warp that does not wait for the start", How::kNoStart), "unwritten");
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "prompt-experts", tests); }
