// The ring through which matrices and operands of a prompt's products pass on sm_90: slots of 64
// columns, or with quantised matrices of a quad (prompt_quads.cuh), which warps of their own copy
// and two groups of four warps multiply. Attention has slots of some blocks of the cache
// (prompt_attention_wgmma.cuh). A product has tiles of some tokens by some rows, and both
// sides go over the same tiles in the same order. The copying warps go on with the next tile while
// the others finish one; with the next product they begin when its operand is there. Needs
// schedule.h with AMK_WGMMA. Must not know what a stage computes.
#pragma once

#include "prompt_matrices.cuh"

namespace amk {

constexpr u32 kCopyWarps = 3;
constexpr int kSlotOperand = kTokenTile * 64 * 2;  // bytes of 64 columns
constexpr int kPromptSlotBytes = 4 * kSlotOperand;  // of both groups, and of 128 rows

// The next of kSlots slots, and the parities of the phases of all. A product begins with the first
// slot: the ring is empty then.
struct NextSlot {
  u32 slot = 0, phases = 0;

  __device__ __forceinline__ u32 phase() const { return phases >> slot & 1; }
  template <int kSlots = kPromptSlots>
  __device__ __forceinline__ void advance() {
    phases ^= 1u << slot;
    if (++slot == kSlots) slot = 0;
  }
  __device__ __forceinline__ void begin() { slot = 0; }
};

// The rows of a product.
template <class S>
struct RowShape : PromptShape<S> {
  using Shape = PromptShape<S>;
  static constexpr int kParts = kSplitK<S>, kPartRows = kMatrixRows<S> / kParts;
  static constexpr int kMatrixTiles = ceil_div(kPartRows, kTileRows);  // of 8 rows, and all parts
  static constexpr int kPartTiles = ceil_div(kPartRows, Shape::kRows);
  static constexpr int kRowTiles = kPartTiles * kParts;
  // Rows whose weights stay in L2 while all tokens are multiplied.
  static constexpr size_t kRowTileBytes =
      size_t(Shape::kRows / kTileRows) * tile_bytes<typename Shape::W>(S::kColumns);
  static constexpr int kBlocks = ceil_div(int(kRowTiles * kRowTileBytes >> 20), 48);
  static constexpr int kBlockTiles = kBlocks > 1 ? ceil_div(kRowTiles, kBlocks) : kRowTiles;
};

// How quads of a chain are stored in a slot: a tile of the operand for each group of warps, and the
// matrix.
template <class S>
struct SlotShape : RowShape<S> {
  using Shape = PromptShape<S>;
  static constexpr int kQuads = 4 / Shape::kOfChain;  // 64 columns
  static constexpr int kMatrixQuadBytes = Shape::kOfChain * 32 * Shape::kRows;
};

// A tile: its tokens, its rows, and the part of the columns that they are of.
struct PromptTile {
  int tokens;    // its number among those of the tokens
  int part;
  int first_row;  // in the part
  int matrix = 0;  // of those of the experts
};

// The tiles of a product. Those that blocks have at once are a few tiles of tokens by many of rows,
// so that L2 hands a line to several SMs at a time.
template <class S, bool kListed = (kRanks<S> > 1)>  // true: prompt_experts.cuh
struct PromptTiles {
  using Shape = RowShape<S>;
  static constexpr int kWide = 512 / Shape::kTileTokens;  // tiles of tokens side by side
  int first;  // of the tiles of tokens
  int token_tiles;

  // Of all tokens from one on, with which a tile begins.
  __device__ __forceinline__ explicit PromptTiles(int tokens, int from = 0)
      : first(from / Shape::kTileTokens),
        token_tiles(ceil_div(tokens, Shape::kTileTokens) - first) {}
  __device__ __forceinline__ int count() const { return token_tiles * Shape::kRowTiles; }
  __device__ __forceinline__ PromptTile operator[](int i) const {
    const int block = i / (Shape::kBlockTiles * token_tiles);
    const int in = i - block * (Shape::kBlockTiles * token_tiles);
    const int rows = min(Shape::kBlockTiles, Shape::kRowTiles - block * Shape::kBlockTiles);
    // The last group has fewer tiles of tokens.
    const int group = in / (rows * kWide), at = in - group * (rows * kWide);
    const int wide = min(kWide, token_tiles - group * kWide);
    const int row_tile = block * Shape::kBlockTiles + at / wide;
    const int part = row_tile / Shape::kPartTiles;
    return {first + group * kWide + at % wide, part,
            (row_tile - part * Shape::kPartTiles) * Shape::kRows};
  }
  __device__ static __forceinline__ bool has(const PromptTile&) { return true; }
  __device__ static __forceinline__ void done(u32, u32) {}
};

__device__ __forceinline__ u8* prompt_slot(u32 slot) {
  return block_ring() + slot * kPromptSlotBytes;
}

// ---- the warps that copy ------------------------------------------------------------------------

// How a tile is copied: copy(copies, tile, matrix, map).
template <class S, bool kQuantised>
struct TileCopies;

// How the rows of a cache are: copy(copies, cache).
template <class S>
struct CacheCopies;

// One lane of a warp. It goes over the matrices of a pass as the stages do.
struct PromptCopies {
  PassLaunch launch;
  const u8* workspace;
  const u8* cache;
  const TensorMap* maps;
  int position, tokens;
  u32 warp;  // of those that copy
  bool offers;  // logits
  int wanted;   // the first token whose results are wanted
  int first = 0;  // token that stages compute
  u32 products = 0;
  NextSlot next;
  // Of the spin of a wait.
  u32 stage = 0;
  int layer = 0, step = 0;

  __device__ __forceinline__ PromptCopies(const Launch& of, u32 warp, const u8* maps)
      : launch(of),
        workspace(of.exchange),
        cache(of.cache),
        maps(reinterpret_cast<const TensorMap*>(maps)),
        position(of.position),
        tokens(of.steps),
        warp(warp),
        offers(of.logits != nullptr || of.chooses),
        wanted(first_wanted(of)) {}

  // Where the operand of a stage is (prompt.cuh).
  template <class S>
  __device__ const u8* operand_of() const;

  // The operand of the next product is there. With experts `listed` is, too, by which copies go: it
  // is waited for even when a wait was cancelled, as the warps that compute come here then.
  template <bool kListed = false>
  __device__ __forceinline__ void await_operand() {
    ++products;
    Spin spin;
    while (load_shared_acquire(&block_waits().started) < products) {
      if (spin.cancelled(*this, Wait::kRingEmpty, products, 0) && !kListed) break;
    }
    fence_proxy_async();
  }

  template <class S>
  __device__ __forceinline__ void take(const u8* matrix) {
    const TensorMap* map = maps++;
    if constexpr (kByWgmma<S>) {
      if (kOffers<S> && !offers) return;
      await_operand<(kRanks<S> > 1)>();
      next.begin();
      const PromptTiles<S> tiles(tokens, first);
#pragma unroll 1
      for (int i = block_index(); i < tiles.count(); i += kSMs) {
        const PromptTile tile = tiles[i];
        if (tiles.has(tile)) TileCopies<S, Matrix<S>::kQuantised>::copy(*this, tile, matrix, map);
      }
      tiles.done(warp, products);
    }
  }

  template <class S, class Cache>
  __device__ __forceinline__ void attend(int layer, Cache of) {
    if (layer == kLayers - 1) first = wanted;
    if constexpr (kWideAttention<S>) {
      await_operand();
      next.begin();
      CacheCopies<S>::copy(*this, of);
    }
  }

  // Waits until the next slot is empty. Returns what the copies complete on.
  __device__ __forceinline__ u64* await_slot() const {
    PromptScratch& shared = block_waits();
    while (!barrier_try_wait(&shared.empty[next.slot], next.phase() ^ 1, kConsumerWarps)) {
    }
    return &shared.full[next.slot];
  }
};

// Of elements as they are: the first warp copies the matrix, the others the operands of either
// group. Chain after chain, as they are multiplied.
template <class S>
struct TileCopies<S, false> {
  using Shape = SlotShape<S>;

  __device__ static __forceinline__ void copy(PromptCopies& c, const PromptTile tile, const u8*,
                                              const TensorMap* map) {
    const size_t tiles = size_t(tile.tokens * 2 + int(c.warp) - 1) * Shape::kParts + tile.part;
    const u8* from = c.operand_of<S>() + tiles * Shape::kTileBytes;
#pragma unroll 1
    for (int member = 0; member < Shape::kMembers; ++member) {
#pragma unroll 1
      for (int slab = 0; slab < Shape::kSlabs; ++slab) {
        const int quads = Shape::quads_of(slab);
#pragma unroll 1
        for (int chain = 0; chain < Shape::kChains; ++chain) {
#pragma unroll 1
          for (int quad = 0; quad < quads; quad += Shape::kQuads) {
            const int here = min(Shape::kQuads, quads - quad);
            u64* full = c.await_slot();
            u8* to = prompt_slot(c.next.slot);
            if (c.warp > 0) {
              const u32 bytes = here * Shape::kQuadBytes;
              barrier_arrive_expect(full, bytes);
              copy_bulk(to + (c.warp - 1) * kSlotOperand, from, bytes, full);
              from += bytes;
            } else {
              barrier_arrive_expect(full, here * Shape::kMatrixQuadBytes);
#pragma unroll 1
              for (int k = 0; k < here; ++k) {
                const int column = Shape::quad_of(member, slab * Shape::kSlabSubs + quad + k);
                copy_tensor(to + 2 * kSlotOperand + k * Shape::kMatrixQuadBytes, map,
                            {chain % 2 * (Shape::W::kBlockBytes / 4),
                             column * Shape::kQuarters + chain / 2 * Shape::kOfChain,
                             tile.part,
                             tile.matrix * Shape::kMatrixTiles + tile.first_row / kTileRows},
                            full);
              }
            }
            c.next.advance();
          }
        }
      }
    }
  }
};

// Prepares the barriers of a block. Other threads see them after a barrier of the block.
__device__ __forceinline__ void init_prompt_ring(PromptScratch& shared) {
#pragma unroll 1
  for (int i = 0; i < kPromptSlots; ++i) {
    barrier_init(&shared.full[i], kCopyWarps);
    barrier_init(&shared.empty[i], kConsumerWarps);
  }
#if AMK_EXPERTS
  for (u32& products : shared.read) products = 0;
#endif
  shared.started = 0;
  fence_barrier_init();
}

}  // namespace amk
