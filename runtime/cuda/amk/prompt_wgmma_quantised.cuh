// The product of a prompt with a quantised matrix, by wgmma in fp16: each of two groups of four
// warps multiplies 64 rows, whose weights become operands in registers, by the 64 tokens of a tile,
// which it reads from the ring's slots (prompt_quads.cuh). What wgmma adds up is exact, or the
// products of fp16 that a step has too; every 32 columns it is scaled and added quad after quad, as
// a warp of a step does it (fragments.cuh, fragments_e4m3.cuh). Needs schedule.h with AMK_WGMMA.
#pragma once

#include "prompt_quads.cuh"
#include "prompt_wgmma.cuh"

namespace amk {

// How weights are multiplied. A lane has two sets of sums for wgmma: of two quarters at once, or of
// one.
//
// Integers less their zero point. Those of int4 are at most 16, so that a sum over 32 columns, of
// activations of at most 127 * 256, is less than 2^24, and one set takes both parts of them. Those
// of int8 are at most 255: each part has a set, in which sums are multiples of 256 and of 1, and
// their sum is rounded once, as that of a step is.
template <class W>
struct QuadFactors {
  static constexpr bool kNibbles = W::kBits == 4;
  static constexpr int kTogether = kNibbles ? 2 : 1;  // quarters

  // Which set takes a half of a part of the i-th of these, and whether it has sums before.
  __device__ static constexpr int set(int i, int part, int) { return kNibbles ? i : part; }
  __device__ static constexpr bool adds(int part, int half) {
    return half > 0 || kNibbles && part > 0;
  }

  // What is more than a weight in fp16, twice: 1024 and the offset of a group, whose zero point is
  // in `of_group` if it has one.
  __device__ static __forceinline__ u32 more(const u8* of_group, int quarter) {
    int zero = kNibbles ? 8 : 0;
    if constexpr (W::kZeros) zero = *reinterpret_cast<const signed char*>(of_group);
    if constexpr (!kNibbles) zero += 128;
    return (0x6400u + u32(kNibbles && quarter >= 2 ? zero * 16 : zero)) * 0x00010001u;
  }
  // Four weights of a word: high nibbles are 16 times themselves.
  __device__ static __forceinline__ uint2 halves(u32 word, int quarter, u32 more) {
    const u32 bytes = !kNibbles      ? word ^ 0x80808080u
                      : quarter >= 2 ? word & 0xf0f0f0f0u
                                     : word & 0x0f0f0f0fu;
    return make_uint2(sub2_fp16(byte_perm(bytes, 0x64646464u, 0x4140), more),
                      sub2_fp16(byte_perm(bytes, 0x64646464u, 0x4342), more));
  }
};

// Floats: a set for each half of the columns.
template <class Number, int kGroup, class Scale>
struct QuadFactors<Floats<Number, kGroup, Scale>> {
  using W = Floats<Number, kGroup, Scale>;
  static constexpr int kTogether = 1;

  __device__ static constexpr int set(int, int, int half) { return half; }
  __device__ static constexpr bool adds(int, int) { return false; }
  __device__ static __forceinline__ u32 more(const u8*, int) { return 0; }
  __device__ static __forceinline__ uint2 halves(u32 word, int quarter, u32) {
    return W::to_halves(word, quarter);
  }
};

template <class S>
struct QuadProduct {
  using Slots = QuadSlots<S>;
  using W = typename Slots::W;
  using Operand = typename Slots::Operand;
  using Factors = QuadFactors<W>;
  static constexpr int kQuarters = Slots::kQuarters, kTogether = Factors::kTogether;
  static constexpr int kSums = kTokenTile / 2;  // of a lane in each quarter
  using Sums = float[kSums];
  using Scales = float[kTogether][2];  // of the two rows that a lane has

  // What a lane reads of a slot. It has an even row of one of the warp's two tiles and the odd one
  // after it, which are rows lane / 4 of A and the one 8 further. Lanes of even groups of four have
  // rows of the first tile. It is not computed again for every slot.
  struct Places {
    int words, scales, zeros, tokens;

    __device__ __forceinline__ explicit Places(const Prompt& c) {
      const int row = c.lane / 8 * 2;
      const int tile = Operand::kBytes + (c.warp * 2 + c.lane / 4 % 2) * Slots::kTileStride;
      words = tile + (row * 4 + c.lane % 4) * 16;
      scales = tile + W::kScales + row * W::kGroups * int(sizeof(typename W::Scale::Bits));
      zeros = tile + row * W::kGroups;
      if constexpr (W::kZeros) zeros += W::kZeroPoints;
      tokens = Operand::scale_place(0, c.lane % 4 * 2);
      opaque(words, scales, zeros, tokens);
    }
  };

  // Multiplies some quarters of a quad.
  template <int kQuarter>
  __device__ static __forceinline__ void multiply(Sums (&sets)[2], Scales& scales, const u8* slot,
                                                  const Places& at) {
    const auto* bits = reinterpret_cast<const typename W::Scale::Bits*>(slot + at.scales);
    uint2 words[kTogether][2];
    u32 more[kTogether][2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const u8* from = slot + at.words + (W::kBits == 8 ? kQuarter / 2 * 512 : 0) + r * 64;
      if constexpr (kTogether == 2) {
        const uint4 both = *reinterpret_cast<const uint4*>(from);
        words[0][r] = make_uint2(both.x, both.y);
        words[1][r] = make_uint2(both.z, both.w);
      } else {
        words[0][r] = *reinterpret_cast<const uint2*>(from + kQuarter % 2 * 8);
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int group = r * W::kGroups + (kQuarter + i) * W::kGroups / kQuarters;
        more[i][r] = Factors::more(slot + at.zeros + group, kQuarter + i);
        scales[i][r] = W::Scale::to_float(bits[group]);
      }
    }
    uint4 halves[kTogether][2];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto of_row = [&](int r) {
          const uint2 of = words[i][r];
          return Factors::halves(half ? of.y : of.x, kQuarter + i, more[i][r]);
        };
        const uint2 even = of_row(0), odd = of_row(1);
        halves[i][half] = make_uint4(even.x, odd.x, even.y, odd.y);
        opaque_in_order(halves[i][half]);
      }
    }
    const WideOperand operand = wide_operand<kHalfBytes / 2, 8 * 16>(slot);
    wgmma_begin();
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
#pragma unroll
      for (int part = 0; part < Operand::kParts; ++part) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          wgmma_fp16(sets[Factors::set(i, part, half)], halves[i][half],
                     further(operand, Operand::place(kQuarter + i, part, half)),
                     Factors::adds(part, half));
        }
      }
    }
    wgmma_commit();
    wgmma_wait<0>();
    pin(sets[0]);
    pin(sets[1]);
  }

  // Scales what the sets have and adds it to the sums of their quarters.
  template <int kQuarter>
  __device__ static __forceinline__ void add(Sums (&of_quarter)[kQuarters], const Sums (&sets)[2],
                                             const Scales& scales, const u8* slot,
                                             const Places& at) {
#pragma unroll
    for (int j = 0; j < kSums / 8; ++j) {
      const float4 four = *reinterpret_cast<const float4*>(
          slot + at.tokens + Operand::scale_place(kQuarter, j * 16));
      const float of_tokens[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int k = j * 8; k < j * 8 + 8; ++k) {
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          const float by = scales[i][k / 2 % 2] * of_tokens[k / 4 % 2 * 2 + k % 2];
          const float sum = kTogether == 2 ? sets[i][k] : sets[0][k] + sets[1][k];
          of_quarter[kQuarter + i][k] = fmaf(sum, by, of_quarter[kQuarter + i][k]);
        }
      }
    }
  }

  // Computes a tile.
  template <class Reader, class Finish>
  __device__ static __forceinline__ void tile(Prompt& c, const PromptTile& tile, Finish&& finish) {
    float4* const totals = Slots::sums() + c.warp * (kSums / 4 * 32) + c.lane;
    const Places at_slot(c);
    Sums sets[2], of_quarter[kQuarters];
    clear(sets[0]);
    clear(sets[1]);
#pragma unroll 1
    for (int member = 0; member < Slots::kMembers; ++member) {
#pragma unroll
      for (int i = 0; i < kQuarters; ++i) clear(of_quarter[i]);
#pragma unroll 1
      for (int sub = 0; sub < Slots::kSubs; ++sub) {
        if (!Slots::kEven && Slots::quad_of(member, sub) == Slots::kQuads) continue;
        while (!barrier_try_wait(&c.shared.full[c.next.slot], c.next.phase(), kCopyWarps)) {
        }
        const u8* slot = Slots::slot(c.next.slot);
        each<kQuarters / kTogether>([&](auto number) {
          constexpr int kQuarter = number * kTogether;
          Scales scales;
          multiply<kQuarter>(sets, scales, slot, at_slot);
          add<kQuarter>(of_quarter, sets, scales, slot, at_slot);
        });
        fence_proxy_async_shared();
        warp_sync();
        if (c.lane == 0) barrier_arrive(&c.shared.empty[c.next.slot], 1);
        c.next.template advance<Slots::kSlots>();
      }
      const auto sum = [&](int k) {
        return (of_quarter[0][k] + of_quarter[1][k]) + (of_quarter[2][k] + of_quarter[3][k]);
      };
#pragma unroll
      for (int j = 0; j < kSums / 4; ++j) {
        float4 total = member == 0 ? make_float4(0, 0, 0, 0) : totals[j * 32];
        total.x += sum(j * 4), total.y += sum(j * 4 + 1);
        total.z += sum(j * 4 + 2), total.w += sum(j * 4 + 3);
        totals[j * 32] = total;
      }
    }
    // Two tokens side by side, of each the rows of a pair.
    const int row = tile.part * Slots::kPartRows + tile.first_row + c.warp * 16 +
                    c.lane / 4 % 2 * 8 + c.lane / 8 * 2;
    const int end = (tile.part + 1) * Slots::kPartRows;
    const int first = tile.tokens * Slots::kTileTokens + c.lane % 4 * 2;
#pragma unroll
    for (int batch = 0; batch < kSums / 2; batch += kPairsAtOnce) {
      TokenAt at[kPairsAtOnce];
#pragma unroll
      for (int i = 0; i < kPairsAtOnce; ++i)
        at[i] = token_at<S>(c, first + (batch + i) / 2 * 8 + i % 2);
      const auto row_of = [&](int i, PairStores& stores) {
        return pair_at<S>(at[i], row, end, stores);
      };
      const auto pair_of = [&](int i) {
        const float4 total = totals[(batch + i) / 2 * 32];
        const Pair v = i % 2 == 0 ? Pair{total.x, total.z} : Pair{total.y, total.w};
        if constexpr (!Reader::kNorm) return v;
        const float by = at[i].there ? c.inverse()[at[i].token] : 0.0f;
        return Pair{v.x * by, v.y * by};
      };
      finish_batch<S, kPairsAtOnce>(c, row_of, pair_of, finish);
    }
  }
};

}  // namespace amk
