#include "sites.h"

#include <cstring>
#include <vector>

namespace machine {

namespace {

std::vector<Site> sites;

// A cache of numbers by the address of the name, which is the same at each call.
struct Cached {
  const char* file;
  int line;
  u32 number;
};
constexpr u32 kCached = 1 << 13;
Cached cache[kCached];

u32 find_or_add(Site site) {
  for (u32 i = 0; i < sites.size(); ++i) {
    if (sites[i].line == site.line && strcmp(sites[i].file, site.file) == 0) return i;
  }
  // The name of the file belongs to a module, which may be unloaded.
  sites.push_back({strdup(site.file), site.line});
  return u32(sites.size() - 1);
}

}  // namespace

u32 number_of(Site site) {
  const auto key = reinterpret_cast<uintptr_t>(site.file) * 31 + u32(site.line) * 0x9e3779b1u;
  Cached& cached = cache[(key ^ key >> 13) % kCached];
  if (cached.file != site.file || cached.line != site.line) {
    cached = {site.file, site.line, find_or_add(site)};
  }
  return cached.number;
}
Site site_of(u32 number) { return sites[number]; }

void forget_addresses() {
  for (Cached& c : cache) c = {};
}

const char* short_name(const char* file) {
  const char* last = strrchr(file, '/');
  if (!last) return file;
  const char* before = last;
  while (before > file && before[-1] != '/') --before;
  return strncmp(before, "amk/", 4) == 0 || strncmp(before, "hw/", 3) == 0 ? before : last + 1;
}

}  // namespace machine
