// Collectives of a warp. A lane that comes to one yields to another lane of its warp, until all
// are there. What lanes have brought lies in one of two places in turn: when a lane brings something
// to the next collective, others may still be reading what they got from this one.
#include <cstring>

#include <algorithm>

#include "device.h"
#include "findings.h"
#include "model.h"
#include "scheduler.h"

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

// ---- registers ------------------------------------------------------------------------------------

namespace {

// Lanes have as many as all of a block may have, in eights.
u32 registers_at_first(u32 threads) { return std::min(device.registers / threads, 255u) / 8 * 8; }

struct Registers {
  u32 count;
  bool raises;
};
void set(Registers* lanes) {
  Warp& warp = *current().warp;
  const Registers wanted = lanes[0];
  if (wanted.raises ? wanted.count < warp.registers : wanted.count > warp.registers) {
    report_fatal(kCollectives, "a warp of " + std::to_string(warp.registers) + " registers a lane " +
                 (wanted.raises ? "raises" : "lowers") + " them to " + std::to_string(wanted.count),
                 {here(warp.site)});
  }
  if (wanted.raises) return;
  warp.home->free_registers += (warp.registers - wanted.count) * kWarpSize;
  warp.registers = wanted.count;
  changed(&warp.home->free_registers);
}

}  // namespace

void begin_registers(Block& block, u32 threads) {
  block.free_registers = device.registers - registers_at_first(threads) * threads;
}
void begin_registers(Warp& warp, u32 threads) { warp.registers = registers_at_first(threads); }

void lower_registers(u32 registers, Site site) {
  const Registers wanted{registers, false};
  converge(Collective::kRegisters, &wanted, sizeof wanted,
           [](void* lanes) { set(static_cast<Registers*>(lanes)); }, site);
}

void raise_registers(u32 registers, Site site) {
  const Registers wanted{registers, true};
  converge(Collective::kRegisters, &wanted, sizeof wanted,
           [](void* lanes) { set(static_cast<Registers*>(lanes)); }, site);
  Warp& warp = *current().warp;
  u32& free = warp.home->free_registers;
  while (warp.registers < registers) {  // until a lane takes them for all
    const u32 more = (registers - warp.registers) * kWarpSize;
    if (free >= more) {
      free -= more;
      warp.registers = registers;
      changed(&free);  // the other lanes
    } else {
      choice_point(Next::kCommutes);
      sleep_on(&free, "registers that other warps have", site);
    }
  }
}

}  // namespace machine
