#include "amk/fixture.cuh"

namespace amk {

template <class C>
__device__ __forceinline__ void consume(C& c) {
  for (int step = 0;; ++step) {
    c.begin_step(step);
    // amkc:consume
    c.enter(kStageEmbed);
    embed<Embed>(c, weights, kX);
#pragma unroll 1
    for (c.layer = 0; c.layer < kLayers; ++c.layer) {
      const u8* base = weights + c.layer * kLayerBytes;
      c.enter(kStageQkv);
      qkv_stage(c, kX, base);
      c.enter(kStageO);
      o_stage(c, kAttn, base);
    }
    const Best best = lm_head_stage(c, kX);
    publish_best<LmHead>(c, best);
    join_step(c);
    if (stopped(c)) break;
    // amkc:end
  }
}

}  // namespace amk
