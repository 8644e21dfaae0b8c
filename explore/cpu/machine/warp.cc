// Collectives of a warp. A lane that comes to one yields to another lane of its warp, until all
// are there. What lanes have brought lies in one of two places in turn: when a lane brings something
// to the next collective, others may still be reading what they got from this one.
#include <cstring>

#include "findings.h"
#include "scheduler.h"
#include "model.h"

namespace machine {

namespace {

bool same_place(Site a, Site b) {
  return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

// Lanes meet at the same collective, and none of them has ended.
void check_meeting(Warp& warp, Collective kind, Site site) {
  if (warp.arrived == 0) {
    warp.collective = kind;
    warp.site = site;
  } else if (warp.collective != kind || !same_place(warp.site, site)) {
    report_fatal(kCollectives, "lanes of a warp are at different collectives",
                 {here(warp.site), here(site)});
  }
  if (warp.present != ~0u) {
    report_fatal(kCollectives, "a collective of a warp of which lanes have ended", {here(site)});
  }
}

// The last lane to come does something for all, and the others go on.
template <class F>
void meet(Collective kind, Site site, F&& at_last) {
  Fiber& fiber = current();
  Warp& warp = *fiber.warp;
  check_meeting(warp, kind, site);
  warp.arrived |= 1u << fiber.lane;
  if (warp.arrived != ~0u) return wait(State::kConverging, "the other lanes of its warp", site);
  warp.arrived = 0;
  at_last(warp);
  for (Fiber* lane : warp.lanes) {
    if (lane != &fiber) wake(*lane);
  }
}

}  // namespace

void* converge(Collective kind, const void* mine, u32 bytes, void (*compute)(void* lanes),
               Site site) {
  Fiber& fiber = current();
  u8* slots = fiber.warp->slots[fiber.warp->turn];
  memcpy(slots + fiber.lane * bytes, mine, bytes);
  meet(kind, site, [&](Warp& warp) {
    warp.turn ^= 1;
    if (compute) compute(slots);
  });
  return slots;
}

void warp_sync(Site site) {
  meet(Collective::kSync, site, [](Warp& warp) {
    u32 ids[kWarpSize];
    for (u32 i = 0; i < kWarpSize; ++i) ids[i] = warp.lanes[i]->id;
    order().join(ids, kWarpSize);
  });
}

}  // namespace machine
