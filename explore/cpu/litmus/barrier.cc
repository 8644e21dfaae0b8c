// The barrier between two layers, for consumers and for the producer.
#include "litmus.h"

#define LITMUS_BARRIERS 1
#include "schedule.h"
#include "model_config.h"

#include "amk/barrier.cuh"
#include "blocks.h"

using namespace amk;
using litmus::seen;

namespace {

constexpr int kWriter = 200, kReader = 100;  // threads of warps that neither arrive nor join
constexpr int kSteps = 2, kAllLayers = kSteps * kBarriersPerStep;
constexpr u32 kChunk = 64;

enum class How {
  kRight,
  kEarly,         // an SM arrives before all of its threads are done
  kRelaxed,       // its arrival is not a release
  kNoBarrier,     // threads go on that have not waited
  kNoJoin,        // nobody waits for the others
  kRelaxedStore,  // the producer is told by a relaxed store
  kNoWait,        // the producer does not wait
  kOneBefore,     // an SM waits for the barrier before
};

u64* values() {
  static u64* p = litmus::allocate<u64>(kAllLayers * kSMs, "values");
  return p;
}
u8* weights() {
  static u8* p = litmus::allocate<u8>(kAllLayers * kChunk, "weights", machine::RegionKind::kWeights);
  return p;
}

void arrive_by(C& c, How how) {
  if (how != How::kEarly && how != How::kRelaxed) return arrive(c);
  if (how != How::kEarly) consumer_barrier();
  if (c.tid != 0) return;
  if (how == How::kRelaxed) add_relaxed(join_counter(c), 1u);
  else add_release(join_counter(c), 1);
}

void join_by(C& c, int number, How how) {
  if (how == How::kRight || how == How::kEarly || how == How::kRelaxed || how == How::kNoWait)
    return join(c, number);
  if (c.tid == 0) {
    const u32 passed = joins_until(c.step, number);
    u32 target = (u32(c.launch.first_epoch) * kBarriersPerStep + passed) * kSMs;
    if (how == How::kOneBefore) target -= kSMs;
    Spin spin;
    while (how != How::kNoJoin && int(load_acquire(join_counter(c)) - target) < 0) {
      if (spin.cancelled(c, Wait::kJoin, number, target)) break;
    }
    if (how == How::kRelaxedStore) store_shared_relaxed(&c.shared.joined, passed);
    else store_shared_release(&c.shared.joined, passed);
  }
  if (how != How::kNoBarrier) consumer_barrier();
}

// Of each layer, SM 1 writes a value, a warp of SM 0 and its producer read it after the barrier, and
// SM 0 takes a chunk of weights. After the barrier the ring is empty.
litmus::Test layers(const char* name, How how) {
  auto test = test_of_blocks(name, [=](C& c) {
    for (int layer = 0; layer < kAllLayers; ++layer) {
      if (layer % kBarriersPerStep == 0) c.begin_step(layer / kBarriersPerStep);
      if (c.sm == 1 && c.tid == kWriter) values()[layer] = u64(layer + 1);
      if (c.sm == 0 && c.warp == 1) {
        wait_full(c, c.slot, c.phase);
        release(c, c.slot, kSlotArrivals);
        advance_slot(c.slot, c.phase);
      }
      arrive_by(c, how);
      join_by(c, layer % kBarriersPerStep, how);
      if (c.sm == 0 && c.tid == kReader) seen[layer] = values()[layer];
    }
  }, [=](C& c) {
    if (c.sm != 0) return;
    Producer<C> p(c);
    for (int layer = 0; layer < kAllLayers; ++layer) {
      p.copy(weights() + layer * kChunk, kChunk);
      if (how != How::kNoWait) await_join(p, layer / kBarriersPerStep, layer % kBarriersPerStep);
      if (p.stopped) return;
      // What lies after the barrier for the producer: what was written, and a ring that is empty.
      const u32 last = (p.slot + kRingSlots - 1) % kRingSlots;
      const u32 phase = last < p.slot ? p.phase ^ 1 : p.phase;
      seen[16 + layer] = barrier_test_wait(&c.shared.empty[last], phase, kSlotArrivals);
      if (how != How::kNoWait) seen[32 + layer] = values()[layer];
    }
    p.drain();
  }, [=] {
    for (u64 layer = 0; layer < kAllLayers; ++layer) {
      if (seen[16 + layer] != 1) return std::string("the ring is not empty after a barrier");
      if (how == How::kNoWait) continue;
      if (seen[layer] != layer + 1 || seen[32 + layer] != layer + 1)
        return std::string("a layer has an old value of the layer before");
    }
    return std::string();
  });
  test.bound = 2;
  test.setup = [] { device().clear(), litmus::fill(values(), kAllLayers, u64(0)); };
  return test;
}

void tests() {
  litmus::holds(layers("barriers of layers", How::kRight));
  litmus::fails(layers("an SM that arrives before it is done", How::kEarly), "race");
  litmus::fails(layers("an arrival that is not a release", How::kRelaxed), "race");
  litmus::fails(layers("threads that do not wait", How::kNoBarrier), "race");
  litmus::fails(layers("no join", How::kNoJoin), "race");
  litmus::fails(layers("a wait for the barrier before", How::kOneBefore), "race");
  litmus::fails(layers("a producer told by a relaxed store", How::kRelaxedStore), "race");
  litmus::fails(layers("a producer that does not wait", How::kNoWait), "outcome");
}

}  // namespace

int main(int argc, char** argv) { return litmus::run(argc, argv, "barrier", tests); }
