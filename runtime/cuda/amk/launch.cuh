// What the host passes to the kernel, and what a stalled SM reports. Mirrored by the launcher's
// host packages: the layouts are asserted there and here. Must hold plain data only.
#pragma once

#include "platform.cuh"

namespace amk {

// Where an SM cancelled a wait. One record per SM, written once.
struct Stall {
  u32 valid;     // 1 if this SM cancelled first, 2 if it followed another
  u32 stage;     // index of the stage, in the order of schedule.h
  u32 layer;
  u32 step;      // step of the launch
  u32 wait;      // Wait
  u32 index;     // first element, tile or chunk that was missing
  u32 expected;  // epoch or phase it waited for
  u32 warp;
};

enum class Wait : u32 {
  kJoin = 0,
  kExchange = 1,
  kRingFull = 2,
  kRingEmpty = 3,
  kStep = 4,
  kLayer = 5,
  kChoice = 6
};

constexpr int kMaxSequences = 8;
constexpr int kMaxRanks = 8;
constexpr int kAbsent = -1;  // position of an absent sequence
constexpr u32 kNotGiven = 0xffffffff;  // bits of an element of a trace for which no value is given
constexpr int kNoToken = 0x7ffffffe;  // chosen where settings and logits leave no token to draw

// How the tokens of a sequence are chosen (sampling.cuh). All zeros: the largest logit.
struct Sampling {
  double temperature;
  u64 seed;
};
static_assert(sizeof(Sampling) == 16, "the launcher builds this struct byte by byte");

// What is done to the logits of a sequence before a token is chosen, and which tokens are eligible
// (choice.cuh). A null pointer, or the value in brackets, changes nothing.
struct Choice {
  const double* bias;   // [vocab] is added to logits
  const int* uses;      // [vocab] uses of an id in the output; 0: only in the prompt; -1: neither
  const u64* allowed;   // a bit for each id; ids without it are never chosen
  const int* recent;    // [n_recent] ids of the output that `uses` does not count yet
  double repetition;    // in prompt and output: divides positive logits, multiplies the rest
  double frequency;     // subtracted from the logits of ids in the output, once per occurrence (0)
  double presence;      // subtracted from them once (0)
  double rest;          // the share of the least probable tokens that are left out: 1 - top-p (0)
  double min_p;         // ids less than min_p times as probable as the first are left out (0)
  int top_k;            // this many are kept, and those equal to the last of them (0)
  int n_recent;
  int counts;  // 1: what the steps of this launch decode after the first token counts as output
  int set;     // 0: the sequence has none of these
};
static_assert(sizeof(Choice) == 88, "the launcher builds this struct byte by byte");

// Where all SMs together find which tokens are eligible (search.cuh). Zero before a launch.
constexpr int kMaxTokens = 8;  // of a step
constexpr int kBins = 256;
struct Tally {
  u64 largest;  // score of a token, in order
  u64 reserved;
  u64 amount[kBins];
  u32 count[kBins];
};
struct Rounds {
  u32 joined;  // SMs that have ended a round, summed over all rounds
  u32 reserved[15];
  Tally of[3][kMaxTokens];  // a round has every third
};
static_assert(sizeof(Rounds) == 64 + 3 * 8 * 3088, "the launcher makes room for it");

// Arguments of one launch. Pointers are device addresses; null where the feature is off.
struct Launch {
  const u8* weights;   // the data section of weights.safetensors
  u8* cache;           // KV cache, kCacheBytes; of several sequences, one after another
  u8* exchange;        // exchange pages, kExchangeBytes, zero before the first launch
  float* logits;       // [tokens of the pass][vocab] of each step, or null
  union {
    float* trace;      // [steps][kExchangesPerStep][kTraceStride], in amk_trace. Or null;
                       // amk_decode leaves there what it publishes exactly
    u8* profile;       // where spans are recorded (profile.cuh), only in amk_profile
  };
  const int* forced;   // [steps] token to decode at each step, or -1: the token before; or null
  u32* tokens;         // [steps] token chosen at each step, device memory; or null
  u32* host_tokens;    // [steps] the same plus one, in pinned host memory, or null
  const u32* abort;    // pinned host word: nonzero means abort
  u32* abort_device;   // device word through which SMs tell each other
  Stall* stalls;       // [SMs]
  const int* stop_ids; // [n_stop] a launch ends when one of these tokens is chosen
  const Sampling* sampling;  // [sequences] how tokens are chosen, from logits; or null: the largest
  const Choice* choices;     // [sequences] further settings of the choice; or null
  Rounds* rounds;            // or null: no choice excludes tokens by their probability
  const float* embeddings;  // [steps][tokens][hidden] the inputs of tokens given as kGiven, or null
  float* hidden;       // [steps][tokens][hidden] the last hidden state of each, or null
  u64 spin_limit_ns;   // a wait longer than this is a stall
  u64 first_epoch;     // steps completed since the exchange pages were cleared
  int steps;
  int position;        // of the first step; 0 with several sequences
  int token;           // of the first step, unless forced
  int n_stop;
  int logit_stride;    // tokens from the logits of a step to the next; 0: all in the same place
  int chooses;         // 1: a pass over a prompt finds the largest logit after its last token
  int positions[kMaxSequences];  // of several sequences in the first step, or kAbsent
#if AMK_RANKS
  u8* peers[kMaxRanks];  // `exchange` of each rank, this one among them, as this GPU has it mapped
  int rank;
  int reserved;
#endif
};
static_assert(sizeof(Launch) == 8 * 19 + 4 * (6 + kMaxSequences) +
                                    (AMK_RANKS ? 8 * (kMaxRanks + 1) : 0),
              "the launcher builds this struct byte by byte");
static_assert(sizeof(Stall) == 32, "the launcher reads this struct byte by byte");

// Whether a sequence of the pass is present. One that is absent is computed like one at position 0,
// appends nothing to its cache, and ends no launch.
__device__ __forceinline__ bool is_present(const Launch& launch, int sequence) {
  return launch.positions[sequence] != kAbsent;
}
// Position of a sequence, advanced by the steps before this one.
__device__ __forceinline__ int sequence_position(const Launch& launch, int sequence, int further) {
  return is_present(launch, sequence) ? launch.positions[sequence] + further : 0;
}

}  // namespace amk
