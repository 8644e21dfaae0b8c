// Attention units: what a unit is, its share of the cache rows, and the merge of the warps' partial
// results. A unit is (sequence, kv head, split), and has all rows of its sequence; in a pass of one
// sequence it is (kv head, split, group of rows). Cache rows go to the splits in blocks
// of kShareRows, whatever the position, so that a cache row is read and written by the units of one
// split only. Needs schedule.h.
// The loop over cache rows is in attention_mma.cuh and attention_fma.cuh.
#pragma once

#include "exchange.cuh"
#include "heads.cuh"
#include "ring.cuh"
#include "stage.cuh"

namespace amk {

// Groups that the rows of a pass are cut into, each with a unit for every split of a kv head, and
// the rows of one.
template <class S>
constexpr int kRowGroups =
    kSequences == 1 && kSequenceRows > 1 ? S::kUnits / (HeadsOf<S>::kKVHeads * S::kSplits) : 1;
template <class S>
constexpr int kUnitRows = kSequenceRows / kRowGroups<S>;

// A column of a unit is a query head of a token; those of a token are side by side. How many of
// them the warps have accumulators for at once, and how often a unit therefore takes its cache
// rows: without tensor cores once for each token.
template <class S>
constexpr int kUnitColumns = kUnitRows<S> * HeadsOf<S>::kGroupHeads;
template <class S>
constexpr int kUnitPasses = kSequenceRows == 1 ? 1
                            : AMK_TENSOR_CORES ? ceil_div(kUnitColumns<S>, HeadsOf<S>::kPartColumns)
                                               : kUnitRows<S>;

// A unit's cache rows are its chunks: kShareRows rows each, every kSplits-th of the sequence. Where
// the stage has a window, the position sees the last kWindowRows rows alone, its own among them:
// chunks before them are left out, and the first one begins at the block of the first row that is
// seen.
template <class S>
struct Unit {
  using H = HeadsOf<S>;
  static constexpr int kChunkRows = S::kShareRows;
  static constexpr int kChunkBlocks = kChunkRows / kCacheRows;
  static_assert(kChunkRows % kCacheRows == 0, "a chunk is whole blocks");
  static_assert(kChunkBlocks * H::kCacheBlockBytes <= kSlotBytes, "a chunk fits a ring slot");
  int unit;
  int position;
  // Its number among the units of its group of rows, and the first row of that.
  __device__ __forceinline__ int in_group() const {
    return kRowGroups<S> > 1 ? unit / kRowGroups<S> : unit;
  }
  __device__ __forceinline__ int first_token() const {
    return kRowGroups<S> > 1 ? unit % kRowGroups<S> * kUnitRows<S> : 0;
  }
  __device__ __forceinline__ int head() const {
    return kSequences > 1 ? unit / S::kSplits % H::kKVHeads : in_group() / S::kSplits;
  }
  // Its sequence, and the first token of that in the pass.
  __device__ __forceinline__ int sequence() const { return sequence_of_unit(unit); }
  __device__ __forceinline__ int sequence_token() const { return sequence() * kSequenceRows; }
  __device__ static __forceinline__ int sequence_of_unit(int unit) {
    return kSequences > 1 ? unit / (S::kSplits * H::kKVHeads) : 0;
  }
  __device__ __forceinline__ int split() const { return in_group() % S::kSplits; }
  // Chunks with rows that are seen below the position.
  __device__ __forceinline__ int chunks() const {
    const int below = (ceil_div(position, kChunkRows) - split() + S::kSplits - 1) / S::kSplits;
    return S::kWindowRows == 1 ? 0 : kWindowed ? below - left_out() : below;
  }
  // The row that a chunk starts with, whether it is seen or not.
  __device__ __forceinline__ int first_row(int chunk) const {
    return ((kWindowed ? chunk + left_out() : chunk) * S::kSplits + split()) * kChunkRows;
  }
  // Rows below the position that are copied of a chunk, after those that are skipped.
  __device__ __forceinline__ int rows(int chunk) const {
    const int below = min(kChunkRows, position - first_row(chunk));
    return kWindowed ? below - skipped(chunk) : below;
  }
  // Rows at the start of a chunk that are not copied, as whole blocks: only the first has some.
  __device__ __forceinline__ int skipped(int chunk) const {
    return kWindowed && chunk == 0 ? unseen() / kCacheRows * kCacheRows : 0;
  }
  // Rows of the first block copied that are not seen: what they hold must not matter.
  __device__ __forceinline__ int hidden() const { return kWindowed ? unseen() % kCacheRows : 0; }
  // Whether this step's row falls into the unit's share.
  __device__ __forceinline__ bool owns_row() const { return owns(position / kCacheRows); }
  // The same of a block of the cache, and its number among those of the share. Numbers count from
  // the start of the cache, whatever is seen of it: a block's number says which warp takes it, for
  // all tokens of a pass.
  __device__ __forceinline__ bool owns(int block) const {
    return block / kChunkBlocks % S::kSplits == split();
  }
  __device__ __forceinline__ int number(int block) const {
    return block / (kChunkBlocks * S::kSplits) * kChunkBlocks + block % kChunkBlocks;
  }
  // Of the first block that is copied of a chunk.
  __device__ __forceinline__ int first_number(int chunk) const {
    const int before = kWindowed ? chunk + left_out() : chunk;
    return before * kChunkBlocks + skipped(chunk) / kCacheRows;
  }

 private:
  static constexpr bool kWindowed = S::kWindowRows > 0;
  __device__ __forceinline__ int first_seen() const {
    return max(0, position + 1 - S::kWindowRows);
  }
  // Chunks of the share before the first with a row that is seen.
  __device__ __forceinline__ int left_out() const {
    return (first_seen() / kChunkRows - split() + S::kSplits - 1) / S::kSplits;
  }
  // Rows at the start of the first chunk that are not seen.
  __device__ __forceinline__ int unseen() const { return max(0, first_seen() - first_row(0)); }
};

// A unit in this step. What follows from a window and the position is computed again for every
// unit: keeping it from layer to layer takes more registers than there are (Context::enter).
template <class S, class C>
__device__ __forceinline__ Unit<S> unit_of_step(const C& c, int unit) {
  int position = c.position;
  if constexpr (kSequences > 1)
    position = sequence_position(c.launch, Unit<S>::sequence_of_unit(unit), position);
  if constexpr (S::kWindowRows > 0) opaque(position);
  return {unit, position};
}

// Which cache of the arena a stage uses: the n-th one in layer n, unless the generated kernel says
// which, or at which byte it begins where layers have caches of several sizes.
struct OfLayer {};
template <class C>
__device__ __forceinline__ int cache_number(const C& c, OfLayer) { return c.layer; }
template <class C, class Cache>
__device__ __forceinline__ Cache cache_number(const C&, Cache cache) { return cache; }

// First byte of a layer's cache.
template <class H>
__device__ __forceinline__ size_t layer_cache(int number) { return number * H::kLayerCacheBytes; }
template <class H>
__device__ __forceinline__ size_t layer_cache(size_t at) { return at; }

// First byte of a unit's head in a cache: those of a sequence come before those of the next.
template <class S, class Cache>
__device__ __forceinline__ size_t cache_of(const Unit<S> u, Cache cache) {
  using H = HeadsOf<S>;
  const size_t sequence = kSequences > 1 ? u.sequence() * kCacheBytes : 0;
  return sequence + layer_cache<H>(cache) + size_t(u.head()) * H::kHeadCacheBytes;
}

// Whether a unit appends its sequence's row of a block to the cache: the sequence is there, and the
// block is of the unit's share.
template <class S, class C>
__device__ __forceinline__ bool appends(const C& c, const Unit<S> u, int block) {
  if constexpr (kSequences > 1) {
    if (!is_present(c.launch, u.sequence())) return false;
  }
  return u.owns(block);
}

// What a unit reads of the exchange: q of its group, and this step's k and v row. Either q and k
// are published as attention takes them,
struct PlainHeads {
  Page in;
};
// or they are normalised first: each head on its own, times a gain of kHeadDim weights (RMSNORM
// with head_dim), or with S::kWholeNorm all heads of q as one vector and all of k as another
// (RMSNORM with a whole). S::kNormEps is added to the mean of squares. With S::kNormCentred the
// mean of a head is taken off before, and with S::kNormShifted a bias is added (LAYERNORM). With
// S::kOwnGains each head has weights of its own, and else all the same. With S::kRotates heads are
// then rotated to this position by the angles of table S::kAngles (ROPE). Rotation pairs are side
// by side, in the heads and in the weights. With S::kNormsValues the head of v is normalised on its
// own too, without weights.
struct NormedHeads {
  Page in;
  const u8* q_gain;
  const u8* k_gain;
  const u8* q_shift;  // nullptr without S::kNormShifted
  const u8* k_shift;
};

// The weights of a head of a unit, of those of q's heads or of k's, which comes after them.
template <class S>
__device__ __forceinline__ const u8* of_head(const u8* q, const u8* k, const Unit<S> u, int head) {
  using H = HeadsOf<S>;
  const bool is_query = head < H::kGroupHeads;
  const int of_all = is_query ? u.head() * H::kGroupHeads + head : u.head();
  const int own = S::kOwnGains ? of_all * H::kHeadDim * WeightElement::kBytes : 0;
  return (is_query ? q : k) + own;
}

// Whether the head of v is normalised too, without weights.
template <class S, class = void>
constexpr bool kNormsValues = false;
template <class S>
constexpr bool kNormsValues<S, decltype(void(S::kNormsValues))> = S::kNormsValues;

// What a weight of a norm multiplies by: itself, or 1 + it.
template <class S>
__device__ __forceinline__ float gain_of(float weight) {
  return S::kNormUnitOffset ? 1.0f + weight : weight;
}

// cos and sin that a rotation pair of a token is turned by: by 0 where nothing is rotated.
template <class S, class C>
__device__ __forceinline__ float2 turn_of(const C& c, int token, int pair) {
  if constexpr (S::kRotates) {
    return c.shared.rotation[S::kAngles][token][pair];
  } else {
    return make_float2(1.0f, 0.0f);
  }
}

// 1/rms of kCount elements, from the sum of their squares.
template <class S, int kCount>
__device__ __forceinline__ float inverse_rms(float squares) {
  return rsqrtf(fmaf(squares, 1.0f / kCount, S::kNormEps));
}

// A number for all of q, and one for all of k.
struct OfBoth {
  float q, k;
};

// 1/rms of all of q and of all of k, for S::kWholeNorm: from the sums of the squares that each
// thread has read. Every SM reads all of them and adds up in one order, so that all have the same
// bits. All threads of a block call it.
template <class S, class C>
__device__ __forceinline__ OfBoth inverse_rms_of_block(C& c, OfBoth squares) {
  using H = HeadsOf<S>;
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) {
    squares.q += shuffle_xor(squares.q, offset);
    squares.k += shuffle_xor(squares.k, offset);
  }
  float* const sums = c.shared.squares[c.norms & 1];
  if (c.lane == 0) {
    sums[c.warp] = squares.q;
    sums[kConsumerWarps + c.warp] = squares.k;
  }
  consumer_barrier();
  squares = {0, 0};
#pragma unroll
  for (int w = 0; w < kConsumerWarps; ++w) {
    squares.q += sums[w];
    squares.k += sums[kConsumerWarps + w];
  }
  ++c.norms;
  return {inverse_rms<S, H::kQueryRows>(squares.q),
          inverse_rms<S, H::kNormedRows - H::kQueryRows>(squares.k)};
}

constexpr float kLog2e = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
constexpr float kNoScore = -1e30f;  // below any score; finite, so that differences stay finite

// Scores as the softmax takes them, times log2 e: scaled, and where the stage has a cap,
// cap * tanh(score / cap). Of that, tanh is 1 - 2 / (1 + e^2x).
template <class S>
__device__ __forceinline__ float scaled_score(float product) {
  if constexpr (S::kScoreCap == 0) return product * (S::kScale * kLog2e);
  const float x = product * (S::kScale / S::kScoreCap);
  if constexpr (Element::kBytes == 4) return S::kScoreCap * kLog2e * tanhf(x);
  const float grown = exp2_approximate(x * (2 * kLog2e));
  return S::kScoreCap * kLog2e * fmaf(-2.0f, reciprocal_approximate(1.0f + grown), 1.0f);
}

// Dims of a head that a thread publishes.
template <class H>
constexpr int kThreadDims = H::kHeadDim % 4 == 0 ? 4 : 1;

// Publishes the dims of a head that a thread has.
template <class E, class C, int kDims>
__device__ __forceinline__ void publish_dims(C& c, const Page out, int index,
                                             const float (&values)[kDims]) {
  if constexpr (kDims == 4) {
    publish_four<E>(c, out, index, values);
  } else {
#pragma unroll
    for (int i = 0; i < kDims; ++i) publish<E>(c, out, index + i, values[i]);
  }
}

// How a share of a softmax joins those before it. A share is what one warp has of a split, or a
// single row, or a split: a score, its base, and a sum of weights and weighted values, all relative
// to that. Shares join one after the other, so that a warp which computes all of them keeps two at
// a time. A share without rows changes nothing.
struct Joining {
  float base, keep, scale;  // of both; what was there is multiplied by `keep`, the share by `scale`

  // Scores are times log2 e, or are multiplied by `unit` for that.
  __device__ __forceinline__ Joining(float before, float share, float unit = 1)
      : base(fmaxf(before, share)),
        keep(exp2_approximate((before - base) * unit)),
        scale(exp2_approximate((share - base) * unit)) {}
  __device__ __forceinline__ float operator()(float before, float share) const {
    return fmaf(scale, share, before * keep);
  }
};

// The sinks of a unit's heads: scores without a value, which count in the sum alone. nullptr: there
// are none.
template <class S>
struct Sinks {
  using H = HeadsOf<S>;
  const u8* at;
  float first = 0;  // of the head that a thread publishes first

  // The address is that of the sinks of all heads. What a thread needs first is on its way while
  // others are awaited.
  template <class C>
  __device__ __forceinline__ Sinks(const C& c, const Unit<S> u, const u8* all) : at(all) {
    if (!all) return;
    at += u.head() * H::kGroupHeads * WeightElement::kBytes;
    constexpr int kHeadThreads = H::kHeadDim / kThreadDims<H>;
    if (kSequenceRows == 1 && c.tid < H::kGroupHeads * kHeadThreads)
      first = of(c.tid / kHeadThreads);
  }
  __device__ __forceinline__ float of(int head) const {
    return kLog2e * WeightElement::to_float(
                        load_constant(reinterpret_cast<const WeightElement::Bits*>(at) + head));
  }
};

// Joins the shares of one unit and publishes what comes out: those of the warps from 0 on, then the
// token's own row, of which `own` has the values, and in split 0 the head's sink. A warp keeps, for
// each of its kWarpHeads heads, the base and the maximum (of scores times log2 e), the sum, and
// kPaddedHead accumulators. A split is published relative to its maximum. The heads of the unit are
// divided into kGroups groups of kWarpHeads: group g belongs to warps g, g + kGroups, … Of several
// rows of a sequence, all heads of the first row come before those of the next; `heads` of them are
// kept, from head `before` of the unit on.
template <class S, int kGroups, class C, class OwnValue>
__device__ __forceinline__ void merge_warps(C& c, const Unit<S> u, const Page out,
                                            const OwnValue& own, const Sinks<S>& sinks,
                                            int heads = HeadsOf<S>::kGroupHeads, int before = 0) {
  using H = HeadsOf<S>;
  constexpr int kShares = kConsumerWarps / kGroups;
  constexpr int kDims = kThreadDims<H>;
  constexpr int kHeadThreads = H::kHeadDim / kDims;
  struct alignas(4 * kDims) Dims {
    float of[kDims];
  };
  for (u32 e = c.tid; e < u32(heads * kHeadThreads); e += kConsumers) {
    const u32 head = e / kHeadThreads, dim = e % kHeadThreads * kDims;
    const u32 of_unit = before + head;  // among the unit's heads
    const u32 row = kSequenceRows > 1 ? u.first_token() + of_unit / H::kGroupHeads : 0;
    const u32 in_group = kSequenceRows > 1 ? of_unit % H::kGroupHeads : head;
    float base = kNoScore, sum = 0, value[kDims] = {}, largest = kNoScore;
    const auto join_share = [&](float of, float weight, const Dims& values) {
      const Joining both(base, of);
      base = both.base;
      sum = both(sum, weight);
#pragma unroll
      for (int i = 0; i < kDims; ++i) value[i] = both(value[i], values.of[i]);
    };
#pragma unroll
    for (int w = 0; w < kShares; ++w) {
      const u32 at = w * kGroups * H::kWarpHeads + head;
      join_share(c.shared.attention_base[at], c.shared.attention_sum[at],
                 *reinterpret_cast<const Dims*>(&c.shared.attention[at * H::kHeadStride + dim]));
      if constexpr (S::kSplits > 1 && AMK_TENSOR_CORES)
        largest = fmaxf(largest, c.shared.attention_max[at]);
    }
    if (u.owns((u.position + row) / kCacheRows)) {
      Dims values;
#pragma unroll
      for (int i = 0; i < kDims; ++i) values.of[i] = own(row, dim + i);
      join_share(c.shared.attention_own[head], 1, values);
      largest = fmaxf(largest, c.shared.attention_own[head]);
    }
    if (sinks.at && u.split() == 0) {
      const float sink = kSequenceRows == 1 && e == u32(c.tid) ? sinks.first : sinks.of(in_group);
      join_share(sink, 1, {});
      largest = fmaxf(largest, sink);
    }
    if constexpr (S::kSplits == 1) {
      const int token = u.sequence_token() + row;
      const int first = (u.head() * H::kGroupHeads + in_group) * H::kHeadDim + dim;
#pragma unroll
      for (int i = 0; i < kDims; ++i) value[i] = divide<Element>(value[i], sum);
      publish_dims<Element>(c, out, token * H::kQueryRows + first, value);
    } else {
      const int of_row = u.in_group() * kSequenceRows + row;
      const int first = (of_row * H::kGroupHeads + in_group) * (H::kHeadDim + 2);
      if constexpr (!AMK_TENSOR_CORES) largest = base;  // without them they do not differ
      const float scale = exp2_approximate(base - largest);
#pragma unroll
      for (int i = 0; i < kDims; ++i) value[i] *= scale;
      publish_dims<Fp32>(c, out, first + dim, value);
      if (dim == 0) {
        publish<Fp32>(c, out, first + H::kHeadDim, sum > 0 ? largest * kLn2 : -INFINITY);
        publish<Fp32>(c, out, first + H::kHeadDim + 1, sum * scale);
      }
    }
  }
}

}  // namespace amk
