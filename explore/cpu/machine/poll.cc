#include "poll.h"

#include <vector>

#include "arena.h"
#include "scheduler.h"

namespace machine {

namespace {

// Times that a word is found as it was before its fiber sleeps. A loop that ends without polling in
// vain often loads a word twice.
constexpr u32 kPatience = 3;
// Where schedules are few, each of them counts.
u32 patience() { return is_reduced() ? 1 : kPatience; }

struct Sleeper {
  Fiber* fiber;
  u32 sleep;
};
// Words share buckets by their line of 64 bytes: a false match costs a poll. Which do depends on
// places in the arena alone, so that a schedule is the same in every process.
struct Bucket {
  u32 version = 0;
  std::vector<Sleeper> sleepers;
};
constexpr u32 kBuckets = 1 << 14;
Bucket buckets[kBuckets];

Bucket& bucket_of(const void* word) {
  const u64 line = u64(static_cast<const u8*>(word) - arena) >> 6;
  return buckets[(line * 0x9e3779b97f4a7c15ull) >> 50];
}
static_assert(kBuckets == 1 << (64 - 50), "the shift leaves the number of a bucket");

void register_sleeper(Fiber& fiber, const void* word) {
  Bucket& bucket = bucket_of(word);
  if (!bucket.sleepers.empty() && bucket.sleepers.back().fiber == &fiber &&
      bucket.sleepers.back().sleep == fiber.polls.sleep) {
    return;
  }
  bucket.sleepers.push_back({&fiber, fiber.polls.sleep});
}

bool sleep_now(Fiber& fiber, const char* what, Site site) {
  wait(State::kAsleep, what, site);
  fiber.polls.count = 0;
  return true;
}

}  // namespace

bool polled(const void* word, u32 bytes, u64 value, bool newest, Site site) {
  Fiber& fiber = current();
  Polls& p = fiber.polls;
  if (!newest) {
    polls_end();
    return false;
  }
  u32 i = 0;
  // A round may load a word, and that word and others in one access: they have values of their own.
  while (i < p.count && (p.polls[i].word != word || p.polls[i].bytes != bytes)) ++i;
  const u32 version = bucket_of(word).version;
  if (i == p.count || p.polls[i].value != value) {
    if (i != p.count || i == Polls::kMost) polls_end();
    p.polls[p.count++] = {word, bytes, value, version, 0};
    return false;
  }
  p.polls[i].version = version;
  if (p.patience) {
    --p.patience;
    return false;
  }
  if (++p.polls[i].repeats < patience()) return false;
  p.polls[i].repeats = 0;
  // Nothing has changed since it was loaded, or the fiber looks again.
  for (u32 k = 0; k < p.count; ++k) {
    if (bucket_of(p.polls[k].word).version != p.polls[k].version) {
      polls_end();
      return false;
    }
  }
  ++p.sleep;
  for (u32 k = 0; k < p.count; ++k) register_sleeper(fiber, p.polls[k].word);
  return sleep_now(fiber, "a word that it polls", site);
}

void polls_end() {
  current().polls.count = 0;
}

void changed(const void* word) {
  progress();
  Bucket& bucket = bucket_of(word);
  ++bucket.version;
  for (const Sleeper& s : bucket.sleepers) {
    if (s.fiber->state == State::kAsleep && s.fiber->polls.sleep == s.sleep) wake(*s.fiber);
  }
  bucket.sleepers.clear();
}

bool sleep_on(const void* word, const char* what, Site site) {
  Fiber& fiber = current();
  if (fiber.polls.patience) {
    --fiber.polls.patience;
    return false;
  }
  fiber.polls.count = 0;
  ++fiber.polls.sleep;
  register_sleeper(fiber, word);
  return sleep_now(fiber, what, site);
}

bool is_awaited(const void* word, u32 bytes) {
  const u8* begin = static_cast<const u8*>(word);
  for (const Sleeper& s : bucket_of(word).sleepers) {
    if (s.fiber->state != State::kAsleep || s.fiber->polls.sleep != s.sleep) continue;
    for (u32 k = 0; k < s.fiber->polls.count; ++k) {
      const Polls::Poll& poll = s.fiber->polls.polls[k];
      const u8* polled = static_cast<const u8*>(poll.word);
      if (begin < polled + poll.bytes && polled < begin + bytes) return true;
    }
  }
  return false;
}

u32 wake_sleepers(u32 patience) {
  u32 n = 0;
  for (const auto& warp : warps_at_once()) {
    for (Fiber* fiber : warp->lanes) {
      if (!fiber || fiber->state != State::kAsleep) continue;
      fiber->polls.patience = patience;
      wake(*fiber);
      ++n;
    }
  }
  return n;
}

void reset_polls() {
  for (Bucket& bucket : buckets) bucket.sleepers.clear();
}

}  // namespace machine
