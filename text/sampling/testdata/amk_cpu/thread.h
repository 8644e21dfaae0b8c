// What sampling.cuh has of CUDA, for the CPU.
#pragma once

#include <math.h>
#include <string.h>

#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
struct uint4 { unsigned x, y, z, w; };
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
