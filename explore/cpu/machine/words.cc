// Operations on words, fences and clocks: choice points, around what the memory model does.
#include <cstring>

#include "findings.h"
#include "model.h"
#include "scheduler.h"
#include "sites.h"

namespace machine {

void load_words(const void* from, u32 bytes, u32 n, u64* values, Ordering ordering, Scope scope,
                Site site) {
  const u32 where = number_of(site);
  const u32 thread = current().id;
  Warp& warp = *current().warp;
  if (scope != Scope::kBlock && warp.has_stored) {
    warp.has_stored = false;
    warp_turns(warp.number);
  }
  u64 all;
  bool newest;
  do {
    choice_point();
    all = 0;
    newest = true;
    for (u32 i = 0; i < n; ++i) {
      const Loaded word = order().load(thread, static_cast<const u8*>(from) + i * bytes, bytes,
                                       ordering, scope, where);
      values[i] = word.value;
      newest &= word.newest;
      all = all * 0x9e3779b97f4a7c15ull + word.value;
    }
  } while (polled(from, bytes * n, all, newest, site));
}

void store_words(void* to, u32 bytes, u32 n, const u64* values, Ordering ordering, Scope scope,
                 Site site) {
  choice_point();
  polls_end();
  current().warp->has_stored |= scope != Scope::kBlock;
  const u32 where = number_of(site);
  for (u32 i = 0; i < n; ++i) {
    order().store(current().id, static_cast<u8*>(to) + i * bytes, bytes, values[i],
                  ordering, scope, where);
  }
}

u64 update_word(void* word, u32 bytes, Update update, u64 operand, Ordering ordering, Scope scope,
                Site site) {
  choice_point();
  polls_end();
  current().warp->has_stored |= scope != Scope::kBlock;
  const u32 where = number_of(site);
  return order().update(current().id, word, bytes, update, operand, ordering, scope,
                        where);
}

void read_constant(const void* from, u32 bytes, Site site) {
  order().read_constant(current().id, from, bytes, number_of(site));
}

// It is a plain access, which is numbered by the address of an instruction: that of the caller.
void read_partly_written(const void* from, u32 bytes) {
  order().read_any(current().id, const_cast<void*>(from), bytes,
                   Where(reinterpret_cast<uintptr_t>(__builtin_return_address(0))));
}

void copy_unseen(void* to, const void* from, u32 bytes) { memcpy(to, from, bytes); }

void fence_block() {
  choice_point(Next::kCommutes);
  order().fence(current().id, Ordering::kBoth, Scope::kBlock);
}

void fence_proxy_async(bool shared_alone) {
  order().fence_proxy(current().id, shared_alone ? Proxy::kShared : Proxy::kAll);
}

}  // namespace machine
