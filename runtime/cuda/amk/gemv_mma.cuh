// GEMV on tensor cores. A warp multiplies quads, 8 rows by 128 columns, as fragments.cuh does for
// each kind of format. Activations go from L2 straight into B registers. The first weights of a
// stage are in registers before its exchange is polled, unless the ring is too small: two quads per
// warp, three where a tile has three, one where it has one, and up to four of quantised ones, whose
// products a warp begins together. A warp stays that far ahead: each multiplied quad is replaced by
// a later one. It releases a slot once its reads of the slot have completed. The digits of long
// vectors, which integers are multiplied by, are in shared memory. Needs schedule.h with
// AMK_TENSOR_CORES. Must not know what is done with a finished row.
#pragma once

#include "centred.cuh"
#include "fragments.cuh"
#include "fragments_e4m3.cuh"
#include "replicated.cuh"
#include "ring.cuh"
#include "stage.cuh"
#include "weights.cuh"

namespace amk {

// How the columns of a tile are cut: into chunks of one ring slot, and these into the quads of each
// warp. Warp i of the kWarps that share a tile takes quads i, i + kWarps, … of every chunk; `sub`
// counts its quads over the whole tile. Where rows are sums over several matrices, or parts of the
// columns, a tile has the quads of one after those of another, and what is said of columns is so of
// each.
template <class S>
struct GemvShape {
  using W = Matrix<S>;
  static constexpr int kQuadBlocks = kQuadColumns / W::kBlockColumns;
  static constexpr int kBlocks = ceil_div(S::kColumns, W::kBlockColumns);
  static constexpr int kQuads = ceil_div(S::kColumns, kQuadColumns);
  static constexpr int kLastQuadBlocks = kBlocks - (kQuads - 1) * kQuadBlocks;
  static constexpr int kChunkQuads = kChunkBytes<S> / W::kQuadBytes;
  static constexpr int kMatrixChunks = kTileChunks<S>;
  static constexpr int kChunks = kSums<S> / kChunkMatrices<S> * kMatrixChunks;
  static constexpr int kGroups = kConsumerWarps / S::kWarps;  // tiles worked on at once
  static constexpr int kChunkSubs = ceil_div(kChunkQuads, S::kWarps);
  static constexpr int kLastChunkQuads = kQuads - (kMatrixChunks - 1) * kChunkQuads;
  static constexpr int kMatrixSubs =
      (kMatrixChunks - 1) * kChunkSubs + ceil_div(kLastChunkQuads, S::kWarps);
  static constexpr int kSubs = kSums<S> * kMatrixSubs;
  static constexpr bool kEven = kLastChunkQuads % S::kWarps == 0 && kChunkQuads % S::kWarps == 0;
  // Of quantised matrices one token has no slabs, and neither have tokens one after another.
  static constexpr int kSlabs =
      kTokenByToken<S> && W::kQuantised ? 1 : ceil_div(kMatrixChunks, kSlabChunks<S>);
  static constexpr int kSlabSubs = kSlabs > 1 ? kSlabChunks<S> * kChunkSubs : kMatrixSubs;
  // Quads whose products a warp begins before it adds any, and those that it holds in registers. A
  // batch is of whole matrices, of a chunk each, if these have so few quads, and else of one matrix
  // and of as many quads as a chunk has: of the chunks that it ends, each is released when the next
  // one ends. Batches begin with a run of quads: a matrix, or all of them.
  static constexpr bool kWholeMatrices =
      kSums<S> > 1 && kMatrixChunks == 1 && Fragments<W>::kBatch % kMatrixSubs == 0;
  static constexpr int kRunSubs = kWholeMatrices ? kSubs : kMatrixSubs;
  static constexpr int kMost =
      Fragments<W>::kBatch < kRunSubs ? Fragments<W>::kBatch : kRunSubs;
  static constexpr int kBatch = kWholeMatrices || kMost < kChunkSubs ? kMost : kChunkSubs;
  static constexpr int kDepth = kBatch > 1 ? kBatch : kSubs == 3 ? 3 : 2;
  // Whether the vector's digits are kept in shared memory, and a tile is a loop over batches: code
  // that runs once per layer costs more than it computes. Otherwise (short vectors, chunks that do
  // not end with a batch, fp8, too little room) they are in registers, with code for each quad of a
  // tile. kernel.Cut has the same conditions.
  static constexpr int kKeptBytes = kSubs * kDigitQuadBytes<W>;  // of a warp
  static constexpr bool kKept = kBatch > 1 && kSubs > 4 &&
                                (kMatrixChunks == 1 || kChunkSubs % kBatch == 0) &&
                                kConsumerWarps * kKeptBytes <= kDigitScratch;
  // Whether a group may take the first weights of its next tile, kFirstChunks, before a block
  // barrier. The groups' tiles are side by side in the ring: if all that lies before the last chunk
  // that the last group takes does not fit, that group waits for slots which a group at the barrier
  // holds, and neither moves. Then weights are taken after the barrier.
  static constexpr int kLastFirst = (kSubs < kDepth ? kSubs : kDepth) - 1;  // sub
  static constexpr int kFirstChunks =
      kLastFirst / kMatrixSubs / kChunkMatrices<S> * kMatrixChunks +
      kLastFirst % kMatrixSubs / kChunkSubs + 1;
  static constexpr bool kAhead = (kGroups - 1) * kChunks + kFirstChunks <= int(kRingSlots);
  static_assert(kChunkMatrices<S> == 1 || (kMatrixChunks == 1 && (kWholeMatrices || kBatch == 1)),
                "what shares a chunk is of one batch");
  static_assert(kChunkQuads > 0, "a slot holds a quad");
  static_assert(kConsumerWarps % S::kWarps == 0, "warps per tile divide the consumer warps");
  static_assert(kSubs <= 32, "a warp keeps one bit for each of its quads");
  static_assert(kTilesAtOnce<S> > 0 && kTilesAtOnce<S> % kGroups == 0,
                "a flush group is whole rounds of tiles");
  static_assert(kSums<S> == 1 || kGroups == 1, "all warps share what is added up");
  // A full barrier distinguishes a phase only from the next one. Chunks older than the window have
  // landed; bulk copies within it may land out of order.
  static_assert(kGroups == 1 || (kGroups - 1) * kChunks + 1 + (AMK_BULK_COPY ? int(kWindow) : 0) <=
                                    int(kRingSlots),
                "what a group skips leaves its next chunk's slot known");
};

// Two elements times the weight of a norm.
template <class Reader>
__device__ __forceinline__ u32 gained(u32 x, u32 weight) {
  return Reader::kUnitOffset ? Element::mul2_of_1_plus(x, weight) : Element::mul2(x, weight);
}

// Four columns of this SM's residual, rounded; 0 for none, which is -1.
template <class C>
__device__ __forceinline__ uint2 residual_pairs(C& c, int column) {
  if (column < 0) return make_uint2(0, 0);
  const float4 x = *reinterpret_cast<const float4*>(&c.shared.residual[column]);
  return make_uint2(pack2(x.x, x.y), pack2(x.z, x.w));
}

template <class S, class C, class Reader, class Finish>
__device__ __forceinline__ void gemv_mma(C& c, const Reader& in, Finish&& finish, int token = 0) {
  using Shape = GemvShape<S>;
  using F = Fragments<typename Shape::W, kChainQuarters<S>>;
  constexpr int kSubs = Shape::kSubs, kBatch = Shape::kBatch, kDepth = Shape::kDepth;
  constexpr int kPeriod = round_up(kSubs, kDepth);  // subs from tile to tile, some of them empty
  const Tiles mine = tiles_of<S>(c.sm, c.layer);
  const int tiles = mine.count();
  const int group = c.warp / S::kWarps, member = c.warp % S::kWarps;
  const bool streams = !kTokenByToken<S> || has_experts(c.launch, token);

  u32 slot = c.slot, phase = c.phase;
  if constexpr (Shape::kGroups > 1) advance_slot(slot, phase, group * Shape::kChunks);

  // A sub in its matrix. Where a loop counts subs, a remainder costs more than their product.
  auto in_matrix = [](int sub) { return kSums<S> == 1 ? sub : sub % Shape::kMatrixSubs; };
  // Quad of a sub in its matrix, or one past the last if this warp has none there.
  auto quad_of = [&](int sub) {
    sub = in_matrix(sub);
    const int in_chunk = sub % Shape::kChunkSubs * S::kWarps + member;
    const int quad = sub / Shape::kChunkSubs * Shape::kChunkQuads + in_chunk;
    return in_chunk < Shape::kChunkQuads ? quad : Shape::kQuads;
  };
  auto has = [&](int sub) { return Shape::kEven || quad_of(sub) < Shape::kQuads; };

  // A slot is released once its reads have completed: the sums of a batch come in between, but no
  // block barrier, at which a group that waits for the slot may be missing.
  constexpr u32 kNone = ~0u;
  u32 leaving = kNone;
  auto give_back = [&] {
    if (leaving != kNone) release(c, leaving, Shape::kGroups);
    leaving = kNone;
  };

  auto load = [&](typename F::Weights& w, int sub) {
    const int in_chunk = in_matrix(sub) % Shape::kChunkSubs * S::kWarps + member;
    const int before = sub / Shape::kMatrixSubs % kChunkMatrices<S> *
                       tile_bytes<typename Shape::W>(S::kColumns);
    const bool cut =
        Shape::kLastQuadBlocks < Shape::kQuadBlocks && quad_of(sub) == Shape::kQuads - 1;
    F::load(w, c.ring + slot * kSlotBytes + before + in_chunk * Shape::W::kQuadBytes, c.lane,
            cut ? Shape::kLastQuadBlocks : Shape::kQuadBlocks);
  };
  auto leave = [&] {
    give_back();
    leaving = slot;
    if constexpr (kBatch == 1) give_back();
    advance_slot(slot, phase);
  };
  auto take = [&](typename F::Weights& w, int sub) {
    const int own = in_matrix(sub), in_chunk = own % Shape::kChunkSubs;
    const int shares = sub / Shape::kMatrixSubs % kChunkMatrices<S>;  // its chunk with those before
    const bool ends = in_chunk == Shape::kChunkSubs - 1 || own == Shape::kMatrixSubs - 1;
    if (in_chunk == 0 && shares == 0) wait_full(c, slot, phase);
    if (has(sub)) load(w, sub);
    if (ends && shares == kChunkMatrices<S> - 1) leave();
  };

  // Over the tiles of the other groups.
  auto next_tile = [&] {
    if constexpr (Shape::kGroups > 1)
      advance_slot(slot, phase, (Shape::kGroups - 1) * Shape::kChunks);
  };

  // The quads in flight: that of sub i is in w[i % kDepth], the first of the next tile in w[0]
  // again.
  typename F::Weights w[kDepth];
  auto begin_tile = [&] {
#pragma unroll
    for (int sub = 0; sub < kDepth && sub < kSubs; ++sub) take(w[sub], sub);
    give_back();
  };
  const bool works = group < tiles;
  // Weights of experts come after their router's choice; the vector has been there before it.
  constexpr bool kTakesFirst = Shape::kAhead && kSelected<S> == 1;
  if (kTakesFirst && works && streams) {
    begin_tile();
    lap(c, Did::kCompute);
  }

  // Column of the four activations that this lane holds of quad 0.
  const int column0 = F::column(c.lane);
  uint2 x[kSubs] = {};   // activations, as they came
  uint2 xg[kSubs] = {};  // times the norm's weight
  uint2 shift[Reader::kShift ? kSubs : 1] = {};
  if constexpr (Reader::kGain) {
    if (works) {
#pragma unroll
      for (int i = 0; i < kSubs; ++i) {
        const int column = quad_of(i) * kQuadColumns + column0;
        if (has(i)) xg[i] = load_norm<S::kColumns>(in.weight, column);
        if constexpr (Reader::kShift) {
          if (has(i)) shift[i] = load_norm<S::kColumns>(in.bias, column);
        }
      }
    }
  }
  const bool reads = S::kEmpty ? works || tiles == 0 : works;
  begin_reading<S>(c);
  if constexpr (Reader::kResidual) {
    add_due(c);
  } else {
    if (tiles > 0 || S::kEmpty) await(c);
  }
  if (reads) {
    static_assert(S::kColumns % 4 == 0, "four words are read at a time");
    // The first of this lane's columns of sub 0, and how far those of others are from it: constants
    // for most shapes, -1 for a sub without columns.
    const int first = member * kQuadColumns + column0;
    auto further = [&](int i) {
      const int sub = i % Shape::kMatrixSubs, in_chunk = sub % Shape::kChunkSubs * S::kWarps;
      const int columns = (sub / Shape::kChunkSubs * Shape::kChunkQuads + in_chunk) * kQuadColumns;
      const bool inside = S::kColumns % kQuadColumns == 0 || first + columns < S::kColumns;
      return has(i) && inside ? i / Shape::kMatrixSubs * S::kColumns + columns : -1;
    };
    if constexpr (Reader::kResidual) {
#pragma unroll
      for (int i = 0; i < kSubs; ++i)
        x[i] = residual_pairs(c, further(i) < 0 ? -1 : first + further(i));
    } else {
      const int before = first_of_vector<S>(mine, token);
      auto quads = quad_poll<kSubs>(page_copy(c, in.page), further, before + first);
      if constexpr (C::kWaits && kFirstPoll > 0) {
        const u64 end = sm_clock() + kFirstPoll;
        while (sm_clock() < end) {}
      }
      poll_all(c, quads);
      lap(c, Did::kExchangeWait);
#pragma unroll
      for (int i = 0; i < kSubs; ++i) x[i] = quads.pairs(i);
    }
    if constexpr (Reader::kNorm) {
#pragma unroll
      for (int i = 0; i < kSubs; ++i)
        xg[i] = make_uint2(gained<Reader>(x[i].x, xg[i].x), gained<Reader>(x[i].y, xg[i].y));
    } else if constexpr (!Reader::kCentred) {
#pragma unroll
      for (int i = 0; i < kSubs; ++i) xg[i] = x[i];
    }
  }
  end_reading<S>(c);
  if constexpr (Reader::kCentred) {
    if (tiles > 0) {
      float sum = 0, squares = 0;
#pragma unroll
      for (int i = 0; i < kSubs; ++i) {
        sum += sum_of(x[i]);
        squares += squares_of(x[i]);
      }
      const Centre centre = centre_of<S>(c, in, group, sum, squares);
#pragma unroll
      for (int i = 0; i < kSubs; ++i) {
        const bool inside = has(i) && quad_of(i) * kQuadColumns + column0 < S::kColumns;
        const uint2 four = centred<Reader>(centre, x[i], xg[i], shift[Reader::kShift ? i : 0]);
        xg[i] = inside ? four : make_uint2(0, 0);
      }
    }
  }
  warp_sync();
  if (!kTakesFirst && works && streams) begin_tile();
  // What is multiplied. Where v is kept, it belongs to the batch in w.
  typename F::Vector v[Shape::kKept ? kBatch : kSubs];
  u8* kept = nullptr;
  auto recall = [&](int batch) {
    if constexpr (Shape::kKept) {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        // a missing quad reads another one: a branch costs more
        constexpr int kLast = (Shape::kRunSubs - 1) % kBatch;  // of the last batch of a run
        const int sub = b <= kLast ? batch + b : min(batch + b, kSubs - 1);
        F::recall(v[b], kept + sub * kDigitQuadBytes<typename Shape::W>, c.lane);
      }
    }
  };
  if constexpr (Shape::kKept) {
    kept = c.shared.digits + c.warp * Shape::kKeptBytes;
    if (works) {
      F::keep(kept, xg, c.lane);
      recall(0);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kSubs; ++i) v[i] = F::vector(xg[i], c.lane);
  }
  // Where the run of a sub begins: 0, if there is one.
  auto run_of = [&](int sub) {
    return Shape::kRunSubs == kSubs ? 0 : sub / Shape::kRunSubs * Shape::kRunSubs;
  };
  // Whether this warp has quad b of the batch that begins with a sub, and whether a matrix ends
  // with it.
  auto there = [&](int sub, int b) {
    return sub + b < run_of(sub) + Shape::kRunSubs && has(sub + b);
  };
  auto ends_matrix = [&](int sub, int b) {
    const int after = Shape::kWholeMatrices ? b + 1 : sub + b + 1;
    return kSums<S> > 1 && after % Shape::kMatrixSubs == 0 && sub + b < kSubs;
  };
  auto take_batch = [&](int batch) {
    if constexpr (Shape::kWholeMatrices) {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (batch + b < kSubs) take(w[b], b);
      }
      recall(batch);
    } else {
      const int in_run = batch - run_of(batch), end = in_run + kBatch;
      if (Shape::kChunkSubs == kBatch || in_run % Shape::kChunkSubs == 0) wait_full(c, slot, phase);
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (there(batch, b)) load(w[b], batch + b);
      }
      recall(batch);
      const bool in_chunk = end % Shape::kChunkSubs != 0 && end < Shape::kRunSubs;
      if (Shape::kChunkSubs == kBatch || !in_chunk) leave();
    }
  };

#pragma unroll 1
  for (int first = 0; first < tiles; first += kTilesAtOnce<S>) {
    const int in_flush = min(kTilesAtOnce<S>, tiles - first);
#pragma unroll 1
    for (int i = streams ? group : in_flush; i < in_flush; i += Shape::kGroups) {
      const bool more =
          first + i + Shape::kGroups < tiles && (Shape::kAhead || i + Shape::kGroups < in_flush);
      typename F::Sum sum;
      float slabs = 0;  // sums of all rows before this slab, in whole rows
      auto keep = [&](int tile) {
        if constexpr (Shape::kSlabs > 1) {
          keep_row<S>(c, member, tile, row_of_warp(slabs, F::total(sum, c.lane)));
        } else {
          keep_partial<S>(c, member, tile, F::total(sum, c.lane));
        }
        sum = {};
        slabs = 0;
      };
      if constexpr (Shape::kKept) {
#pragma unroll 1
        for (int batch = 0, next; batch < kSubs; batch = next) {
          typename F::Product products[kBatch];
#pragma unroll
          for (int b = 0; b < kBatch; ++b) {
            if (there(batch, b)) products[b] = F::multiply(sum, w[b], v[b]);
          }
          next = batch + kBatch;  // a constant step where there is one run: quads know their place
          if constexpr (Shape::kRunSubs < kSubs)
            next = min(next, run_of(batch) + Shape::kRunSubs);
          const bool ends = next >= kSubs;
          if (!ends || more) {
            if (ends) next_tile();
            take_batch(ends ? 0 : next);
          }
#pragma unroll
          for (int b = 0; b < kBatch; ++b) {
            if (there(batch, b)) F::add(sum, products[b], c.lane);
            if (ends_matrix(batch, b)) keep(i * kSums<S> + (batch + b) / Shape::kMatrixSubs);
          }
          give_back();
        }
      } else {
#pragma unroll
        for (int batch = 0; batch < kPeriod; batch += kBatch) {
          typename F::Product products[kBatch];
#pragma unroll
          for (int b = 0; b < kBatch; ++b) {
            const int sub = batch + b;
            if (sub < kSubs && has(sub)) products[b] = F::multiply(sum, w[sub % kDepth], v[sub]);
          }
#pragma unroll
          for (int b = 0; b < kBatch; ++b) {
            const int sub = batch + b, ahead = sub + kDepth;
            if (ahead < kSubs) {
              take(w[sub % kDepth], ahead);
            } else if (ahead >= kPeriod && ahead - kPeriod < kSubs && more) {
              if (ahead == kPeriod) next_tile();
              take(w[sub % kDepth], ahead - kPeriod);
            }
          }
#pragma unroll
          for (int b = 0; b < kBatch; ++b) {
            if (batch + b < kSubs && has(batch + b)) F::add(sum, products[b], c.lane);
            if (ends_matrix(batch, b)) keep(i * kSums<S> + (batch + b) / Shape::kMatrixSubs);
          }
          give_back();
          const int after = batch % Shape::kMatrixSubs + 1;
          if (Shape::kSlabs > 1 && after % Shape::kSlabSubs == 0 && after < Shape::kMatrixSubs) {
            slabs = row_of_warp(slabs, F::total(sum, c.lane));
            sum = {};
          }
        }
      }
      if constexpr (kSums<S> == 1) keep(i);
      if constexpr (Reader::kNorm) {
        // After the first tile, not before it: off the critical path.
        if (first + i == 0) {
          float squares = 0;
#pragma unroll
          for (int k = 0; k < kSubs; ++k) squares += squares_of(x[k]);
#pragma unroll
          for (int offset = 16; offset; offset >>= 1)
            squares += shuffle_xor(squares, offset);
          if (c.lane == 0) c.shared.squares[c.norms & 1][member] = squares;
        }
      }
    }
    flush_tiles<S>(c, in, mine, first, in_flush, finish, token);
    if constexpr (!Shape::kAhead) {
      if (streams && first + kTilesAtOnce<S> + group < tiles) {
        next_tile();
        begin_tile();
        recall(0);
      }
    }
  }
  if (Reader::kNorm && tiles > 0) ++c.norms;
  if (streams) advance_slot(c.slot, c.phase, tiles * Shape::kChunks);
  if (is_last_token<S>(token)) end_stage<S>(c, tiles > 0 || S::kEmpty);
}

}  // namespace amk
