// State of one thread block: its shared scratch, its place in the exchange sequence, and the
// bounded spin that every wait goes through. Needs schedule.h and model_config.h. Must not know
// what a stage computes.
#pragma once

#include "element.cuh"
#include "hw/memory.cuh"
#include "launch.cuh"
#include "profile.cuh"

namespace amk {

// What a kernel is compiled for. Decode is the product. Ceiling streams the same bytes and waits
// for nothing but the ring. Trace also writes every exchanged value to Launch::trace, and publishes
// the value that it finds there, if there is one. Profile also records the spans of each SM to
// Launch::profile. Drain is decode without its stream: nothing is copied into the ring, and the
// results are garbage. Part is a stretch of a step (part.cuh).
enum class Mode { kDecode, kCeiling, kTrace, kProfile, kDrain, kPart };

// Rows per sequence in a pass: consecutive positions. The rows of a sequence come before those of
// the next.
constexpr int kSequenceRows = kTokens / kSequences;
static_assert(kTokens % kSequences == 0, "as many rows of each sequence");
static_assert(kSequences <= kMaxSequences, "a launch says where each sequence stands");

// The sequence that a token of the pass belongs to, and its row there.
__device__ __forceinline__ int sequence_of(int token) {
  return kSequences > 1 ? token / kSequenceRows : 0;
}
__device__ __forceinline__ int row_of(int token) {
  return kSequences > 1 ? token % kSequenceRows : token;
}

constexpr int kConsumerWarps = 8;
constexpr int kConsumers = kConsumerWarps * 32;  // threads
#if AMK_LONG_STREAM
constexpr u32 kMostAhead = kRunAhead > kLongRunAhead ? kRunAhead : kLongRunAhead;
constexpr u32 kMostStock = kStock > kLongStock ? kStock : kLongStock;
#else
constexpr u32 kMostAhead = kRunAhead, kMostStock = kStock;
#endif
constexpr bool kPrefetches = AMK_BULK_COPY && kMostAhead > 0;
// then a producer warp, and one that prefetches into L2; where these release registers, they belong
// to a group of four warps
constexpr int kThreads = kConsumers + (AMK_REGISTER_POOL ? 128 : kPrefetches ? 64 : 32);
// tiles whose partial sums meet at one block barrier
constexpr int kTilesPerFlush = 8;
constexpr int kTileRows = 8;
constexpr int kFlushRows = kTilesPerFlush * kTileRows;

// What a warp keeps for a row of a tile: a sum for each quarter of the columns, or one for all; and
// the type of the activations that stages without tensor cores keep. A compact scratch uses the
// narrower types; the values are the same.
constexpr int kRowSums = AMK_COMPACT_SCRATCH ? 1 : 4;
// In a pass of several tokens a warp keeps one sum for each row and token. The sums of a token are
// adjacent, at a stride at which four tokens have no bank conflicts.
constexpr int kTokenSums = kFlushRows + 8;
constexpr int kWarpSums = kTokens > 1 ? kTokens * kTokenSums : kFlushRows * kRowSums;
// Tokens whose rows the threads of a block finish at once, and how many rounds that takes.
constexpr int kTokensAtOnce = kConsumers / kFlushRows;
constexpr int kTokenTurns = ceil_div(kTokens, kTokensAtOnce);
template <bool kNarrow>
struct ActivationOf {
  using Type = float;
};
template <>
struct ActivationOf<true> {
  using Type = u16;
};
using Activation = ActivationOf<AMK_COMPACT_SCRATCH && Element::kBytes == 2>::Type;

constexpr int kMostHeld = 4;  // exchanges that are kept at once

// Stands in for an mbarrier where the hardware has none (ring.cuh), and has its size.
struct ArrivalCount {
  u64 word;
  __device__ __forceinline__ u32* arrived() { return reinterpret_cast<u32*>(&word); }
};
#if AMK_BULK_COPY
using RingBarrier = u64;
#else
using RingBarrier = ArrivalCount;
#endif

// Shared memory of a block except the ring, which fills the rest of kSharedLimit. The compiler's
// kernel.Scratch counts its bytes, by which it chooses what is kept here.
struct Scratch {
  RingBarrier full[kMaxRingSlots];
  RingBarrier empty[kMaxRingSlots];
#if AMK_COMPACT_SCRATCH
  // What matrix stages keep and what attention keeps share memory. Before its first block barrier a
  // stage writes only `vector`, `unit` or `digits`: other warps may still be adding up the
  // `partial` sums of the previous stage.
  union {
    struct {
      union {
        alignas(16) u8 unit[kUnitScratch];
        alignas(16) Activation vector[kVectorScratch];
        alignas(16) u8 digits[kDigitScratch];
      };
      alignas(16) float partial[2][kConsumerWarps][kWarpSums];
    };
    struct {
      alignas(16) u8 unit_before[kUnitScratch];
      alignas(16) float attention[kAttentionScratch];
      float attention_base[kConsumerWarps * kAttentionHeads];  // what sums are relative to
      float attention_max[kConsumerWarps * kAttentionHeads];
      float attention_sum[kConsumerWarps * kAttentionHeads];
      float attention_own[kAttentionOwn];  // scores of the tokens' own rows
    };
  };
#else
  alignas(16) float partial[2][kConsumerWarps][kWarpSums];
#endif
  // of one vector, or of two; of each token
  float squares[2][(kTokens > 1 ? kTokens : 2) * kConsumerWarps];
  // this SM's rows of the residual stream, fp32, for the whole step
  alignas(16) float residual[kTokens * kResidualRows];
  float2 rotation[kAngleTables][kTokens][kHeadDim / 2];  // cos and sin of the positions
  float best_value[kTokenTurns * kConsumerWarps];
  int best_index[kTokenTurns * kConsumerWarps];
#if !AMK_COMPACT_SCRATCH
  union {
    struct {
      alignas(16) float attention[kAttentionScratch];
      float attention_base[kConsumerWarps * kAttentionHeads];  // what sums are relative to
      float attention_max[kConsumerWarps * kAttentionHeads];
      float attention_sum[kConsumerWarps * kAttentionHeads];
      float attention_own[kAttentionOwn];  // scores of the tokens' own rows
      // what an attention unit has read of the exchange, with tensor cores
      alignas(16) u8 unit[kUnitScratch];
    };
    // a vector in fixed point: warps write and read it between the barriers of a matrix stage; with
    // several tokens, the sums carried from slab to slab
    alignas(16) u8 digits[kDigitScratch];
  };
  // the path without tensor cores keeps activations here
  alignas(16) Activation vector[kVectorScratch];
#endif
  int token[kTokens];   // to decode next
  int chosen[kTokens];  // by the previous step, before anything was forced
  u32 aborted;        // sticky: waits return at once
  u32 acquired_step;  // steps of this launch whose cache rows the producer may read
  u32 stop;           // the launch ends after the current step
  u32 issued;         // chunks the producer has issued; followed by the prefetcher
  // the prefetcher's turn: the producer waits for a slot or for the previous step, or the ring held
  // its stock at the producer's last chunk
  u32 prefetches;
  // barriers of this launch that the consumers have passed; only with init_barriers
  u32 joined;
#if AMK_EXPERTS
  // What the last router has chosen for each token, in order, and how that is weighed (router.cuh).
  int experts[kTokens][kMostChosen];
  float shares[kTokens][kMostChosen];
  float gates[kTokens];  // of the expert that every token has
  u32 choices;  // layers that the launch had begun then
#endif
  // Of the launch, for a thread that waits too long.
  u64 spin_limit_ns;
  const u32* abort;
  u32* abort_device;
  Stall* stalls;
};

static_assert(sizeof(Scratch) == 2 * sizeof(RingBarrier) * kMaxRingSlots +
                                     sizeof(float) * kTokens * kResidualRows + kScratchBytes,
              "the compiler has counted the bytes of the scratch");

constexpr u32 kRingSlots = (kSharedLimit - sizeof(Scratch)) / kSlotBytes;
constexpr u32 kSharedBytes = kRingSlots * kSlotBytes + sizeof(Scratch);
static_assert(sizeof(Scratch) < kSharedLimit && kRingSlots >= 2,
              "the scratch leaves room for a ring");
static_assert(kRingSlots <= kMaxRingSlots && kInFlight >= 1, "the ring's bounds hold");

// The ring of this block, and its scratch after it.
__device__ __forceinline__ u8* block_ring() { return block_memory(); }
__device__ __forceinline__ Scratch& block_scratch() {
  return *reinterpret_cast<Scratch*>(block_ring() + kRingSlots * kSlotBytes);
}

constexpr int kTokenTile = 64;  // tokens of a prompt that a group of warps multiplies at once
constexpr int kMostTileTokens = AMK_WGMMA ? 2 * kTokenTile : kTokenTile;  // that a block does

#if AMK_PROMPT
#if AMK_EXPERTS
// Tiles of a list of n entries, by expert (prompt_experts.cuh). That of an expert begins with the
// tile in which its first entry would be if all were side by side, and one more for each expert
// before it.
__host__ __device__ constexpr int tile_of_list(int entries, int experts) {
  return entries / kMostTileTokens + experts;
}
constexpr int kListTiles = tile_of_list(AMK_PROMPT_TOKENS * kMostChosen, kExperts);
#endif

// With wgmma, warps of their own copy what the others multiply.
constexpr int kPromptThreads = kConsumers + (AMK_WGMMA ? 128 : 0);
constexpr int kTokensTogether = 4;  // whose vectors a warp has at once
constexpr int kPromptSlots = 7;  // of the ring that matrices and operands pass through

// Shared memory of a block that reads prompts, besides what stages pass through it. codegen counts
// its bytes: change both together.
struct PromptScratch {
#if AMK_WGMMA
  u64 full[kPromptSlots];   // of the ring's slots (prompt_ring.cuh)
  u64 empty[kPromptSlots];
  u32 started;  // products whose operands are there
#if AMK_EXPERTS
  u32 read[3];  // products of which each copying warp has read `listed`, if they have experts
#endif
#endif
#if AMK_EXPERTS
  u16 listed[kListTiles];  // of each tile of the list one more than its expert; 0: it is of none
#endif
  float2 sums[2][kTokensTogether][kConsumerWarps];  // of vectors; two sets, in alternation
  alignas(16) float squares[2][2 * kConsumerWarps];  // of two vectors at most
  u32 aborted;  // sticky: waits return at once
  // Of the launch, for a thread that waits too long.
  u64 spin_limit_ns;
  const u32* abort;
  u32* abort_device;
  Stall* stalls;
};
// At the end of what a block may use.
#if AMK_EXPERTS
constexpr int kPromptScratchBytes = 1024 + round_up(kListTiles * 2, 256);
#else
constexpr int kPromptScratchBytes = 1024;
#endif
static_assert(sizeof(PromptScratch) <= kPromptScratchBytes, "codegen leaves room for it");
constexpr u32 kPromptSharedBytes = kSharedLimit / 256 * 256;  // what is at its end is aligned

// What a wait that takes too long reports to.
__device__ __forceinline__ PromptScratch& block_waits() {
  return *reinterpret_cast<PromptScratch*>(block_ring() + kPromptSharedBytes -
                                           kPromptScratchBytes);
}
#else
__device__ __forceinline__ Scratch& block_waits() { return block_scratch(); }
#endif

// A page of the exchange area: its copies are kBytes apart, and SMs spread over them.
struct Page {
  u32 offset;
  u32 bytes;  // one copy
  int copies;
};

// The norm of a branch that has not been added to the residual yet (replicated.cuh): a published
// vector, times a gain or 1 + the gain, over its rms. A factor multiplies the sum.
struct Branch {
  Page page;
  const u8* gain;    // null: nothing to add
  const u8* factor;  // null: none
  int parts;         // parts of the branch, one after another, to be summed
  float eps;
  bool unit_offset;
  u32 stage;  // for the stall record
};

// The number of the block's SM. Where one GPU runs all ranks in one launch, as tests do, their
// blocks come one rank after another.
__device__ __forceinline__ u32 sm_index() {
  return AMK_RANKS ? block_index() % kSMs : block_index();
}

template <Mode kMode>
struct Context : Recorder<kMode == Mode::kProfile> {
  const Launch& launch;
  Scratch& shared;
  u8* ring;
  int sm;
  int tid;
  int warp;
  int lane;
  int step = 0;       // of the launch
  int position = 0;   // of the first token; of several sequences, how much further each is
  int layer = 0;
  u32 stage = 0;      // for the stall record
  u32 epoch = 0;      // of the exchange read next, 1 to kMaxEpoch
  int ordinal = 0;    // of the exchange read next within the step
  u32 producers = 0;  // tasks that publish it
  // The same for exchanges that stages read after later ones have ended.
  u32 held_epoch[kMostHeld] = {};
  int held_ordinal[kMostHeld] = {};
  u32 held_producers[kMostHeld] = {};
  u32 slot = 0;       // ring slot consumed next, and its phase
  u32 phase = 0;
  u32 flush = 0;      // parity of the partial-sum buffer
  u32 norms = 0;      // parity of the sum-of-squares buffer
  Branch due = {};

  static constexpr Mode kMode_ = kMode;
  // for activations; the ring is always waited for
  static constexpr bool kWaits = kMode != Mode::kCeiling;
  static constexpr bool kCopies = kMode != Mode::kDrain;
  static constexpr bool kRecords = kMode == Mode::kProfile;
  static constexpr int kProducerThread = kConsumers;  // or the first of its warp
  static constexpr u32 kMaxEpoch = 65535;

  __device__ explicit Context(const Launch& l)
      : launch(l),
        shared(block_scratch()),
        ring(block_ring()),
        sm(sm_index()),
        tid(thread_index()),
        warp(thread_index() / 32),
        lane(thread_index() % 32) {}

  // Begins a stage. It recomputes its addresses from the thread's position before it waits for
  // anything. Otherwise the compiler keeps the addresses of all stages from layer to layer, runs
  // out of registers, and reloads the spilled ones on the critical path.
  __device__ __forceinline__ void enter(u32 number) {
    stage = number;
    opaque(sm, tid, warp, lane);
  }

  // Epochs count exchanges since the pages were cleared, and skip 0, so that cleared words are
  // never taken for data. `ended` is how many exchanges of the step came before a launch that
  // begins within it.
  __device__ void begin_step(int i, int ended = 0) {
    step = i;
    position = launch.position + i * kSequenceRows;
    layer = 0;
    ordinal = ended;
    const u64 exchanges = (launch.first_epoch + u64(i)) * kExchangesPerStep + u64(ended);
    epoch = u32(exchanges % kMaxEpoch) + 1;
  }
  // Keeps the exchange that is read next for a later stage, as number n, from 1 on.
  __device__ __forceinline__ void hold(int n) {
    held_epoch[n - 1] = epoch;
    held_ordinal[n - 1] = ordinal;
    held_producers[n - 1] = producers;
  }
  // Reads exchange n that was kept, and keeps the current one in its place, until this is called
  // again.
  __device__ __forceinline__ void swap_held(int n) {
    const u32 e = epoch, p = producers;
    const int o = ordinal;
    epoch = held_epoch[n - 1];
    ordinal = held_ordinal[n - 1];
    producers = held_producers[n - 1];
    held_epoch[n - 1] = e;
    held_ordinal[n - 1] = o;
    held_producers[n - 1] = p;
  }
  // Position of a token of the pass; 0 if its sequence is absent.
  __device__ __forceinline__ int position_of(int token) const {
    if constexpr (kSequences > 1)
      return sequence_position(launch, sequence_of(token), position) + row_of(token);
    else
      return position + token;
  }
  __device__ u32 next_epoch() const { return epoch == kMaxEpoch ? 1 : epoch + 1; }
  // Ends an exchange that `tasks` tasks publish.
  __device__ void advance(u32 tasks) {
    epoch = next_epoch();
    ++ordinal;
    producers = tasks;
  }
};

// Barrier among the consumer warps.
__device__ __forceinline__ void consumer_barrier() { named_barrier_sync<1, kConsumers>(); }

// Twelve warps begin with 168 registers per thread, 65,536 in all. The four that do not compute
// keep 72, and the consumers continue with 216: a warp needs 64 for the activations of eight
// tokens, and as many for words in flight. Every thread of a block calls one of the two.
__device__ __forceinline__ void take_registers() {
#if AMK_REGISTER_POOL
  raise_registers<216>();
#endif
}
__device__ __forceinline__ void give_registers() {
#if AMK_REGISTER_POOL
  lower_registers<72>();
#endif
}

// A bounded spin. Each failed poll asks cancelled(). It returns true once the launch is aborted or
// the wait has outlasted Launch::spin_limit_ns, and the caller then continues with whatever it has:
// an aborted launch quickly computes garbage, and its results are discarded. Only a counter and a
// call are inlined: there are many waits, and a stage's code must stay small.
struct Spin {
  // Polls from one look at the clock to the next, and from one look at the host's abort word.
  static constexpr u32 kUnasked = AMK_EAGER_ABORT ? 1 : 1 << 8;
  static constexpr u32 kUnaskedOfHost = AMK_EAGER_ABORT ? 1 : 1 << 16;
  u32 polls = 0;
  u64 start = 0;

  template <class C>
  __device__ __forceinline__ bool cancelled(C& c, Wait wait, u32 index, u32 expected) {
    if (++polls % kUnasked != 0) return false;
    start = slow(wait, c.stage, c.layer, c.step, index, expected, polls, start);
    return start == kCancelled;
  }

 private:
  static constexpr u64 kCancelled = ~u64(0);

  // With eager aborts, block 0 alone reads the host's word and passes it on to the others: a read
  // by every wait after each poll would saturate the bus.
  __device__ static __forceinline__ bool asks_host() {
    return !AMK_EAGER_ABORT || sm_index() == 0;
  }

  // Looks at the clock and the abort words. Returns when the wait began, or kCancelled. Static, so
  // that a Spin stays in registers.
  __device__ static __noinline__ u64 slow(Wait wait, u32 stage, int layer, int step, u32 index,
                                          u32 expected, u32 polls, u64 start) {
    auto& shared = block_waits();
    if (load_shared_volatile(&shared.aborted)) return kCancelled;
    const u64 now = global_timer_ns();
    if (start == 0) start = now;
    // The producer waits for the consumers, so they get the time to report first.
    const u64 limit = wait >= Wait::kRingEmpty ? 2 * shared.spin_limit_ns : shared.spin_limit_ns;
    u32 valid;
    if (now - start > limit) {
      valid = 1;
    } else if (load_relaxed(shared.abort_device) ||
               (polls % kUnaskedOfHost == 0 && asks_host() && load_system(shared.abort))) {
      valid = 2;
    } else {
      return start;
    }
    if (exchange_shared_relaxed(&shared.aborted, 1u) == 0) {
      shared.stalls[sm_index()] =
          Stall{valid,     stage, u32(layer), u32(step),
                u32(wait), index, expected,   thread_index() / 32};
    }
    store_relaxed(shared.abort_device, 1u);
    return kCancelled;
  }
};

// Where a wait takes place, for the stall record: the part of a context that Spin needs. Producer
// and prefetcher wait outside of stages.
struct Waiter {
  u32 stage = 0;
  int layer = 0;
  int step = 0;
};

}  // namespace amk
