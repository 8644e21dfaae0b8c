// Gated delta rules: a unit is a head of values. It keeps three things from step to step, in
// float32: its state, what the last pass adds to that, and queries, keys and values of the
// positions that a convolution sees. One SM reads and writes them in every step of a launch, so
// that its barriers order what threads write and others read. Needs schedule.h. Must not know what
// the vectors are projected from.
#pragma once

#include "finish.cuh"

namespace amk {

// Where the elements of stage S lie, and who has them. A thread has one column of the state, of a
// part of its rows: kThreads threads in a row have all columns.
template <class S>
struct Recurrence {
  static constexpr int kHeads = S::kUnits / kSequences;
  static constexpr int kKeyRows = S::kKeyHeads * S::kKeys;  // of all heads
  static constexpr int kOwn = 2 * S::kKeys + S::kValues;    // query, key and value of a unit
  static constexpr int kGate = 2 * kKeyRows + kHeads * S::kValues;  // the first, of the vector
  static constexpr int kBeta = kGate + kHeads * S::kValues, kDecay = kBeta + kHeads;
  static constexpr int kThreads = round_up(S::kValues, 32), kParts = kConsumers / kThreads;
  static constexpr int kRows = ceil_div(S::kKeys, kParts);  // of a thread
  static constexpr int kEach = ceil_div(kOwn, kConsumers);  // of what is convolved
  static_assert(kParts > 0 && kRows <= 64, "a thread keeps its part of a column in registers");

  // In the scratch of the products: what is convolved, and sums of parts, twice.
  static constexpr int kScratch = kOwn + 2 * kParts * kThreads;
  static_assert(kScratch <= 2 * kConsumerWarps * kWarpSums, "they fit");

  // The element of the vector that is the i-th of the query, key and value of a head.
  __device__ static __forceinline__ int channel(int head, int i) {
    const int key = head / (kHeads / S::kKeyHeads) * S::kKeys;
    if (i < S::kKeys) return key + i;
    if (i < 2 * S::kKeys) return kKeyRows + key + i - S::kKeys;
    return 2 * kKeyRows + head * S::kValues + i - 2 * S::kKeys;
  }
};

// Σ x² of n floats in shared memory. Each warp adds them up for itself.
template <int kCount, class C, class At>
__device__ __forceinline__ float squares_of_warp(C& c, At&& at) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < ceil_div(kCount, 32); ++i) {
    const int k = i * 32 + c.lane;
    const float x = k < kCount ? at(k) : 0.0f;
    sum += x * x;
  }
  return sum_of_warp(sum);
}

// What a step leaves for the next: the position after it, its decay, its key and what it adds.
struct PendingRow {
  float* row;
  __device__ __forceinline__ float& next() const { return row[0]; }
  __device__ __forceinline__ float& decay() const { return row[1]; }
  __device__ __forceinline__ float& key(int i) const { return row[2 + i]; }
  template <class S>
  __device__ __forceinline__ float& added(int i) const {
    return row[2 + S::kKeys + i];
  }
};

// Of a token: q, k and v are convolved over positions, q and k normalised, and the state S becomes
// decay · S + k ⊗ u, where u is beta · (v - (decay · S)ᵀk). What Sᵀq is, is normalised and times
// silu(z) published. A state is stored as it is before the step, so that the step may come again.
template <class S, class C>
__device__ __forceinline__ void delta_rule(C& c, const Page in, const u8* taps, const u8* decays,
                                           const u8* shifts, const u8* gain, const Page out,
                                           size_t inputs, size_t states, size_t pending) {
  using R = Recurrence<S>;
  static_assert(kTokens == 1, "a pass has one token");
  const Tiles mine = units_of<S>(c.sm, c.layer);
  float* const own = &c.shared.partial[0][0][0];
  float* const sums = own + R::kOwn;
  float* const others = sums + R::kParts * R::kThreads;
  const int column = c.tid % R::kThreads, part = c.tid / R::kThreads, first = part * R::kRows;
  const bool has = part < R::kParts && column < S::kValues;
  const int position = c.position;
#pragma unroll 1
  for (int head = mine.begin; head < mine.end; ++head) {
    auto kept = [&](size_t at, int floats) {
      return reinterpret_cast<float*>(c.launch.cache + at) + size_t(head) * floats;
    };
    float* const state = kept(states, S::kKeys * S::kValues);
    float* const rows = kept(inputs, S::kTaps * R::kOwn);
    const PendingRow left{kept(pending, 2 + S::kKeys + S::kValues)};
    // The state before this step. Loads of what this step does not change overlap the wait for the
    // vector, and so do its stores.
    const bool follows = position > 0 && left.next() == float(position);
    const float before = follows ? left.decay() : 1.0f;
    const float added = follows && has ? left.template added<S>(column) : 0.0f;
    float s[R::kRows];
#pragma unroll
    for (int r = 0; r < R::kRows; ++r) {
      const int row = first + r;
      const bool is = has && row < S::kKeys;
      float x = is && position > 0 ? state[row * S::kValues + column] : 0.0f;
      if (follows && is) x = x * before + left.key(row) * added;
      s[r] = x;
      if (C::kWaits && is && (follows || position == 0)) state[row * S::kValues + column] = x;
    }
    float convolved[R::kEach];  // of the positions before
#pragma unroll
    for (int i = 0; i < R::kEach; ++i) {
      const int e = i * kConsumers + c.tid;
      float sum = 0;
#pragma unroll
      for (int t = 0; t + 1 < S::kTaps; ++t) {
        const int p = position - (S::kTaps - 1) + t;
        if (e < R::kOwn && p >= 0)
          sum += load_weight(taps, R::channel(head, e) * S::kTaps + t) *
                 rows[p % S::kTaps * R::kOwn + e];
      }
      convolved[i] = sum;
    }
    const float rate = load_constant(reinterpret_cast<const float*>(decays) + head);
    const float shift = load_constant(reinterpret_cast<const float*>(shifts) + head);
    const float weight = has ? load_weight(gain, column) : 0.0f;
    if (head == mine.begin) await(c);
    auto words = word_poll<Element, R::kEach + 3>(page_copy(c, in), [&](int i) {
      const int e = i * kConsumers + c.tid;
      if (i < R::kEach) return e < R::kOwn ? R::channel(head, e) : -1;
      if (i == R::kEach) return has && part == 0 ? R::kGate + head * S::kValues + column : -1;
      return (i == R::kEach + 1 ? R::kBeta : R::kDecay) + head;
    });
    poll_all(c, words);
    // Nobody reads what other stages, or the unit before, have left in the scratch, nor what the
    // last step has left.
    consumer_barrier();
    lap(c, Did::kExchangeWait);
#pragma unroll
    for (int i = 0; i < R::kEach; ++i) {
      const int e = i * kConsumers + c.tid;
      if (e >= R::kOwn) break;
      const float x = words.value(i);
      const float y =
          convolved[i] + load_weight(taps, R::channel(head, e) * S::kTaps + S::kTaps - 1) * x;
      own[e] = sigmoid_of(y, y);
      if (C::kWaits) rows[position % S::kTaps * R::kOwn + e] = x;
    }
    consumer_barrier();
    const float* const query = own;
    const float* const key = own + S::kKeys;
    const float q_scale =
        rsqrtf(squares_of_warp<S::kKeys>(c, [&](int i) { return query[i]; }) + 1e-6f) *
        rsqrtf(float(S::kKeys));
    const float k_scale =
        rsqrtf(squares_of_warp<S::kKeys>(c, [&](int i) { return key[i]; }) + 1e-6f);
    const float beta = sigmoid(words.value(R::kEach + 1));
    const float a = words.value(R::kEach + 2) + shift;
    const float decay = expf(-expf(rate) * (fmaxf(a, 0.0f) + log1pf(expf(-fabsf(a)))));
    float sum = 0;
#pragma unroll
    for (int r = 0; r < R::kRows; ++r) {
      if (first + r >= S::kKeys) break;
      s[r] *= decay;
      sum += s[r] * (key[first + r] * k_scale);
    }
    if (part < R::kParts) sums[c.tid] = sum;
    consumer_barrier();
    // The sum of all parts of a column.
    auto total = [&](const float* parts, int of) {
      float all = parts[of];
#pragma unroll
      for (int p = 1; p < R::kParts; ++p) all += parts[p * R::kThreads + of];
      return all;
    };
    const float value = column < S::kValues ? own[2 * S::kKeys + column] : 0.0f;
    const float u = has ? beta * (value - total(sums, column)) : 0.0f;
    sum = 0;
#pragma unroll
    for (int r = 0; r < R::kRows; ++r) {
      if (first + r >= S::kKeys) break;
      s[r] += key[first + r] * k_scale * u;
      sum += s[r] * (query[first + r] * q_scale);
    }
    if (part < R::kParts) others[c.tid] = sum;
    if (C::kWaits) {
      if (c.tid == 0) left.next() = float(position + 1), left.decay() = decay;
#pragma unroll 1
      for (int i = c.tid; i < S::kKeys; i += kConsumers) left.key(i) = key[i] * k_scale;
      if (has && part == 0) left.template added<S>(column) = u;
    }
    consumer_barrier();
    const float squares =
        squares_of_warp<S::kValues>(c, [&](int i) { return total(others, i); });
    if (has && part == 0) {
      const float inverse = rsqrtf(squares * (1.0f / S::kValues) + S::kNormEps);
      const float z = words.value(R::kEach);
      publish<Element>(c, out, head * S::kValues + column,
                       total(others, column) * inverse * weight * sigmoid_of(z, z));
    }
    lap(c, Did::kSignal);
  }
  if (mine.count() > 0) {
    consumer_barrier();  // the scratch is free
    signal(c, mine.count());
  }
  c.advance(S::kTasks);
}

}  // namespace amk
