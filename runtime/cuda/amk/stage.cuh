// What all GEMV stages share: which tiles an SM owns, and the flush that turns the warps' partial
// sums into rows. Needs schedule.h. Must not know how partial sums are computed, nor what is done
// with a finished row.
#pragma once

#include "exchange.cuh"
#include "weights.cuh"

namespace amk {

__device__ __forceinline__ float sum_of_warp(float v) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) v += shuffle_xor(v, offset);
  return v;
}

__device__ __forceinline__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

// Half-open range of tiles, or of units.
struct Tiles {
  int begin;
  int end;
  __device__ __forceinline__ int count() const { return end - begin; }
};

// The tiles of stage S that an SM owns in a layer: contiguous grains, rotated from stage to stage
// and from layer to layer so that the remainder spreads (ir.Dist, kind Spread).
template <class S>
__device__ __forceinline__ Tiles tiles_of(int sm, int layer) {
  constexpr int kGrains = ceil_div(S::kRows, S::kGrain);
  constexpr int kTiles = ceil_div(S::kRows, kTileRows);
  constexpr int kTilesPerGrain = S::kGrain / kTileRows;
  static_assert(S::kGrain % kTileRows == 0, "a grain is whole tiles");
  const u32 slot = u32(sm + S::kRotation + S::kRotationStep * layer) % kSMs;
  const int begin = int(kGrains * slot / kSMs) * kTilesPerGrain;
  const int end = int(kGrains * (slot + 1) / kSMs) * kTilesPerGrain;
  return {begin < kTiles ? begin : kTiles, end < kTiles ? end : kTiles};
}

// The maximum number of tiles of a flush of stage S on one SM.
template <class S>
constexpr int kMostTiles =
    ceil_div(ceil_div(int(S::kRows), int(S::kGrain)), kSMs) * int(S::kGrain / kTileRows);
template <class S>
constexpr int kFlushTiles = kMostTiles<S> < kTilesPerFlush ? kMostTiles<S> : kTilesPerFlush;

// How many parts the columns of a stage are cut into: S::kSplitK, where the descriptor has it. Then
// S::kColumns are those of a part, and S::kRows those of all parts, one part after another. All
// tiles of an SM belong to one part (pass split_k).
template <class S, class = void>
constexpr int kSplitK = 1;
template <class S>
constexpr int kSplitK<S, decltype(void(S::kSplitK))> = S::kSplitK;

// Of a product with matrices of experts that the router has chosen: of how many of them its rows
// are, one after another, or how many a row is the sum of products with. One matrix: 1.
template <class S, class = void>
constexpr int kSelected = 1;
template <class S>
constexpr int kSelected<S, decltype(void(S::kSelected))> = S::kSelected;
template <class S, class = void>
constexpr int kSummed = 1;
template <class S>
constexpr int kSummed<S, decltype(void(S::kSummed))> = S::kSummed;

// How many parts are added up: S::kParts, where the descriptor has it. Those of a branch are
// vectors (branch.cuh). Those of a product are parts of its columns, of which S::kColumns is each:
// a part is summed up as a product with its columns alone would be.
template <class S, class = void>
constexpr int kParts = 1;
template <class S>
constexpr int kParts<S, decltype(void(S::kParts))> = S::kParts;

// Sums that a row is added up from. What they are multiplied by follows one another in the vector.
template <class S>
constexpr int kSums = kParts<S> * kSummed<S>;

// Matrices that share a chunk of the ring, each with its tile: of those that rows are summed over,
// as many as a slot has room for. A chunk of a few kilobytes takes the producer as long as a full
// one. Those of a chunk are of one batch (gemv_mma.cuh), which has four quads of a warp.
constexpr int kMostChunkMatrices = 4;
template <class S>
constexpr bool share_a_chunk(int n) {
  constexpr int kQuads = ceil_div(ceil_div(int(S::kColumns), kQuadColumns), int(S::kWarps));
  return kSummed<S> % n == 0 && 4 % (n * kQuads) == 0 &&
         n * tile_bytes<Matrix<S>>(S::kColumns) <= kSlotBytes;
}
template <class S>
constexpr int kChunkMatrices = !AMK_BULK_COPY || !kOnTensorCores<S> ? 1
                               : share_a_chunk<S>(4)               ? 4
                               : share_a_chunk<S>(2)               ? 2
                                                                   : 1;

// Whether the tokens of a pass go by one after another, each multiplied by matrices of its own as
// in a pass of one token: weights of experts, which the router has chosen for each.
template <class S>
constexpr bool kTokenByToken = kTokens > 1 && (kSelected<S> > 1 || kSummed<S> > 1);
static_assert(kTokens == 1 || kRowSums == 1, "room for the sums of one token as a pass of one has");

// Whether weights of experts are streamed for a token. Those of an absent sequence make 0.
__device__ __forceinline__ bool has_experts(const Launch& launch, int token) {
  return kSequences == 1 || is_present(launch, sequence_of(token));
}

// What warps keep of a row for a flush. Sums over several matrices are kept whole: then there is
// room for those of more tiles, and a thread has fewer to add up.
template <class S>
constexpr int kRowParts = kSummed<S> > 1 ? 1 : kRowSums;

// Whether each warp multiplies a matrix of its own (gemv_matrices.cuh): where a row is the sum over
// one matrix per warp, each of at most one quad per warp. The warp adds the quads in the order in
// which warps that share a matrix are joined, so that the bits are the same.
template <class S>
constexpr bool kOwnMatrices =
    kOnTensorCores<S> && Matrix<S>::kQuantised && kSummed<S> == kConsumerWarps &&
    S::kWarps == kConsumerWarps && kTileChunks<S> == 1 &&
    ceil_div(int(S::kColumns), kQuadColumns) <= kConsumerWarps;

// Tiles of rows that a flush takes: it has the sums of a tile for each part or matrix, unless
// matrices are of different warps.
template <class S>
constexpr int kTilesAtOnce =
    !kOwnMatrices<S> && kSums<S> > kRowSums / kRowParts<S>
        ? kTilesPerFlush * kRowSums / (kRowParts<S> * kSums<S>)
        : kTilesPerFlush;

// The part that tiles from `first` on belong to, and the number of the first of them in that part.
template <class S>
__device__ __forceinline__ int part_of(int first) {
  return kSplitK<S> > 1 ? first / (S::kRows / kSplitK<S> / kTileRows) : 0;
}
template <class S>
__device__ __forceinline__ int tile_in_part(int first) {
  return first - part_of<S>(first) * (S::kRows / kSplitK<S> / kTileRows);
}

// The first element that an SM with tiles `mine` reads of the vectors of all tokens, of a token.
template <class S>
__device__ __forceinline__ int first_of_vector(Tiles mine, int token) {
  return (token * kSplitK<S> * kSums<S> + part_of<S>(mine.begin)) * S::kColumns;
}

// Whether a stage ends with a token.
template <class S>
__device__ __forceinline__ bool is_last_token(int token) {
  return !kTokenByToken<S> || token == kTokens - 1;
}

// Whether stage S keeps the exchange that is read next for a later stage, and whether it reads one
// that was kept: as which number, or 0. The descriptor sets both.
template <class S, class = void>
constexpr int kHolds = 0;
template <class S>
constexpr int kHolds<S, decltype(void(S::kHolds))> = S::kHolds;
template <class S, class = void>
constexpr int kReadsHeld = 0;
template <class S>
constexpr int kReadsHeld<S, decltype(void(S::kReadsHeld))> = S::kReadsHeld;

// Called before stage S waits for its input, and after it has read it.
template <class S, class C>
__device__ __forceinline__ void begin_reading(C& c) {
  static_assert(kHolds<S> <= kMostHeld && kReadsHeld<S> <= kMostHeld, "there is a place for it");
  if constexpr (kHolds<S> > 0) c.hold(kHolds<S>);
  if constexpr (kReadsHeld<S> > 0) c.swap_held(kReadsHeld<S>);
}
template <class S, class C>
__device__ __forceinline__ void end_reading(C& c) {
  if constexpr (kReadsHeld<S> > 0) c.swap_held(kReadsHeld<S>);
}

// Ends stage S on this SM, whether it had work in it or not. A stage that only adds to the residual
// has no tasks that publish.
template <class S, class C>
__device__ __forceinline__ void end_stage(C& c, bool worked) {
  if constexpr (S::kTasks > 0) {
    if (worked) signal(c);
    c.advance(S::kTasks);
  }
}

// An SM without tiles has no task and skips the stage, unless S::kEmpty is set: then it still reads
// the vector, because what it publishes must come after everything that the writers of the vector
// have read.

// The units of stage S that an SM owns in a layer (ir.Dist, kind ByUnit).
template <class S>
__device__ __forceinline__ Tiles units_of(int sm, int layer) {
  const u32 slot = u32(sm + S::kRotation + S::kRotationStep * layer) % kSMs;
  return {int((slot * S::kUnits + kSMs - 1) / kSMs),
          int(((slot + 1) * S::kUnits + kSMs - 1) / kSMs)};
}

// The same of a stage that may keep the exchange that it reads for a later one.
template <class S, class C>
__device__ __forceinline__ Tiles begin_units(C& c) {
  if constexpr (kHolds<S> > 0) c.hold(kHolds<S>);
  return units_of<S>(c.sm, c.layer);
}

// What a warp has of a row, in the order in which the flush adds it up, to what it had before: the
// four quarters, which are in neighbouring lanes; or the four chains, of which lanes 4 * row and
// 4 * row + 2 have two each. The first of the four lanes has the sum.
__device__ __forceinline__ float row_of_warp(float before, float sum) {
  sum += shuffle_xor(sum, 1);
  return before + (sum + shuffle_xor(sum, 2));
}
__device__ __forceinline__ float row_of_warp(float before, float2 chains) {
  const float third = shuffle_xor(chains.x, 2), fourth = shuffle_xor(chains.y, 2);
  return before + chains.x + chains.y + third + fourth;
}

// Keeps the sum of a whole row of a tile for the flush. The first of the row's four lanes has it.
template <class S, class C>
__device__ __forceinline__ void keep_row(C& c, int warp, int tile, float sum) {
  float* kept = c.shared.partial[c.flush & 1][warp];
  if constexpr (kRowParts<S> == 4) {
    kept[tile * 32 + c.lane] = c.lane % 4 == 0 ? sum : 0.0f;
  } else {
    if (c.lane % 4 == 0) kept[tile * kTileRows + c.lane / 4] = sum;
  }
}

// Keeps what a lane has of a tile's row lane / 4 for the flush: the sum of a quarter of the
// columns, or two chains. With one sum per row they are added up here.
template <class S, class C>
__device__ __forceinline__ void keep_partial(C& c, int warp, int tile, float sum) {
  if constexpr (kRowParts<S> == 4) {
    c.shared.partial[c.flush & 1][warp][tile * 32 + c.lane] = sum;
  } else {
    keep_row<S>(c, warp, tile, row_of_warp(0, sum));
  }
}
template <class S, class C>
__device__ __forceinline__ void keep_partial(C& c, int warp, int tile, float2 chains) {
  if constexpr (kRowParts<S> == 4) {
    float* kept = &c.shared.partial[c.flush & 1][warp][tile * 32 + c.lane];
    if (c.lane % 2 == 0) *reinterpret_cast<float2*>(kept) = chains;
  } else {
    keep_row<S>(c, warp, tile, row_of_warp(0, chains));
  }
}

// The same for one token of several: the sum of a whole row.
template <class C>
__device__ __forceinline__ void keep_token(C& c, int token, int tile, float sum) {
  sum = row_of_warp(0, sum);
  if (c.lane % 4 == 0)
    c.shared.partial[c.flush & 1][c.warp][token * kTokenSums + tile * kTileRows + c.lane / 4] = sum;
}

// A finished row of a stage for one token, as held by a thread.
struct Row {
  int row;     // of the matrix
  int local;   // from the SM's first row on
  bool valid;  // false: padding, or a thread without a row
  int token;   // of the pass
  int rows;    // that the matrix has

  // Its index in a vector of all rows of each token, and in one of half as many.
  __device__ __forceinline__ int index() const { return token * rows + row; }
  __device__ __forceinline__ int pair_index() const { return token * (rows / 2) + row / 2; }
  // Its place in this SM's residual.
  __device__ __forceinline__ int residual() const { return token * kResidualRows + local; }
};

// The sum of a thread over the partial sums of a row of one matrix, or of a part of its columns:
// those of all warps, in order.
template <class S, class C>
__device__ __forceinline__ float sum_of_warps(C& c, int row, int token) {
  float sum = 0;
#pragma unroll
  for (int w = 0; w < S::kWarps; ++w) {
    const float* warp = c.shared.partial[c.flush & 1][w];
    if constexpr (kTokens > 1 && !kTokenByToken<S>) {
      sum += warp[token * kTokenSums + row];
    } else if constexpr (kRowParts<S> == 4) {
      const float4 q = *reinterpret_cast<const float4*>(warp + row * kRowParts<S>);
      sum += kChainQuarters<S> == 2 ? q.x + q.y + q.z + q.w : (q.x + q.y) + (q.z + q.w);
    } else {
      sum += warp[row];
    }
  }
  return sum;
}

// The same of several parts, from the first one's row on: those of the first half and of the second
// are added. So does a GPU of several that share the parts, and then they all add up theirs.
template <class S, int kCount, class C>
__device__ __forceinline__ float sum_of_parts(C& c, int row, int token) {
  if constexpr (kCount == 1) return sum_of_warps<S>(c, row, token);
  else
    return sum_of_parts<S, kCount / 2>(c, row, token) +
           sum_of_parts<S, kCount / 2>(c, row + kCount / 2 * kTileRows, token);
}

// The same of a row of a tile, which may be the sum of several parts, or over several matrices, in
// their order.
template <class S, class C>
__device__ __forceinline__ float row_sum(C& c, int row, int token) {
  static_assert(kParts<S> == 1 || kSummed<S> == 1, "parts of one matrix");
  if constexpr (kOwnMatrices<S>) return sum_of_warps<S>(c, row, token);
  const int first = row / kTileRows * kSums<S> * kTileRows + row % kTileRows;
  float sum = sum_of_parts<S, kParts<S>>(c, first, token);
#pragma unroll
  for (int i = 1; i < kSummed<S>; ++i) sum += sum_of_warps<S>(c, first + i * kTileRows, token);
  return sum;
}

// Adds up the partial sums of a flush group: `tiles` tiles from `first`, each kWarps warps by four
// quarters. Thread t gets row t % kFlushRows, of token t / kFlushRows and every kTokensAtOnce-th
// after it; where tokens go by one after another, of the token `own` if it is among these. Ends
// with finish(row, value) in whole warps, so that finish may shuffle between neighbours. After a
// norm the value is scaled by 1/rms of the token's input, whose sum of squares is in
// shared.squares. Of a token without weights it is 0.
template <class S, class C, class Reader, class Finish>
__device__ __forceinline__ void flush_tiles(C& c, const Reader& in, Tiles mine, int first,
                                            int tiles, Finish&& finish, int own = 0) {
  consumer_barrier();
  lap(c, Did::kCompute);
  const int rows = tiles * kTileRows;
  const int at = kTokens > 1 ? c.tid % kFlushRows : c.tid;
  auto finish_row = [&](int token) {
    float sum = 0;
    if (at < rows) sum = row_sum<S>(c, at, token);
    if constexpr (Reader::kNorm) {
      const int of = kTokenByToken<S> ? 0 : token * kConsumerWarps;
      float squares = 0;
#pragma unroll
      for (int w = 0; w < S::kWarps; ++w) squares += c.shared.squares[c.norms & 1][of + w];
      sum *= rsqrtf(fmaf(squares, 1.0f / S::kColumns, in.eps));
    }
    if (kTokenByToken<S> && !has_experts(c.launch, token)) sum = 0;
    const int row = (mine.begin + first) * kTileRows + at;
    finish(Row{row, first * kTileRows + at, at < rows && row < S::kRows, token, S::kRows}, sum);
  };
  if (at < round_up(rows, 32)) {
    if constexpr (kTokenByToken<S>) {
      if (c.tid / kFlushRows == own % kTokensAtOnce) finish_row(own);
    } else {
#pragma unroll
      for (int turn = 0; turn < kTokenTurns; ++turn) {
        const int token = kTokens > 1 ? turn * kTokensAtOnce + c.tid / kFlushRows : 0;
        if (token >= kTokens) break;
        finish_row(token);
      }
    }
  }
  ++c.flush;
  lap(c, Did::kSignal);
}

}  // namespace amk
