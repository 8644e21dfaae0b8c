// A product whose rows are sums over one matrix of an expert per warp: each warp multiplies its
// matrix by that matrix's part of the vector. In gemv_mma.cuh all warps share each matrix, a warp
// has at most one quad of it, and the flush adds up the warps' sums. Here a warp adds up the quads
// of its matrix in that same order, so the bits are the same. Needs schedule.h with
// AMK_TENSOR_CORES. Must not know what is done with a finished row.
#pragma once

#include "fragments.cuh"
#include "fragments_e4m3.cuh"
#include "ring.cuh"
#include "stage.cuh"
#include "weights.cuh"

namespace amk {

template <class S, class C, class Reader, class Finish>
__device__ __forceinline__ void gemv_matrices(C& c, const Reader& in, Finish&& finish, int token) {
  using W = Matrix<S>;
  using F = Fragments<W>;
  static_assert(!Reader::kNorm && !Reader::kCentred && !Reader::kResidual, "what up has published");
  constexpr int kQuads = ceil_div(int(S::kColumns), kQuadColumns);
  constexpr int kQuadBlocks = kQuadColumns / W::kBlockColumns;
  constexpr int kLastBlocks =
      ceil_div(int(S::kColumns), W::kBlockColumns) - (kQuads - 1) * kQuadBlocks;
  constexpr int kChunks = kSummed<S> / kChunkMatrices<S>;  // of a tile
  const Tiles mine = tiles_of<S>(c.sm, c.layer);
  const int tiles = mine.count();
  const bool streams = !kTokenByToken<S> || has_experts(c.launch, token);
  u32 slot = c.slot, phase = c.phase;

  // Takes this warp's part of the next tile. Every warp waits for each chunk, so that the phase of
  // a slot is known to be the one before or this one.
  typename F::Weights w[kQuads];
  auto take = [&] {
#pragma unroll 1
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      wait_full(c, slot, phase);
      if (chunk == c.warp / kChunkMatrices<S>) {
        const u8* const from = c.ring + slot * kSlotBytes +
                               c.warp % kChunkMatrices<S> * tile_bytes<W>(S::kColumns);
#pragma unroll
        for (int i = 0; i < kQuads; ++i)
          F::load(w[i], from + i * W::kQuadBytes, c.lane,
                  i == kQuads - 1 ? kLastBlocks : kQuadBlocks);
      }
      release(c, slot, 1);
      advance_slot(slot, phase);
    }
  };
  if (tiles > 0 && streams) {
    take();
    lap(c, Did::kCompute);
  }

  const int column0 = F::column(c.lane);
  uint2 x[kQuads] = {};
  begin_reading<S>(c);
  if (tiles > 0 || S::kEmpty) {
    await(c);
    auto further = [&](int i) {
      const int columns = i * kQuadColumns;
      const bool inside = S::kColumns % kQuadColumns == 0 || column0 + columns < S::kColumns;
      return inside ? columns : -1;
    };
    const int own = first_of_vector<S>(mine, token) + c.warp * S::kColumns + column0;
    auto quads = quad_poll<kQuads>(page_copy(c, in.page), further, own);
    if constexpr (C::kWaits && kFirstPoll > 0) {
      const u64 end = sm_clock() + kFirstPoll;
      while (sm_clock() < end) {}
    }
    poll_all(c, quads);
    lap(c, Did::kExchangeWait);
#pragma unroll
    for (int i = 0; i < kQuads; ++i) x[i] = quads.pairs(i);
  }
  end_reading<S>(c);
  warp_sync();
  typename F::Vector v[kQuads];
#pragma unroll
  for (int i = 0; i < kQuads; ++i) v[i] = F::vector(x[i], c.lane);

#pragma unroll 1
  for (int first = 0; first < tiles; first += kTilesAtOnce<S>) {
    const int in_flush = min(kTilesAtOnce<S>, tiles - first);
#pragma unroll 1
    for (int i = streams ? 0 : in_flush; i < in_flush; ++i) {
      float row = 0;
#pragma unroll
      for (int q = 0; q < kQuads; ++q) {
        typename F::Sum sum = {};
        F::add(sum, F::multiply(sum, w[q], v[q]), c.lane);
        row = row_of_warp(row, F::total(sum, c.lane));
      }
      if (first + i + 1 < tiles) take();
      keep_row<S>(c, c.warp, i, row);
    }
    flush_tiles<S>(c, in, mine, first, in_flush, finish, token);
  }
  if (streams) advance_slot(c.slot, c.phase, tiles * kChunks);
  if (is_last_token<S>(token)) end_stage<S>(c, tiles > 0 || S::kEmpty);
}

}  // namespace amk
