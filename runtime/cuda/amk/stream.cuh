// What is copied for a stage: its tiles' weights, or its units' cache rows, in the order in which
// the consumers take them. Sink is the producer, or the prefetcher that walks ahead of it. Needs
// schedule.h. Must not know the order of the stages: that is the generated kernel's.
#pragma once

#include "attention.cuh"
#include "weights.cuh"

namespace amk {

// A range of weights or of cache rows: `pieces` pieces at a distance of `stride` bytes, each of
// `bytes` bytes and the last of `last`. Each piece starts a chunk, which has at most `chunk` bytes.
// The first `skip` bytes of the first are left out.
struct Segment {
  const u8* source;
  int pieces = 0;
  int skip = 0;
  int bytes;
  int stride;
  int last;
  int chunk;
  int slab;  // bytes of a piece that are copied for all pieces of a flush before the rest
#if AMK_EXPERTS
  // Of weights of experts: each piece of a token is tile `tile` of its expert of rank `rank`, and
  // `source` is where those of expert 0 begin. The tiles of an expert follow one another, or the
  // ranks of a tile; then those of the next token.
  u32 layers = 0;  // that the launch has begun; 0: the weights are of no experts
  int rank, tile;
  int ranks, tiles;  // how many follow one another; the other is 0
  int together;      // pieces of a chunk, of as many ranks
  u32 expert;        // bytes of one
#endif
};

// Iterates over the stages of a walk. The body of the loop has one line per stage and runs once per
// stage; each time only one line, the one whose turn it is, sets what to copy. So the copying code,
// which is large, exists once instead of once per stage: it shares the instruction cache with the
// consumers' code for a whole layer.
struct Turns {
  int turn = 0;   // number of the line whose turn it is
  int lines = 1;  // as counted in the pass before
  int seen = 0;   // in this pass
  int unit = 0;   // of the line, which has a turn for each pass over its SM's units
  bool more = false;
  bool rows = false;  // whether rows are copied that the previous step wrote
  Segment next;

  __device__ __forceinline__ bool left() {
    if (turn >= lines) return false;
    seen = 0;
    more = rows = false;
    next.pieces = 0;
#if AMK_EXPERTS
    next.layers = 0;
#endif
    return true;
  }
  __device__ __forceinline__ bool now() { return seen++ == turn; }

  // Weights of the tiles of S that this SM owns in a layer.
  template <class S, class C>
  __device__ __forceinline__ void weights(C& c, const u8* first, int layer) {
    if (!now()) return;
    fills_for<S>(c, layer);
    using W = Matrix<S>;
    // Parts lie side by side in a tile. Those that are added are copied one after another.
    constexpr int kPartBytes = tile_bytes<W>(S::kColumns), kTileBytes = kPartBytes * kSplitK<S>;
    static_assert(kParts<S> == 1 || S::kColumns % W::kBlockColumns == 0, "parts of whole blocks");
    const Tiles mine = tiles_of<S>(c.sm, layer);
    next = {first + size_t(tile_in_part<S>(mine.begin)) * kTileBytes * kParts<S> +
                part_of<S>(mine.begin) * kPartBytes,
            mine.count() * kParts<S>,
            0,
            kPartBytes,
            kTileBytes,
            kPartBytes,
            kChunkBytes<S>,
            kSlabChunks<S> * kChunkBytes<S>};
  }

#if AMK_EXPERTS
  // Weights of the experts that are chosen, of the tiles of S that this SM owns in a layer.
  template <class S, class C>
  __device__ __forceinline__ void experts(C& c, const u8* first, int layer, int step) {
    if (!now()) return;
    fills_for<S>(c, layer);
    using W = Matrix<S>;
    constexpr int kTileBytes = tile_bytes<W>(S::kColumns);
    constexpr int kTiles = S::kRows / kSelected<S> / kTileRows;  // of an expert
    static_assert(S::kRows % (kSelected<S> * kTileRows) == 0, "no tile is of two experts");
    const Tiles mine = tiles_of<S>(c.sm, layer);
    next = {first, mine.count() * kSummed<S>, 0, kTileBytes, kTileBytes, kTileBytes,
            kChunkBytes<S>, kSlabChunks<S> * kChunkBytes<S>};
    next.layers = u32(step) * kLayers + u32(layer) + 1;
    next.rank = kSummed<S> > 1 ? 0 : mine.begin / kTiles;
    next.tile = kSummed<S> > 1 ? mine.begin : mine.begin % kTiles;
    next.ranks = kSummed<S> > 1 ? kSummed<S> : 0;
    next.tiles = kSummed<S> > 1 ? 0 : kTiles;
    next.together = kChunkMatrices<S>;
    static_assert(size_t(kTiles) * kTileBytes <= 0xffffffff, "bytes of an expert are an u32");
    next.expert = u32(kTiles) * kTileBytes;
  }
#endif

  // The visible cache rows below the position, of a unit of S that this SM owns in a layer. With
  // several sequences each has its own position. `cache` is the layer's number in the cache arena,
  // or the byte at which its cache begins.
  template <class S, class C, class Cache>
  __device__ __forceinline__ void cache(C& c, int layer, int position, Cache cache) {
    using H = HeadsOf<S>;
    if (!now()) return;
    fills_for<S>(c, layer);
    constexpr int kShareBytes = S::kShareRows / kCacheRows * H::kCacheBlockBytes;
    const Tiles mine = units_of<S>(c.sm, layer);
    if (unit >= mine.count() * kUnitPasses<S>) return;
    const int own = mine.begin + unit / kUnitPasses<S>;
    if constexpr (kSequences > 1)
      position = sequence_position(c.launch, Unit<S>::sequence_of_unit(own), position);
    const Unit<S> u{own, position};
    const int chunks = u.chunks();
    more = unit + 1 < mine.count() * kUnitPasses<S>;
    if (chunks <= 0) return;
    rows = true;
    const u8* head = c.launch.cache + cache_of(u, cache);
    next = {head + size_t(u.first_row(0) / kCacheRows) * H::kCacheBlockBytes,
            chunks,
            u.skipped(0) / kCacheRows * H::kCacheBlockBytes,
            kShareBytes,
            kShareBytes * S::kSplits,
            ceil_div(u.skipped(chunks - 1) + u.rows(chunks - 1), kCacheRows) * H::kCacheBlockBytes,
            kShareBytes,
            kShareBytes};
  }
  template <class S, class C>
  __device__ __forceinline__ void cache(C& c, int layer, int position) {
    this->cache<S>(c, layer, position, layer);
  }

  // Copies what the line has set. The first rows of a step wait for the end of the previous step,
  // which wrote them; weights that are streamed before them do not.
  template <class Sink>
  __device__ __forceinline__ void copy(Sink& p, int step) {
    fills_in(p.c, step);
    if (rows) p.wait_step(step);
#if AMK_EXPERTS
    if (next.layers > 0 && next.pieces > 0) {
      chosen(p);
      next.pieces = 0;
    }
#endif
    if constexpr (kTokens > 1) {
#pragma unroll 1
      for (int i = 0; i < next.pieces; i += kTilesPerFlush) {
#pragma unroll 1
        for (int from = 0; from < next.bytes; from += next.slab)
          pieces(p, i, min(i + kTilesPerFlush, next.pieces), from, from + next.slab);
      }
    } else {
      pieces(p, 0, next.pieces, 0, next.bytes);
    }
    lines = seen;
    unit = more ? unit + 1 : 0;
    turn += more ? 0 : 1;
  }

 private:
#if AMK_EXPERTS
  // Copies the pieces of experts. Which bytes they are is known when the SM's router has chosen.
  template <class Sink>
  __device__ __forceinline__ void chosen(Sink& p) {
    if constexpr (!Sink::kSelects) {
      for (int token = 0; token < kTokens; ++token) {
        if (has_experts(p.c.launch, token))
          p.skip(u32(next.pieces / next.together * ceil_div(next.bytes, next.chunk)));
      }
    } else {
      p.wait_choice(next.layers);
#pragma unroll 1
      for (int token = 0; token < kTokens; ++token) {
        if (!has_experts(p.c.launch, token)) continue;
        int rank = next.rank, tile = next.tile;
#pragma unroll 1
        for (int left = next.pieces; left > 0 && !p.stopped; left -= next.together) {
          const u8* const first = next.source + u64(u32(tile)) * u32(next.stride);
          const u8* parts[kMostChunkMatrices];  // looked up before they are announced
#pragma unroll
          for (int i = 0; i < kMostChunkMatrices; ++i) {
            if (i > 0 && i >= next.together) break;
            parts[i] = first + u64(u32(p.expert(next.layers, token, rank + i))) * next.expert;
          }
#pragma unroll 1
          for (int at = 0; at < next.bytes; at += next.chunk) {
            p.copy_chosen(parts, min(next.chunk, next.bytes - at), next.together);
            parts[0] += next.chunk;
          }
          if (next.ranks > 0) {
            if ((rank += next.together) == next.ranks) rank = 0, ++tile;
          } else {
            if (++tile == next.tiles) tile = 0, ++rank;
          }
        }
      }
    }
  }
#endif

  // Copies, of pieces `begin` to `end`, what is between two of their bytes.
  template <class Sink>
  __device__ __forceinline__ void pieces(Sink& p, int begin, int end, int from, int to) {
    const u8* source = next.source + begin * size_t(next.stride);
#pragma unroll 1
    for (int i = begin; i < end; ++i, source += next.stride) {
      const int bytes = min(to, i + 1 < next.pieces ? next.bytes : next.last);
#pragma unroll 1
      for (int at = i == 0 && from == 0 ? next.skip : from; at < bytes; at += next.chunk)
        p.copy(source + at, min(next.chunk, bytes - at));
    }
  }
};

}  // namespace amk
