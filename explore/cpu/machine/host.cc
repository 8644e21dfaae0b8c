#include "host.h"

#include <cstring>

#include "arena.h"
#include "model.h"
#include "poll.h"
#include "scheduler.h"

namespace machine {

u64 host_acts_at = ~u64(0);

namespace {

std::vector<HostStore> left;
u64 began = 0;  // steps when the schedule began
const u8* argument = nullptr;
u32 argument_bytes = 0;

void find_next() { host_acts_at = left.empty() ? ~u64(0) : began + left.front().step; }

}  // namespace

void set_host_stores(std::vector<HostStore> stores) {
  left = std::move(stores);
  began = steps();
  find_next();
}

void host_sees(const void* p, u32 bytes) {
  argument = static_cast<const u8*>(p);
  argument_bytes = bytes;
}

void host_acts() {
  while (!left.empty() && steps() >= host_acts_at) {
    const HostStore store = left.front();
    left.erase(left.begin());
    find_next();
    u32* word = nullptr;
    if (store.pointer_at + sizeof word > argument_bytes) continue;
    memcpy(&word, argument + store.pointer_at, sizeof word);
    if (!in_arena(word) || !order().is_inside(word, sizeof *word)) continue;
    *word = store.value;
    changed(word);
  }
}

}  // namespace machine
