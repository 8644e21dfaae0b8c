// The memory of the imaginary GPU: one range of addresses, committed where something is allocated.
// What lies between allocations is not mapped.
#pragma once

#include "machine.h"

namespace machine {

constexpr u64 kArenaBytes = u64(32) << 30;
extern u8* arena;  // null before the first call of arena_begin

// Reserves it, once. Returns false if the system does not allow it.
bool arena_begin();
inline bool in_arena(const void* p) {
  return u64(static_cast<const u8*>(p) - arena) < kArenaBytes;
}

// Allocates zeroed whole pages, with a page between them and the next. Null: there is no room.
u8* arena_allocate(u64 bytes);
// Of an allocation: its bytes, 0 if nothing was allocated at p.
u64 arena_bytes(const void* p);
void arena_free(void* p);
u64 arena_free_bytes();

}  // namespace machine
