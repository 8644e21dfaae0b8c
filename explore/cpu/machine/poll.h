// Polls that find nothing. A fiber that loads the same words again and again, finds the same values
// and does nothing else is asleep until one of them changes: a spin costs nothing, and ends a run
// in which nothing changes any more. Must not know what the words mean.
#pragma once

#include "machine.h"

namespace machine {

struct Fiber;

// What a fiber has loaded since it last did anything else.
struct Polls {
  static constexpr u32 kMost = 80;  // two polls of 32 words, and what else a round looks at
  struct Poll {
    const void* word;
    u32 bytes;
    u64 value;
    u32 version;  // of the word's bucket
    u32 repeats;  // times that it was found as it was
  };
  u32 count = 0;
  u32 patience = 0;  // polls that do not put it to sleep
  u32 sleep = 0;     // number of its sleep
  Poll polls[kMost];
};

// The fiber that runs has loaded a word, or a few. Returns true if it has slept since: the word may
// be another by now. `newest`: no store to it was overlooked.
bool polled(const void* word, u32 bytes, u64 value, bool newest, Site site);
// The fiber that runs has done something else than to poll.
void polls_end();
// A word has changed: whoever sleeps on it wakes.
void changed(const void* word);
// Whether anybody who sleeps has polled one of these bytes.
bool is_awaited(const void* word, u32 bytes);
// Sleeps until the word changes or all that sleep are woken. Returns false if it may not sleep now.
bool sleep_on(const void* word, const char* what, Site site);

// Wakes all that sleep, for n polls that find nothing. Returns how many there were.
u32 wake_sleepers(u32 patience);
// Before a launch.
void reset_polls();

}  // namespace machine
