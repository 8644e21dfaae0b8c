#include "sites.h"

#include <cstring>
#include <memory>

namespace machine {

namespace {

std::vector<std::unique_ptr<CallSite>> sites;
std::string mutant;
bool met = false;

// A cache of sites by the address of the file's name, the line and the primitive.
constexpr u32 kCached = 1 << 13;
CallSite* cache[kCached];

bool same(const CallSite& s, const char* primitive, Site site) {
  return s.site.line == site.line && strcmp(s.primitive, primitive) == 0 &&
         strcmp(s.site.file, site.file) == 0;
}

void mutate(CallSite& site) {
  site.mutation = Mutation::kNone;
  for (Mutation m : {Mutation::kLeftOut, Mutation::kWeaker}) {
    if (!mutant.empty() && mutant == mutant_id(site, m)) site.mutation = m;
  }
}

CallSite& find_or_add(const char* primitive, Site site, Mutable can) {
  for (auto& s : sites) {
    if (same(*s, primitive, site)) return *s;
  }
  // The names belong to modules, which are unloaded.
  sites.push_back(std::make_unique<CallSite>(
      CallSite{strdup(primitive), {strdup(site.file), site.line}, can, u32(sites.size())}));
  mutate(*sites.back());
  return *sites.back();
}

}  // namespace

CallSite& call_site(const char* primitive, Site site, Mutable can) {
  const auto key = reinterpret_cast<uintptr_t>(site.file) * 31 + u32(site.line) * 0x9e3779b1u +
                   reinterpret_cast<uintptr_t>(primitive);
  CallSite*& cached = cache[(key ^ key >> 13) % kCached];
  if (!cached || !same(*cached, primitive, site)) cached = &find_or_add(primitive, site, can);
  ++cached->calls;
  if (cached->mutation != Mutation::kNone) met = true;
  return *cached;
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

std::string mutant_id(const CallSite& s, Mutation mutation) {
  return std::string(mutation == Mutation::kLeftOut ? "left-out:" : "weaker:") +
         short_name(s.site.file) + ":" + std::to_string(s.site.line) + ":" + s.primitive;
}

void set_mutant(std::string id) {
  mutant = std::move(id);
  met = false;
  for (auto& s : sites) mutate(*s);
}

bool mutant_met() { return met; }

}  // namespace machine
