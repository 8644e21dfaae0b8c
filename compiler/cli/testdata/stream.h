// What the producer of a block does, on the CPU: all that a stage streams is in the ring before the block begins.
#pragma once

#include "build.h"

#include "amk/stream.cuh"

// Fills the ring once: the test has made it long enough.
struct Sink {
  Context<Mode::kDecode>& c;
  u32 slot = 0;
  void wait_step(int) {}
  void copy(const u8* source, u32 bytes) {
    if (slot == kRingSlots || bytes > kSlotBytes) abort();
    memcpy(c.ring + slot++ * kSlotBytes, source, bytes);
  }
};

// Streams what `turn` says of each turn, and returns on all threads when it is there.
template <class Turn>
static void stream(Context<Mode::kDecode>& c, Turn turn) {
  if (c.tid == 0) {
    Sink sink{c};
    Turns turns;
    while (turns.left()) {
      turn(turns);
      turns.copy(sink, 0);
    }
  }
  consumer_barrier();
}
template <class S>
static void stream_cache(Context<Mode::kDecode>& c) {
  stream(c, [&](Turns& turns) { turns.cache<S>(c, 0, c.position); });
}
template <class S>
static void stream_weights(Context<Mode::kDecode>& c, const u8* matrix) {
  stream(c, [&](Turns& turns) { turns.weights<S>(c, matrix, 0); });
}
