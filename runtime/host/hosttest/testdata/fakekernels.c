// The fake CUDA driver of runtime/driver with the kernels of a build in it, for tests of the host packages. An image is
// text: "FAKE" and then key=value pairs, see `settings`. The decode kernel chooses tokens that depend on every row of the
// cache before it, and complains when a launch breaks the rules that the real one relies on: the epoch is the number of
// steps since the exchange pages were cleared, all steps and those since then are of one variant, no row is missing.
// An image with "REFERENCE" holds the plain kernels instead, which agree with it to the bit.
// Build: cc -shared -fPIC -ffp-contract=off -o libcuda.so.1 fakekernels.c -lm
#include <math.h>

#define cuModuleLoadDataEx base_cuModuleLoadDataEx
#define cuModuleGetFunction base_cuModuleGetFunction
#define cuModuleGetGlobal_v2 base_cuModuleGetGlobal_v2
#define cuLaunchKernel base_cuLaunchKernel
#define cuLaunchCooperativeKernel base_cuLaunchCooperativeKernel
#include "../../../driver/testdata/fakecuda.c"
#undef cuModuleLoadDataEx
#undef cuModuleGetFunction
#undef cuModuleGetGlobal_v2
#undef cuLaunchKernel
#undef cuLaunchCooperativeKernel

// amk::Info
static struct {
  uint32_t abi, sms, threads, shared, exchange, per_step, trace, vocab, max_seq, layers, hidden, element, variants, flagged;
  uint64_t weights, cache;
  uint32_t ends[8];
  uint32_t tokens, sequences;
} info;

// The kernel for passes of several rows, whose image says " rows=N", is that of one token with other exchange pages. It is
// asked for its info and functions before another image is loaded.
static int pass_rows, pass_more, is_pass;  // more: of a larger cache
static int batch;  // the sequences of passes of several, whose image says " sequences=N"; such a kernel counts as one of
enum { kBatch = 9, kMixed = 10 };  // so many rows, or if it says how many rows each sequence has, as one of so many
static int mixed_rows;
static uint32_t pass_exchange = 8192;

// amk::PromptInfo of the kernel for prompts, whose image says " prompt=N". It is the only one of its image.
static struct { uint32_t abi, tokens, threads, shared; uint64_t workspace; } prompt;
static int is_prompt, prompt_short;
static long prompt_off, prompt_lost;  // a bit of its logits; at this position its row of the cache is another token's
static Kernel prompt_kernel = {"amk_prompt", 1, {208}, 0};

static long eos, eos_at, stall_at, hang_at, slow_us, decode_us, ceiling_us, drain_us, profile_us, read_us, flaky, off;
static long runs, nan_at, bad_at, bad_ordinal, bad_element, lost_row, any_weights, pass_off, pass_picks;
static long batch_off, batch_writes, mixed_off, mixed_writes, mixed_picks, eager, dirty;

static const struct { const char* key; uint32_t* word; long* value; long initial; } settings[] = {
    {"abi", &info.abi, 0, 7}, {"sms", &info.sms, 0, 4}, {"threads", &info.threads, 0, 288},
    {"shared", &info.shared, 0, 1 << 16}, {"exchange", &info.exchange, 0, 4096}, {"per_step", &info.per_step, 0, 14},
    {"trace", &info.trace, 0, 128},
    {"vocab", &info.vocab, 0, 4096}, {"max_seq", &info.max_seq, 0, 128}, {"layers", &info.layers, 0, 2},
    {"hidden", &info.hidden, 0, 64}, {"element", &info.element, 0, 2}, {"variants", &info.variants, 0, 1},
    {"end0", &info.ends[0], 0, 128}, {"end1", &info.ends[1], 0, 0}, {"end2", &info.ends[2], 0, 0},
    {"eos", 0, &eos, 1},                // the id chosen
    {"eos_at", 0, &eos_at, -1},         // at this position
    {"stall_at", 0, &stall_at, -1},     // SM 1 gives up by itself
    {"hang_at", 0, &hang_at, -1},       // every SM waits for the abort word
    {"slow_us", 0, &slow_us, 0},        // a step takes so long in real time
    {"decode_us", 0, &decode_us, 100},  // a step takes so long on the GPU's clock
    {"ceiling_us", 0, &ceiling_us, 80},
    {"drain_us", 0, &drain_us, 30},
    {"profile_us", 0, &profile_us, 106},
    {"read_us", 0, &read_us, 70},       // a pass
    {"flaky", 0, &flaky, 0},            // logits differ from launch to launch
    {"off", 0, &off, 0},                // logits are off by so many thousandths
    {"bad_at", 0, &bad_at, -1},         // at this position one exchanged value is off
    {"bad_ordinal", 0, &bad_ordinal, 0},
    {"bad_element", 0, &bad_element, 0},
    {"nan_at", 0, &nan_at, -1},         // at this position a logit is no number
    {"lost_row", 0, &lost_row, -1},     // the cache row of this position is another token's
    {"pass_off", 0, &pass_off, 0},      // logits of passes of several rows are another bit
    {"pass_picks", 0, &pass_picks, 0},  // such passes choose the next token instead
    {"batch_off", 0, &batch_off, 0},    // the same of passes of several sequences
    {"batch_writes", 0, &batch_writes, 0},  // sequences that are absent lose their first row
    {"mixed_off", 0, &mixed_off, 0},    // logits of passes of several rows of sequences are another bit
    {"mixed_writes", 0, &mixed_writes, 0},  // and sequences that are absent lose their first row
    {"mixed_picks", 0, &mixed_picks, 0},  // such passes choose the next token instead
    {"eager", 0, &eager, 0},            // every row looks at the abort word
    {"dirty", 0, &dirty, 0},            // and then the row before its launch's is another token's
    {"any_weights", 0, &any_weights, 0},  // the weights are a model's, rather than those of hosttest
};

static Kernel build_kernels[] = {
    {"amk_decode", 1, {208}, 0}, {"amk_ceiling", 1, {208}, 0}, {"amk_trace", 1, {208}, 0},
    {"amk_profile", 1, {208}, 0}, {"amk_drain", 1, {208}, 0}, {"amk_read", 1, {32}, 0},
    {"amk_ref_embed", 1, {40}, 0}, {"amk_ref_qkv", 1, {40}, 0}, {"amk_ref_row", 1, {40}, 0},
    {"amk_ref_attn", 1, {40}, 0}, {"amk_ref_lm_head", 1, {40}, 0},
};
static Kernel pass_kernels[11][2] = {  // by rows
#define BOTH {{"amk_decode", 1, {208}, 0}, {"amk_ceiling", 1, {208}, 0}}
    BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH};
enum { kBuildKernels = sizeof build_kernels / sizeof *build_kernels, kDecode = 0, kCeiling, kTrace, kProfile, kDrain, kRead, kFirstReference };

// amk::ReferenceInfo and amk::Operation. The plan lays the vectors out at 256, 512, ... of the scratch memory.
static struct { uint32_t abi, threads, layers, vocab; uint64_t scratch; } reference;
static uint32_t reference_kinds[] = {0};
static struct Operation {
  char kernel[32];
  uint32_t blocks, repeats, kind;
  char stage[32];
  uint32_t offset, elements, bytes;
} reference_step[] = {
    {"amk_ref_embed", 1, 0, 0, "embed", 256, 64, 2},
    {"amk_ref_qkv", 2, 1, 0, "L{i}.qkv", 512, 128, 2},
    {"amk_ref_row", 1, 2, 0, "L{i}.kv", 1024, 8, 2},
    {"amk_ref_attn", 4, 1, 0, "L{i}.attn", 1280, 64, 2},
    {"amk_ref_lm_head", 7, 0, 0, "lm_head", 2048, 4096, 4},
};

// What an image says of a key.
static long number(const char* image, const char* key, long initial) {
  char pattern[32];
  snprintf(pattern, sizeof pattern, " %s=", key);
  const char* at = strstr(image, pattern);
  return at ? atol(at + strlen(pattern)) : initial;
}

CUresult cuModuleLoadDataEx(void** mod, const void* image, unsigned n, int* options, void** values) {
  CUresult r = base_cuModuleLoadDataEx(mod, image, n, options, values);
  if (r) return r;
  if (strstr(image, "REFERENCE")) {
    const char* layers = strstr(image, " layers=");
    reference.abi = 7, reference.threads = 256, reference.layers = layers ? atol(layers + 8) : 2;
    reference.vocab = 4096, reference.scratch = 2048 + 4 * 4096;
    return 0;
  }
  is_prompt = strstr(image, " prompt=") != 0, is_pass = 0;
  if (is_prompt) {
    prompt.abi = number(image, "prompt_abi", 7), prompt.tokens = number(image, "prompt", 0);
    prompt.threads = number(image, "prompt_threads", 256), prompt.shared = number(image, "prompt_shared", 1 << 15);
    prompt.workspace = number(image, "prompt_workspace", 1 << 16), prompt_short = number(image, "prompt_short", 0);
    prompt_off = number(image, "prompt_off", 0), prompt_lost = number(image, "prompt_lost", -1);
    pass_more = number(image, "more", 0);
    return 0;
  }
  const char *rows = strstr(image, " rows="), *sequences = strstr(image, " sequences=");
  if ((is_pass = rows || sequences)) {
    pass_rows = rows && sequences ? kMixed : rows ? atol(rows + 6) : kBatch;
    if (sequences) batch = atol(sequences + 11);
    if (pass_rows == kMixed) mixed_rows = atol(rows + 6);
    pass_more = strstr(image, " more=") != 0;
    return 0;
  }
  memset(&info, 0, sizeof info);
  info.tokens = info.sequences = 1;
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    long v = number(image, settings[i].key, settings[i].initial);
    if (settings[i].word) *settings[i].word = v;
    if (settings[i].value) *settings[i].value = v;
  }
  const char* weights = strstr(image, " weights=");
  const char* cache = strstr(image, " cache=");
  info.weights = weights ? atol(weights + 9) : 4096;
  info.cache = cache ? atol(cache + 7) : info.max_seq * 64;
  runs = 0;
  return 0;
}

CUresult cuModuleGetFunction(Kernel** f, void* mod, const char* name) {
  ENTER_CONTEXT("cuModuleGetFunction");
  if (is_prompt && strcmp(name, "amk_prompt") == 0) { *f = &prompt_kernel; return 0; }
  for (int i = 0; is_pass && i < 2; i++)
    if (strcmp(pass_kernels[pass_rows][i].name, name) == 0) { *f = &pass_kernels[pass_rows][i]; return 0; }
  for (int i = 0; i < kBuildKernels; i++)
    if (strcmp(build_kernels[i].name, name) == 0) { *f = &build_kernels[i]; return 0; }
  return 500;
}

CUresult cuModuleGetGlobal_v2(Ptr* p, size_t* n, void* mod, const char* name) {
  ENTER_CONTEXT("cuModuleGetGlobal");
  static __typeof__(info) of_pass;
  of_pass = info, of_pass.sequences = pass_rows >= kBatch ? batch : 1;
  of_pass.tokens = pass_rows == kMixed ? batch * mixed_rows : pass_rows == kBatch ? batch : pass_rows;
  of_pass.exchange = pass_exchange, of_pass.cache += pass_more;
  if (is_pass && strcmp(name, "amk_info") == 0) {
    *p = (Ptr)(uintptr_t)&of_pass | DEVICE;
    *n = sizeof of_pass;
    return 0;
  }
  if (is_prompt && strcmp(name, "amk_info") == 0) {
    of_pass = info, of_pass.cache += pass_more;
    *p = (Ptr)(uintptr_t)&of_pass | DEVICE;
    *n = sizeof of_pass;
    return 0;
  }
  if (is_prompt && strcmp(name, "amk_prompt_info") == 0) {
    *p = (Ptr)(uintptr_t)&prompt | DEVICE;
    *n = sizeof prompt - prompt_short;
    return 0;
  }
  const struct { const char* name; void* at; size_t size; } globals[] = {
      {"amk_info", &info, sizeof info}, {"amk_reference", &reference, sizeof reference},
      {"amk_reference_kinds", reference_kinds, sizeof reference_kinds},
      {"amk_reference_step", reference_step, sizeof reference_step}};
  for (int i = 0; i < 4; i++)
    if (strcmp(globals[i].name, name) == 0) {
      *p = (Ptr)(uintptr_t)globals[i].at | DEVICE;
      *n = globals[i].size;
      return 0;
    }
  return 500;
}

// ---------------------------------------------------------------------------------------------
// kernels

// amk::Launch; trace is the profile of a kernel that records one
typedef struct Launch {
  Ptr weights, cache, exchange, logits, trace, forced, tokens, host_tokens, abort, abort_device, stalls, stop_ids, sampling,
      choices, rounds, embeddings, hidden;
  uint64_t spin_limit_ns, first_epoch;
  int steps, position, token, n_stop, logit_stride, reserved, positions[8];
} Launch;

#include "fakechoice.h"

// What the fake keeps in the exchange pages; zero is cleared.
typedef struct Exchange { uint64_t steps; uint32_t variant_plus_one; } Exchange;

static void complain(const char* what) {
  fprintf(stderr, "fake kernel: %s\n", what);
  sticky_code = 719;
}

static int variant_of(int position) {
  int v = 0;
  while (v + 1 < (int)info.variants && position >= (int)info.ends[v]) v++;
  return v;
}

static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

static uint32_t* row(Ptr cache, int position) {
  return (uint32_t*)((char*)host(cache) + (info.cache / info.max_seq) * position);
}

// The state after the rows before a position and a token; 0 when a row is missing.
static uint64_t state(Ptr cache, int position, int token) {
  uint64_t h = 14695981039346656037ull;
  for (int p = 0; p < position; p++) {
    if (!*row(cache, p)) { complain("a cache row before the position was never written"); return 0; }
    h = (h ^ *row(cache, p)) * 1099511628211ull;
  }
  return (h ^ (uint32_t)(token + 1)) * 1099511628211ull;
}

// An exchanged value: a multiple of 1/256, which bf16 has exactly.
static float exchanged(uint64_t h, int ordinal, int element) {
  return (float)(mix(h ^ (uint64_t)ordinal << 32 ^ element) % 256) / 256;
}

static void write_logits(float* out, uint64_t h, int chosen) {
  for (uint32_t v = 0; v < info.vocab; v++) out[v] = (float)(mix(h + v) % 1000) / 1000;
  out[chosen] = 2;
}

// What the fake takes an embedding for: a token whose number its bits say.
static int token_of_embedding(const Launch* l, int i) {
  if (!l->embeddings) { complain("an embedding is not given"); return 0; }
  const uint32_t* row = (const uint32_t*)host(l->embeddings) + (size_t)i * info.hidden;
  uint32_t h = 2166136261u;
  for (uint32_t e = 0; e < info.hidden; e++) h = (h ^ row[e]) * 16777619u;
  return (int)(info.vocab + 1 + h % 1000000);
}

// The same of a step of a launch.
static int draw_of(const Launch* l, const float* logits, uint64_t position, Decoded decoded) {
  const Choice* choice = l->choices ? host(l->choices) : 0;
  const Sampling* by = host(l->sampling);
  if (choice && choice->set && by->temperature != 0 && (choice->top_k || choice->rest > 0 || choice->min_p > 0)) {
    if (!l->rounds) complain("tokens are left out, and there is no place to find which");
    for (int i = 0; l->rounds && i < kRounds; i++)
      if (((char*)host(l->rounds))[i]) { complain("the rounds are not zero"); break; }
  }
  return draw(logits, by, choice, position, decoded);
}

static void give_up(const Launch* l, int step, int cause) {
  uint32_t* stalls = host(l->stalls);
  for (int sm = 0; sm < (int)info.sms; sm++) {
    uint32_t record[8] = {sm == cause ? 1 : 2, 1, 1, step, 1, 40 + sm, 7, 3};
    memcpy(stalls + 8 * sm, record, sizeof record);
  }
  *(uint32_t*)host(l->abort_device) = 1;
  ((Exchange*)host(l->exchange))->steps = 999999;  // garbage
}

// Launches that were queued behind one that gave up find its abort word, and do nothing either.
static int gives_up_too(const Launch* l) { return *(uint32_t*)host(l->abort_device) != 0; }

// One row of a step that has so many; returns the chosen token, or -1 when it was given up.
static int step(const Launch* l, int i, int pass, int token, int is_off, Decoded decoded) {
  int position = l->position + i;
  if (slow_us) usleep(slow_us);
  if (eager && *(volatile uint32_t*)host(l->abort)) {
    if (dirty && l->position > 0) *row(l->cache, l->position - 1) += 1;
    give_up(l, i, -1);
    return -1;
  }
  if (position == stall_at) { stall_at = -1; give_up(l, i, 1); return -1; }
  if (position == hang_at) {
    for (int polls = 0; polls < 5000 && !*(volatile uint32_t*)host(l->abort); polls++) usleep(1000);
    hang_at = -1;
    give_up(l, i, -1);
    return -1;
  }
  if (token > (int)info.vocab) complain("a token behind the vocabulary");
  if (token == (int)info.vocab) token = token_of_embedding(l, i);
  uint64_t h = state(l->cache, position, token);
  if (!h) return -1;
  *row(l->cache, position) = position == lost_row ? token + 2 : token + 1;
  if (l->trace) {
    float* out = (float*)host(l->trace) + (size_t)i * info.per_step * info.trace;
    for (int o = 0; o < (int)info.per_step; o++)
      for (int e = 0; e < (int)info.trace; e++) out[o * info.trace + e] = exchanged(h, o, e);
    if (position == bad_at) out[bad_ordinal * info.trace + bad_element] += 0.5f;
  }
  int chosen = position == eos_at ? eos : (int)((h >> 20) % info.vocab);
  if (l->hidden)
    for (uint32_t e = 0; e < info.hidden; e++)
      ((float*)host(l->hidden))[(size_t)i * info.hidden + e] = exchanged(h, 99, e);
  if (l->sampling && !l->logits) complain("a draw without logits");
  if (l->logits && !sticky_code) {
    float* out = (float*)host(l->logits) + (size_t)(i / pass * l->logit_stride + i % pass) * info.vocab;
    write_logits(out, h, chosen);
    for (uint32_t v = 0; v < info.vocab; v++)
      if ((int)v != chosen) out[v] += off / 1000.f;
    if (is_off) out[(chosen + 1) % info.vocab] += 1e-6f;
    if (flaky) out[(chosen + 1) % info.vocab] += runs * 1e-6f;
    if (position == nan_at) out[7] = NAN;
    if (l->sampling) chosen = draw_of(l, out, position + 1, decoded);
  }
  return chosen;
}

// rows of each step, whose tokens are all given if there are several
static void decode_in(Launch* l, long us, int rows) {
  Exchange* e = host(l->exchange);
  const int* forced = host(l->forced);
  runs++;
  if (sticky_code) goto end;
  if (gives_up_too(l)) goto end;
  if (e->steps != l->first_epoch) complain("the epoch is not the number of steps since the pages were cleared");
  if (e->steps && (int)e->variant_plus_one != variant_of(l->position) + 1) complain("the pages hold words of another variant");
  if (variant_of(l->position) != variant_of(l->position + l->steps * rows - 1)) complain("a launch runs into another variant");
  if (l->position < 0 || l->position + l->steps * rows > (int)info.max_seq) complain("positions past the end");
  if (!any_weights && memcmp(host(l->weights), "weights!", 8) != 0) complain("these are not the weights");
  if (sticky_code) goto end;
  e->variant_plus_one = variant_of(l->position) + 1;
  int token = l->token;
  if (rows > 1 && !l->forced) complain("a pass of several rows whose tokens are not given");
  int decoded[32 * 8], stop = 0;
  for (int i = 0; i < l->steps * rows && !sticky_code; i++) {
    if (l->forced && forced[i] >= 0) token = forced[i];
    if (i % rows == 0) now_ms += us / 1000.;
    decoded[i] = token;
    token = step(l, i, rows, token, rows > 1 && pass_off, (Decoded){decoded + 1, i, 1});
    if (token < 0) break;
    if (rows > 1 && pass_picks) token = (token + 1) % info.vocab;
    if ((i + 1) % rows == 0) e->steps++;
    if (l->host_tokens) ((volatile uint32_t*)host(l->host_tokens))[i] = token + 1;
    stop |= token == kNoToken && !(l->forced && i + rows < l->steps * rows && forced[i + rows] >= 0);
    for (int k = 0; k < l->n_stop; k++) stop |= ((int*)host(l->stop_ids))[k] == token;
    if (stop && (i + 1) % rows == 0) break;
  }
end:
  free(l);
}

static void decode(void* arg) { decode_in(arg, decode_us, 1); }

#define PASS(rows) static void decode_##rows(void* arg) { decode_in(arg, decode_us, rows); }
PASS(2) PASS(3) PASS(4) PASS(5) PASS(6) PASS(7) PASS(8)
static void (*const decode_passes[])(void*) = {0, 0, decode_2, decode_3, decode_4, decode_5, decode_6, decode_7, decode_8};

// Sequences, each in its region of the cache, of so many rows each. The token of one that is not there is the one that
// ends texts.
static void decode_sequences(Launch* l, int rows) {
  Exchange* e = host(l->exchange);
  const int* forced = host(l->forced);
  int tokens[8], decoded[8][32 * 8];
  runs++;
  if (sticky_code || gives_up_too(l)) goto end;
  if (e->steps != l->first_epoch) complain("the epoch is not the number of steps since the pages were cleared");
  if (e->steps && e->variant_plus_one != 1) complain("the pages hold words of another variant");
  if (info.variants > 1) complain("sequences at any position, and several variants");
  if (!l->forced || l->position) complain("a pass of sequences without tokens, or with a position");
  if (sticky_code) goto end;
  e->variant_plus_one = 1;
  for (int i = 0, stop = 0; i < l->steps && !stop; i++, e->steps++) {
    now_ms += decode_us / 1000.;
    for (int t = 0; t < batch * rows; t++) {
      int s = t / rows, n = i * rows + t % rows, given = forced[i * batch * rows + t];
      if (rows > 1 && given < 0) complain("a pass of several rows whose tokens are not given");
      if (given >= 0) tokens[s] = given;
      if (l->positions[s] < 0) {
        tokens[s] = eos;
        if (rows > 1 ? mixed_writes : batch_writes) *row(l->cache + s * info.cache, 0) = 0xdead;
      } else {
        Launch one = *l;
        one.position = l->positions[s], one.cache = l->cache + s * info.cache;
        if (one.position + n >= (int)info.max_seq) complain("positions past the end");
        if (l->logits) one.logits = l->logits + (uint64_t)s * rows * info.vocab * 4;
        if (l->sampling) one.sampling = l->sampling + s * sizeof(Sampling);
        if (l->choices) one.choices = l->choices + s * sizeof(Choice);
        decoded[s][n] = tokens[s];
        tokens[s] = step(&one, n, rows, tokens[s], rows > 1 ? mixed_off : batch_off, (Decoded){decoded[s] + 1, n, 1});
        if (tokens[s] < 0) goto end;
        if (rows > 1 && mixed_picks) tokens[s] = (tokens[s] + 1) % info.vocab;
        stop |= tokens[s] == kNoToken;
        for (int k = 0; k < l->n_stop; k++) stop |= ((int*)host(l->stop_ids))[k] == tokens[s];
      }
      if (l->host_tokens) ((volatile uint32_t*)host(l->host_tokens))[i * batch * rows + t] = tokens[s] + 1;
    }
  }
end:
  free(l);
}

static void decode_batch(void* arg) { decode_sequences(arg, 1); }
static void decode_mixed(void* arg) { decode_sequences(arg, mixed_rows); }

// A pass over a prompt: `steps` tokens, all given, none chosen. The exchange pages are the workspace, whose first word
// counts joins.
static void read_prompt(void* arg) {
  Launch* l = arg;
  const int* forced = host(l->forced);
  runs++;
  if (sticky_code || gives_up_too(l)) goto end;
  if (*(uint32_t*)host(l->exchange)) complain("the counter of joins is not 0");
  if (l->steps < 1 || l->steps > (int)prompt.tokens) complain("more tokens than a pass over a prompt takes");
  if (l->logits && l->steps > 32) complain("logits of more tokens than there is room for");
  if (variant_of(l->position) != variant_of(l->position + l->steps - 1)) complain("a pass runs into another variant");
  if (l->position < 0 || l->position + l->steps > (int)info.max_seq) complain("positions past the end");
  for (uint64_t i = 0; i < prompt.workspace; i++)
    if (((uint8_t*)host(l->exchange))[i] == 0xee) { complain("the workspace was never written"); break; }
  memset(host(l->exchange), 0xff, prompt.workspace);
  now_ms += decode_us / 1000.;
  long lost = lost_row;
  if (prompt_lost >= 0) lost_row = prompt_lost;
  for (int i = 0; i < l->steps && !sticky_code; i++) {
    if (step(l, i, l->steps, forced[i], 0, (Decoded){0}) < 0) break;
    if (prompt_off && l->logits) ((float*)host(l->logits))[(size_t)i * info.vocab] += 1e-6f;
  }
  lost_row = lost;
end:
  free(l);
}

// amk::Span
typedef struct Span { uint32_t begin, end, stage, layer; } Span;

// amk::Recording
typedef struct Recording { uint64_t begin_clock, begin_time, end_clock, end_time; uint32_t spans, reserved[7]; } Recording;

// SMs begin 32 ns after one another, and run at 2 cycles a nanosecond on clocks of their own. In every step and every stage of
// it the consumers wait for 100 cycles, compute for 200 and hand over for 40 and 10; the producer waits for the first slot of
// L00.qkv and from the second step on before the cache rows of L00.attn.
static void profile(void* arg) {
  Launch* l = arg;
  enum { kStages = 5, kStage = 350 };
  static const struct { uint32_t stage, layer; } stages[kStages] = {{0, 0}, {1, 0}, {2, 0}, {1, 1}, {2, 1}};
  char* buffer = host(l->trace);
  uint32_t capacity = *(uint32_t*)buffer, steps = l->steps;
  Recording* recordings = (Recording*)(buffer + 64);
  Span* spans = (Span*)(recordings + 2 * info.sms);
  for (uint32_t sm = 0; sm < info.sms; sm++) {
    uint64_t clock = 0xffffff00ull + 1000 * sm;
    uint32_t n[2] = {0, 0}, now = clock;
#define SPAN(role, kind, from, to) \
  (spans + (2 * sm + role) * capacity)[n[role]++] = (Span){from, to, stages[s].stage | kind << 16, stages[s].layer | step << 16}
    for (uint32_t step = 0; step < steps; step++)
      for (int s = 0; s < kStages; s++, now += kStage) {
        SPAN(0, 0, now, now + 100);
        SPAN(0, 1, now + 100, now + 300);
        SPAN(0, 2, now + 300, now + 340);
        SPAN(0, 2, now + 340, now + 350);
        if (s == 1) SPAN(1, 3, now + 20, now + 120);
        if (s == 2 && step) SPAN(1, 4, now - 50, now + 60);
      }
    uint64_t cycles = now - (uint32_t)clock;
    recordings[2 * sm] = (Recording){clock, 5000 + 32 * sm, clock + cycles, 5000 + 32 * sm + cycles / 2, n[0]};
    recordings[2 * sm + 1].spans = n[1];
  }
  l->trace = 0;
  decode_in(l, profile_us, 1);
}

// Uses up epochs, and leaves garbage in the cache.
static void drain(void* arg) {
  Launch* l = arg;
  Exchange* e = host(l->exchange);
  if (sticky_code || gives_up_too(l)) { free(l); return; }
  if (e->steps != l->first_epoch) complain("the epoch is not the number of steps since the pages were cleared");
  e->variant_plus_one = variant_of(l->position) + 1;
  for (int i = 0; i < l->steps; i++, e->steps++) *row(l->cache, l->position + i) = 0xdead;
  now_ms += l->steps * drain_us / 1000.;
  free(l);
}

static void ceiling(void* arg) {
  now_ms += ((Launch*)arg)->steps * ceiling_us / 1000.;
  free(arg);
}

CUresult cuLaunchCooperativeKernel(Kernel* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, Stream* s, void** args) {
  CUresult r = base_cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, s, args);
  if (r) return r;
  int over_prompt = f == &prompt_kernel;
  if (gx != info.sms || bx != (over_prompt ? prompt.threads : info.threads)) return 1;
  if (shared != (over_prompt ? prompt.shared : info.shared) || f->dynamic < (int)shared) return 1;
  Launch* l = malloc(sizeof *l);
  memcpy(l, args[0], sizeof *l);
  static void (*const runs_of[])(void*) = {decode, ceiling, decode, profile, drain};
  if (*(uint32_t*)host(l->abort_device)) complain("the abort word of the launch before is still set");
  if (over_prompt) return queue(s, (Op){.kind = kKernel, .dst = l, .run = read_prompt});
  size_t of_pass = f - pass_kernels[0];
  if (f >= pass_kernels[0] && of_pass < 2 * 11)
    return queue(s, (Op){.kind = kKernel, .dst = l, .run = of_pass % 2                ? ceiling
                                                              : of_pass / 2 == kMixed ? decode_mixed
                                                              : of_pass / 2 == kBatch ? decode_batch
                                                                                      : decode_passes[of_pass / 2]});
  int kernel = f - build_kernels;
  if ((kernel == kTrace || kernel == kProfile) != (l->trace != 0)) return 1;
  return queue(s, (Op){.kind = kKernel, .dst = l, .run = runs_of[kernel]});
}

// ---------------------------------------------------------------------------------------------
// reference kernels

// amk::Reference, and which kernel it is for.
typedef struct ReferenceArg {
  Ptr weights, cache, scratch;
  int layer, position, token, reserved;
  int kernel;
} ReferenceArg;

static void put_bf16(void* out, float v) {
  uint32_t bits;
  memcpy(&bits, &v, 4);
  *(uint16_t*)out = bits >> 16;
}

// The token's state is worked out by the first kernel and kept at the start of the scratch memory.
static void run_reference(void* arg) {
  ReferenceArg* r = arg;
  char* scratch = host(r->scratch);
  uint64_t* h = (uint64_t*)scratch;
  const struct Operation* op = &reference_step[r->kernel];
  char* out = scratch + op->offset;
  int qkv = 1 + 2 * r->layer;  // its ordinal
  switch (r->kernel) {
    case 0:
      *h = state(r->cache, r->position, r->token);
      for (uint32_t e = 0; e < op->elements; e++) put_bf16(out + 2 * e, exchanged(*h, 0, e));
      break;
    case 1:
    case 3:
      for (uint32_t e = 0; e < op->elements; e++) put_bf16(out + 2 * e, exchanged(*h, qkv + (r->kernel == 3), e));
      if (r->kernel == 3) *row(r->cache, r->position) = r->token + 1;
      break;
    case 2: {
      int kept = *row(r->cache, r->position) == (uint32_t)r->token + 1;
      uint32_t half = op->elements / 2;  // what is there, then what should be
      for (uint32_t e = 0; e < half; e++) {
        float want = exchanged(*h, qkv, 128 - half + e);
        put_bf16(out + 2 * e, kept ? want : -1);
        put_bf16(out + 2 * (half + e), want);
      }
      break;
    }
    case 4: write_logits((float*)out, *h, (int)((*h >> 20) % info.vocab)); break;
  }
  free(r);
}

// amk::Read
typedef struct Read { Ptr data; uint64_t bytes; Ptr sum; uint32_t passes, reserved; } Read;

static void run_read(void* arg) {
  Read* r = arg;
  if (r->bytes == 0 || r->bytes % 16 || r->bytes > info.weights) complain("a plain read of what is not the weights");
  if (!any_weights && memcmp(host(r->data), "weights!", 8) != 0) complain("these are not the weights");
  now_ms += r->passes * read_us / 1000.;
  free(r);
}

CUresult cuLaunchKernel(Kernel* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, Stream* s, void** args, void** extra) {
  CUresult r = base_cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, args, extra);
  if (!r && f == &build_kernels[kRead]) {
    if (gx != 2 * info.sms || bx != 512 || shared) return 1;
    Read* read = malloc(sizeof *read);
    memcpy(read, args[0], sizeof *read);
    return queue(s, (Op){.kind = kKernel, .dst = read, .run = run_read});
  }
  int kernel = f - (build_kernels + kFirstReference);
  if (r || kernel < 0 || kernel >= kBuildKernels - kFirstReference) return r;
  if (gx != reference_step[kernel].blocks || bx != reference.threads || shared) return 1;
  ReferenceArg* arg = malloc(sizeof *arg);
  memcpy(arg, args[0], 40);
  arg->kernel = kernel;
  return queue(s, (Op){.kind = kKernel, .dst = arg, .run = run_reference});
}
