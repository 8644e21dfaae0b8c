// What a litmus test gives instead of a build's schedule.h: two or three SMs, a ring of two
// slots, and as little else as the device runtime lets there be.
#pragma once

// What a test may want otherwise.
#ifndef LITMUS_SMS
#define LITMUS_SMS 2
#endif
#ifndef LITMUS_TOKENS
#define LITMUS_TOKENS 1
#endif
#ifndef LITMUS_FLAGGED
#define LITMUS_FLAGGED true
#endif
#ifdef LITMUS_RANKS
#define AMK_RANKS 1
#endif
#ifndef LITMUS_RUN_AHEAD
#define LITMUS_RUN_AHEAD 0
#endif
#ifndef AMK_BULK_COPY
#define AMK_BULK_COPY 1
#endif
#ifndef AMK_ASYNC_COPY
#define AMK_ASYNC_COPY 1
#endif
#ifndef AMK_TENSOR_CORES
#define AMK_TENSOR_CORES 1
#endif

#include "amk/platform.cuh"

namespace amk {

constexpr int kSMs = LITMUS_SMS;
#ifdef LITMUS_RANKS
constexpr int kGPUs = LITMUS_RANKS;
#endif
constexpr int kTokens = LITMUS_TOKENS;
constexpr int kSequences = 1;
constexpr int kSlotBytes = 4096;
constexpr unsigned kSharedLimit = LITMUS_TOKENS > 1 ? 21000 : 29000;  // two slots and the scratch
constexpr unsigned kMaxRingSlots = 2;
constexpr unsigned kInFlight = 2;
constexpr unsigned kRunAhead = LITMUS_RUN_AHEAD;
constexpr unsigned kPace = 0;
constexpr unsigned kStock = 0;
constexpr unsigned kInFlightStocked = 1;
constexpr unsigned kFirstPoll = 0;

constexpr bool kFlagged = LITMUS_FLAGGED;
constexpr int kExchangesPerStep = 4;
constexpr unsigned kCounterOffset = 4096;
constexpr unsigned kExchangeBytes = 4352;
constexpr int kTraceStride = 64;
constexpr int kBarriersPerStep = 2;

constexpr int kResidualRows = 8;
constexpr int kAngleTables = 1;
constexpr int kBranchParts = 1;

constexpr int kAttentionHeads = 1;
constexpr int kAttentionOwn = 1;
constexpr int kAttentionScratch = 8 * kAttentionHeads * 20;
constexpr int kUnitScratch = 16;
constexpr int kDigitScratch = 16;
constexpr int kVectorScratch = 4;
#if AMK_EXPERTS
constexpr int kMostChosen = 2;
constexpr int kScratchBytes = LITMUS_TOKENS > 1 ? 9680 : 17520;  // that of several tokens is compact
#else
constexpr int kScratchBytes = 17488;
#endif

}  // namespace amk
