#include "arena.h"

#include <sys/mman.h>

#include <map>
#include <unordered_map>
#include <vector>

namespace machine {

u8* arena = nullptr;

namespace {
constexpr u64 kPage = 64 << 10;  // of any system
u64 used = 0;                    // bytes from the beginning that were handed out
std::unordered_map<const void*, u64> allocations;    // bytes asked for
std::multimap<u64, u8*> freed;                       // by whole pages

u64 pages(u64 bytes) { return (bytes + kPage - 1) / kPage * kPage; }
}  // namespace

bool arena_begin() {
  if (arena) return true;
  void* p = mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  arena = static_cast<u8*>(p);
  return true;
}

u8* arena_allocate(u64 bytes) {
  const u64 whole = pages(bytes ? bytes : 1);
  u8* p = nullptr;
  const auto again = freed.find(whole);
  if (again != freed.end()) {
    p = again->second;
    freed.erase(again);
  } else {
    if (whole > kArenaBytes || used + whole + kPage > kArenaBytes) return nullptr;
    p = arena + used;
    used += whole + kPage;
  }
  if (mprotect(p, whole, PROT_READ | PROT_WRITE) != 0) return nullptr;
  allocations[p] = bytes;
  return p;
}

u64 arena_bytes(const void* p) {
  const auto found = allocations.find(p);
  return found == allocations.end() ? 0 : found->second;
}

void arena_free(void* p) {
  const auto found = allocations.find(p);
  if (found == allocations.end()) return;
  const u64 whole = pages(found->second ? found->second : 1);
  // Mapped anew: the pages are given back, and are zero when they are handed out again.
  mmap(p, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed.emplace(whole, static_cast<u8*>(p));
  allocations.erase(found);
}

u64 arena_free_bytes() { return kArenaBytes - used; }

}  // namespace machine
