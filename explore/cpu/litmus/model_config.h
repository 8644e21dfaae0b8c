// What a litmus test gives instead of a build's model_config.h.
#pragma once

#include "amk/element.cuh"

namespace amk {

using WeightElement = Bf16;
using Element = Bf16;
using CacheElement = Bf16;

constexpr int kLayers = 1;
constexpr int kHidden = 16;
constexpr int kExperts = 3;
constexpr int kIntermediate = 16;
constexpr int kHeads = 1;
constexpr int kKVHeads = 1;
constexpr int kHeadDim = 16;
constexpr int kVocab = 16;
constexpr int kMaxSeq = 64;
constexpr bool kCacheFragments = false;

}  // namespace amk
