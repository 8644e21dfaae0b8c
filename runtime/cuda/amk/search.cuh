// Which tokens top-k and top-p keep, found by all SMs together. A token has a place, which is
// sixteen digits (choice.cuh). In a round every SM counts its own tokens by the next digit and adds
// its counts to the tally, and all wait for each other; then each SM knows the digit of the last
// eligible token, or that more digits are needed. Sums are integers, so their order does not
// matter. Only launches with such choices run this code. Needs schedule.h.
#pragma once

#include "choice.cuh"
#include "step.cuh"

namespace amk {

// Where a block is in a step, for code that is not inlined: the logits of its own rows are in
// [begin, end) of the vocabulary.
struct Site {
  const Launch& launch;
  Scratch& shared;
  int sm, step, position;
  int begin, end;
  Waiter waiter;

  template <class C>
  __device__ __forceinline__ Site(C& c, int first, int end)
      : launch(c.launch), shared(c.shared), sm(c.sm), step(c.step), position(c.position),
        begin(first), end(end), waiter{c.stage, c.layer, c.step} {}

  __device__ __forceinline__ const float* logits(int token) const {
    return launch.logits + (size_t(step) * launch.logit_stride + token) * kVocab;
  }
  __device__ __forceinline__ int position_of(int token) const {
    if constexpr (kSequences > 1)
      return sequence_position(launch, sequence_of(token), position) + row_of(token);
    else
      return position + token;
  }
  __device__ __forceinline__ Draw draw(int token) const {
    return Draw(launch.sampling + token / kSequenceRows, position_of(token));
  }
  __device__ __forceinline__ Chooser chooser(int token) const {
    const int sequence = token / kSequenceRows;
    const bool rows = kSequenceRows > 1;
    const int first = rows && kSequences > 1 ? sequence * kSequenceRows : 0;  // of the sequence
    return Chooser(launch.choices[sequence], launch.sampling + sequence, position_of(token),
                   rows ? reinterpret_cast<const u32*>(shared.token + first) + 1
                        : launch.tokens + sequence,
                   rows ? 1 : kTokens, rows ? token - first : step);
  }
};

// The state of a token's search in a block.
struct Search {
  Left left;
  Place begun;  // the digits that are known
  u64 ahead;    // of the tokens before them
  u64 limit;    // a token is left if no more than this is ahead of it
  u32 going;    // more digits are needed
};

// The block's counts for one token, and its searches; they take the place of partial sums.
struct Pool {
  u64 amount[kBins];
  u32 count[kBins];
  Search of[kTokens];
  u32 turn;  // rounds that have ended
};
static_assert(sizeof(Pool) <= sizeof(Scratch::partial), "it has room for the searches");
static_assert(kBins == kConsumers && kTokens <= kConsumerWarps && kTokens <= kMaxTokens,
              "a thread has a bin, and a warp a token");
__device__ __forceinline__ Pool& pool_of(Scratch& shared) {
  return *reinterpret_cast<Pool*>(&shared.partial);
}

// The largest integer not above q times n, for 0 < q <= 1.
__device__ __forceinline__ u64 share_of(double q, u64 n) {
  const u64 bits = bits_of(q);
  const u64 mantissa = (bits & ((u64(1) << 52) - 1)) | u64(1) << 52;
  const int shift = 1075 - int(bits >> 52);
  const u64 high = multiply_high(mantissa, n), low = mantissa * n;
  return shift >= 64 ? high >> (shift - 64) : high << (64 - shift) | low >> shift;
}

// The weight of the most probable token; all tokens together weigh at most 2^62.
constexpr int bits_of_number(int n) { return n ? 1 + bits_of_number(n / 2) : 0; }
constexpr double kHeaviest = double(u64(1) << (62 - bits_of_number(kVocab - 1)));

// Ends a round: what every SM has added is visible to all. The tallies of the previous round, which
// nobody reads any more, are cleared for the round after the next.
__device__ __forceinline__ void join_round(const Site& at, Pool& pool) {
  Rounds& rounds = *at.launch.rounds;
  const u32 turn = pool.turn;
  consumer_barrier();
  if (thread_index() == 0) {
    add_release(&rounds.joined, 1);
    Waiter waiter = at.waiter;
    Spin spin;
    while (int(load_acquire(&rounds.joined) - (turn + 1) * kSMs) < 0) {
      if (spin.cancelled(waiter, Wait::kExchange, turn, (turn + 1) * kSMs)) break;
    }
    pool.turn = turn + 1;
  }
  consumer_barrier();
  if (at.sm == 0) {
    for (int token = 0; token < kTokens; ++token) {
      Tally& old = rounds.of[(turn + 2) % 3][token];
      old.amount[thread_index()] = 0;
      old.count[thread_index()] = 0;
      if (thread_index() == 0) old.largest = 0;
    }
  }
}

// Finds the largest score of a token; a void score is larger than any.
__device__ __forceinline__ void find_largest(const Site& at, Tally& tally, int token) {
  const Chooser chooser = at.chooser(token);
  if (!chooser.leaves_out()) return;
  const float* logits = at.logits(token);
  u64 largest = 0;
  for (int id = at.begin + int(thread_index()); id < at.end; id += kConsumers) {
    const u64 key = chooser.is_void(logits[id]) ? ~u64(0) : in_order(chooser.score(logits[id], id));
    if (key > largest) largest = key;
  }
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) {
    const u64 other = shuffle_xor(largest, offset);
    if (other > largest) largest = other;
  }
  if (thread_index() % 32 == 0)
    max_relaxed(&tally.largest, largest);
}

// Counts this SM's tokens that have the known digits, by the next digit.
__device__ __forceinline__ void count_own(const Site& at, Pool& pool, Tally& tally, int token,
                                          int digits, bool weigh) {
  const Chooser chooser = at.chooser(token);
  const Search& search = pool.of[token];
  const float* logits = at.logits(token);
  pool.amount[thread_index()] = 0;
  pool.count[thread_index()] = 0;
  consumer_barrier();
  for (int id = at.begin + int(thread_index()); id < at.end; id += kConsumers) {
    const double score = chooser.score(logits[id], id);
    if (score == -INFINITY) continue;
    const Place place = place_of(score, search.left.largest, id);
    if (search.left.bounded && place.is_after(search.left.last)) continue;
    if (!place.begins(search.begun, digits)) continue;
    const u32 digit = place.digit(digits);
    u64 amount = 1;
    if (weigh) {
      const double probability = chooser.probability(score, search.left.largest);
      amount = u64(double_to_int64(mul_rn(probability, kHeaviest)));
    }
    add_shared_relaxed(&pool.amount[digit], amount);
    add_shared_relaxed(&pool.count[digit], 1u);
  }
  consumer_barrier();
  if (const u32 n = pool.count[thread_index()]) {
    add_relaxed(&tally.amount[thread_index()], pool.amount[thread_index()]);
    add_relaxed(&tally.count[thread_index()], n);
  }
  consumer_barrier();
}

// Finds the next digit of the last eligible token, from the counts of all SMs. All lanes of a warp
// call it.
__device__ __forceinline__ void find_digit(const Chooser& chooser, Search& search,
                                           const Tally& tally, int digits, bool weigh) {
  constexpr int kOwn = kBins / 32;
  const int lane = thread_index() % 32;
  u64 amount[kOwn], own = 0;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) own += amount[i] = load_relaxed(&tally.amount[lane * kOwn + i]);
  u64 upto = own;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const u64 before = shuffle_up(upto, offset);
    if (lane >= offset) upto += before;
  }
  const u64 all = shuffle(upto, 31);
  u64 limit = search.limit, ahead = search.ahead;
  if (digits == 0) {
    ahead = 0;
    if (weigh) {
      const u64 out = share_of(chooser.choice.rest, all);
      limit = out < all ? all - out - 1 : 0;
    } else {
      limit = u64(chooser.choice.top_k) - 1;
    }
  }
  const bool everything = digits == 0 && !weigh && all <= limit + 1;
  warp_sync();  // all lanes have read the search
  if (everything) {
    if (lane == 0) search.going = 0;
    return;
  }
  u64 before = ahead + upto - own;
  if (before > limit || ahead + upto <= limit) return;  // another lane has it
  int i = 0;
  while (i < kOwn - 1 && before + amount[i] <= limit) before += amount[i++];
  const int digit = lane * kOwn + i;
  search.limit = limit;
  search.ahead = before;
  const bool found = weigh ? load_relaxed(&tally.count[digit]) == 1 || digits == kPlaceDigits - 1
                           : before + amount[i] == limit + 1 || digits == kScoreDigits - 1;
  search.begun.set(digits, u32(digit));
  if (found) {
    Place last = search.begun;  // top-k may have kept fewer of the tokens with these digits
    last.end_with(digits, u32(digit));
    if (!search.left.bounded || !last.is_after(search.left.last)) search.left.last = last;
    search.left.bounded = 1;
    search.going = 0;
  }
}

// Finds the eligible tokens of every row of the pass. All SMs call it together.
__device__ __forceinline__ void find_left(const Site& at, Pool& pool) {
  Rounds& rounds = *at.launch.rounds;
  const int warp = thread_index() / 32, lane = thread_index() % 32;
  if (thread_index() == 0) pool.turn = load_relaxed(&rounds.joined) / kSMs;
  consumer_barrier();
  Tally* tallies = rounds.of[pool.turn % 3];
  for (int token = 0; token < kTokens; ++token) find_largest(at, tallies[token], token);
  join_round(at, pool);
  if (warp < kTokens && lane == 0) {
    Search& search = pool.of[warp];
    const u64 key = load_relaxed(&tallies[warp].largest);
    search.left.largest = from_order(key);
    search.left.is_void = key == ~u64(0) || search.left.largest == -INFINITY;
    search.left.bounded = 0;
    search.begun = {};  // its digits come one by one, and the others are read with them
    search.limit = search.ahead = 0;
  }
  for (int weigh = 0; weigh < 2; ++weigh) {
    if (warp < kTokens && lane == 0) {
      const Chooser chooser = at.chooser(warp);
      Search& search = pool.of[warp];
      search.going = chooser.leaves_out() && !search.left.is_void &&
                     (weigh ? chooser.choice.rest > 0 : chooser.choice.top_k > 0);
    }
    for (int digits = 0; digits < kPlaceDigits; ++digits) {
      consumer_barrier();
      u32 going = 0;
      for (int token = 0; token < kTokens; ++token) going |= pool.of[token].going;
      if (!going) break;
      tallies = rounds.of[pool.turn % 3];
      for (int token = 0; token < kTokens; ++token) {
        if (pool.of[token].going) count_own(at, pool, tallies[token], token, digits, weigh);
      }
      join_round(at, pool);
      if (warp < kTokens && pool.of[warp].going)
        find_digit(at.chooser(warp), pool.of[warp], tallies[warp], digits, weigh);
    }
    consumer_barrier();
  }
}

}  // namespace amk
