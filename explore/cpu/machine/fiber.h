// Fibers: stacks that one OS thread switches between. A fiber runs until it yields.
// Must not know what runs on a fiber, or which one is next.
#pragma once

#include <cstddef>

namespace machine {

// A place to switch back to: what a fiber, or the thread itself, was doing.
struct Context {
  void* stack_pointer = nullptr;
};

// Stacks that fibers run on. They have guard pages, and are kept for the next launch.
constexpr size_t kStackBytes = 128 << 10;
void* take_stack();          // its lowest usable address
void give_stack(void* stack);

// Prepares a context so that the first switch to it calls `entry` on the stack. entry never returns.
void prepare(Context& context, void* stack, void (*entry)());

// Goes on with `to`, and returns when something switches back to `from`.
void switch_context(Context& from, Context& to);

}  // namespace machine
