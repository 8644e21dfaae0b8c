// What the host hands to the kernel, and what a stalled SM leaves behind. Mirrored by the
// launcher's host packages: the layouts are asserted there and here. Must hold plain data only.
#pragma once

#include "platform.cuh"

namespace amk {

// Where an SM gave up waiting. One record per SM, written once.
struct Stall {
  u32 valid;     // 1 if this SM gave up itself, 2 if it followed another
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
  kLayer = 5
};

constexpr int kMaxSequences = 8;
constexpr int kAbsent = -1;  // position of a sequence that is not there
constexpr u32 kNotGiven = 0xffffffff;  // bits of an element of a trace that nothing is given for
constexpr int kNoToken = 0x7ffffffe;  // chosen where settings and logits leave no token to draw

// How the tokens of a sequence are chosen (sampling.cuh). Zeros choose the largest logit.
struct Sampling {
  double temperature;
  u64 seed;
};
static_assert(sizeof(Sampling) == 16, "the launcher builds this struct byte by byte");

// What is done to the logits of a sequence before that, and which tokens are left to choose from
// (choice.cuh). A pointer of null and the value in brackets change nothing.
struct Choice {
  const double* bias;   // [vocab] is added to logits
  const int* uses;      // [vocab] how often the output has an id; 0: the prompt has it; -1: neither
  const u64* allowed;   // a bit for each id, the others are never chosen
  const int* recent;    // [n_recent] ids of the output that `uses` does not count yet
  double repetition;    // of ids in prompt and output: divides what is above 0, multiplies the rest
  double frequency;     // is taken off the logits of ids of the output, for each time (0)
  double presence;      // is taken off them once (0)
  double rest;          // the share of the least probable tokens that are left out: 1 - top-p (0)
  double min_p;         // ids less than min_p times as probable as the first are left out (0)
  int top_k;            // this many are left, and those equal to the last (0)
  int n_recent;
  int counts;  // 1: what the steps of this launch decode after the first token is of the output
  int set;     // 0: the sequence has none of these
};
static_assert(sizeof(Choice) == 88, "the launcher builds this struct byte by byte");

// Where all SMs find together which tokens are left (search.cuh). Zero before a launch.
constexpr int kMaxTokens = 8;  // of a step
constexpr int kBins = 256;
struct Tally {
  u64 largest;  // score of a token, in order
  u64 reserved;
  u64 amount[kBins];
  u32 count[kBins];
};
struct Rounds {
  u32 joined;  // SMs that have ended a round, of all rounds
  u32 reserved[15];
  Tally of[3][kMaxTokens];  // rounds take turns
};
static_assert(sizeof(Rounds) == 64 + 3 * 8 * 3088, "the launcher makes room for it");

// Arguments of one launch. Pointers are device addresses; null where the feature is off.
struct Launch {
  const u8* weights;   // the data section of weights.safetensors
  u8* cache;           // KV cache, kCacheBytes; of several sequences, one after another
  u8* exchange;        // exchange pages, kExchangeBytes, zero before the first launch
  float* logits;       // [tokens of the pass][vocab] of each step, or null
  union {
    float* trace;      // [steps][kExchangesPerStep][kTraceStride], only in amk_trace
    u8* profile;       // where spans are recorded (profile.cuh), only in amk_profile
  };
  const int* forced;   // [steps] token to decode at each step, or -1: the token before; or null
  u32* tokens;         // [steps] token chosen at each step, device memory; or null
  u32* host_tokens;    // [steps] the same plus one, in pinned host memory, or null
  const u32* abort;    // pinned host word: not 0 means abort
  u32* abort_device;   // device word through which SMs tell each other
  Stall* stalls;       // [SMs]
  const int* stop_ids; // [n_stop] a chosen token among these ends the launch
  const Sampling* sampling;  // [sequences] how tokens are chosen, with logits; or null: the largest
  const Choice* choices;     // [sequences] more of that, with settings; or null: none has any
  Rounds* rounds;            // or null: no choice leaves tokens out by their probability
  const float* embeddings;  // [steps][tokens][hidden] what tokens of kGiven enter as, or null
  float* hidden;       // [steps][tokens][hidden] the last hidden state of each, or null
  u64 spin_limit_ns;   // a wait longer than this is a stall
  u64 first_epoch;     // steps done since the exchange pages were cleared
  int steps;
  int position;        // of the first step; 0 with several sequences
  int token;           // of the first step, unless forced
  int n_stop;
  int logit_stride;    // tokens from the logits of a step to the next; 0: they take the same place
  int reserved;
  int positions[kMaxSequences];  // of several sequences in the first step, or kAbsent
};
static_assert(sizeof(Launch) == 8 * 19 + 4 * (6 + kMaxSequences),
              "the launcher builds this struct byte by byte");
static_assert(sizeof(Stall) == 32, "the launcher reads this struct byte by byte");

// Whether a sequence of a pass of several is there. One that is not is computed like one at
// position 0, appends nothing to its cache, and ends no launch.
__device__ __forceinline__ bool is_present(const Launch& launch, int sequence) {
  return launch.positions[sequence] != kAbsent;
}
// Position of a sequence, which steps before this one have taken so much further.
__device__ __forceinline__ int sequence_position(const Launch& launch, int sequence, int further) {
  return is_present(launch, sequence) ? launch.positions[sequence] + further : 0;
}

}  // namespace amk
