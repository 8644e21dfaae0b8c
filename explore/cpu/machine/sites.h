// Call sites of primitives: each has a number, and a mutant changes what one of them does. Must not
// know what primitives do.
#pragma once

#include <string>
#include <vector>

#include "machine.h"

namespace machine {

enum class Mutation : u8 {
  kNone,
  kLeftOut,  // the call does nothing
  kWeaker,   // it orders less: relaxed instead of release, say
};

// What mutants of a primitive there are.
enum class Mutable : u8 { kNot = 0, kLeftOut = 1, kWeaker = 2, kBoth = 3 };
constexpr bool has(Mutable can, Mutable what) { return (u8(can) & u8(what)) != 0; }

struct CallSite {
  const char* primitive;
  Site site;
  Mutable can;
  u32 number;
  u64 calls = 0;
  Mutation mutation = Mutation::kNone;
};

// The site of a call, and counts it. `primitive` is a literal.
CallSite& call_site(const char* primitive, Site site, Mutable can = Mutable::kNot);
CallSite& call_site(u32 number);
// A module has been unloaded: others may come to lie where its names were.
void forget_addresses();
u32 call_sites();

// The part of a file's path that does not depend on where the build lies: "amk/ring.cuh".
const char* short_name(const char* file);
std::string mutant_id(const CallSite& site, Mutation mutation);
// Makes one mutant run, or none if the id is empty. A site need not have been called before.
void set_mutant(std::string id);
// Whether the mutant that was set has been met.
bool mutant_met();

}  // namespace machine
