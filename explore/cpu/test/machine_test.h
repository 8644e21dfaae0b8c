// What tests of the machine share: checks that say what was found, and launches of a function.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../machine/arena.h"
#include "../machine/choice.h"
#include "../machine/findings.h"
#include "../machine/model.h"
#include "../machine/scheduler.h"
#include "../machine/sites.h"

#define AMK_BULK_COPY 1
#include "../amk_cpu/memory.h"
#include "../amk_cpu/thread.h"

using namespace amk;
namespace m = machine;

namespace {

int failures = 0;
const char* test = "";

void check(bool ok, const char* what, int line) {
  if (ok) return;
  ++failures;
  printf("%s: line %d: %s\n", test, line, what);
  for (const m::Report& r : m::reports()) printf("  found %s: %s\n", r.kind, r.message.c_str());
}
#define CHECK(x) check(x, #x, __LINE__)

bool found(const char* kind) {
  for (const m::Report& r : m::reports()) {
    if (!strcmp(r.kind, kind)) return true;
  }
  return false;
}

m::Outcome launch(u32 blocks, u32 threads, u32 shared, std::function<void()> body) {
  m::Launch l;
  l.body = std::move(body);
  l.blocks = l.at_once = blocks;
  l.threads = threads;
  l.shared_bytes = shared;
  return m::run(l);
}

}  // namespace
