// The generated kernel on the CPU, of one GPU or of several: a launch of all of them has the blocks of one after those of
// another, and memory of one is memory that the others have mapped. Reads the number of schedules, token ids and the
// weights of each GPU from stdin, and prints the logits and the tokens that come of these ids, which are the same on all
// GPUs and under all schedules.
#define AMK_MEASURES
#include "megakernel.cu"

#include "amk/step.cuh"

#include "grid.h"

using namespace amk;

constexpr int kSteps = 4;
constexpr int kOwn = kVocab / kGPUs;  // logits of a GPU

// What a GPU has.
struct Gpu {
  Array<u8, kWeightBytes> weights;
  Array<u8, kCacheBytes> cache;
  Array<u8, kExchangeBytes> exchange;
  Array<float, kSteps * kVocab> logits;
  Array<int, kSteps> forced;
  Array<u32, kSteps> tokens;
  Array<u32> aborts;
  Array<Stall, kSMs> stalls;
};
static Gpu gpus[kGPUs];
static Array<u32> host_abort;
static Launch launches[kGPUs];

static void run_block() { run<Mode::kDecode>(launches[block_index() / kSMs]); }

template <class T, size_t kCount>
static void clear(Array<T, kCount>& array) {
  memset(array.all, 0, array.kBytes);
  array.write();
}

// As the host leaves it before the first launch.
static void clear_all() {
  for (Gpu& g : gpus) clear(g.cache), clear(g.exchange), clear(g.logits), clear(g.aborts), clear(g.stalls);
}

// Runs steps from a position on, on all GPUs.
static void launch_steps(int position, int steps, const int* ids) {
  for (int rank = 0; rank < kGPUs; ++rank) {
    Gpu& g = gpus[rank];
    memcpy(g.forced.all, ids + position, steps * sizeof(int));
    g.forced.write();
    Launch l = {};
    l.weights = g.weights.all, l.cache = g.cache.all, l.exchange = g.exchange.all;
    l.logits = g.logits.all + position * kVocab, l.logit_stride = 1;
    l.forced = g.forced.all, l.tokens = g.tokens.all + position;
    l.abort = host_abort.all, l.abort_device = g.aborts.all, l.stalls = g.stalls.all;
    l.spin_limit_ns = 1000000000;
    l.first_epoch = position, l.position = position, l.steps = steps;
#if AMK_RANKS
    for (int peer = 0; peer < kGPUs; ++peer) l.peers[peer] = gpus[peer].exchange.all;
    l.rank = rank;
#endif
    launches[rank] = l;
  }
  body.run = run_block;
  void* parameters[] = {&body};
  const int result = cuLaunchCooperativeKernel(kernel, kGPUs * kSMs, 1, 1, kThreads, 1, 1, kSharedBytes, nullptr,
                                               parameters);
  for (Gpu& g : gpus)
    for (const Stall& s : g.stalls)
      if (s.valid == 1) printf("an SM waits in vain, kind %u, stage %u\n", s.wait, s.stage), fail("a stall");
  if (result != 0) fail("the launch failed");
}

static bool read(void* to, size_t n) { return fread(to, n, 1, stdin) == 1; }

extern "C" int amk_main(void* module) {
  begin_grid(module, kGPUs * kSMs, kSharedBytes, kGPUs);
  host_abort.make();
  for (Gpu& g : gpus) {
    g.weights.make(), g.cache.make(), g.exchange.make(), g.logits.make(), g.forced.make(), g.tokens.make();
    g.aborts.make(), g.stalls.make();
  }
  int schedules, ids[kSteps];
  if (!read(&schedules, sizeof schedules) || !read(ids, sizeof ids)) fail("no input");
  for (Gpu& g : gpus) {
    if (!read(g.weights.all, kWeightBytes)) fail("no weights");
    g.weights.write();
  }
  static float logits[kSteps * kVocab], first[kSteps * kVocab];
  static u32 tokens[kSteps];
  for (int schedule = 0; schedule < schedules; ++schedule) {
    char text[96] = "{}";
    if (schedule % 2 == 1) snprintf(text, sizeof text, "{\"strategy\":\"random\",\"seed\":%d}", schedule);
    else if (schedule > 0)
      snprintf(text, sizeof text, "{\"strategy\":\"pct\",\"seed\":%d,\"depth\":3,\"expected\":100000}", schedule);
    if (const char* why = amk_explore_schedule(text)) fail(why);
    clear_all();
    launch_steps(0, kSteps - 1, ids);
    launch_steps(kSteps - 1, 1, ids);
    if (!strstr(amk_explore_result(), "\"findings\":[]")) fail(text);
    for (int step = 0; step < kSteps; ++step)
      for (int i = 0; i < kVocab; ++i)
        logits[step * kVocab + i] = gpus[i / kOwn].logits[step * kVocab + i];
    for (int step = 0; step < kSteps; ++step)
      for (Gpu& g : gpus)
        if (g.tokens[step] != gpus[0].tokens[step]) fail("GPUs choose different tokens");
    if (schedule == 0) memcpy(first, logits, sizeof logits), memcpy(tokens, gpus[0].tokens.all, sizeof tokens);
    if (memcmp(first, logits, sizeof logits) || memcmp(tokens, gpus[0].tokens.all, sizeof tokens))
      fail("a schedule leads to other bits");
  }
  fwrite(first, sizeof first, 1, stdout);
  fwrite(tokens, sizeof tokens, 1, stdout);
  return 0;
}
