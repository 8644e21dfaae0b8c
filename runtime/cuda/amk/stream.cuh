// What is copied for a stage: its tiles' weights, or its units' cache rows, in the order in which the consumers take them.
// Sink is the producer, or the prefetcher that walks ahead of it. Needs schedule.h. Must not know the order of the stages:
// that is the generated kernel's.
#pragma once

#include "attention.cuh"

namespace amk {

// Weights of the tiles of S that this SM owns in a layer. Each tile starts a chunk.
template <class S, class Sink>
__device__ __forceinline__ void stream_weights(Sink& p, const u8* weights, int layer) {
  constexpr int kTileBytes = kTileRows * round_up(S::kColumns, 32) * Element::kBytes;
  const Tiles mine = tiles_of<S>(p.c.sm, layer);
  const u8* source = weights + size_t(mine.begin) * kTileBytes;
#pragma unroll 1
  for (int tile = mine.begin; tile < mine.end; ++tile) {
#pragma unroll 1
    for (int at = 0; at < kTileBytes; at += kSlotBytes) {
      p.copy(source, min(kSlotBytes, kTileBytes - at));
      source += min(kSlotBytes, kTileBytes - at);
    }
  }
}

// Cache rows below the position of the units of S that this SM owns in a layer. The first of a step waits for the end of the
// step before, which wrote them; weights that are streamed until then do not. cache is the layer's number in the cache arena.
template <class S, class Sink>
__device__ __forceinline__ void stream_cache(Sink& p, int layer, int step, int position, int cache) {
  const Tiles mine = units_of<S>(p.c.sm, layer);
#pragma unroll 1
  for (int unit = mine.begin; unit < mine.end; ++unit) {
    const Unit<S> u{unit, position};
    const u8* head = p.c.launch.cache + cache * kLayerCacheBytes + size_t(u.head()) * kHeadCacheBytes;
    const int chunks = u.chunks();
    if (chunks > 0) p.wait_step(step);
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      p.copy(head + size_t(u.first_row(chunk) / kCacheRows) * kCacheBlockBytes, ceil_div(u.rows(chunk), kCacheRows) * kCacheBlockBytes);
    }
  }
}

template <class S, class Sink>
__device__ __forceinline__ void stream_cache(Sink& p, int layer, int step, int position) {
  stream_cache<S>(p, layer, step, position, layer);
}

}  // namespace amk
