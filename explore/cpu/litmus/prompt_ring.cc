// The ring of a prompt's products, as prompt_ring.cuh has it on sm_90: three warps copy to slots that
// eight warps read, and begin a product when its operand is there, which other blocks have written.
// What is read, and how it is multiplied, does not matter: readers are lanes with plain loads, as
// those of quantised matrices.
#include "litmus.h"

#define AMK_PROMPT 1
#define AMK_PROMPT_TOKENS kMostPromptTokens
#define AMK_WGMMA 1
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

constexpr int kSlots = 2, kPart = 16, kSlot = kCopyWarps * kPart;  // bytes of what a warp copies
constexpr int kChunks = 3, kWriter = 200;

enum class How {
  kRight,
  // of slots
  kNoSlotFence,  // a slot is given back after plain loads without a proxy fence
  kEarly,        // a warp gives a slot back before its last read
  kOneForAll,    // one warp gives it back for all
  kUnseen,       // a reader that does not wait for the slot to be full
  kNoWaitEmpty,  // a slot is filled without being waited for
  // of the start of a product
  kJoinsWithout,  // the fence of the copying warp alone
  kCopiesWithout,  // or that of the join
  kNoFences,       // neither
  kBeforeJoin,     // copies begin when this block has prepared its part
  kRelaxed,        // a start that is not a release
  kNoStart,        // a copying warp that does not wait for it
};

u8* workspace() {
  static u8* p = litmus::allocate<u8>(kPromptPlaces.end, "workspace");
  return p;
}

void join_by(Prompt& c, How how) {
  if (how != How::kJoinsWithout && how != How::kNoFences) return join(c);
  consumer_barrier();
  if (c.tid == 0) {
    u32* counter = reinterpret_cast<u32*>(c.launch.exchange);
    add_release(counter, 1);
    const u32 target = ++c.joined * kSMs;
    while (int(load_acquire(counter) - target) < 0) {
    }
  }
  consumer_barrier();
}

// Copies a product's chunks: the parts of all three warps, and of an operand what the other block
// has written.
void copies(PromptCopies& c, int chunks, How how) {
  const u8* const operand = c.workspace + kPromptPlaces.operand;
  if (how == How::kCopiesWithout || how == How::kNoFences) {
    ++c.products;
    while (load_shared_acquire(&block_waits().started) < c.products) {
    }
  } else if (how == How::kNoStart) {
    ++c.products;
    fence_proxy_async();
  } else {
    c.await_operand();
  }
  c.next.begin();
  for (int i = 0; i < chunks; ++i) {
    u64* full = how == How::kNoWaitEmpty ? &block_waits().full[c.next.slot] : c.await_slot();
    barrier_arrive_expect(full, kPart);
    copy_bulk(block_ring() + c.next.slot * kSlot + c.warp * kPart, operand + (i * kCopyWarps + c.warp) * kPart, kPart,
              full);
    c.next.advance<kSlots>();
  }
}

// Reads them. Returns the sum of the first bytes of all parts.
u64 reads(Prompt& c, int chunks, How how) {
  u64 sum = 0;
  for (int i = 0; i < chunks; ++i) {
    const u32 slot = c.next.slot;
    while ((how != How::kUnseen || c.warp == 0) &&
           !barrier_try_wait(&c.shared.full[slot], c.next.phase(), kCopyWarps)) {
    }
    const auto give_back = [&](u32 n) {
      if (how != How::kNoSlotFence) fence_proxy_async_shared();
      warp_sync();
      if (c.lane == 0) barrier_arrive(&c.shared.empty[slot], n);
    };
    if (how == How::kEarly && c.warp == 1) give_back(1);
    if (c.lane == 0) {
      for (u32 part = 0; part < kCopyWarps; ++part) sum = sum * 7 + c.ring[slot * kSlot + part * kPart];
    }
    if (how == How::kOneForAll) {
      if (c.warp == 0) give_back(kConsumerWarps);
    } else if (how != How::kEarly || c.warp != 1) {
      give_back(1);
    }
    c.next.template advance<kSlots>();
  }
  return sum;
}

u64 sum_of(int chunks, u64 base) {
  u64 sum = 0;
  for (int i = 0; i < chunks * int(kCopyWarps); ++i) sum = sum * 7 + base + u64(i);
  return sum;
}

litmus::Test test_of(const char* name, u32 bound, std::function<void(Prompt&)> consumer,
                     std::function<void(PromptCopies&)> producer) {
  litmus::Test test;
  test.name = name;
  test.blocks = kSMs;
  test.threads = kConsumers + 32 * kCopyWarps;
  test.shared = kPromptSharedBytes;
  test.bound = bound;
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
      return consumer(c);
    }
    if (thread_index() % 32 > 0) return;
    PromptCopies c(launch, (thread_index() - kConsumers) / 32, nullptr);
    producer(c);
  });
  return test;
}

// Two products of each block, of what the host has written: the second one has more chunks than
// slots, and begins with the first slot again.
litmus::Test slots(const char* name, How how) {
  litmus::Test test = test_of(
      name, 1,
      [=](Prompt& c) {
        for (int product = 0; product < 2; ++product) {
          c.next.begin();
          consumer_barrier();
          if (c.tid == 0) store_shared_release(&c.shared.started, ++c.products);
          const u64 sum = reads(c, product == 0 ? 1 : kChunks, how);
          if (c.lane == 0 && c.sm == 0) seen[c.warp * 2 + product] = sum;
          consumer_barrier();
        }
      },
      [=](PromptCopies& c) {
        copies(c, 1, how);
        copies(c, kChunks, how);
      });
  test.blocks = 1;
  const auto setup = test.setup;
  test.setup = [=] {
    setup();
    u8* operand = workspace() + kPromptPlaces.operand;
    litmus::fill(operand, kChunks * kSlot, u8(0));
    for (int i = 0; i < kChunks * int(kCopyWarps); ++i) operand[i * kPart] = u8(i);
  };
  test.outcome = [] {
    for (int i = 0; i < 2 * kConsumerWarps; ++i) {
      if (seen[i] != sum_of(i % 2 == 0 ? 1 : kChunks, 0))
        return std::string("a warp has read other bytes than were copied");
    }
    return device().stalled();
  };
  return test;
}

// Each block writes some of the operand, and its threads write what the slots will be, as attention
// does. Then all blocks copy what all have written, twice: the second operand is in the place of the
// first.
litmus::Test starts(const char* name, How how) {
  litmus::Test test = test_of(
      name, 1,
      [=](Prompt& c) {
        for (int product = 0; product < 2; ++product) {
          for (int i = c.sm; i < int(kCopyWarps); i += kSMs) {
            if (c.tid == kWriter)
              reinterpret_cast<u32*>(c.operand() + i * kPart)[0] = u32(10 * product + i);
          }
          if (c.lane == 0 && c.warp == 3) c.ring[kPart] = 99;
          const auto start = [&] {
            if (c.tid != 0) return;
            ++c.products;
            if (how == How::kRelaxed) store_shared_relaxed(&c.shared.started, c.products);
            else store_shared_release(&c.shared.started, c.products);
          };
          c.next.begin();
          if (how == How::kBeforeJoin) consumer_barrier(), start();
          join_by(c, how);
          if (how != How::kBeforeJoin) start();
          const u64 sum = reads(c, 1, How::kRight);
          if (c.lane == 0) seen[(c.sm * kConsumerWarps + c.warp) * 2 + product] = sum;
          join_by(c, how);
        }
      },
      [=](PromptCopies& c) {
        copies(c, 1, how);
        copies(c, 1, how);
      });
  test.outcome = [] {
    for (int i = 0; i < 2 * kSMs * kConsumerWarps; ++i) {
      if (seen[i] != sum_of(1, u64(i % 2 * 10))) return std::string("a block has multiplied another operand");
    }
    return device().stalled();
  };
  return test;
}

void tests() {
  litmus::holds(slots("slots of a prompt's ring", How::kRight));
  litmus::fails(slots("a slot that is given back without a proxy fence", How::kNoSlotFence), "proxy");
  litmus::fails(slots("a slot that is given back before its last read", How::kEarly), "race");
  litmus::fails(slots("a warp that gives a slot back for all", How::kOneForAll), "race");
  litmus::fails(slots("a reader that has not seen a slot full", How::kUnseen), "unwritten");
  litmus::fails(slots("a slot that is filled before it is empty", How::kNoWaitEmpty), "arrivals");

  litmus::holds(starts("the start of a product", How::kRight));
  litmus::holds(starts("the start of a product, with the fence of the copying warp alone", How::kJoinsWithout));
  litmus::holds(starts("the start of a product, with the fences of the join alone", How::kCopiesWithout));
  litmus::fails(starts("a product without a proxy fence", How::kNoFences), "proxy");
  litmus::fails(starts("a product that begins before the join", How::kBeforeJoin), "race");
  litmus::fails(starts("a start that is not a release", How::kRelaxed), "race");
  litmus::fails(starts("a copying warp that does not wait for the start", How::kNoStart), "race");
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "prompt-ring", tests); }
