// The norm of a branch where the residual stays with the SMs that own its rows, as in a pass of
// several tokens. An owner reads the whole branch of each token for the sum of its squares, adds
// its own rows to the residual, and publishes the sums. Needs schedule.h.
#pragma once

#include "branch.cuh"
#include "finish.cuh"

namespace amk {

// Adds the norm of a branch to this SM's rows of the residual of all tokens, and multiplies the
// sums by a factor, if there is one. The SM publishes nothing before it has completed all its
// reads.
template <class S, class C>
__device__ __forceinline__ void add_norm_rows(C& c, const Page in, const u8* gain, const Page out,
                                              const u8* factor = nullptr) {
  // A thread has about 16 groups in flight at a time, of as many tokens. Of the rows of all tokens
  // it adds at most kFit.
  constexpr int kFit = 16 / kBranchGroups;
  constexpr int kReadAtOnce = kFit < 1 ? 1 : kFit < kTokens ? kFit : kTokens;
  constexpr int kOwnRows = ceil_div(kTokens * kResidualRows, kConsumers);
  constexpr float kOffset = S::kUnitOffset ? 1.0f : 0.0f;
  const Tiles mine = tiles_of<S>(c.sm, c.layer);
  const int begin = mine.begin * kTileRows;
  const int rows = min(mine.end * kTileRows, int(S::kRows)) - begin;
  if (rows > 0) {
    auto row_of = [&](int i) {
      const int at = c.tid + i * kConsumers;
      const int token = at / kResidualRows, local = at % kResidualRows;
      return Row{begin + local, local, token < kTokens && local < rows, token, S::kRows};
    };
    float gains[kOwnRows];
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      const Row r = row_of(i);
      gains[i] = r.valid ? load_weight(gain, r.row) : 0.0f;
    }
    const float by = factor ? load_weight(factor, 0) : 1.0f;
    await(c);
    auto own = word_poll<Element, kOwnRows * kBranchParts>(page_copy(c, in), [&](int i) {
      const Row r = row_of(i / kBranchParts);
      const int part = i % kBranchParts;
      return r.valid && part < kParts<S> ? (r.token * kParts<S> + part) * kHidden + r.row : -1;
    });
    float* const sums = c.shared.squares[c.norms & 1];
#pragma unroll 1
    for (int first = 0; first < kTokens; first += kReadAtOnce) {
      auto groups = group_poll<kReadAtOnce * kBranchGroups>(c, in, [&](int i) {
        const int token = first + i / kBranchGroups;
        const int word = branch_column(c.tid, i % kBranchGroups, kParts<S>);
        return word >= 0 && token < kTokens ? token * kParts<S> * kHidden + word : -1;
      });
      poll_both(c, own, groups);
#pragma unroll
      for (int t = 0; t < kReadAtOnce; ++t) {
        Columns branch[kOwnGroups];
        const float squares = sum_of_squares(groups, t * kBranchGroups, branch);
        if (c.lane == 0 && first + t < kTokens)
          sums[(first + t) * kConsumerWarps + c.warp] = squares;
      }
    }
    consumer_barrier();
    lap(c, Did::kExchangeWait);
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      const Row r = row_of(i);
      if (!r.valid) continue;
      const float inverse = inverse_of(sums + r.token * kConsumerWarps, S::kNormEps);
      const float branch = sum_of_parts([&](int k) { return own.value(i * kBranchParts + k); });
      const float sum = (residual(c, r) + normed(branch, inverse, kOffset + gains[i])) * by;
      store_residual(c, r, sum);
      publish_row(c, r, out, sum);
    }
    ++c.norms;
    lap(c, Did::kSignal);
  }
  end_stage<S>(c, rows > 0);
}

}  // namespace amk
