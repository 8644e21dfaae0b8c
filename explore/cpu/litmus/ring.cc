// The ring of slots, filled by bulk copies, by cp.async or by plain loads, as AMK_BULK_COPY and
// AMK_ASYNC_COPY say: a block of two warps that read every chunk, and the warp of the producer; with
// LITMUS_RUN_AHEAD one more, of the prefetcher.
#include "litmus.h"

#define LITMUS_SMS 1
#include "schedule.h"
#include "model_config.h"

#include "amk/prefetch.cuh"
#include "amk/ring.cuh"
#include "device.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr u32 kReaders = 2;                 // warps
constexpr u32 kArrivals = kSlotArrivals / kReaders;  // of each on a chunk
constexpr u32 kChunk = 64, kChunks = AMK_BULK_COPY ? 5 : 3;
static_assert(kRingSlots == 2, "a ring of two slots");

u8* source() {
  static u8* p = litmus::allocate<u8>((kChunks + 1) * kChunk, "weights", machine::RegionKind::kWeights);
  return p;
}

// ---- what is left out -----------------------------------------------------------------------------

enum class How {
  kRight,
  kNoFence,       // a release without the proxy fence
  kEarly,         // an arrival before the last read
  kOneForAll,     // one warp gives the slot back for both
  kUnseen,        // a reader that does not wait for the slot to be full
  kTooMany,       // one chunk more in flight than there are slots
  kUnlanded,      // a chunk is announced before its copies are waited for
  kNoWaitEmpty,   // a slot is filled without being waited for
  kNoStop,        // the launch ends without a word to the prefetcher
};

// The arrivals of a slot that is given back otherwise than by release.
void give_back(C& c, u32 slot, u32 n, bool fences) {
  if (fences) fence_proxy_async_shared();
  warp_sync();
  if (c.lane < kArrivingLanes) barrier_arrive(&c.shared.empty[slot], n);
}

void reads(C& c, How how) {
  u64 sum = 0;
  for (u32 i = 0; i < kChunks; ++i) {
    if (how != How::kUnseen || c.warp == 0 || i < kRingSlots) wait_full(c, c.slot, c.phase);
    const bool gives = how != How::kOneForAll || c.warp == 0;
    const u32 n = how == How::kOneForAll ? kSlotArrivals : kArrivals;
    if (how == How::kEarly && c.warp == 1) give_back(c, c.slot, n, true);
    u64 chunk = 0;
    if (c.lane == 0) chunk = c.ring[c.slot * kSlotBytes] * 10 + c.ring[c.slot * kSlotBytes + kChunk - 1];
    sum = sum * 100 + chunk;
    if (how == How::kEarly && c.warp == 1) {
      // was given back before
    } else if (how == How::kNoFence && c.warp == 1) {
      give_back(c, c.slot, n, false);
    } else if (gives) {
      release(c, c.slot, n);
    }
    advance_slot(c.slot, c.phase);
  }
  if (c.lane == 0) seen[c.warp] = sum;
}

// By hand what Producer::copy does, with another window, or without a wait.
void fill_by_hand(Producer<C>& p, const u8* from, How how) {
  C& c = p.c;
  while (how != How::kNoWaitEmpty && !slot_is_empty(c.shared, p.slot, p.phase)) {
  }
#if AMK_BULK_COPY
  const u32 window = how == How::kTooMany ? kRingSlots + 1 : kRingSlots;
  while (p.issued - p.landed >= window) {
    while (!barrier_try_wait(&c.shared.full[p.landed_slot], p.landed_phase, 1)) {
    }
    ++p.landed;
    advance_slot(p.landed_slot, p.landed_phase);
  }
  barrier_arrive_expect(&c.shared.full[p.slot], kChunk);
  copy_bulk(c.ring + p.slot * kSlotBytes, from, kChunk, &c.shared.full[p.slot], p.policy);
#else
  u8* to = c.ring + p.slot * kSlotBytes;
  const u32 at = c.lane * 16;
#if AMK_ASYNC_COPY
  if (at < kChunk) copy_async_16(to + at, from + at);
  commit_copies();
  if (how != How::kUnlanded) wait_copies<0>();
#else
  if (at < kChunk) *reinterpret_cast<uint4*>(to + at) = load_relaxed_16(from + at);
#endif
  if (how != How::kUnlanded) {
    warp_sync();
    if (c.lane == 0) barrier_arrive(&c.shared.full[p.slot], 1);
    warp_sync();
  } else if (c.lane == 0) {
    // No fence, as the plain loads' arrival has, and no copy that is waited for.
#if AMK_ASYNC_COPY
    barrier_arrive(&c.shared.full[p.slot], 1);
#else
    add_shared_relaxed(reinterpret_cast<u32*>(&c.shared.full[p.slot]), 1u);
#endif
  }
#endif
  ++p.issued;
  advance_slot(p.slot, p.phase);
}

bool by_hand(How how) { return how == How::kTooMany || how == How::kUnlanded || how == How::kNoWaitEmpty; }

void fills(C& c, How how) {
  if (AMK_BULK_COPY && c.lane != 0) return;
  Producer<C> p(c);
  for (u32 i = 0; i < kChunks; ++i) {
    if (by_hand(how)) fill_by_hand(p, source() + i * kChunk, how);
    else p.copy(source() + i * kChunk, kChunk);
  }
  if (!by_hand(how)) p.drain();
}

#if LITMUS_RUN_AHEAD
// Walks one chunk more than the producer copies, as where a launch ends early.
void prefetches(C& c) {
  if (c.lane != 0) return;
  Prefetcher<C> p(c);
  for (u32 i = 0; i <= kChunks; ++i) p.copy(source() + i * kChunk, kChunk);
  seen[8] = p.stopped;
}
#endif

litmus::Test ring(const char* name, How how) {
  litmus::Test test;
  test.name = name;
  test.blocks = 1;
  test.bound = AMK_BULK_COPY && !LITMUS_RUN_AHEAD ? 2 : 1;
  test.threads = (kReaders + 1 + (LITMUS_RUN_AHEAD > 0)) * 32;
  test.shared = kSharedBytes;
  test.setup = [] {
    device().clear();
    for (u32 i = 0; i < kChunks * kChunk; ++i) source()[i] = u8(i / kChunk + 1);
  };
  test.kernels.push_back([=] {
    C c(device().launch);
    if (c.tid == 0) {
      for (u32 i = 0; i < kRingSlots; ++i) {
        barrier_init(&c.shared.full[i], 1);
        barrier_init(&c.shared.empty[i], kSlotArrivals);
      }
      barriers_ready();
      c.shared.stop = c.shared.issued = c.shared.prefetches = 0;
      init_waits(c.launch, c.shared);
    }
    block_sync();
#if LITMUS_RUN_AHEAD
    if (u32(c.warp) > kReaders) return prefetches(c);
#endif
    if (u32(c.warp) == kReaders) return fills(c, how);
    reads(c, how);
    // Once all is there, the launch ends.
    if (c.tid == 0 && how != How::kNoStop) store_shared_release(&c.shared.stop, 1u);
  });
  test.outcome = [] {
    for (u32 warp = 0; warp < kReaders; ++warp) {
      if (seen[warp] != (AMK_BULK_COPY ? 1122334455 : 112233)) return std::string("a warp has read bytes of another chunk");
    }
    if (LITMUS_RUN_AHEAD > 0 && seen[8] != 1) return std::string("the prefetcher has not been stopped");
    return device().stalled();
  };
  return test;
}

// Two words of shared memory that order nothing: a warp that has seen the second sees the first.
litmus::Test hints(const char* without) {
  litmus::Test test;
  test.name = "two words in shared memory";
  test.blocks = 1;
  test.threads = 64;
  test.shared = kSharedBytes;
  test.setup = [] { device().clear(); };
  test.kernels.push_back([] {
    Scratch& shared = block_scratch();
    if (thread_index() == 0) shared.issued = shared.prefetches = 0;
    block_sync();
    if (thread_index() == 0) {
      store_shared_relaxed(&shared.issued, 1u);
      store_shared_relaxed(&shared.prefetches, 1u);
    } else if (thread_index() == 32) {
      const u32 second = load_shared_relaxed(&shared.prefetches);
      seen[0] = second * 10 + load_shared_relaxed(&shared.issued);
    }
  });
  test.outcome = [] { return seen[0] == 10 ? std::string("the second word is new and the first is old") : ""; };
  test.without = without;
  return test;
}

void tests() {
  litmus::holds(hints(nullptr));
  litmus::fails(hints("shared-single-copy"), "outcome");
  litmus::holds(ring(LITMUS_RUN_AHEAD ? "a ring, and a prefetcher" : "a ring", How::kRight));
#if LITMUS_RUN_AHEAD
  litmus::fails(ring("a prefetcher that is not told of the end", How::kNoStop), "outcome");
  return;
#endif
  litmus::fails(ring("an arrival before the last read", How::kEarly), "race");
  litmus::fails(ring("one warp gives a slot back for both", How::kOneForAll), "race");
  litmus::fails(ring("a reader that does not wait for its slot", How::kUnseen), "outcome");
  litmus::fails(ring("a slot that is filled without a wait", How::kNoWaitEmpty),
                AMK_BULK_COPY ? "race" : "outcome");
#if AMK_BULK_COPY
  litmus::fails(ring("a slot given back without the proxy fence", How::kNoFence), "proxy");
  litmus::fails(ring("one chunk more in flight than there are slots", How::kTooMany), "stall");
#elif AMK_ASYNC_COPY
  litmus::fails(ring("a chunk is announced before its copies are there", How::kUnlanded), "unwritten");
#else
  litmus::fails(ring("a chunk is announced without the fence", How::kUnlanded), "race");
#endif
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "ring", tests); }
