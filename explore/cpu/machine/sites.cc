#include "sites.h"

#include <cstring>
#include <memory>

namespace machine {

namespace {

std::vector<std::unique_ptr<CallSite>> sites;

// A cache of sites by addresses: those of names are the same at each call.
struct Cached {
  const char* file;
  const char* primitive;
  int line;
  CallSite* site;
};
constexpr u32 kCached = 1 << 13;
Cached cache[kCached];

CallSite& find_or_add(const char* primitive, Site site) {
  for (auto& s : sites) {
    if (s->site.line == site.line && strcmp(s->primitive, primitive) == 0 &&
        strcmp(s->site.file, site.file) == 0) {
      return *s;
    }
  }
  // The name of the file belongs to a module, which is unloaded.
  sites.push_back(std::make_unique<CallSite>(
      CallSite{primitive, {strdup(site.file), site.line}, u32(sites.size())}));
  return *sites.back();
}

}  // namespace

CallSite& call_site(const char* primitive, Site site) {
  const auto key = reinterpret_cast<uintptr_t>(site.file) * 31 + u32(site.line) * 0x9e3779b1u +
                   reinterpret_cast<uintptr_t>(primitive);
  Cached& cached = cache[(key ^ key >> 13) % kCached];
  if (cached.file != site.file || cached.line != site.line || cached.primitive != primitive) {
    cached = {site.file, primitive, site.line, &find_or_add(primitive, site)};
  }
  ++cached.site->calls;
  return *cached.site;
}

void forget_addresses() {
  for (Cached& c : cache) c = {};
}

CallSite& call_site(u32 number) { return *sites[number]; }
u32 call_sites() { return u32(sites.size()); }

const char* short_name(const char* file) {
  const char* last = strrchr(file, '/');
  if (!last) return file;
  const char* before = last;
  while (before > file && before[-1] != '/') --before;
  return strncmp(before, "amk/", 4) == 0 || strncmp(before, "hw/", 3) == 0 ? before : last + 1;
}

}  // namespace machine
