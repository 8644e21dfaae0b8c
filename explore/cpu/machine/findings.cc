#include "findings.h"

#include <set>
#include <tuple>

#include "modules.h"
#include "scheduler.h"

namespace machine {

namespace {

std::vector<Report> list;
using Key = std::tuple<const void*, int, const void*>;
std::set<std::pair<std::string, std::vector<Key>>> seen;

constexpr size_t kMost = 1000;

// Modules are unloaded before anybody asks for findings.
void keep(CodePlace& place) {
  static std::set<std::string> names;
  if (place.site.file) {
    place.site.file = names.insert(place.site.file).first->c_str();
  } else if (place.pc) {
    place.module = module_of(place.pc, place.offset);
  }
}

}  // namespace

void report(const char* kind, std::string message, std::vector<CodePlace> places) {
  std::vector<Key> keys;
  for (const CodePlace& p : places) keys.emplace_back(p.site.file, p.site.line, p.pc);
  if (list.size() >= kMost || !seen.emplace(kind, std::move(keys)).second) return;
  for (CodePlace& p : places) keep(p);
  list.push_back({kind, std::move(message), std::move(places)});
}

void report_fatal(const char* kind, std::string message, std::vector<CodePlace> places) {
  report(kind, std::move(message), std::move(places));
  abandon();
}

CodePlace here(Site site) {
  return self ? CodePlace{site, nullptr, self->block, self->thread, {}, 0} : CodePlace{site};
}

const std::vector<Report>& reports() { return list; }

void report_again() { seen.clear(); }

void clear_reports() {
  list.clear();
  seen.clear();
}

}  // namespace machine
