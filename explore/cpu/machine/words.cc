// Operations on words, fences and clocks: choice points, around what the memory model does.
#include <cstring>

#include "findings.h"
#include "model.h"
#include "scheduler.h"
#include "sites.h"

namespace machine {

namespace {

const char* name_of_load(Ordering ordering, Scope scope) {
  static const char* const names[3][2] = {
      {"load_shared_relaxed", "load_shared_acquire"},
      {"load_relaxed", "load_acquire"},
      {"load_system", "load_system_acquire"},
  };
  return names[size_t(scope)][ordering == Ordering::kAcquire];
}
const char* name_of_store(Ordering ordering, Scope scope) {
  static const char* const names[3][2] = {
      {"store_shared_relaxed", "store_shared_release"},
      {"store_relaxed", "store_release"},
      {"store_system", "store_system_release"},
  };
  return names[size_t(scope)][ordering == Ordering::kRelease];
}
const char* name_of_update(Update update, Ordering ordering, Scope scope) {
  if (ordering == Ordering::kRelease) return "add_release";
  if (update == Update::kExchange) return "exchange_shared_relaxed";
  if (update == Update::kMax) return "max_relaxed";
  return scope == Scope::kBlock ? "add_shared_relaxed" : "add_relaxed";
}


}  // namespace

void load_words(const void* from, u32 bytes, u32 n, u64* values, Ordering ordering, Scope scope,
                Site site) {
  CallSite& call = call_site(name_of_load(ordering, scope), site);
  const u32 thread = current().id;
  u64 all;
  bool newest;
  do {
    choice_point();
    all = 0;
    newest = true;
    for (u32 i = 0; i < n; ++i) {
      const Loaded word = order().load(thread, static_cast<const u8*>(from) + i * bytes, bytes,
                                       ordering, scope, call.number);
      values[i] = word.value;
      // In a reduced schedule a poll does not run on until a store is committed: it sleeps.
      newest &= is_reduced() ? word.newest_committed : word.newest;
      all = all * 0x9e3779b97f4a7c15ull + word.value;
    }
  } while (polled(from, all, newest, site));
}

void store_words(void* to, u32 bytes, u32 n, const u64* values, Ordering ordering, Scope scope,
                 Site site) {
  choice_point();
  polls_end();
  CallSite& call = call_site(name_of_store(ordering, scope), site);
  for (u32 i = 0; i < n; ++i) {
    order().store(current().id, static_cast<u8*>(to) + i * bytes, bytes, values[i],
                  ordering, scope, call.number);
  }
}

u64 update_word(void* word, u32 bytes, Update update, u64 operand, Ordering ordering, Scope scope,
                Site site) {
  choice_point();
  polls_end();
  CallSite& call = call_site(name_of_update(update, ordering, scope), site);
  return order().update(current().id, word, bytes, update, operand, ordering, scope,
                        call.number);
}

void read_constant(const void* from, u32 bytes, Site site) {
  order().read_constant(current().id, from, bytes, call_site("load_constant", site).number);
}

// It is a plain access, which is numbered by the address of an instruction: that of the caller.
void read_partly_written(const void* from, u32 bytes, Site site) {
  call_site("load_partly_written", site);
  order().read_any(current().id, const_cast<void*>(from), bytes,
                   Where(reinterpret_cast<uintptr_t>(__builtin_return_address(0))));
}

void copy_unseen(void* to, const void* from, u32 bytes) { memcpy(to, from, bytes); }

void fence_block(Site site) {
  choice_point(Next::kCommutes);
  call_site("fence_block", site);
  order().fence(current().id, Ordering::kBoth, Scope::kBlock);
}

void fence_proxy_async(bool shared_alone, Site site) {
  const char* name = shared_alone ? "fence_proxy_async_shared" : "fence_proxy_async";
  call_site(name, site);
  order().fence_proxy(current().id, shared_alone ? Proxy::kShared : Proxy::kAll);
}

}  // namespace machine
