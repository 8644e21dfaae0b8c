#include "model.h"

#include "arena.h"
#include "findings.h"
#include "modules.h"
#include "poll.h"
#include "scheduler.h"
#include "sites.h"

namespace machine {

namespace {

const char* kind_of(Fault fault) {
  switch (fault) {
    case Fault::kRace: return "race";
    case Fault::kProxy: return "proxy";
    case Fault::kUnwritten: return "unwritten";
    case Fault::kOutside: return "outside";
    case Fault::kReadOnly: return "read-only";
    case Fault::kConstant: return "constant";
    case Fault::kMisaligned: return "misaligned";
    case Fault::kWidth: return "width";
  }
  return "unknown";
}

// The number of an access is that of its call site, or of a plain one what remains of its address.
CodePlace place_of(const Access& a, u32 threads) {
  CodePlace place;
  if (a.kind == AccessKind::kPlain) place.pc = instruction_at(a.where);
  else if (a.kind != AccessKind::kNone && a.kind != AccessKind::kHost) place.site = site_of(a.where);
  if (threads) place.block = a.thread / threads, place.thread = a.thread % threads;
  return place;
}

std::string words_of(const Access& a) {
  return std::string(name_of(a.kind)) + (a.writes ? " write" : " read");
}

struct Ears : Listener {
  u32 choose(u32 n, Weak kind) override {
    static constexpr Choice kinds[] = {Choice::kStore, Choice::kWake, Choice::kLoad, Choice::kBytes};
    // A reduced schedule commits each pending store itself, at any time: it holds none.
    if (is_reduced() && kind == Weak::kStore) n = 2;
    return machine::choose(n, kinds[size_t(kind)]);
  }
  void changed(const void* word) override { machine::changed(word); }
  bool is_awaited(const void* word, u32 bytes) override { return machine::is_awaited(word, bytes); }
  void found(const Finding& f) override {
    std::string text = name_of(f.fault);
    text += " of " + std::to_string(f.bytes) + " bytes at " + f.place + ": " + words_of(f.second);
    std::vector<CodePlace> places;
    const u32 threads = self ? self->threads : 0;
    if (f.first.kind != AccessKind::kNone) {
      text += " after " + words_of(f.first);
      if (f.first.kind != AccessKind::kHost) places.push_back(place_of(f.first, threads));
    }
    places.push_back(place_of(f.second, threads));
    report(kind_of(f.fault), std::move(text), std::move(places));
  }
};

}  // namespace

Order& order() {
  static Ears ears;
  static Order* one = new Order(arena, kArenaBytes, &ears);
  return *one;
}

}  // namespace machine
