// The product of a stage for a pass of several tokens on the ordinary floating-point units: a lane
// multiplies each weight that it reads by the activations of all tokens. The columns of a row are
// added up in the order of gemv_fma.cuh, whatever the number of tokens. Activations of all tokens
// are in shared memory, a slab of columns at a time: where the columns are several slabs, the tiles
// of a flush go by once for each (stream.cuh copies them so), and what lanes have added up is kept
// there too. Needs schedule.h. Must not know what is done with a finished row.
#pragma once

#include "gemv_fma.cuh"

namespace amk {

// How the columns of a stage are cut into slabs, and how many of a token's are kept at a time.
template <class S>
struct PlainSlabs {
  using W = Matrix<S>;
  static constexpr int kBlocks = ceil_div(S::kColumns, W::kBlockColumns);
  static constexpr int kChunkBlocks = kChunkBytes<S> / W::kBlockBytes;
  static constexpr int kChunks = ceil_div(kBlocks, kChunkBlocks);
  static constexpr int kSlabs = ceil_div(kChunks, kSlabChunks<S>);
  static constexpr int kSlabColumns = kSlabChunks<S> * kChunkBlocks * W::kBlockColumns;
  static constexpr int kAll = round_up(S::kColumns, 32);
  static constexpr int kKept = kAll < kSlabColumns ? kAll : kSlabColumns;
  // Sums of lanes, of the tiles of a flush and all tokens, after the slab.
  static constexpr int kSums = kSlabs > 1 ? kConsumers * kFlushTiles<S> * kTokens : 0;
  static_assert(kTokens * kKept * sizeof(Activation) + kSums * sizeof(float) <=
                    kVectorScratch * sizeof(Activation),
                "a slab of all tokens, and the sums, fit their scratch");
};

template <class S, class C, class Reader, class Finish>
__device__ __forceinline__ void gemm_fma(C& c, const Reader& in, Finish&& finish) {
  using Slabs = PlainSlabs<S>;
  using W = typename Slabs::W;
  constexpr int kSlabs = Slabs::kSlabs, kKept = Slabs::kKept;
  constexpr int kBatch = 8;  // words a thread polls together
  static_assert(!Reader::kResidual, "a vector that is published");
  const Tiles mine = tiles_of<S>(c.sm, c.layer);
  const int tiles = mine.count();
  const bool works = tiles > 0 || S::kEmpty;
  begin_reading<S>(c);
  if (works) await(c);
  const u32 epoch = c.epoch;  // of the vectors, which later slabs read when others are due
  end_reading<S>(c);

  // Gives take(column, x) what this thread has of a token's columns from `begin` on and below
  // `end`, in their order: each kConsumers-th one, the same of all tokens and slabs. Beyond the
  // vector it is 0.
  auto read = [&](int token, int begin, int end, auto&& take) {
    constexpr int kTokenWords = kSplitK<S> * S::kColumns;
    const int before = token * kTokenWords + part_of<S>(mine.begin) * S::kColumns;
    const int own = begin + (c.tid + kConsumers - begin % kConsumers) % kConsumers;
    const u32 next = c.epoch;
    c.epoch = epoch;
#pragma unroll 1
    for (int first = own; first < end; first += kConsumers * kBatch) {
      auto words = word_poll<Element, kBatch>(page_copy(c, in.page), [=](int i) {
        const int column = first + i * kConsumers;
        return column < end && column < S::kColumns ? before + column : -1;
      });
      poll_all(c, words);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int column = first + i * kConsumers;
        if (column < end) take(column, words.value(i));
      }
    }
    c.epoch = next;
  };
  // Sums over the block of what threads have of each token, through a row of shared.squares.
  auto sums_over_block = [&](int by, float (&of)[kTokens]) {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      float v = of[token];
#pragma unroll
      for (int offset = 16; offset; offset >>= 1) v += shuffle_xor(v, offset);
      if (c.lane == 0) c.shared.squares[by][token * kConsumerWarps + c.warp] = v;
    }
    consumer_barrier();
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      of[token] = 0;
#pragma unroll
      for (int w = 0; w < kConsumerWarps; ++w)
        of[token] += c.shared.squares[by][token * kConsumerWarps + w];
    }
  };

  // Of a norm that takes the mean off: what it takes off, and what the rest is multiplied by.
  float mean[kTokens] = {}, inverse[kTokens] = {};
  if constexpr (Reader::kCentred) {
    if (works) {
#pragma unroll
      for (int token = 0; token < kTokens; ++token)
        read(token, 0, Slabs::kAll, [&](int, float x) { mean[token] += x; });
      sums_over_block(0, mean);
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        mean[token] = mean_of_sum<S>(mean[token]);
        read(token, 0, S::kColumns, [&](int, float x) {
          x -= mean[token];
          inverse[token] = fmaf(x, x, inverse[token]);
        });
      }
      sums_over_block(1, inverse);
#pragma unroll
      for (int token = 0; token < kTokens; ++token)
        inverse[token] = inverse_deviation<S>(in, inverse[token]);
    }
  }

  float squares[kTokens] = {};
  // Reads a slab of all tokens; for a norm it is looked at for the first time, or not.
  auto read_slab = [&](int slab, bool first) {
    const int begin = slab * Slabs::kSlabColumns, end = min(Slabs::kAll, begin + kKept);
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      Activation* const kept = c.shared.vector + token * kKept - begin;
      read(token, begin, end, [&](int column, float x) {
        const bool inside = column < S::kColumns;
        if constexpr (Reader::kNorm) {
          if (first) squares[token] = fmaf(x, x, squares[token]);
          if (inside) x = normed(in, x, column);
        }
        if constexpr (Reader::kCentred) {
          if (inside) x = centred_element(in, x, mean[token], inverse[token], column);
        }
        store_activation<Element>(kept + column, x);
      });
    }
    if (Reader::kNorm && first && slab == kSlabs - 1) {
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        float v = squares[token];
#pragma unroll
        for (int offset = 16; offset; offset >>= 1) v += shuffle_xor(v, offset);
        if (c.lane == 0)
          c.shared.squares[c.norms & 1][token * kConsumerWarps + c.warp] = v;
      }
    }
    consumer_barrier();
    lap(c, Did::kExchangeWait);
  };

  if (S::kEmpty && tiles == 0) {
#pragma unroll 1
    for (int slab = 0; slab < kSlabs; ++slab) {
      if (slab > 0) consumer_barrier();
      read_slab(slab, false);
    }
  }
#pragma unroll 1
  for (int first = 0; first < tiles; first += kTilesPerFlush) {
    const int in_flush = min(kTilesPerFlush, tiles - first);
#pragma unroll 1
    for (int slab = 0; slab < kSlabs; ++slab) {
      if (slab > 0) {
        consumer_barrier();  // all are done with the slab before
        lap(c, Did::kCompute);
      }
      if (kSlabs > 1 || first == 0) read_slab(slab, first == 0);
      const int chunks = min(kSlabChunks<S>, Slabs::kChunks - slab * kSlabChunks<S>);
#pragma unroll 1
      for (int i = 0; i < in_flush; ++i) {
        // What this lane has added up of the slabs before, of each token.
        float* const before = reinterpret_cast<float*>(c.shared.vector + kTokens * kKept) +
                              (c.warp * kFlushTiles<S> + i) * kTokens * 32 + c.lane;
        float sums[kTokens] = {};
        if (slab > 0) {
#pragma unroll
          for (int token = 0; token < kTokens; ++token) sums[token] = before[token * 32];
        }
#pragma unroll 1
        for (int chunk = 0; chunk < chunks; ++chunk) {
          wait_full(c, c.slot, c.phase);
          const u8* source = c.ring + c.slot * kSlotBytes;
          const int in_slab = chunk * Slabs::kChunkBlocks;  // blocks
          const int blocks = min(Slabs::kChunkBlocks,
                                 Slabs::kBlocks - slab * kSlabChunks<S> * Slabs::kChunkBlocks -
                                     in_slab);
#pragma unroll 1
          for (int b = c.warp; b < blocks; b += kConsumerWarps) {
            const u8* block = source + b * W::kBlockBytes;
            const int column = (in_slab + b) * W::kBlockColumns;  // of the slab
            if constexpr (W::kQuantised) {
#pragma unroll
              for (int token = 0; token < kTokens; ++token) {
                const Activation* const x = c.shared.vector + token * kKept;
                sums[token] = add_block<W>(sums[token], block, c.lane, [&](int in_block) {
                  const int at = column + in_block;
                  return slab * Slabs::kSlabColumns + at < S::kColumns
                             ? load_activation<Element>(x + at)
                             : 0.0f;
                });
              }
            } else {
              const EightWeights<typename W::Element> weights(block, c.lane);
#pragma unroll
              for (int token = 0; token < kTokens; ++token) {
                const Activation* const x =
                    c.shared.vector + token * kKept + column + (c.lane & 3) * 8;
                sums[token] += weights.times(load_four<Element>(x), load_four<Element>(x + 4));
              }
            }
          }
          release(c, c.slot, 1);
          advance_slot(c.slot, c.phase);
        }
#pragma unroll
        for (int token = 0; token < kTokens; ++token) {
          if (slab + 1 < kSlabs) before[token * 32] = sums[token];
          else keep_token(c, token, i, sums[token]);
        }
      }
    }
    flush_tiles<AllWarps<S>>(c, in, mine, first, in_flush, finish);
  }
  if (Reader::kNorm && tiles > 0) ++c.norms;
  end_stage<S>(c, works);
}

}  // namespace amk
