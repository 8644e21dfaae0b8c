// Sums that several GPUs have a part of each: every rank pushes its own to all, and the SM that
// owns a row of the residual adds up those of all ranks. All ranks add the same words in the same
// order, so the residual is the same on each. Needs schedule.h.
#pragma once

#include "finish.cuh"

namespace amk {

// ---- pushing ------------------------------------------------------------------------------------

// Pushes word `index` of a page, in float32 whatever elements are, for the exchange after the one
// being read.
template <class C>
__device__ __forceinline__ void push(C& c, const Page page, int index, float value) {
  if constexpr (C::kMode_ == Mode::kCeiling) return;
  const u64 word = WordOf<Fp32>::make(traced<Fp32>(c, index, value), c.next_epoch());
#pragma unroll
  for (int rank = 0; rank < kGPUs; ++rank)
    store_relaxed_ranks(word_of(c, rank, page, index), word);
}

// Pushes a row of the sum that this rank has of it: a vector for each rank, one after another.
template <class C>
__device__ __forceinline__ void push_row(C& c, const Row& r, const Page out, float v) {
  if (r.valid) push(c, out, rank_of(c) * r.rows + r.row, v);
}

// ---- adding up ----------------------------------------------------------------------------------

// A poll of words that ranks push.
template <int kCount, class IndexOf>
struct PushedPoll : WordPoll<Fp32, kCount, IndexOf> {
  using WordPoll<Fp32, kCount, IndexOf>::WordPoll;
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (this->missing >> i & 1)
        this->word[i] = load_relaxed_ranks(this->words + this->index_of(i));
    }
  }
};
template <int kCount, class IndexOf>
__device__ __forceinline__ PushedPoll<kCount, IndexOf> pushed_poll(const u8* copy,
                                                                   IndexOf index_of) {
  return {copy, index_of};
}

// In pairs: those of the first half and of the second, as sum_of_parts adds up parts of columns.
template <int kCount, class Of>
__device__ __forceinline__ float sum_of_ranks(Of&& of, int first = 0) {
  static_assert((kCount & (kCount - 1)) == 0, "halves are as large as each other");
  if constexpr (kCount == 1) return of(first);
  else
    return sum_of_ranks<kCount / 2>(of, first) + sum_of_ranks<kCount / 2>(of, first + kCount / 2);
}

// Adds the sums of all ranks to this SM's rows of the residual, and publishes the rows. The SM has
// read everything before it publishes anything.
template <class S, class C>
__device__ __forceinline__ void add_sums(C& c, const Page in, const Page out) {
  static_assert(kFlagged && kTokens == 1, "words carry their epoch, and are of one token");
  constexpr int kOwn = ceil_div(kResidualRows, kConsumers);
  const Tiles mine = tiles_of<S>(c.sm, c.layer);
  const int begin = mine.begin * kTileRows;
  const int rows = min(mine.end * kTileRows, int(S::kRows)) - begin;
  if (rows > 0) {
    auto row_of = [&](int i) {
      const int local = c.tid + i * kConsumers;
      return Row{begin + local, local, local < rows, 0, S::kRows};
    };
    auto sums = pushed_poll<kOwn * kGPUs>(page_copy(c, in), [&](int i) {
      const Row r = row_of(i / kGPUs);
      return r.valid ? i % kGPUs * S::kRows + r.row : -1;
    });
    poll_all(c, sums);
    consumer_barrier();
    lap(c, Did::kExchangeWait);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const Row r = row_of(i);
      const float sum = residual(c, r) + sum_of_ranks<kGPUs>([&](int rank) {
                          return sums.value(i * kGPUs + rank);
                        });
      store_residual(c, r, sum);
      publish_row(c, r, out, sum);
    }
    lap(c, Did::kSignal);
  }
  end_stage<S>(c, rows > 0);
}

}  // namespace amk
