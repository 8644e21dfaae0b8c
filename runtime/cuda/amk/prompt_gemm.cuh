// The product of a stage for all tokens of a prompt's pass, on tensor cores. A block has 128 rows
// by 64 tokens at a time, each of its warps 16 rows. Weights come from L2 straight into registers,
// a quarter of the columns of a slab ahead; the operand comes through shared memory, several stages
// ahead. The columns of a row are added up in the order of a step (gemv_mma.cuh): a warp takes, one
// after the other, what the warps of a step take side by side. Needs schedule.h with
// AMK_TENSOR_CORES and AMK_ASYNC_COPY.
#pragma once

#include "prompt_vector.cuh"

namespace amk {

constexpr int kPromptRows = kConsumerWarps * 16;  // that a block multiplies at once
// Finished sums of a warp: of each token its 16 rows, and one more that keeps banks apart.
constexpr int kResultStride = 17;
constexpr int kResultBytes = kConsumerWarps * kTokenTile * kResultStride * 4;

// How operands pass through shared memory: in stages of whole parts.
template <class S>
struct PromptRing {
  using Shape = PromptShape<S>;
  static constexpr int kBytes = Shape::kStageParts * Shape::kPartBytes;
  static constexpr int kSteps = Shape::kTileParts / Shape::kStageParts;
  static constexpr int kFit = (kPromptRing - kResultBytes) / kBytes;
  static constexpr int kStages = kFit < 4 ? kFit : 4;  // more were not measured
  static_assert(kStages >= 2, "two stages fit");
};

// A block's stages of an operand, on their way through shared memory. All threads of the block take
// the next one together.
template <class S>
struct Operands {
  using Ring = PromptRing<S>;
  u8* ring;
  const u8* from;
  int tid;
  int step = 0;

  __device__ __forceinline__ Operands(Prompt& c, const u8* operand)
      : ring(c.ring), from(operand), tid(c.tid) {
#pragma unroll
    for (int i = 0; i < Ring::kStages - 1; ++i) fetch(i);
  }
  // The next stage is there, and all are done with the one before.
  __device__ __forceinline__ const u8* next() {
    wait_copies<Ring::kStages - 2>();
    consumer_barrier();
    fetch(step + Ring::kStages - 1);
    return ring + step++ % Ring::kStages * Ring::kBytes;
  }
  __device__ __forceinline__ void done() {
    wait_copies<0>();
    consumer_barrier();
  }

 private:
  __device__ __forceinline__ void fetch(int number) {
    if (number < Ring::kSteps) {
      u8* to = ring + number % Ring::kStages * Ring::kBytes;
      const u8* at = from + size_t(number) * Ring::kBytes;
#pragma unroll
      for (int i = tid * 16; i < Ring::kBytes; i += kConsumers * 16) copy_async_16(to + i, at + i);
    }
    commit_copies();
  }
};

// A warp's sums of 16 rows by the tokens of a tile: 32 of each lane. In which order is its
// product's to say.
constexpr int kLaneSums = 16 * kTokenTile / 32;
using PromptSums = float[kLaneSums];

// A lane's weights of a block, as load_matrices has them.
__device__ __forceinline__ uint4 load_block(const u8* at) {
  constexpr int kMatrix = Elements<WeightElement>::kMatrixBytes;
  return make_uint4(load_weights_4(at), load_weights_4(at + 2 * kMatrix),
                    load_weights_4(at + kMatrix), load_weights_4(at + 3 * kMatrix));
}

// The weights of a warp in a part of a slab: of each block 8 rows, and 8 more.
template <class S>
struct SlabWeights {
  using Shape = PromptShape<S>;
  uint4 of[Shape::kSlabSubs][2];

  // tile: the first of the two tiles; `rows` tells of each whether it is there.
  __device__ __forceinline__ void load(const u8* tile, int stride, const bool (&there)[2],
                                       int member, int slab, int part, int lane) {
#pragma unroll
    for (int i = 0; i < Shape::kSlabSubs; ++i) {
      const int quad = Shape::quad_of(member, slab * Shape::kSlabSubs + Shape::sub_of(part, i));
      const int quarter = Shape::quarter_of(part, i);
      const bool inside =
          quad < Shape::kQuads - 1 || quad == Shape::kQuads - 1 && quarter < Shape::kLastQuadBlocks;
      const u8* at =
          tile + quad * Shape::W::kQuadBytes + quarter * Shape::W::kBlockBytes + lane * 4;
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        of[i][t] = make_uint4(0, 0, 0, 0);
        if (inside && there[t]) of[i][t] = load_block(at + t * stride);
      }
    }
  }
};

// The same as operands: those of the first half of each block's columns, and of the second. An
// operand is in four consecutive registers, and so is the result of a load: without an instruction
// between the two that the compiler cannot remove, it copies the registers again for every
// product. The xor is that instruction.
template <class S>
struct SlabOperands {
  using Shape = PromptShape<S>;
  uint4 low[Shape::kSlabSubs], high[Shape::kSlabSubs];

  __device__ __forceinline__ explicit SlabOperands(const SlabWeights<S>& w) {
    const u32 zero = opaque_zero();
#pragma unroll
    for (int i = 0; i < Shape::kSlabSubs; ++i) {
      const uint4 a = w.of[i][0], b = w.of[i][1];
      low[i] = make_uint4(a.x ^ zero, b.x ^ zero, a.z ^ zero, b.z ^ zero);
      high[i] = make_uint4(a.y ^ zero, b.y ^ zero, a.w ^ zero, b.w ^ zero);
    }
  }
};

// Adds a part of a slab to its two chains, one for each half of its columns.
template <class S>
__device__ __forceinline__ void part_sums(float (&low)[4], float (&high)[4],
                                          const SlabOperands<S>& w, const u8* operand, int member,
                                          int slab, int part) {
  using Shape = PromptShape<S>;
#pragma unroll
  for (int i = 0; i < Shape::kSlabSubs; ++i) {
    const int sub = slab * Shape::kSlabSubs + Shape::sub_of(part, i);
    if (Shape::quad_of(member, sub) == Shape::kQuads) continue;
    const uint4 x = *reinterpret_cast<const uint4*>(operand + i * Shape::kBlockBytes);
    const uint4 a = w.low[i], b = w.high[i];
    WeightElement::mma(low, a.x, a.y, a.z, a.w, x.x, x.y);
    WeightElement::mma(high, b.x, b.y, b.z, b.w, x.z, x.w);
  }
}

// The sums of a warp of a step, to which the chains of a part are added when they end: four sums of
// each. Chains of two quarters one after the other, and of one quarter as a flush adds them up.
template <class S>
struct MemberSums {
  static constexpr int kOfChain = kChainQuarters<S>, kPieces = kLaneSums / 4;
  // The chains of two quarters; or of a slab the first two quarters, and of these one.
  float a[kPieces][4], b[kPieces][4];

  // The chains of piece `piece` in a part.
  template <class Multiply>
  __device__ __forceinline__ void add(PromptSums& sums, int piece, int part, Multiply&& multiply) {
    float* const to = sums + piece * 4;
    if constexpr (kOfChain == 2) {
      float(&first)[4] = a[piece], (&second)[4] = b[piece];
      if (part % 2 == 0) {
#pragma unroll
        for (int k = 0; k < 4; ++k) first[k] = second[k] = 0;
      }
      multiply(first, second);
      if (part % 2 == 0) return;
#pragma unroll
      for (int k = 0; k < 4; ++k) to[k] = to[k] + first[k] + second[k];
    } else {
      float first[4] = {}, second[4] = {};
      multiply(first, second);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float of = first[k] + second[k];
        float &slab = a[piece][k], &pair = b[piece][k];
        pair = part % 2 == 0 ? of : pair + of;
        if (part == 1) slab = pair;
        if (part == 3) to[k] += slab + pair;
      }
    }
  }
};

// How elements as they are are multiplied.
template <class S>
struct ElementProduct {
  using Shape = PromptShape<S>;

  // Where a lane's n-th sum belongs: 16 rows by 8 tokens lie as an mma leaves them.
  __device__ static __forceinline__ int token(int n, int lane) {
    return n / 4 * 8 + lane % 4 * 2 + n % 2;
  }
  __device__ static __forceinline__ int row(int n, int lane) { return lane / 4 + n % 4 / 2 * 8; }

  // Multiplies 16 rows of a warp, two tiles of which the first is at `tile`, by the tokens of a
  // tile. `sums` begins at 0.
  __device__ static __forceinline__ void multiply(Prompt& c, const u8* tile, int stride,
                                                  const bool (&there)[2], const u8* operand,
                                                  PromptSums& sums) {
    SlabWeights<S> next;
    next.load(tile, stride, there, 0, 0, 0, c.lane);
    Operands<S> operands(c, operand);
    const u8* stage = nullptr;
#pragma unroll 1
    for (int member = 0; member < Shape::kMembers; ++member) {
      PromptSums of_member = {};
      MemberSums<S> chains;
#pragma unroll 1
      for (int slab = 0; slab < Shape::kSlabs; ++slab) {
#pragma unroll
        for (int part = 0; part < Shape::kQuarters; ++part) {
          if (part % Shape::kStageParts == 0) stage = operands.next();
          const SlabOperands<S> now(next);
          if (part + 1 < Shape::kQuarters) {
            next.load(tile, stride, there, member, slab, part + 1, c.lane);
          } else {
            const bool same = slab + 1 < Shape::kSlabs;
            const int after = same ? member : member + 1;
            if (after < Shape::kMembers)
              next.load(tile, stride, there, after, same ? slab + 1 : 0, 0, c.lane);
          }
          const u8* at = stage + part % Shape::kStageParts * Shape::kPartBytes + c.lane * 16;
#pragma unroll
          for (int piece = 0; piece < kLaneSums / 4; ++piece) {
            chains.add(of_member, piece, part, [&](float (&low)[4], float (&high)[4]) {
              part_sums<S>(low, high, now, at + piece * Shape::kRowBytes, member, slab, part);
            });
          }
        }
      }
#pragma unroll
      for (int k = 0; k < kLaneSums; ++k) sums[k] += of_member[k];
    }
    operands.done();
  }
};

__device__ __forceinline__ float* results_of_warp(Prompt& c) {
  return reinterpret_cast<float*>(c.ring + kPromptRing - kResultBytes) +
         c.warp * (kResultBytes / kConsumerWarps / 4);
}

// What multiplies the matrix of a stage.
template <class S, bool kQuantised, bool kWide>
struct ProductOf;
template <class S>
using ProductFor = typename ProductOf<S, Matrix<S>::kQuantised, kByWgmma<S>>::Type;

// Finishes the rows of a warp: two tokens at a time, each by 16 lanes.
template <class S, class Reader, class Finish>
__device__ __forceinline__ void finish_rows(Prompt& c, int first_row, int end_row, int first_place,
                                            const PromptSums& sums, Finish&& finish) {
  using Product = ProductFor<S>;
  float* results = results_of_warp(c);
#pragma unroll
  for (int n = 0; n < kLaneSums; ++n)
    results[Product::token(n, c.lane) * kResultStride + Product::row(n, c.lane)] = sums[n];
  warp_sync();
  const int row = first_row + c.lane % 16;
  const int places = min(kTokenTile, places_of<S>(c.tokens) - first_place);
#pragma unroll 2
  for (int i = c.lane / 16; i < round_up(places, 2); i += 2) {
    const TokenAt at = token_at<S>(c, first_place + i);
    const bool valid = i < places && at.there && row < end_row;
    float sum = results[i * kResultStride + c.lane % 16];
    if constexpr (Reader::kNorm) sum *= valid ? c.inverse()[at.token] : 0.0f;
    // Not among the rows that finishers have asked weights for ahead.
    finish(Row{at.rank * kMatrixRows<S> + row, kFlushRows, valid, at.token,
               kRanks<S> * kMatrixRows<S>},
           sum);
  }
  warp_sync();
}

// A stage's product for all tokens of the pass.
template <class S, class Reader, class Finish>
__device__ __forceinline__ void narrow_gemv(Prompt& c, const u8* matrix, const Reader& in,
                                            Finish&& finish) {
  using Shape = PromptShape<S>;
  using Product = ProductFor<S>;
  constexpr int kParts = kSplitK<S>, kPartRows = kMatrixRows<S> / kParts;
  constexpr int kPartBytes = tile_bytes<typename Shape::W>(S::kColumns);
  constexpr int kStride = kPartBytes * kParts;
  constexpr int kRowTiles = ceil_div(kPartRows, kPromptRows) * kParts;
  prepare<S>(c, in);
  const int first_tile = kRanks<S> > 1 ? 0 : c.first / kTokenTile;
  const int token_tiles = ceil_div(places_of<S>(c.tokens), kTokenTile) - first_tile;
#pragma unroll 1
  for (int i = c.sm; i < kRowTiles * token_tiles; i += kSMs) {
    const int token_tile = first_tile + i % token_tiles, row_tile = i / token_tiles;
    const u8* own = matrix;
#if AMK_EXPERTS
    if constexpr (kRanks<S> > 1) {
      const int expert = listed_expert(token_tile / (kMostTileTokens / kTokenTile));
      if (expert < 0) continue;
      own += size_t(expert) * ceil_div(kPartRows, kTileRows) * kStride;
    }
#endif
    const int part = row_tile / (kRowTiles / kParts);
    const int in_part = row_tile % (kRowTiles / kParts) * kPromptRows + c.warp * 16;
    const bool there[2] = {in_part < kPartRows, in_part + kTileRows < kPartRows};
    const u8* tile = own + size_t(in_part / kTileRows) * kStride + part * kPartBytes;
    const u8* operand = c.operand() + (size_t(token_tile) * kParts + part) * Shape::kTileBytes;
    PromptSums sums = {};
    Product::multiply(c, tile, kStride, there, operand, sums);
    finish_rows<S, Reader>(c, part * kPartRows + in_part, (part + 1) * kPartRows,
                           token_tile * kTokenTile, sums, finish);
  }
  join(c);
}

}  // namespace amk
