// A machine for tests of package explore without one: the fake driver of runtime/host/hosttest, and the functions of
// explore/cpu/machine/control.h. A launch has 100 choices and 100 steps. What goes wrong depends on the deviations of the
// schedule: 7 and 31 together are a race, 13 changes logits, 55 stalls. Seed 666 of random crashes, and 667 hangs.
static void before_launch(void** args);
#define BEFORE_LAUNCH(args) before_launch(args)
#include "../../runtime/host/hosttest/testdata/fakekernels.c"
#include <signal.h>

enum { kMost = 512, kPerLaunch = 100 };
static struct { unsigned long index, value; } taken[kMost], wanted[kMost];
static int n_taken, n_wanted, is_random;
static unsigned long seed, chosen, launches, abort_at;
static int has_abort;
static char text[1 << 16];

static int is_taken(unsigned long index) {
  for (int i = 0; i < n_taken; i++)
    if (taken[i].index == index) return 1;
  return 0;
}

static unsigned long field(const char* json, const char* name, unsigned long initial) {
  char pattern[64];
  snprintf(pattern, sizeof pattern, "\"%s\":", name);
  const char* at = strstr(json, pattern);
  return at ? strtoul(at + strlen(pattern), 0, 10) : initial;
}

const char* amk_explore_schedule(const char* json) {
  if (strstr(json, "\"seed\":99")) return "there is no such seed";
  is_random = strstr(json, "\"random\"") != 0;
  seed = field(json, "seed", 0), chosen = launches = 0, n_taken = n_wanted = 0;
  has_abort = strstr(json, "host_stores") != 0, abort_at = field(json, "step", 0);
  const char* at = strstr(json, "\"deviations\":[");
  for (at = at ? at + strlen("\"deviations\":[") : ""; *at == '[' && n_wanted < kMost;) {
    char* end;
    wanted[n_wanted].index = strtoul(at + 1, &end, 10);
    wanted[n_wanted++].value = strtoul(end + 1, &end, 10);
    at = end + 1 + (end[1] == ',');
  }
  return 0;
}

static unsigned long drawn(unsigned long index) {
  uint64_t x = seed * 0x9E3779B97F4A7C15ull + index * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 29) * 0x94D049BB133111EBull;
  return (x ^ x >> 32) % 4 == 0;
}

static void choose_until(unsigned long end) {
  for (; chosen < end; chosen++) {
    unsigned long value = 0;
    if (is_random) value = drawn(chosen);
    for (int i = 0; i < n_wanted; i++)
      if (wanted[i].index == chosen) value = wanted[i].value;
    if (value && n_taken < kMost) taken[n_taken].index = chosen, taken[n_taken++].value = value;
  }
}

static void before_launch(void** args) {
  unsigned long before = chosen;
  choose_until(before + kPerLaunch);
  launches++;
  if (is_random && seed == 666) {
    fprintf(stderr, "\033[31mthe machine is \x01 on fire\n");
    raise(SIGABRT);
  }
  while (is_random && seed == 667) usleep(1000);
  if (has_abort && before <= abort_at && abort_at < chosen) {
    const Launch* l = args[0];
    *(uint32_t*)host(l->abort) = 1;
  }
  if (is_taken(13)) off = 300;
  if (is_taken(55)) stall_at = ((Launch*)args[0])->position;
}

const char* amk_explore_result(void) {
  int n = snprintf(text, sizeof text, "{\"findings\":[");
  if (is_taken(7) && is_taken(31))
    n += snprintf(text + n, sizeof text - n,
                  "{\"kind\":\"race\",\"message\":\"a store and a load of \\u001b[1m the same word\",\"sites\":["
                  "{\"file\":\"./amk/exchange.cuh\",\"line\":70,\"block\":1,\"thread\":3},"
                  "{\"module\":\"megakernel.fatbin\",\"offset\":16,\"block\":2,\"thread\":5}]}");
  n += snprintf(text + n, sizeof text - n, "],\"choices\":%lu,\"steps\":%lu,\"launches\":%lu,\"deviations\":[", chosen,
                chosen, launches);
  for (int i = 0; i < n_taken; i++)
    n += snprintf(text + n, sizeof text - n, "%s[%lu,%lu]", i ? "," : "", taken[i].index, taken[i].value);
  snprintf(text + n, sizeof text - n, "],\"counts\":{\"loads\":%lu}}", 2 * chosen);
  return text;
}

const char* amk_explore_assumptions(void) {
  return "[{\"name\":\"l2-single-copy\",\"meaning\":\"loads at gpu scope are served by L2\",\"on\":true}]";
}
