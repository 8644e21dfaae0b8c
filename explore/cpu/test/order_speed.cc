// How many accesses per second the model takes, in patterns of the kernels.
#include <time.h>

#include <cstring>
#include <vector>

#include "order_test.h"

using namespace machine;

namespace {

double seconds() {
  timespec t;  // of this process: others may run at the same time
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

struct Measure {
  const char* what;
  double begin = seconds();
  explicit Measure(const char* w) : what(w) {}
  void end(double n, const char* of) {
    const double s = seconds() - begin;
    std::printf("%-58s %8.1f million %s/s (%.1f ns)\n", what, n / s / 1e6, of, s / n * 1e9);
  }
};

}  // namespace

void speed() {
  constexpr u32 kBlocks = 4, kThreads = 384, kShared = 227 << 10;
  Listener nobody;
  Order o(arena, kArenaBytes, &nobody);
  u8* global = arena;
  u8* weights = arena + (16 << 20);
  o.add_region(RegionKind::kGlobal, global, 8 << 20, "global");
  o.add_region(RegionKind::kWeights, weights, 16 << 20, "weights");
  o.host_write(global, 8 << 20);
  o.begin_launch(kBlocks, kThreads);
  u8* shared[kBlocks];
  for (u32 b = 0; b < kBlocks; ++b) {
    shared[b] = arena + (32 << 20) + size_t(b) * (256 << 10);
    o.add_region(RegionKind::kShared, shared[b], kShared, "shared", b);
  }
  std::vector<u32> consumers, warp;
  for (u32 t = 0; t < 256; ++t) consumers.push_back(t);
  for (u32 t = 0; t < 32; ++t) warp.push_back(t);
  constexpr u32 kRounds = 200;
  {
    Measure m("float of its own, written and read, a barrier after each");
    for (u32 r = 0; r < kRounds; ++r) {
      for (u32 i = 0; i < 4; ++i) {
        for (u32 t = 0; t < 256; ++t) o.write(t, shared[0] + 4 * (t + 256 * i), 4, 1);
      }
      o.join(consumers.data(), 256);
      for (u32 i = 0; i < 4; ++i) {
        for (u32 t = 0; t < 256; ++t) o.read(t, shared[0] + 4 * ((t ^ 32) + 256 * i), 4, 2);
      }
      o.join(consumers.data(), 256);
    }
    m.end(kRounds * 2048.0, "accesses");
  }
  {
    Measure m("16 bytes of its own, written and read again");
    for (u32 r = 0; r < 4 * kRounds; ++r) {
      for (u32 t = 0; t < 256; ++t) o.write(t, shared[0] + 65536 + 16 * t, 16, 1);
      for (u32 t = 0; t < 256; ++t) o.read(t, shared[0] + 65536 + 16 * t, 16, 2);
    }
    m.end(4 * kRounds * 512.0, "accesses");
  }
  {
    Measure m("a vector of 512 floats, read by 256 threads, 16 bytes each");
    for (u32 t = 0; t < 128; ++t) o.write(t, shared[0] + 131072 + 16 * t, 16, 1);
    o.join(consumers.data(), 256);
    for (u32 r = 0; r < kRounds / 10; ++r) {
      for (u32 t = 0; t < 256; ++t) {
        for (u32 i = 0; i < 128; ++i) o.read(t, shared[0] + 131072 + 16 * i, 16, 2);
      }
      o.join(consumers.data(), 256);
    }
    m.end(kRounds / 10 * 256.0 * 128, "accesses");
  }
  {
    Measure m("the same 512 bytes, read by 4,096 warps in elements of 2");
    o.end_launch();
    o.begin_launch(512, 256);
    for (u32 t = 0; t < 512 * 256; ++t) {
      for (u32 i = 0; i < 8; ++i) o.read(t, global + (2 << 20) + 2 * (t % 32 + 32 * i), 2, 2);
    }
    m.end(512 * 256 * 8.0, "accesses");
    o.end_launch();
    o.begin_launch(kBlocks, kThreads);
  }
  {
    Measure m("barriers of 256 threads");
    for (u32 r = 0; r < 2000; ++r) o.join(consumers.data(), 256);
    m.end(2000, "barriers");
  }
  {
    Measure m("warp_sync");
    for (u32 r = 0; r < 20000; ++r) o.join(warp.data(), 32);
    m.end(20000, "of them");
  }
  {
    u8 *full = shared[0], *empty = shared[0] + 8, *slot = shared[0] + (100 << 10);
    const u32 producer = 256;
    o.barrier_init(producer, full, 1);
    o.barrier_init(producer, empty, 1);
    std::vector<u32> block;
    for (u32 t = 0; t < kThreads; ++t) block.push_back(t);
    o.join(block.data(), kThreads);
    constexpr u32 kBytes = 8192;
    double copies = 0, reads = 0, waits = 0;
    Measure all("ring: 8 KB copied and read by 256 threads, slots given back");
    for (u32 r = 0; r < kRounds; ++r) {
      double begin = seconds();
      const u32 copy = o.bulk_begin(producer, 1);
      o.barrier_arrive(producer, full, 1);
      o.copy_bytes(copy, slot, weights + (r % 1024) * kBytes, kBytes);
      o.bulk_end(copy, full);
      o.barrier_complete(full);
      copies += seconds() - begin, begin = seconds();
      for (u32 t = 0; t < 256; ++t) o.barrier_wait(t, full, 2);
      waits += seconds() - begin, begin = seconds();
      for (u32 t = 0; t < 256; ++t) {
        o.read(t, slot + 16 * t, 16, 3);
        o.read(t, slot + 4096 + 16 * t, 16, 3);
      }
      reads += seconds() - begin, begin = seconds();
      for (u32 w = 0; w < 8; ++w) {
        for (u32 t = 0; t < 32; ++t) {
          o.fence_proxy(w * 32 + t, Proxy::kShared);
          warp[t] = w * 32 + t;
        }
        o.join(warp.data(), 32);
        o.barrier_arrive(w * 32, empty, 4);
      }
      o.barrier_complete(empty);
      o.barrier_wait(producer, empty, 5);
      waits += seconds() - begin;
    }
    all.end(kRounds, "chunks");
    std::printf("  of a chunk: copy %.1f us (%.0f MB/s), 512 reads %.1f us, order %.1f us\n",
                copies / kRounds * 1e6, kRounds * kBytes / copies / 1e6, reads / kRounds * 1e6,
                waits / kRounds * 1e6);
  }
  {
    Measure m("exchange: words stored by one block, polled by four");
    u64 epoch = 0;
    for (u32 r = 0; r < kRounds; ++r) {
      ++epoch;
      for (u32 i = 0; i < 512; ++i) {
        o.store((i % kBlocks) * kThreads + i / kBlocks, global + 4 * i, 4, epoch << 16,
                Ordering::kRelaxed, Scope::kGpu, 1);
      }
      for (u32 b = 0; b < kBlocks; ++b) {
        for (u32 t = 0; t < 128; ++t) {
          for (u32 i = 0; i < 4; ++i) {
            o.load(b * kThreads + t, global + 16 * t + 4 * i, 4, Ordering::kRelaxed, Scope::kGpu, 2);
          }
        }
        for (u32& t : consumers) t = t % kThreads + b * kThreads;
        o.join(consumers.data(), 256);
      }
    }
    for (u32 t = 0; t < 256; ++t) consumers[t] = t;
    m.end(kRounds * 512.0 * 5, "words");
  }
  {
    Measure m("polls that find nothing");
    for (u32 r = 0; r < kRounds; ++r) {
      for (u32 t = 0; t < 128; ++t) {
        for (u32 i = 0; i < 4; ++i) {
          o.load(t, global + 16 * t + 4 * i, 4, Ordering::kRelaxed, Scope::kGpu, 2);
        }
      }
    }
    m.end(kRounds * 512.0, "words");
  }
  {
    Measure m("counter: add_release and load_acquire of four blocks");
    for (u32 r = 0; r < 10 * kRounds; ++r) {
      for (u32 b = 0; b < kBlocks; ++b) {
        o.update(b * kThreads, global + 65536, 4, Update::kAdd, 1, Ordering::kRelease, Scope::kGpu,
                 1);
      }
      for (u32 b = 0; b < kBlocks; ++b)
        o.load(b * kThreads, global + 65536, 4, Ordering::kAcquire, Scope::kGpu, 2);
    }
    m.end(10 * kRounds * 8.0, "of them");
  }
  o.end_launch();
}
