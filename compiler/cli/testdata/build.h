// The headers of a build, for a block on the CPU, with its shared memory and what a kernel is launched with.
#pragma once

#include "block.h"

#include "schedule.h"
#include "model_config.h"
#include "pages.h"

#include "amk/step.cuh"

namespace amk {
alignas(1024) u8 shared[kSharedLimit];
}
using namespace amk;

static Launch launch;
static int sm;  // whose block runs
