// What a host needs to know about a compiled kernel, as one constant in the fatbin: the host reads
// it instead of guessing. Needs schedule.h, model_config.h and pages.h. Mirrored by the launcher's
// host packages.
#pragma once

#include "platform.cuh"

namespace amk {

constexpr int kMaxVariants = 8;

struct Info {
  u32 abi;
  u32 sms;
  u32 threads;
  u32 shared_bytes;        // dynamic, per block
  u32 exchange_bytes;
  u32 exchanges_per_step;
  u32 trace_stride;        // floats
  u32 vocab;
  u32 max_seq;
  u32 layers;
  u32 hidden;
  u32 element_bytes;
  u32 variants;
  u32 flagged;
  u64 weight_bytes;
  u64 cache_bytes;
  u32 variant_end[kMaxVariants];  // first position past each variant
  u32 tokens;                     // of a pass, which a step decodes
  u32 sequences;                  // number of sequences they belong to, each with as many
  u32 model;                      // digest of model_config.h
  u32 cache_fragments;            // cache blocks are in fragment order
};
static_assert(sizeof(Info) == 14 * 4 + 2 * 8 + kMaxVariants * 4 + 4 * 4,
              "the host reads this struct byte by byte");

}  // namespace amk
