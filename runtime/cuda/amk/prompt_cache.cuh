// The blocks of the cache that a block of a pass over a prompt attends to, in the order in which a
// step's shares are joined: split after split, in each the blocks of one warp after those of the
// other, and how they pass through shared memory, which all warps read. Needs schedule.h with
// AMK_TENSOR_CORES. Must not know what is computed of them.
#pragma once

#include "heads_mma.cuh"
#include "prompt.cuh"

namespace amk {

// The first row that a position sees.
template <class S>
__device__ __forceinline__ int first_seen(int position) {
  return S::kWindowRows > 0 ? max(0, position + 1 - S::kWindowRows) : 0;
}

// The blocks of a split, numbered as they are in it.
template <class S>
struct SplitBlocks {
  static constexpr int kChunkBlocks = S::kShareRows / kCacheRows;
  int split;

  __device__ __forceinline__ bool owns(int block) const {
    return block / kChunkBlocks % S::kSplits == split;
  }
  // Of a block, or of the first one after it that the split has.
  __device__ __forceinline__ int number(int block) const {
    const int chunk = block / kChunkBlocks, n = (chunk - split + S::kSplits - 1) / S::kSplits;
    return n * kChunkBlocks + (owns(block) ? block % kChunkBlocks : 0);
  }
  __device__ __forceinline__ int block(int number) const {
    return (number / kChunkBlocks * S::kSplits + split) * kChunkBlocks + number % kChunkBlocks;
  }
};

// The blocks from `first` to `last` in their order. A share is those of a warp of a step.
template <class S>
struct BlockWalk {
  static constexpr int kWarps = BlockTurns<S>::kWarps;
  int first, last;
  int split = 0, warp = 0, number;

  __device__ __forceinline__ BlockWalk(int first, int last) : first(first), last(last) {
    begin_share();
    skip_empty();
  }
  __device__ __forceinline__ bool ends() const { return split == S::kSplits; }
  // The block, or the i-th one of the share after it.
  __device__ __forceinline__ int block(int i = 0) const {
    return SplitBlocks<S>{split}.block(number + i * kWarps);
  }
  // Whether shares have about three blocks or more.
  __device__ __forceinline__ bool has_long_shares() const {
    return last - first >= 3 * S::kSplits * kWarps;
  }
  // How many blocks of the share are left.
  __device__ __forceinline__ int left() const {
    return (SplitBlocks<S>{split}.number(last + 1) - 1 - number) / kWarps + 1;
  }
  __device__ __forceinline__ bool is_in(int of_split, int share) const {
    return split == of_split && warp == share;
  }
  __device__ __forceinline__ void advance(int blocks = 1) {
    number += blocks * kWarps;
    skip_empty();
  }

 private:
  __device__ __forceinline__ void begin_share() {
    const int n = SplitBlocks<S>{split}.number(first);
    number = n + (warp - n % kWarps + kWarps) % kWarps;
  }
  __device__ __forceinline__ void skip_empty() {
    while (!ends() && block() > last) {
      if (++warp == kWarps) warp = 0, ++split;
      begin_share();
    }
  }
};

// The work of a stage of attention in a pass. A unit is a kv head and kBlockColumns adjacent
// columns; a column is a token and one of the query heads of the kv head. Units are dealt to the
// blocks of the GPU in rounds, after those of other stages. The last tokens attend to most rows, so
// their units come first, and each round deals in the reverse order of the round before: the work
// of the blocks is balanced.
template <class S, int kBlockColumns>
struct ColumnUnits {
  using Stage = S;
  using H = HeadsOf<S>;
  int position;    // of the first token of the pass
  int begin, end;  // tokens of the stage
  int dealt;       // units of other stages

  __device__ __forceinline__ int of_head() const {
    return ceil_div((end - begin) * H::kGroupHeads, kBlockColumns);
  }
  __device__ __forceinline__ int count() const { return H::kKVHeads * of_head(); }
  __device__ __forceinline__ static int head(int unit) { return unit % H::kKVHeads; }
  // The first column.
  __device__ __forceinline__ int column(int unit) const {
    return begin * H::kGroupHeads + (of_head() - 1 - unit / H::kKVHeads) * kBlockColumns;
  }
  // The position of a column's token, or of the last token.
  __device__ __forceinline__ int position_of(int column) const {
    return position + min(column / H::kGroupHeads, end - 1);
  }
  // Calls a function with the number of each unit of a block.
  template <class Function>
  __device__ __forceinline__ void each(int block, const Function& of_unit) const {
#pragma unroll 1
    for (int turn = dealt / kSMs; turn * kSMs < dealt + count(); ++turn) {
      const int unit = turn * kSMs + (turn % 2 ? kSMs - 1 - block : block) - dealt;
      if (unit >= 0 && unit < count()) of_unit(unit);
    }
  }
  // The blocks of the cache that columns from one on see.
  __device__ __forceinline__ BlockWalk<S> walk(int column) const {
    return {first_seen<S>(position_of(column)) / kCacheRows,
            position_of(column + kBlockColumns - 1) / kCacheRows};
  }
};

// Calls a function with the units of each stage that attends to tokens of a pass, from `first` on
// and before `end`: those of S, and then those of the stages before.
template <class S, template <class> class Units, class Function>
__device__ __forceinline__ void each_stage(int position, int first, int end, int dealt,
                                           const Function& of_stage) {
  const int begin = min(max(first, Before<S>::kEnd - position), end);
  const Units<S> units{position, begin, end, dealt};
  of_stage(units);
  if constexpr (!kSame<typename Before<S>::Stage, void>)
    each_stage<typename Before<S>::Stage, Units>(position, min(first, begin), begin,
                                                 dealt + units.count(), of_stage);
}

// Blocks of a head on their way to `bytes` of shared memory, a few ahead of those that are read.
// Every kAtOnce blocks all warps meet. All consumers of a block call its functions.
template <class S, int kBytes>
struct BlockStream {
  using H = HeadsOf<S>;
  static constexpr int kFit = kBytes / H::kCacheBlockBytes;
  static constexpr int kAtOnce = kFit >= 8 ? 2 : 1;
  static constexpr int kGroups = kFit / kAtOnce < 8 ? kFit / kAtOnce : 8;
  static constexpr int kSlots = kGroups * kAtOnce;
  static_assert(kGroups >= 2, "a group of blocks arrives while another one is read");
  static_assert(H::kCacheBlockBytes % 16 == 0, "16 bytes are copied at a time");
  const u8* head;
  u8* ring;
  BlockWalk<S> ahead;
  int tid;
  int read = 0;     // slot of the block that is read next
  int written = 0;  // slot of the one that is copied next

  __device__ __forceinline__ BlockStream(const u8* head, u8* ring, const BlockWalk<S>& walk,
                                         int tid)
      : head(head), ring(ring), ahead(walk), tid(tid) {
    consumer_barrier();  // the ring is not read any more
#pragma unroll 1
    for (int g = 0; g + 1 < kGroups; ++g) copy_group();
  }
  // The next block.
  __device__ __forceinline__ const u8* next() {
    if (read % kAtOnce == 0) {
      wait_copies<kGroups - 2>();
      consumer_barrier();  // it is here, and what it will replace is not read any more
      copy_group();
    }
    const u8* at = ring + read * H::kCacheBlockBytes;
    if (++read == kSlots) read = 0;
    return at;
  }

 private:
  __device__ __forceinline__ void copy_group() {
#pragma unroll 1
    for (int k = 0; k < kAtOnce; ++k) {
      if (!ahead.ends()) {
        const u8* from = head + size_t(ahead.block()) * H::kCacheBlockBytes;
        u8* const to = ring + written * H::kCacheBlockBytes;
        for (int at = tid * 16; at < H::kCacheBlockBytes; at += kConsumers * 16)
          copy_async_16(to + at, from + at);
        ahead.advance();
      }
      if (++written == kSlots) written = 0;
    }
    commit_copies();
  }
};

}  // namespace amk
