// The product of a stage for a pass of several tokens, on tensor cores: each weight that is read is
// multiplied by the activations of all tokens. The columns of a row are added up in the order of
// gemv_mma.cuh, whatever the number of tokens (docs/passes.md). Activations are in registers, those
// of a slab of columns at a time: where the columns are several slabs, the tiles of a flush go by
// once for each slab (stream.cuh copies them so). Needs schedule.h with AMK_TENSOR_CORES. Must not
// know what is done with a finished row.
#pragma once

#include "gemm_digits.cuh"
#include "gemv_mma.cuh"

namespace amk {

// The halves of a block's columns are two columns of an mma: column 2 * token + half. Sums are in
// the chains of a slab, one for each half of the columns of one or two quarters.
template <class E, int kOfChain>
struct TokenFragments<Elements<E>, kOfChain> : TokenSets, Fragments<Elements<E>, kOfChain> {
  // A slab's sums are whole rows', and are added to those of the slabs before.
  static constexpr bool kGoesOn = false;
  struct Vector {
    uint2 pairs[kQuarters] = {};
  };

  // The first of the four columns of block j of a quad whose activations a lane holds.
  __device__ __forceinline__ static int column(int j, int lane) {
    return j * 32 + (lane & 3) * 8 + ((lane >> 2) & 1) * 4;
  }

  struct Sums {
    static constexpr int kChains = kQuarters / kOfChain;
    float d[kSets][kChains][4] = {};

    template <class W>
    __device__ __forceinline__ void multiply(const W& w, const Vector (&x)[kSets]) {
#pragma unroll
      for (int i = 0; i < kOfChain; ++i) {
#pragma unroll
        for (int j = i; j < kQuarters; j += kOfChain) {
#pragma unroll
          for (int set = 0; set < kSets; ++set)
            mma_weights<WeightElement>(d[set][j / kOfChain], w.block[j], x[set].pairs[j]);
        }
      }
    }
    // What there was before, and the chains in the order of row_of_warp.
    __device__ __forceinline__ float total(int set, float before) const {
      const float(&of)[kChains][4] = d[set];
      if constexpr (kOfChain == 2) {
        return before + of[0][0] + of[0][3] + of[1][0] + of[1][3];
      } else {
        return before + ((of[0][0] + of[0][3] + (of[1][0] + of[1][3])) +
                         (of[2][0] + of[2][3] + (of[3][0] + of[3][3])));
      }
    }
  };
};

template <class S, class C, class Reader, class Finish>
__device__ __forceinline__ void gemm_mma(C& c, const Reader& in, Finish&& finish) {
  using Shape = GemvShape<S>;
  using F = TokenFragments<typename Shape::W, kChainQuarters<S>>;
  static_assert(!Reader::kResidual, "a vector that is published");
  static_assert(Shape::kGroups == 1 || Shape::kSlabs == 1, "groups of warps share no slabs");
  static_assert(kReadsHeld<S> == 0 || Shape::kSlabs == 1, "what was kept is read once");
  constexpr int kSubs = Shape::kSlabSubs;  // of a slab
  constexpr int kPeriod = round_up(kSubs, 2);
  constexpr int kSets = F::kSets, kBlocks = F::kQuarters;
  constexpr bool kChains = F::kGoesOn && Shape::kSlabs > 1;
  static_assert(!kChains || kConsumerWarps * kFlushTiles<S> * kSets * kChainBytes <= kDigitScratch,
                "the chains of a flush");
  const Tiles mine = tiles_of<S>(c.sm, c.layer);
  const int tiles = mine.count();
  const int group = c.warp / S::kWarps, member = c.warp % S::kWarps;

  u32 slot = c.slot, phase = c.phase;
  if constexpr (Shape::kGroups > 1) advance_slot(slot, phase, group * Shape::kChunks);

  // Of the quad of a sub in a slab: the first column, and whether this warp has one there.
  auto quad_of = [&](int slab, int sub) {
    const int chunk = slab * kSlabChunks<S> + sub / Shape::kChunkSubs;
    const int in_chunk = sub % Shape::kChunkSubs * S::kWarps + member;
    const int quad = chunk * Shape::kChunkQuads + in_chunk;
    return in_chunk < Shape::kChunkQuads ? quad : Shape::kQuads;
  };
  auto is_sub = [&](int slab, int sub) {
    return sub < kSubs && (Shape::kSlabs == 1 || slab * kSubs + sub < Shape::kSubs);
  };
  auto has = [&](int slab, int sub) {
    return is_sub(slab, sub) && (Shape::kEven || quad_of(slab, sub) < Shape::kQuads);
  };
  auto take = [&](typename F::Weights& w, int slab, int sub) {
    if (!is_sub(slab, sub)) return;
    if (sub % Shape::kChunkSubs == 0) wait_full(c, slot, phase);
    if (has(slab, sub)) {
      const int in_chunk = sub % Shape::kChunkSubs * S::kWarps + member;
      const bool cut = Shape::kLastQuadBlocks < Shape::kQuadBlocks &&
                       quad_of(slab, sub) == Shape::kQuads - 1;
      F::load(w, c.ring + slot * kSlotBytes + in_chunk * Shape::W::kQuadBytes, c.lane,
              cut ? Shape::kLastQuadBlocks : Shape::kQuadBlocks);
    }
    if (sub % Shape::kChunkSubs == Shape::kChunkSubs - 1 || !is_sub(slab, sub + 1)) {
      release(c, slot, Shape::kGroups);
      advance_slot(slot, phase);
    }
  };
  auto next_tile = [&] {
    if constexpr (Shape::kGroups > 1)
      advance_slot(slot, phase, (Shape::kGroups - 1) * Shape::kChunks);
  };

  // As in gemv_mma: weights are two quads ahead, over tiles and slabs.
  typename F::Weights w[2];
  auto begin_tile = [&](int slab) {
    take(w[0], slab, 0);
    if (kSubs > 1) take(w[1], slab, 1);
  };
  const bool works = group < tiles;
  if (Shape::kAhead && works) {
    begin_tile(0);
    lap(c, Did::kCompute);
  }
  begin_reading<S>(c);
  if (tiles > 0 || S::kEmpty) await(c);

  // The activations of a slab: as they are exchanged, or after a norm, until convert() has made
  // digits of them.
  typename F::Vector x[kSubs][kSets];
  // In a loop: unrolled, it would be thousands of instructions that run once per layer, three
  // cycles each. Registers cannot be indexed, so each turn takes the first quad and rotates all.
  auto convert = [&] {
    if constexpr (F::kGoesOn) {
#pragma unroll 1
      for (int turn = 0; turn < kSubs; ++turn) {
        typename F::Vector last[kSets];
#pragma unroll
        for (int set = 0; set < kSets; ++set) last[set] = F::vector(x[0][set].pairs, c.lane);
#pragma unroll
        for (int sub = 0; sub < kSubs; ++sub) {
#pragma unroll
          for (int set = 0; set < kSets; ++set)
            x[sub][set] = sub + 1 < kSubs ? x[sub + 1][set] : last[set];
        }
      }
    }
  };
  float squares[kSets][kBlocks] = {}, values[kSets][kBlocks] = {};  // sums of them
  // Reads a slab of all tokens, two quads at a time: their words are in flight together.
  auto read_slab = [&](int slab, bool first) {
    constexpr int kTokenWords = kSplitK<S> * S::kColumns, kOfSub = kSets * kBlocks;
    const u8* copy = page_copy(c, in.page);
    const int word = F::token(0, c.lane) * kTokenWords + part_of<S>(mine.begin) * S::kColumns +
                     (slab * kSlabChunks<S> * Shape::kChunkQuads + member) * kQuadColumns +
                     F::column(0, c.lane);
    each<ceil_div(kSubs, 2)>([&](auto pair) {
      constexpr int sub = pair * 2;
      if (!is_sub(slab, sub)) return;
      // The second of a pair is there if the first is, but where a slab or all have an odd number.
      auto there = [&](int i) {
        const int of = sub + i / kOfSub;
        return of < kSubs && (Shape::kSubs % 2 == 0 && kSubs % 2 == 0 || is_sub(slab, of)) &&
               (Shape::kEven || quad_of(slab, of) < Shape::kQuads) &&
               (S::kColumns % kQuadColumns == 0 ||
                quad_of(slab, of) * kQuadColumns + F::column(i % kBlocks, c.lane) < S::kColumns);
      };
      auto quads = placed_poll<2 * kOfSub>(
          copy, word,
          [&](int i) {
            const int of = sub + i / kOfSub;
            const int quad = of / Shape::kChunkSubs * Shape::kChunkQuads +
                             of % Shape::kChunkSubs * S::kWarps;
            return quad * kQuadColumns + F::column(i % kBlocks, 0) +
                   i / kBlocks % kSets * F::kSetTokens * kTokenWords;
          },
          [&](int i) {
            return there(i) && (kTokens % F::kSetTokens == 0 ||
                                F::token(i / kBlocks % kSets, c.lane) < kTokens);
          });
      [[maybe_unused]] uint2 gains[2][kBlocks] = {};
      if constexpr (Reader::kNorm) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
          for (int j = 0; j < kBlocks; ++j) {
            if (!there(i * kOfSub + j)) continue;
            const int quad = quad_of(slab, sub + i);
            gains[i][j] = load_constant_8(in.weight +
                                          (quad * kQuadColumns + F::column(j, c.lane)) * 2);
          }
        }
      }
      poll_all(c, quads);
#pragma unroll
      for (int i = 0; i < 2 * kOfSub; ++i) {
        const int of = sub + i / kOfSub, set = i / kBlocks % kSets, j = i % kBlocks;
        if (of >= kSubs) continue;
        uint2 four = quads.pairs(i);
        if constexpr (Reader::kNorm) {
          if (first) squares[set][j] += squares_of(four);
          const uint2 gain = gains[i / kOfSub][j];
          four = make_uint2(gained<Reader>(four.x, gain.x), gained<Reader>(four.y, gain.y));
        }
        if constexpr (Reader::kCentred) {
          if (first) {
            values[set][j] += sum_of(four);
            squares[set][j] += squares_of(four);
          }
        }
        x[of][set].pairs[j] = four;
      }
    });
    lap(c, Did::kExchangeWait);
    if constexpr (!Reader::kCentred) convert();
  };
  auto keep_sums = [&](float* to, int warp, const float (&of)[kSets][kBlocks]) {
#pragma unroll
    for (int set = 0; set < kSets; ++set) {
      const int token = F::token(set, c.lane);
      const float sum = F::sum_of_lanes(of[set]);
      if (c.lane % 8 == 0 && token < kTokens) to[token * kConsumerWarps + warp] = sum;
    }
  };
  // All groups have the same sums: one keeps them.
  auto keep_squares = [&] {
    if (group == 0) keep_sums(c.shared.squares[c.norms & 1], member, squares);
  };
  // Mean and variance of the lane's tokens, of which all slabs have been read: by the whole block,
  // as centre_of has it. Then what is multiplied of a slab.
  Centre centres[kSets];
  auto find_centres = [&] {
    if constexpr (Reader::kCentred) {
      keep_sums(c.shared.squares[0], c.warp, values);
      keep_sums(c.shared.squares[1], c.warp, squares);
      consumer_barrier();
#pragma unroll
      for (int set = 0; set < kSets; ++set) {
        const int token = min(F::token(set, c.lane), kTokens - 1);
        centres[set] = centre_of_warps<S>(c, in, group, token);
      }
    }
  };
  auto centre_slab = [&](int slab) {
    if constexpr (Reader::kCentred) {
#pragma unroll
      for (int sub = 0; sub < kSubs; ++sub) {
        bool inside[kBlocks];
        uint2 gain[kBlocks] = {}, shift[kBlocks] = {};
#pragma unroll
        for (int j = 0; j < kBlocks; ++j) {
          const int column = quad_of(slab, sub) * kQuadColumns + F::column(j, c.lane);
          inside[j] = has(slab, sub) && column < S::kColumns;
          if constexpr (Reader::kGain) {
            if (inside[j]) gain[j] = load_norm<S::kColumns>(in.weight, column);
          }
          if constexpr (Reader::kShift) {
            if (inside[j]) shift[j] = load_norm<S::kColumns>(in.bias, column);
          }
        }
#pragma unroll
        for (int set = 0; set < kSets; ++set) {
#pragma unroll
          for (int j = 0; j < kBlocks; ++j) {
            uint2& four = x[sub][set].pairs[j];
            four = inside[j] ? centred<Reader>(centres[set], four, gain[j], shift[j])
                             : make_uint2(0, 0);
          }
        }
      }
      convert();
    }
  };

  if constexpr (Shape::kSlabs == 1) {
    if (works || S::kEmpty && tiles == 0) read_slab(0, true);
    if (Reader::kNorm && works) keep_squares();
    if (Reader::kCentred && tiles > 0) {
      find_centres();
      centre_slab(0);
    }
  } else if (S::kEmpty && tiles == 0) {
#pragma unroll 1
    for (int slab = 0; slab < Shape::kSlabs; ++slab) read_slab(slab, false);
  } else if (Reader::kCentred && tiles > 0) {
#pragma unroll 1
    for (int slab = 0; slab < Shape::kSlabs; ++slab) read_slab(slab, true);
    find_centres();
  }
  end_reading<S>(c);
  if (!Shape::kAhead && works) begin_tile(0);
#pragma unroll 1
  for (int first = 0; first < tiles; first += kTilesPerFlush) {
    const int in_flush = min(kTilesPerFlush, tiles - first);
    const bool more_flushes = Shape::kAhead && first + kTilesPerFlush + group < tiles;
#pragma unroll 1
    for (int slab = 0; slab < Shape::kSlabs; ++slab) {
      if constexpr (Shape::kSlabs > 1) {
        if (slab > 0) lap(c, Did::kCompute);
        read_slab(slab, Reader::kNorm && first == 0);
        centre_slab(slab);
        if (Reader::kNorm && first == 0 && slab == Shape::kSlabs - 1) keep_squares();
      }
#pragma unroll 1
      for (int i = group; i < in_flush; i += Shape::kGroups) {
        const bool same = i + Shape::kGroups < in_flush;
        const bool more = same || slab + 1 < Shape::kSlabs || more_flushes;
        const int next_slab = same ? slab : slab + 1 < Shape::kSlabs ? slab + 1 : 0;
        typename F::Sums sums;
        // The chains of quantised matrices go on from slab to slab.
        u8* const chains = c.shared.digits + (c.warp * kFlushTiles<S> + i) * kSets * kChainBytes;
        if constexpr (kChains) {
          if (slab > 0) sums.recall(chains, c.lane);
        }
#pragma unroll
        for (int sub = 0; sub < kPeriod; ++sub) {
          if (sub < kSubs && has(slab, sub)) sums.multiply(w[sub % 2], x[sub]);
          const int ahead = sub + 2;
          if (ahead < kSubs) {
            take(w[sub % 2], slab, ahead);
          } else if (ahead >= kPeriod && ahead - kPeriod < kSubs && more) {
            if (ahead == kPeriod) next_tile();
            take(w[sub % 2], next_slab, ahead - kPeriod);
          }
        }
        if constexpr (kChains) {
          if (slab + 1 < Shape::kSlabs) {
            sums.keep(chains, c.lane);
            continue;
          }
        }
#pragma unroll
        for (int set = 0; set < kSets; ++set) {
          const int token = F::summed(set, c.lane);
          float* kept = &c.shared.partial[c.flush & 1][member][token * kTokenSums + i * kTileRows +
                                                              c.lane / 4];
          if (token >= kTokens) continue;
          if constexpr (F::kGoesOn) *kept = sums.total(set);
          else *kept = sums.total(set, slab == 0 ? 0.0f : *kept);
        }
      }
    }
    flush_tiles<S>(c, in, mine, first, in_flush, finish);
    if constexpr (!Shape::kAhead) {
      if (first + kTilesPerFlush + group < tiles) {
        next_tile();
        begin_tile(0);
      }
    }
  }
  if (Reader::kNorm && tiles > 0) ++c.norms;
  advance_slot(c.slot, c.phase, tiles * Shape::kChunks);
  end_stage<S>(c, tiles > 0 || S::kEmpty);
}

}  // namespace amk
