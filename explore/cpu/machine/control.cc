#include "control.h"

#include <cstring>

#include "arena.h"
#include "choice.h"
#include "device.h"
#include "findings.h"
#include "host.h"
#include "json.h"
#include "model.h"
#include "modules.h"
#include "results.h"
#include "scheduler.h"
#include "mutant.h"
#include "sites.h"

namespace machine {

Device device;

namespace {

std::string answer;  // of the last call

struct Totals {
  u64 launches = 0, steps = 0;
  bool abandoned = false;
  Order::Counts counts;
} totals;

std::string number(u64 n) { return std::to_string(n); }

const char* give(std::string text) {
  answer = std::move(text);
  return answer.c_str();
}

const Json* field(const Json& object, const char* name, Json::Type type, std::string& why) {
  const auto found = object.fields.find(name);
  if (found == object.fields.end()) return nullptr;
  if (found->second.type == type) return &found->second;
  why = std::string("\"") + name + "\" has a value of another type";
  return nullptr;
}

template <class T>
void take_number(const Json& object, const char* name, T& into, std::string& why) {
  if (const Json* v = field(object, name, Json::Type::kNumber, why)) into = T(v->number);
}

bool unknown_field(const Json& object, std::initializer_list<const char*> known, std::string& why) {
  for (const auto& f : object.fields) {
    bool is_known = false;
    for (const char* name : known) is_known |= f.first == name;
    if (is_known) continue;
    why = "\"" + f.first + "\" is not a setting";
    return true;
  }
  return false;
}

void begin() {
  clear_reports();
  totals = {};
}

bool take_schedule(const Json& object, std::string& why) {
  if (unknown_field(object, {"strategy", "seed", "depth", "last", "expected", "deviations", "assume",
                             "mutant", "max_steps", "host_stores", "reduced"}, why)) {
    return false;
  }
  Schedule s;
  if (const Json* v = field(object, "strategy", Json::Type::kString, why)) {
    static constexpr const char* kNames[] = {"random", "pct", "exhaustive", "replay"};
    u32 i = 0;
    while (i < 4 && v->text != kNames[i]) ++i;
    if (i == 4) return why = "\"strategy\" is random, pct, exhaustive or replay", false;
    s.strategy = Strategy(i);
  }
  take_number(object, "seed", s.seed, why);
  take_number(object, "depth", s.depth, why);
  take_number(object, "last", s.last, why);
  take_number(object, "expected", s.expected, why);
  if (const Json* v = field(object, "deviations", Json::Type::kArray, why)) {
    for (const Json& d : v->items) {
      if (d.items.size() != 2) return why = "a deviation is [index, value]", false;
      if (!s.deviations.empty() && s.deviations.back().index >= d.items[0].number) {
        return why = "the indices of deviations grow", false;
      }
      s.deviations.push_back({d.items[0].number, u32(d.items[1].number)});
    }
  }
  std::vector<HostStore> stores;
  if (const Json* v = field(object, "host_stores", Json::Type::kArray, why)) {
    for (const Json& each : v->items) {
      HostStore store = {};
      take_number(each, "step", store.step, why);
      take_number(each, "pointer_at", store.pointer_at, why);
      take_number(each, "value", store.value, why);
      if (!stores.empty() && stores.back().step > store.step) {
        return why = "the steps of \"host_stores\" grow", false;
      }
      stores.push_back(store);
    }
  }
  if (const Json* v = field(object, "reduced", Json::Type::kBool, why)) s.reduced = v->truth;
  u64 most = ~u64(0);
  take_number(object, "max_steps", most, why);
  u64 mutant = 0;
  take_number(object, "mutant", mutant, why);
  const Json* assume = field(object, "assume", Json::Type::kObject, why);
  if (!why.empty()) return false;
  for (const Assumption& a : std::vector<Assumption>(order().assumptions())) order().assume(a.name, true);
  if (assume) {
    for (const auto& a : assume->fields) {
      if (a.second.type != Json::Type::kBool || !order().assume(a.first.c_str(), a.second.truth)) {
        return why = "\"" + a.first + "\" is not an assumption, or is neither true nor false", false;
      }
    }
  }
  limit_steps(most);
  set_mutant(u32(mutant));
  set_host_stores(std::move(stores));
  begin_schedule(std::move(s));
  return true;
}

std::string json_of(const CodePlace& p) {
  std::string text = "{";
  if (p.site.file) {
    text += "\"file\":" + quoted(short_name(p.site.file)) + ",\"line\":" + number(u64(p.site.line)) + ",";
  } else if (p.pc) {
    text += "\"module\":" + quoted(p.module) + ",\"offset\":" + number(p.offset) + ",";
  }
  return text + "\"block\":" + number(p.block) + ",\"thread\":" + number(p.thread) + "}";
}

std::string json_of(const Report& r) {
  std::string text = "{\"kind\":" + quoted(r.kind) + ",\"message\":" + quoted(r.message) + ",\"sites\":[";
  for (size_t i = 0; i < r.places.size(); ++i) text += (i ? "," : "") + json_of(r.places[i]);
  return text + "]}";
}

}  // namespace

void note_launch(u64 steps, Outcome outcome) {
  ++totals.launches;
  totals.steps += steps;
  totals.abandoned |= outcome == Outcome::kAbandoned;
  const Order::Counts c = order().counts();
  totals.counts.plain += c.plain;
  totals.counts.loads += c.loads;
  totals.counts.stores += c.stores;
  totals.counts.delayed += c.delayed;
  totals.counts.stale += c.stale;
  totals.counts.syncs += c.syncs;
  totals.counts.copied += c.copied;
  totals.counts.torn += c.torn;
}

bool set_device(const char* json, std::string& why) {
  Json object;
  if (!parse(json, object, why)) return false;
  if (unknown_field(object, {"name", "arch", "sms", "gpus", "shared_per_block", "l2_bytes"}, why)) return false;
  Device d = device;
  if (const Json* v = field(object, "name", Json::Type::kString, why)) d.name = v->text;
  take_number(object, "arch", d.arch, why);
  take_number(object, "sms", d.sms, why);
  take_number(object, "gpus", d.gpus, why);
  take_number(object, "shared_per_block", d.shared_per_block, why);
  take_number(object, "l2_bytes", d.l2_bytes, why);
  if (why.empty() && d.gpus > 8) why = "\"gpus\" are more than 8";
  if (why.empty() && (d.gpus == 0 || d.sms % d.gpus != 0)) why = "\"sms\" are not as many on each of \"gpus\"";
  if (!why.empty()) return false;
  d.shared_per_sm = d.shared_per_block + (1 << 10);
  device = d;
  return true;
}

}  // namespace machine

using namespace machine;

extern "C" {

const char* amk_explore_device(const char* json) {
  std::string why;
  return set_device(json, why) ? nullptr : give(why);
}

const char* amk_explore_schedule(const char* json) {
  if (!arena_begin()) return give("no room for the memory of the GPU");
  Json object;
  std::string why;
  begin();
  if (!parse(json, object, why) || !take_schedule(object, why)) return give(why);
  return nullptr;
}

int amk_explore_next(void) {
  begin();
  return next_schedule();
}

const char* amk_explore_result(void) {
  std::string text = "{\"findings\":[";
  for (size_t i = 0; i < reports().size(); ++i) text += (i ? "," : "") + json_of(reports()[i]);
  text += "],\"choices\":" + number(choices()) + ",\"deviations\":[";
  for (size_t i = 0; i < deviations().size(); ++i) {
    const Deviation& d = deviations()[i];
    text += std::string(i ? "," : "") + "[" + number(d.index) + "," + number(d.value) + "]";
  }
  const Order::Counts& c = totals.counts;
  text += "],\"steps\":" + number(totals.steps) + ",\"launches\":" + number(totals.launches) +
          ",\"abandoned\":" + (totals.abandoned ? "true" : "false") +
          ",\"reached\":" + reached_sites() + ",\"counts\":{\"plain\":" +
          number(c.plain) + ",\"loads\":" + number(c.loads) + ",\"stores\":" + number(c.stores) +
          ",\"delayed\":" + number(c.delayed) + ",\"stale\":" + number(c.stale) + ",\"syncs\":" +
          number(c.syncs) + ",\"copied\":" + number(c.copied) + ",\"torn\":" + number(c.torn) + "}}";
  report_again();
  return give(std::move(text));
}

const char* amk_explore_assumptions(void) {
  if (!arena_begin()) return give("[]");
  std::string text = "[";
  for (const Assumption& a : order().assumptions()) {
    text += (text.size() > 1 ? ",{" : "{") + ("\"name\":" + quoted(a.name)) + ",\"meaning\":" +
            quoted(a.meaning) + ",\"on\":" + (a.on ? "true" : "false") + "}";
  }
  return give(text + "]");
}
}
