// What an attention unit reads of the exchange, with tensor cores: for each row of its sequence,
// the q of its group, and then its k and v row. The block's threads divide the words, four each,
// and pass them to the warps through shared memory: one L2 read per word, and a few instructions
// instead of the hundreds that polling in every warp would take. Every split polls k and v, even of
// rows that it does not own: which words a task polls must not depend on the position, because its
// polls tell others that their words have been seen. Needs schedule.h with AMK_TENSOR_CORES.
#pragma once

#include "attention.cuh"
#include "exchange_quads.cuh"

namespace amk {

// A quad of a unit: for a token of its sequence, q of the group comes first, then k, then v. A quad
// past the end belongs to no token.
template <class H>
struct UnitQuad {
  u32 token, quad;
  __device__ __forceinline__ bool is_there() const {
    return token < u32(kSequenceRows) && quad < u32(H::kUnitQuads);
  }
  __device__ __forceinline__ bool is_query() const { return quad < H::kGroupHeads * H::kHeadQuads; }
};

// Index in the qkv vectors of a sequence's tokens of a quad's first word.
template <class H>
__device__ __forceinline__ int unit_word(int head, const UnitQuad<H>& q) {
  const int e = q.quad * 4, row = e - H::kGroupHeads * H::kHeadDim;
  return q.token * H::kTokenRows + (q.is_query()     ? head * H::kGroupHeads * H::kHeadDim + e
                                  : row < H::kHeadDim ? H::k_row(head) + row
                                                   : H::v_row(head) + row - H::kHeadDim);
}

// Which quads of its unit a thread reads, and what it does with them once they have arrived.
template <class S, class Heads>
struct UnitReader;

template <class S>
struct UnitReader<S, PlainHeads> {
  using H = HeadsOf<S>;
  static constexpr int kQuads = ceil_div(H::kPassQuads, kConsumers);  // of a thread

  template <class C>
  __device__ __forceinline__ UnitReader(C&, const PlainHeads&, const Unit<S>) {}
  // The i-th quad that a thread reads of a unit. With several rows, queries come first, and then
  // keys and values with those of different tokens interleaved: what neighbouring lanes write to a
  // block of the cache is then in different banks.
  __device__ static __forceinline__ UnitQuad<H> quad(int tid, int i) {
    constexpr u32 kQueries = H::kGroupHeads * H::kHeadQuads, kRows = kSequenceRows;  // of a token
    if (u32(tid) >= kConsumers) __builtin_unreachable();
    const u32 n = u32(tid) + i * kConsumers;
    if (kRows == 1) return {0, n};
    if (n < kRows * kQueries) return {n / kQueries, n % kQueries};
    const u32 cached = n - kRows * kQueries;
    return {cached % kRows, kQueries + cached / kRows};
  }
  template <class C, class Poll>
  __device__ __forceinline__ void poll(C& c, const PlainHeads&, const Unit<S>, Poll& words) {
    poll_all(c, words);
  }
  template <class C, class Poll>
  __device__ __forceinline__ void take(C&, const Unit<S>, const Poll&) {}
  // The four values of the i-th.
  template <class Poll>
  __device__ __forceinline__ uint2 values(const Poll& words, int i) const { return words.pairs(i); }
};

// The quads of a head are in the lanes of one warp, or of a part of one, so that shuffles sum its
// squares. The squares of all heads are summed by the block: every SM with a unit reads all of q
// and k for them, alongside its unit. Gains are in registers before the exchange is polled. In a
// pass of one token, so are the products of gains and angles for each rotation pair, and the
// multiplications proceed while the squares are summed. With several tokens, and so more heads,
// that would take too many registers.
template <class S>
struct UnitReader<S, NormedHeads> {
  using H = HeadsOf<S>;
  // that share a head
  static constexpr int kLanes = H::kHeadQuads < 32 ? power_of_two_from(H::kHeadQuads) : 32;
  // quads of a lane in one head
  static constexpr int kOfHead = ceil_div(H::kHeadQuads, kLanes);
  // heads that the block takes in a round
  static constexpr int kAtOnce = kConsumers / kLanes;
  static constexpr int kPassHeads = kSequenceRows * H::kUnitHeads;
  static constexpr int kTurns = ceil_div(kPassHeads, kAtOnce);
  static constexpr int kQuads = kTurns * kOfHead;
  static constexpr bool kEarly = kSequenceRows == 1;
  // The pair (x, y) becomes (x * even.x - y * odd.y, y * odd.x + x * even.y) over its rms: each
  // gain times cos and sin.
  struct Pair {
    float2 even, odd;
  };
  // Two pairs of a quad, and what is added to them then, rotated as well.
  struct Factors {
    Pair by[2];
    float2 shift[S::kNormShifted ? 2 : 1];
  };
  struct Weights {
    uint2 gain, bias;
  };
  Weights weights[kEarly ? 1 : kQuads];
  Factors factors[kEarly ? kQuads : 1];
  uint2 four[kQuads];  // the values
  OfBoth squares = {};  // that this thread has read of all of q and k; of one token
  // 1/rms of all of q or of all of k, of the tokens of this thread's heads; of several tokens
  float inverse_of_all[S::kWholeNorm ? kTurns : 1];

  // Number of a head among those of all tokens, its token, its number in the unit, v's last, and
  // that of a quad in its head.
  __device__ static __forceinline__ int of_all(int tid, int i) {
    return tid / kLanes + i / kOfHead * kAtOnce;
  }
  __device__ static __forceinline__ int token(int tid, int i) {
    return kSequenceRows > 1 ? min(of_all(tid, i) / H::kUnitHeads, kSequenceRows - 1) : 0;
  }
  __device__ static __forceinline__ int head(int tid, int i) {
    return of_all(tid, i) - token(tid, i) * H::kUnitHeads;
  }
  __device__ static __forceinline__ int in_head(int tid, int i) {
    return tid % kLanes + i % kOfHead * kLanes;
  }
  __device__ static __forceinline__ UnitQuad<H> quad(int tid, int i) {
    const bool real = of_all(tid, i) < kPassHeads && in_head(tid, i) < H::kHeadQuads;
    if (!real) return {u32(kSequenceRows), 0};
    return {u32(token(tid, i)), u32(head(tid, i) * H::kHeadQuads + in_head(tid, i))};
  }

  template <class C>
  __device__ __forceinline__ UnitReader(C& c, const NormedHeads& heads, const Unit<S> u) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const bool normed = head(c.tid, i) <= H::kGroupHeads && in_head(c.tid, i) < H::kHeadQuads;
      const auto of_quad = [&](const u8* q, const u8* k) {
        const u8* at = of_head<S>(q, k, u, head(c.tid, i));
        return normed ? load_constant_8(at + in_head(c.tid, i) * 8) : make_uint2(0, 0);
      };
      Weights& w = weights[kEarly ? 0 : i];
      w.gain = of_quad(heads.q_gain, heads.k_gain);
      if constexpr (S::kNormShifted) w.bias = of_quad(heads.q_shift, heads.k_shift);
      if constexpr (kEarly) factors[i] = factors_of(c, w, u.sequence(), i);
    }
  }

  template <class C>
  __device__ static __forceinline__ Factors factors_of(C& c, const Weights& w, int of, int i) {
    const int pair = min(in_head(c.tid, i), H::kHeadQuads - 1) * 2;
    const float2 first = turn_of<S>(c, of, pair), second = turn_of<S>(c, of, pair + 1);
    Factors f;
    f.by[0] = gained(w.gain.x, first);
    f.by[1] = gained(w.gain.y, second);
    if constexpr (S::kNormShifted) {
      f.shift[0] = rotate(pair_of(w.bias.x), turned(1.0f, 1.0f, first));
      f.shift[1] = rotate(pair_of(w.bias.y), turned(1.0f, 1.0f, second));
    }
    return f;
  }
  __device__ static __forceinline__ Pair gained(u32 gain, float2 turn) {
    const float2 by = pair_of(gain);
    return turned(gain_of<S>(by.x), gain_of<S>(by.y), turn);
  }
  __device__ static __forceinline__ Pair turned(float even, float odd, float2 turn) {
    return {make_float2(even * turn.x, even * turn.y), make_float2(odd * turn.x, odd * turn.y)};
  }

  // A poll of what this thread reads of all of q and k of a token, and the squares of it.
  static constexpr int kOfAll = ceil_div(H::kNormedQuads, kConsumers);
  template <class C>
  __device__ static __forceinline__ auto poll_of_all(C& c, const NormedHeads& heads, int token) {
    return quad_poll<kOfAll>(page_copy(c, heads.in),
                             [tid = c.tid, first = token * H::kTokenRows](int i) {
                               const int quad = tid + i * kConsumers;
                               return quad < H::kNormedQuads ? first + quad * 4 : -1;
                             });
  }
  template <class Poll>
  __device__ static __forceinline__ OfBoth squares_of_all(const Poll& all, int tid) {
    OfBoth squares = {};
#pragma unroll
    for (int i = 0; i < kOfAll; ++i) {
      const bool is_query = (tid + i * kConsumers) * 4 < H::kQueryRows;
      (is_query ? squares.q : squares.k) += squares_of(all.pairs(i));
    }
    return squares;
  }

  template <class C, class Poll>
  __device__ __forceinline__ void poll(C& c, const NormedHeads& heads, const Unit<S> u,
                                       Poll& words) {
    if constexpr (S::kWholeNorm && kSequenceRows == 1) {
      auto all = poll_of_all(c, heads, u.sequence());
      poll_both(c, words, all);
      squares = squares_of_all(all, c.tid);
    } else {
      poll_all(c, words);
    }
    if constexpr (S::kWholeNorm && kSequenceRows > 1) {
#pragma unroll 1
      for (int token = 0; token < kSequenceRows; ++token) {
        auto all = poll_of_all(c, heads, u.sequence_token() + token);
        poll_all(c, all);
        const OfBoth inverse = inverse_rms_of_block<S>(c, squares_of_all(all, c.tid));
#pragma unroll
        for (int turn = 0; turn < kTurns; ++turn) {
          const int i = turn * kOfHead;
          if (this->token(c.tid, i) == token)
            inverse_of_all[turn] = head(c.tid, i) < H::kGroupHeads ? inverse.q : inverse.k;
        }
      }
    }
  }

  // A sum over the lanes that share a head.
  __device__ static __forceinline__ float sum_of_head(float own) {
#pragma unroll
    for (int offset = kLanes / 2; offset; offset >>= 1) own += shuffle_xor(own, offset);
    return own;
  }

  // 1/rms of what the head of quad i is normalised with: its own elements, of which a lane has
  // these squares, or those of all.
  __device__ __forceinline__ float inverse_of(int tid, int i, float own, const OfBoth& all) const {
    if constexpr (S::kWholeNorm && kSequenceRows > 1) {
      return inverse_of_all[i / kOfHead];
    } else if constexpr (S::kWholeNorm) {
      return head(tid, i) < H::kGroupHeads ? all.q : all.k;
    } else {
      return inverse_rms<S, H::kHeadDim>(sum_of_head(own));
    }
  }

  template <class C, class Poll>
  __device__ __forceinline__ void take(C& c, const Unit<S> u, const Poll& words) {
    OfBoth all = {};
    if constexpr (S::kWholeNorm && kSequenceRows == 1) all = inverse_rms_of_block<S>(c, squares);
#pragma unroll
    for (int first = 0; first < kQuads; first += kOfHead) {
      Factors late[kEarly ? 1 : kOfHead];
#pragma unroll
      for (int i = first; !kEarly && i < first + kOfHead; ++i)
        late[i - first] = factors_of(c, weights[i], u.sequence_token() + token(c.tid, i), i);
      const Factors* by = kEarly ? factors + first : late;
      float mean = 0, own = 0;
      if constexpr (S::kNormCentred) {
#pragma unroll
        for (int i = first; i < first + kOfHead; ++i) mean += sum_of(words.pairs(i));
        mean = sum_of_head(mean) * (1.0f / H::kHeadDim);
      }
      float2 rotated[kOfHead][2];
#pragma unroll
      for (int i = first; i < first + kOfHead; ++i) {
        const uint2 x = words.pairs(i);
        const float2 a = less(pair_of(x.x), mean), b = less(pair_of(x.y), mean);
        // a lane without elements has none that differ from the mean
        if (!S::kNormCentred || in_head(c.tid, i) < H::kHeadQuads)
          own += fmaf(b.y, b.y, fmaf(b.x, b.x, sum_of_products(a.x, a.x, a.y, a.y)));
        rotated[i - first][0] = rotate(a, by[i - first].by[0]);
        rotated[i - first][1] = rotate(b, by[i - first].by[1]);
      }
      const float inverse = inverse_of(c.tid, first, own, all);
      const bool is_value = head(c.tid, first) > H::kGroupHeads;
#pragma unroll
      for (int i = first; i < first + kOfHead; ++i) {
        const float2 a = finished(rotated[i - first][0], inverse, by[i - first], 0);
        const float2 b = finished(rotated[i - first][1], inverse, by[i - first], 1);
        const uint2 normed = make_uint2(pack2(a.x, a.y), pack2(b.x, b.y));
        four[i] = is_value ? value_of(words.pairs(i), inverse) : normed;
      }
    }
  }
  template <class Poll>
  __device__ __forceinline__ uint2 values(const Poll&, int i) const { return four[i]; }

  // Four elements of v.
  __device__ static __forceinline__ uint2 value_of(uint2 x, float inverse) {
    if constexpr (!kNormsValues<S>) return x;
    const float2 a = pair_of(x.x), b = pair_of(x.y);
    return make_uint2(pack2(a.x * inverse, a.y * inverse), pack2(b.x * inverse, b.y * inverse));
  }
  __device__ static __forceinline__ float2 pair_of(u32 x) {
    return make_float2(Element::to_float(u16(x)), Element::to_float(u16(x >> 16)));
  }
  __device__ static __forceinline__ float2 less(float2 x, float mean) {
    return S::kNormCentred ? make_float2(x.x - mean, x.y - mean) : x;
  }
  // A rotation pair in fp32, without the norm.
  __device__ static __forceinline__ float2 rotate(float2 x, const Pair& by) {
    return make_float2(sum_of_products(x.x, by.even.x, -x.y, by.odd.y),
                       sum_of_products(x.y, by.odd.x, x.x, by.even.y));
  }
  __device__ static __forceinline__ float2 finished(float2 x, float inverse, const Factors& f,
                                                    int pair) {
    if constexpr (S::kNormShifted) {
      const float2 shift = f.shift[pair];
      return make_float2(fmaf(x.x, inverse, shift.x), fmaf(x.y, inverse, shift.y));
    } else {
      return make_float2(x.x * inverse, x.y * inverse);
    }
  }
};

// Stores four elements of a k or v row where the cache has them: `head` is the first byte of a
// head's rows, or of a copy of their block. Those of v are stored in four rows of a matrix; of k,
// two are stored in a matrix and two in the next one.
template <class H>
__device__ __forceinline__ void store_row(u8* head, u32 row, u32 dim, bool is_value, uint2 four) {
  static_assert(kCacheFragments, "the order of matrices");
  u8* at = head + cache_offset<H>(row, dim, is_value);
  if (is_value) {
    constexpr int kNext = 16;
    *reinterpret_cast<u16*>(at) = u16(four.x);
    *reinterpret_cast<u16*>(at + kNext) = u16(four.x >> 16);
    *reinterpret_cast<u16*>(at + 2 * kNext) = u16(four.y);
    *reinterpret_cast<u16*>(at + 3 * kNext) = u16(four.y >> 16);
  } else {
    *reinterpret_cast<u32*>(at) = four.x;
    *reinterpret_cast<u32*>(at + kMatrixBytes) = four.y;
  }
}

// Rounds k and v, which are one after the other, to integers, and puts them and their scales where
// a block, or several in a row, have row `row`. A warp does it, with both under way at once.
template <class H>
__device__ __forceinline__ void quantise_row(u8* block, int row, const u16* given, int lane) {
  u32 of_k = 0, of_v = 0;
  for (int d = lane; d < H::kHeadDim; d += 32) {
    of_k = larger_magnitude(of_k, Element::to_float(given[d]));
    of_v = larger_magnitude(of_v, Element::to_float(given[H::kHeadDim + d]));
  }
  const RowQuantiser keys(largest_of_warp(of_k)), values(largest_of_warp(of_v));
  for (int d = lane; d < H::kHeadDim; d += 32) {
    block[cache_offset<H>(row, d, false)] = keys(Element::to_float(given[d]));
    block[cache_offset<H>(row, d, true)] = values(Element::to_float(given[H::kHeadDim + d]));
  }
  if (lane == 0) {
    store_scale<H>(block, row, false, keys.scale);
    store_scale<H>(block, row, true, values.scale);
  }
  warp_sync();
}

// Copies row `in_block` of a block to where a head has row `row`. A block does it.
template <class H>
__device__ __forceinline__ void copy_row(u8* head, int row, const u8* block, int in_block,
                                         int tid) {
  for (int e = tid; e < 2 * H::kHeadDim; e += kConsumers) {
    const int dim = e % H::kHeadDim;
    const bool is_value = e >= H::kHeadDim;
    const int from = cache_offset<H>(in_block, dim, is_value);
    const int to = cache_offset<H>(row, dim, is_value);
    if constexpr (kQuantisedCache) {
      head[to] = block[from];
    } else {
      *reinterpret_cast<u16*>(head + to) = *reinterpret_cast<const u16*>(block + from);
    }
  }
  if (kQuantisedCache && tid == 0) {
    *reinterpret_cast<u32*>(head + scale_offset<H>(row)) =
        *reinterpret_cast<const u32*>(block + scale_offset<H>(in_block));
  }
}

}  // namespace amk
