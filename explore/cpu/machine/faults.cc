// What is found, and its words.
#include <cstdio>

#include "state.h"

namespace machine {

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::kRace: return "data race";
    case Fault::kProxy: return "data race with the async proxy: a proxy fence is missing";
    case Fault::kUnwritten: return "read of bytes that nobody has written";
    case Fault::kOutside: return "access to bytes outside of all memory of its block";
    case Fault::kReadOnly: return "write to weights";
    case Fault::kConstant: return "constant load of bytes that the same launch writes";
    case Fault::kMisaligned: return "word that is not aligned";
    case Fault::kWidth: return "concurrent words of 4 and 8 bytes that overlap";
  }
  return "";
}

const char* name_of(AccessKind kind) {
  switch (kind) {
    case AccessKind::kNone: return "nobody";
    case AccessKind::kHost: return "host";
    case AccessKind::kPlain: return "plain access";
    case AccessKind::kConstant: return "constant load";
    case AccessKind::kRelaxed: return "word";
    case AccessKind::kAtomic: return "atomic";
    case AccessKind::kBulkCopy: return "bulk copy";
    case AccessKind::kAsyncCopy: return "async copy";
    case AccessKind::kBarrier: return "mbarrier";
  }
  return "";
}

u32 Order::State::thread_of(Actor actor) const {
  const u32 block = block_of(actor), place = place_of(actor);
  if (block >= actors.size()) return 0;
  if (place < warp_places) return block * threads_per_block + place;
  const auto& places = actors[block].places;
  return place - warp_places < places.size() ? places[place - warp_places].thread : 0;
}

AccessKind Order::State::kind_of_copy(Actor actor) const {
  return actors[block_of(actor)].places[place_of(actor) - warp_places].is_bulk
             ? AccessKind::kBulkCopy
             : AccessKind::kAsyncCopy;
}

void Order::State::report(Fault fault, const Access& earlier, const Accessing& a, bool writes,
                          const void* p, u32 bytes) {
  const u64 key = (u64(fault) << 59 ^ u64(earlier.kind) << 54 ^ u64(a.kind) << 49 ^
                   u64(earlier.writes) << 48) +
                  (u64(earlier.where) << 32 | a.where) * 0x9e3779b97f4a7c15u;
  if (!reported.insert(key).second) return;
  Finding finding;
  finding.fault = fault;
  finding.first = earlier;
  finding.second = {thread_of(a.actor), a.kind, writes, a.where};
  finding.address = p;
  finding.bytes = bytes;
  const Region* region = shadow.region_of(p);
  char offset[32];
  if (region) {
    std::snprintf(offset, sizeof offset, " + 0x%zx",
                  size_t(static_cast<const u8*>(p) - region->begin));
    finding.place = region->name + offset;
  } else {
    std::snprintf(offset, sizeof offset, "%p", p);
    finding.place = std::string("no allocation, address ") + offset;
  }
  listener->found(finding);
}

// What fails for the async proxy alone lacks a fence.
static Fault fault_for(Fault fault, const Accessing& a, bool ordered_otherwise) {
  return fault == Fault::kRace && a.kind == AccessKind::kBulkCopy && ordered_otherwise
             ? Fault::kProxy
             : fault;
}

void Order::State::report_writer(Fault fault, const Cell& cell, const Accessing& a, bool writes,
                                 const void* p, u32 bytes) {
  Access first;
  if (fault == Fault::kRace || fault == Fault::kConstant) {
    const Actor who = who_of(cell.written_by);
    first = {thread_of(who), AccessKind(cell.kind()), true, cell.written_where};
    if (cell.kind() == kCopiedUnwritten) first.kind = kind_of_copy(who);
  }
  const bool generic = a.generic && a.generic->orders(who_of(cell.written_by), cell.written_epoch);
  report(fault_for(fault, a, generic), first, a, writes, p, bytes);
}

void Order::State::report_user(Fault fault, const Users& u, const Accessing& a, bool writes,
                               const void* p, u32 bytes) {
  const Actor warp = who_of(u.tag);
  u32 lane = u32(__builtin_ctz(u.lanes));
  for (u32 lanes = u.lanes; lanes; lanes &= lanes - 1) {
    lane = u32(__builtin_ctz(lanes));
    if (!a.view->orders(warp + lane, u.epoch)) break;
  }
  const AccessKind kind = u.kind() == kStrongStore ? AccessKind::kRelaxed : AccessKind(u.kind());
  const Access first = {thread_of(warp + lane), kind, is_strong_store(u.kind()), u.where};
  const bool generic = a.generic && u.ordered_before(*a.generic);
  report(fault_for(fault, a, generic), first, a, writes, p, bytes);
}

void Order::State::report_store(Fault fault, const Store& s, const Accessing& a, bool writes,
                                const void* p, u32 bytes) {
  const Access first = {thread_of(s.actor), s.atomic ? AccessKind::kAtomic : AccessKind::kRelaxed,
                        true, s.where};
  const bool generic = a.generic && a.generic->orders(s.actor, s.epoch);
  report(fault_for(fault, a, generic), first, a, writes, p, bytes);
}

}  // namespace machine
