// Attention of a build: that of tensor cores, or the one without them.
#pragma once

#include "build.h"

#if AMK_TENSOR_CORES
#include "amk/attention_mma.cuh"
#else
#include "amk/attention_fma.cuh"
#endif
