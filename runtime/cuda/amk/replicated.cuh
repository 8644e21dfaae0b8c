// The residual stream where every SM holds all of it, because norms of branches are added to it
// (pass replicate): an SM reads a whole branch, normalises and adds, and publishes nothing. Stages
// read their SM's residual as it would be published, rounded. The stage that adds only records what
// is to be added; the next stage that reads the residual adds it once its first weights and gains
// are in registers: after the add their loads would wait for memory again. Needs schedule.h.
#pragma once

#include "branch.cuh"

namespace amk {

// Adds what is pending. Every consumer thread calls it.
template <class C>
__device__ __forceinline__ void add_due(C& c) {
  if (!c.due.gain) return;
  const u32 stage = c.stage;
  c.stage = c.due.stage;
  Group<kTogether> gains[kOwnGroups];
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
    if (own_column(c.tid, i) >= 0) gains[i].load(c.due.gain, own_column(c.tid, i));
  }
  const float factor = c.due.factor ? load_weight(c.due.factor, 0) : 1.0f;
  await(c);
  auto groups = group_poll<kBranchGroups>(c, c.due.page, [tid = c.tid, n = c.due.parts](int i) {
    return branch_column(tid, i, n);
  });
  poll_all(c, groups);
  lap(c, Did::kExchangeWait);
  Columns branch[kOwnGroups];
  const float squares = sum_of_squares(groups, 0, branch);
  float* const sums = c.shared.squares[c.norms & 1];
  if (c.lane == 0) sums[c.warp] = squares;
  consumer_barrier();
  const float inverse = inverse_of(sums, c.due.eps);
  const float offset = c.due.unit_offset ? 1.0f : 0.0f;
#pragma unroll
  for (int i = 0; i < kOwnGroups; ++i) {
    const int first = own_column(c.tid, i);
    if (first < 0) break;
    Columns sum = *reinterpret_cast<Columns*>(&c.shared.residual[first]);
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      sum.of[j] += normed(branch[i].of[j], inverse, offset + gains[i].value(j));
      sum.of[j] *= factor;
    }
    *reinterpret_cast<Columns*>(&c.shared.residual[first]) = sum;
  }
  ++c.norms;
  c.due.gain = nullptr;
  consumer_barrier();  // all of the residual is there
  lap(c, Did::kCompute);
  c.stage = stage;
}

// Records the norm of a branch, to be added by the stage that reads the residual next.
template <class S, class C>
__device__ __forceinline__ void add_norm(C& c, const Page in, const u8* gain,
                                         const u8* factor = nullptr) {
  add_due(c);
  c.due = Branch{in, gain, factor, kParts<S>, S::kNormEps, S::kUnitOffset, c.stage};
}

}  // namespace amk
