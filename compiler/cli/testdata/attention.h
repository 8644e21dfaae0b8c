// Attention of a build: that of tensor cores, or the one without them.
#pragma once

#include "build.h"

#if AMK_TENSOR_CORES
#include "amk/attention_mma.cuh"
#else
#include "amk/attention_fma.cuh"
#endif

// The heads of all layers.
using H = amk::HeadSizes<amk::kHeads, amk::kKVHeads, amk::kHeadDim>;
