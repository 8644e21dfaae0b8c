// The exchange: one activation vector published from all SMs to all SMs. Every word carries its
// payload and the epoch of the exchange, {16-bit value, 16-bit epoch} or {32-bit value, 32-bit
// epoch}, and validates itself: readers poll just the words that they still miss, with relaxed
// loads, and no fence orders anything else (docs/memory-model.md). With kFlagged off, a counter
// announces the vector instead and the epochs are not looked at. Needs schedule.h and pages.h. Must
// not know which stage it serves.
#pragma once

#include "context.cuh"
#include "element.cuh"

namespace amk {

// ---- words --------------------------------------------------------------------------------------

template <class E>
struct WordOf {
  using Type = u32;  // 16-bit elements
  __device__ static __forceinline__ u32 make(float v, u32 epoch) {
    return u32(E::from_float(v)) | epoch << 16;
  }
  __device__ static __forceinline__ float value(u32 w) { return E::to_float(u16(w)); }
  __device__ static __forceinline__ bool fresh(u32 w, u32 epoch) { return w >> 16 == epoch; }
};

template <>
struct WordOf<Fp32> {
  using Type = u64;
  __device__ static __forceinline__ u64 make(float v, u32 epoch) {
    return u64(bits_of(v)) | u64(epoch) << 32;
  }
  __device__ static __forceinline__ float value(u64 w) { return float_of_bits(u32(w)); }
  __device__ static __forceinline__ bool fresh(u64 w, u32 epoch) { return u32(w >> 32) == epoch; }
};

// ---- writing ------------------------------------------------------------------------------------

// The place of an element of the exchange that is published next in the trace.
template <class C>
__device__ __forceinline__ float& traced_at(C& c, int index) {
  const size_t exchange = size_t(c.step) * kExchangesPerStep + c.ordinal;
  return c.launch.trace[exchange * kTraceStride + index];
}

// Records in the trace a value that a stage has computed. Returns the value to publish: this one,
// or the one that the host has put into the trace, of any bits but kNotGiven. So a host can give
// every stage the inputs that it had on another device.
template <class E, class C>
__device__ __forceinline__ float traced(C& c, int index, float value) {
  if constexpr (C::kMode_ == Mode::kTrace) {
    float& at = traced_at(c, index);
    const float given = at;
    at = rounded<E>(value);
    if (bits_of(given) != kNotGiven) return given;
  }
  return value;
}

// Stores word `index` of a page, in every copy, for the exchange after the one being read.
template <class E, class C>
__device__ __forceinline__ void publish(C& c, const Page page, int index, float value) {
  using Word = WordOf<E>;
  if constexpr (C::kMode_ == Mode::kCeiling) return;
  const auto word = Word::make(traced<E>(c, index, value), c.next_epoch());
#pragma unroll
  for (int copy = 0; copy < page.copies; ++copy) {
    store_relaxed(reinterpret_cast<typename Word::Type*>(c.launch.exchange + page.offset +
                                                         copy * page.bytes) +
                      index,
                  word);
  }
}

// Stores four words from `index` on, 16 bytes at a time, as publish does.
template <class E, class C>
__device__ __forceinline__ void publish_four(C& c, const Page page, int index,
                                             const float (&values)[4]) {
  using Word = WordOf<E>;
  if constexpr (C::kMode_ == Mode::kCeiling) return;
  const u32 epoch = c.next_epoch();
  const typename Word::Type words[4] = {Word::make(traced<E>(c, index, values[0]), epoch),
                                        Word::make(traced<E>(c, index + 1, values[1]), epoch),
                                        Word::make(traced<E>(c, index + 2, values[2]), epoch),
                                        Word::make(traced<E>(c, index + 3, values[3]), epoch)};
#pragma unroll
  for (int copy = 0; copy < page.copies; ++copy) {
    auto* at = reinterpret_cast<typename Word::Type*>(c.launch.exchange + page.offset +
                                                      copy * page.bytes) +
               index;
    if constexpr (sizeof words[0] == 4) {
      store_relaxed(reinterpret_cast<uint4*>(at), uint4{words[0], words[1], words[2], words[3]});
    } else {
      store_relaxed(reinterpret_cast<ulonglong2*>(at), ulonglong2{words[0], words[1]});
      store_relaxed(reinterpret_cast<ulonglong2*>(at + 2), ulonglong2{words[2], words[3]});
    }
  }
}

// ---- to all ranks -------------------------------------------------------------------------------

// Words that several ranks publish are in the memory of each: a rank stores to all, and polls its
// own. The others have it mapped, so the words are accessed at system scope.

// The exchange pages of a rank, and the number of this one.
template <class C>
__device__ __forceinline__ u8* exchange_of(C& c, int rank) {
#if AMK_RANKS
  return c.launch.peers[rank];
#else
  return c.launch.exchange;
#endif
}
template <class C>
__device__ __forceinline__ int rank_of(C& c) {
#if AMK_RANKS
  return c.launch.rank;
#else
  return 0;
#endif
}

// A word of 64 bits of a page, in the memory of a rank.
template <class C>
__device__ __forceinline__ u64* word_of(C& c, int rank, const Page page, int index) {
  return reinterpret_cast<u64*>(exchange_of(c, rank) + page.offset) + index;
}

// ---- reading ------------------------------------------------------------------------------------

// This SM's copy of a page.
template <class C>
__device__ __forceinline__ const u8* page_copy(C& c, const Page page) {
  return c.launch.exchange + page.offset + u32(c.sm % page.copies) * page.bytes;
}

template <class E, class C>
__device__ __forceinline__ bool is_fresh(C& c, typename WordOf<E>::Type word) {
  return !C::kWaits || !kFlagged || WordOf<E>::fresh(word, c.epoch);
}

// A poll is a set of words to read, and which of them are still missing. kCount words: index_of(i)
// is the i-th, or -1 for none, which reads as 0.
template <class E, int kCount, class IndexOf>
struct WordPoll {
  using Type = typename WordOf<E>::Type;
  static_assert(kCount <= 32, "a bit for each word");
  const Type* words;
  IndexOf index_of;
  u32 missing = 0;
  Type word[kCount];

  __device__ __forceinline__ WordPoll(const u8* copy, IndexOf of)
      : words(reinterpret_cast<const Type*>(copy)), index_of(of) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      word[i] = 0;
      if (index_of(i) >= 0) missing |= 1u << i;
    }
  }
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (missing >> i & 1) word[i] = load_relaxed(words + index_of(i));
    }
  }
  template <class C>
  __device__ __forceinline__ void check(C& c) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if ((missing >> i & 1) && is_fresh<E>(c, word[i])) missing &= ~(1u << i);
    }
  }
  __device__ __forceinline__ int first_missing() const { return index_of(find_first(missing) - 1); }
  __device__ __forceinline__ float value(int i) const { return WordOf<E>::value(word[i]); }
};

template <class E, int kCount, class IndexOf>
__device__ __forceinline__ WordPoll<E, kCount, IndexOf> word_poll(const u8* copy,
                                                                  IndexOf index_of) {
  return {copy, index_of};
}

// Runs a poll until nothing is missing. The loads of a round are all in flight together: sequential
// reads would cost a trip to L2 each, and under the weight stream that is most of a microsecond.
template <class C, class Poll>
__device__ __forceinline__ void poll_all(C& c, Poll& poll) {
  Spin spin;
  for (;;) {
    poll.load();
    poll.check(c);
    if (poll.missing == 0) return;
    if (spin.cancelled(c, Wait::kExchange, u32(poll.first_missing()), c.epoch)) return;
  }
}

// Two polls as one, so that the loads of both are in flight together.
template <class First, class Second>
struct PollOfBoth {
  First& first;
  Second& second;
  u32 missing = 1;

  __device__ __forceinline__ void load() {
    first.load();
    second.load();
  }
  template <class C>
  __device__ __forceinline__ void check(C& c) {
    first.check(c);
    second.check(c);
    missing = first.missing | second.missing;
  }
  __device__ __forceinline__ int first_missing() const {
    return first.missing ? first.first_missing() : second.first_missing();
  }
};
template <class C, class First, class Second>
__device__ __forceinline__ void poll_both(C& c, First& first, Second& second) {
  PollOfBoth<First, Second> both{first, second};
  poll_all(c, both);
}

// Nonzero if one of the four 32-bit words of a 16-byte load does not carry the epoch. `both` is the
// epoch in both halves of a register.
__device__ __forceinline__ u32 four_stale(uint4 v, u32 both) {
  return (byte_perm(v.x, v.y, 0x7632) ^ both) | (byte_perm(v.z, v.w, 0x7632) ^ both);
}

// ---- by counter ---------------------------------------------------------------------------------

// After the last publish of a stage on this SM: makes all of it visible, then adds the number of
// its tasks to the exchange's counter: one, or one per unit.
template <class C>
__device__ __forceinline__ void signal(C& c, int tasks = 1) {
  if constexpr (!kFlagged && C::kWaits) {
    consumer_barrier();
    if (c.tid == 0)
      add_release(reinterpret_cast<u32*>(c.launch.exchange + kCounterOffset) + c.ordinal,
                  u32(tasks));
    lap(c, Did::kSignal);
  }
}

// Before the first read of an exchange that the previous stage has announced. Counters are never
// reset: step n is complete at (n + 1) * tasks of that stage, whose counter precedes the next.
template <class C>
__device__ __forceinline__ void await(C& c) {
  if constexpr (!kFlagged && C::kWaits) {
    if (c.tid == 0) {
      const u32 target = u32(c.launch.first_epoch + c.step + 1) * c.producers;
      const u32* counter =
          reinterpret_cast<const u32*>(c.launch.exchange + kCounterOffset) + (c.ordinal - 1);
      Spin spin;
      while (int(load_acquire(counter) - target) < 0) {
        if (spin.cancelled(c, Wait::kExchange, c.ordinal - 1, target)) break;
      }
    }
    consumer_barrier();
  }
}

}  // namespace amk
