#include "litmus.h"

#include <algorithm>
#include <cstdlib>

#include "../machine/choice.h"
#include "../machine/findings.h"
#include "../machine/scheduler.h"

namespace litmus {

u64 seen[64];

namespace {

using namespace machine;

int deeper = 0;
u32 failures = 0, tests_run = 0;
constexpr u64 kMostSteps = 200000;  // of a run: a plain one has some hundreds

// How a run has failed: "" if it has not.
std::string run_once(const Test& test, std::string& what) {
  clear_reports();
  std::fill(std::begin(seen), std::end(seen), ~u64(0));
  test.setup();
  for (const auto& kernel : test.kernels) {
    Launch launch;
    launch.body = kernel;
    launch.blocks = launch.at_once = test.blocks;
    launch.threads = test.threads;
    launch.shared_bytes = test.shared;
    launch.gpus = test.gpus;
    if (machine::run(launch) != Outcome::kDone) break;
  }
  if (!reports().empty()) {
    what = reports().front().message;
    for (const CodePlace& p : reports().front().places) {
      what += "; block " + std::to_string(p.block) + " thread " + std::to_string(p.thread);
      if (p.site.file) what += std::string(" ") + p.site.file + ":" + std::to_string(p.site.line);
    }
    return reports().front().kind;
  }
  what = test.outcome();
  return what.empty() ? "" : "outcome";
}

Schedule schedule_of(const Test& test, u32 bound) {
  Schedule s;
  s.strategy = Strategy::kExhaustive;
  s.depth = bound;
  s.reduced = true;
  for (const Assumption& a : std::vector<Assumption>(order().assumptions())) order().assume(a.name, true);
  if (test.without && !order().assume(test.without, false)) {
    printf("FAIL %s: there is no assumption %s\n", test.name.c_str(), test.without);
    exit(1);
  }
  return s;
}

void describe(const Test& test) {
  printf("%s%s%s: ", test.name.c_str(), test.without ? ", without " : "",
         test.without ? test.without : "");
}

void print_schedule() {
  printf("  schedule:");
  for (const Deviation& d : deviations()) printf(" [%llu,%u]", (unsigned long long)d.index, d.value);
  printf("\n");
}

}  // namespace

void holds(const Test& test) {
  ++tests_run;
  const u32 bound = u32(int(test.bound) + deeper);
  begin_schedule(schedule_of(test, bound));
  u64 runs = 0, most = 0;
  do {
    ++runs;
    std::string what;
    const std::string how = run_once(test, what);
    most = std::max(most, choices());
    if (how.empty()) continue;
    ++failures;
    printf("FAIL ");
    describe(test);
    printf("%s after %llu schedules: %s\n", how.c_str(), (unsigned long long)runs, what.c_str());
    print_schedule();
    return;
  } while (next_schedule());
  describe(test);
  printf("holds in all %llu schedules of at most %u deviations, %llu choices\n",
         (unsigned long long)runs, bound, (unsigned long long)most);
}

void fails(const Test& test, const char* how) {
  ++tests_run;
  u64 runs = 0;
  // The fewest deviations first: they make the shortest script. The search ends with the first.
  const u32 most = u32(int(test.bound) + deeper + 1);
  for (u32 bound = 0; bound <= most; ++bound) {
    begin_schedule(schedule_of(test, bound));
    do {
      ++runs;
      std::string what;
      const std::string found = run_once(test, what);
      if (found.empty()) continue;
      if (found == how) {
        describe(test);
        printf("found, %s, in schedule %llu, with %u deviations\n", how, (unsigned long long)runs, bound);
        printf("  %s\n", what.c_str());
        print_schedule();
        return;
      }
      ++failures;
      printf("FAIL ");
      describe(test);
      printf("%s instead of %s: %s\n", found.c_str(), how, what.c_str());
      print_schedule();
      return;
    } while (next_schedule());
  }
  ++failures;
  printf("FAIL ");
  describe(test);
  printf("no %s in all %llu schedules of at most %u deviations\n", how, (unsigned long long)runs, most);
}

int run(int argc, char** argv, const char* program, void (*tests)()) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (!arena_begin()) return puts("no room for the memory of the GPU"), 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--deeper")) deeper = atoi(argv[i + 1]);
  }
  printf("assumptions:");
  for (const Assumption& a : order().assumptions()) printf(" %s", a.name);
  printf("\n");
  limit_steps(kMostSteps);
  tests();
  printf("%s: %u tests, %u failed\n", program, tests_run, failures);
  return failures != 0;
}

}  // namespace litmus
