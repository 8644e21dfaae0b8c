// What amk_profile records: which stage an SM worked on, what it did there and for how long. Two
// threads of a block record: a consumer, which passes every block barrier of a stage, and the
// producer. In all other modes the hooks compile to nothing. Needs a Context. Must not know what a
// stage computes. Mirrored by the launcher's host packages.
#pragma once

#include "hw/memory.cuh"

namespace amk {

// What a recording thread did. Consumers: waited for the vector that the stage reads; computed,
// which is also when they wait for weights in the ring; published rows. The producer: waited for
// a free slot, or for the end of the step before (a barrier, in builds that have any).
enum class Did : u32 { kExchangeWait = 0, kCompute = 1, kSignal = 2, kSlotWait = 3, kStepWait = 4 };

// An interval. Times are the low halves of the SM's clock: a launch is shorter than 2^31 cycles,
// about a second.
struct Span {
  u32 begin;
  u32 end;
  u32 stage;  // number in schedule.h; from bit 16 on what was done, Did
  u32 layer;  // from bit 16 on the step of the launch
};

// What one thread has recorded, besides its spans.
struct Recording {
  u64 begin_clock;  // cycles; the consumers' only, as the next three
  u64 begin_time;   // of the GPU's timer, ns, at that cycle
  u64 end_clock;
  u64 end_time;
  u32 spans;        // including those that found no room
  u32 reserved[7];
};

// Launch::profile: this, then Recording[kSMs][2], then Span[kSMs][2][capacity]; consumers before
// producer.
struct ProfileHeader {
  int capacity;  // spans of one thread
  u32 reserved[15];
};
static_assert(sizeof(Span) == 16 && sizeof(Recording) == 64 && sizeof(ProfileHeader) == 64,
              "the launcher reads these byte by byte");

// Number of a stage's descriptor in schedule.h. The generated measure.cu says it for each; the
// producer knows its stages as types.
template <class S>
constexpr u32 kNumberOf = 0xffff;

// The recording state of a thread, empty unless the mode records. It is small because a stage has
// few registers to spare.
template <bool kRecords>
struct Recorder {};

template <>
struct Recorder<true> {
  uint4* next = nullptr;  // where the next span goes
  int room = 0;           // spans that still fit; negative: how many did not
  u32 last = 0;           // when the last span of the consumers ended
};

struct Instant {
  u64 clock;
  u64 time;
};

// The SM's clock and the GPU's timer at one moment. The timer advances in steps, of 32 ns to 1 µs
// depending on the GPU, so the moment is one at which it is seen to advance.
__device__ __forceinline__ Instant instant() {
  // more polls than one step of the timer takes; if it stands still, the pair is one step less
  // exact
  constexpr int kMostPolls = 4096;
  const u64 before = global_timer_ns();
  Instant now;
  int polls = 0;
  do {
    now.time = global_timer_ns();
    now.clock = sm_clock();
  } while (now.time == before && ++polls < kMostPolls);
  return now;
}

// Whether a thread records, and where: one of the consumers, and the producer or the first lane of
// its warp.
template <class C>
__device__ __forceinline__ bool is_recording(const C& c) {
  return c.tid == 0 || c.tid == C::kProducerThread;
}

template <class C>
__device__ __forceinline__ u32 recording_number(const C& c) {
  return u32(c.sm) * 2 + (c.tid == 0 ? 0 : 1);
}

template <class C>
__device__ __forceinline__ Recording& recording_of(const C& c) {
  return reinterpret_cast<Recording*>(c.launch.profile +
                                      sizeof(ProfileHeader))[recording_number(c)];
}

template <class C>
__device__ __forceinline__ int span_capacity(const C& c) {
  return load_constant(&reinterpret_cast<const ProfileHeader*>(c.launch.profile)->capacity);
}

// Before the first span of a thread. All threads may call it.
template <class C>
__device__ __forceinline__ void start_recording(C& c) {
  if constexpr (C::kRecords) {
    if (!is_recording(c)) return;
    u8* spans = c.launch.profile + sizeof(ProfileHeader) + sizeof(Recording) * 2 * kSMs;
    c.room = span_capacity(c);
    c.next = reinterpret_cast<uint4*>(spans) + size_t(recording_number(c)) * c.room;
    if (c.tid != 0) return;
    const Instant now = instant();
    recording_of(c).begin_clock = now.clock;
    recording_of(c).begin_time = now.time;
    c.last = u32(now.clock);
  }
}

// After the last.
template <class C>
__device__ __forceinline__ void end_recording(C& c) {
  if constexpr (C::kRecords) {
    if (!is_recording(c)) return;
    recording_of(c).spans = u32(span_capacity(c) - c.room);
    if (c.tid != 0) return;
    const Instant now = instant();
    recording_of(c).end_clock = now.clock;
    recording_of(c).end_time = now.time;
  }
}

template <class C>
__device__ __forceinline__ void record(C& c, Did what, u32 begin, u32 end) {
  if (c.room > 0)
    *c.next++ = make_uint4(begin, end, c.stage | u32(what) << 16, u32(c.layer) | u32(c.step) << 16);
  --c.room;
}

// Ends a span of the consumers: what they have done since the one before.
template <class C>
__device__ __forceinline__ void lap(C& c, Did what) {
  if constexpr (C::kRecords) {
    if (c.tid != 0) return;
    const u32 now = u32(sm_clock());
    record(c, what, c.last, now);
    c.last = now;
  }
}

// Called before and after a wait of the producer: wait_begins returns the time, to be passed to
// wait_ends.
template <class C>
__device__ __forceinline__ u32 wait_begins(C&) {
  if constexpr (C::kRecords) return u32(sm_clock());
  return 0;
}
template <class C>
__device__ __forceinline__ void wait_ends(C& c, Did what, u32 begin) {
  if constexpr (C::kRecords) {
    if (c.tid == C::kProducerThread) record(c, what, begin, u32(sm_clock()));
  }
}
// After a successful test: records a wait if it took long. The hardware suspends a thread at a
// barrier for a while before the test fails.
template <class C>
__device__ __forceinline__ void test_ends(C& c, Did what, u32 begin) {
  if constexpr (C::kRecords) {
    constexpr u32 kAtOnce = 128;  // cycles
    const u32 now = u32(sm_clock());
    if (c.tid == C::kProducerThread && now - begin > kAtOnce) record(c, what, begin, now);
  }
}

// Which stage the producer fills the ring for.
template <class S, class C>
__device__ __forceinline__ void fills_for(C& c, int layer) {
  if constexpr (C::kRecords) c.stage = kNumberOf<S>, c.layer = layer;
}
template <class C>
__device__ __forceinline__ void fills_in(C& c, int step) {
  if constexpr (C::kRecords) c.step = step;
}

}  // namespace amk
