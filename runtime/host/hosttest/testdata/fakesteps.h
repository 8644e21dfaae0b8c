// What the fake's kernels decode: steps of one token and passes of several rows or sequences, and passes over prompts. They
// depend on every row of the cache before them, and complain where a launch breaks a rule.

// amk::Launch; trace is the profile of a kernel that records one
typedef struct Launch {
  Ptr weights, cache, exchange, logits, trace, forced, tokens, host_tokens, abort, abort_device, stalls, stop_ids, sampling,
      choices, rounds, embeddings, hidden;
  uint64_t spin_limit_ns, first_epoch;
  int steps, position, token, n_stop, logit_stride, chooses, positions[8];
  Ptr peers[8];  // of builds for several GPUs, and what follows
  int rank, reserved;
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

static void cancelled(const Launch* l, int step, int cause) {
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
    cancelled(l, i, -1);
    return -1;
  }
  if (position == stall_at) { stall_at = -1; cancelled(l, i, 1); return -1; }
  if (position == fault_at) { fault_at = -1; sticky_code = 700; return -1; }
  if (position == hang_at) {
    for (int polls = 0; polls < 5000 && !*(volatile uint32_t*)host(l->abort); polls++) usleep(1000);
    hang_at = -1;
    cancelled(l, i, -1);
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

static uint64_t epoch_of(const Exchange* e) { return e->steps + ((uint64_t)late << 32); }

// rows of each step, whose tokens are all given if there are several
static void decode_in(Launch* l, long us, int rows) {
  Exchange* e = host(l->exchange);
  const int* forced = host(l->forced);
  runs++;
  if (sticky_code) goto end;
  if (gives_up_too(l)) goto end;
  if (epoch_of(e) != l->first_epoch) complain("the epoch is not the number of steps since the pages were cleared");
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
  if (epoch_of(e) != l->first_epoch) complain("the epoch is not the number of steps since the pages were cleared");
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

// amk::PromptMatrix of some: 24 rows by 64 columns, the second without a tensor.
static void list_matrices(void* arg) {
  Launch* l = arg;
  struct { uint64_t at, sizes[4], strides[3]; uint32_t box[4]; uint64_t reserved[6]; } *m = host(l->exchange + prompt.matrices);
  for (int i = 0; i < 3; i++) {
    m[i].at = l->weights + 3072 * i;
    if (i == 1) continue;
    const uint64_t sizes[4] = {256, 2, 1, 3}, strides[3] = {512, 1024, 1024};
    const uint32_t box[4] = {128, 2, 1, 16};
    memcpy(m[i].sizes, sizes, sizeof sizes), memcpy(m[i].strides, strides, sizeof strides);
    memcpy(m[i].box, box, sizeof box);
  }
  free(l);
}

// A pass over a prompt: `steps` tokens, all given; what is chosen after the last is left where the host looks for it.
// The exchange pages are the workspace, whose first word counts joins.
static void read_prompt(void* arg) {
  Launch* l = arg;
  const int* forced = host(l->forced);
  runs++;
  if (sticky_code || gives_up_too(l)) goto end;
  if (*(uint32_t*)host(l->exchange)) complain("the counter of joins is not 0");
  if (((uint64_t*)host(l->exchange))[1]) complain("what an earlier pass has chosen is still there");
  if (l->steps < 1 || l->steps > (int)prompt.tokens) complain("more tokens than a pass over a prompt takes");
  if (l->logits && l->steps > 32) complain("logits of more tokens than there is room for");
  if (!prompt.spans && variant_of(l->position) != variant_of(l->position + l->steps - 1))
    complain("a pass runs into another variant");
  if (l->position < 0 || l->position + l->steps > (int)info.max_seq) complain("positions past the end");
  for (uint64_t i = 0; i < prompt.workspace; i++) {
    if (i == 1024) i = 4096;  // between them are addresses and tensor maps, which have any bytes
    if (((uint8_t*)host(l->exchange))[i] == 0xee) { complain("the workspace was never written"); break; }
  }
  const uint32_t* map = (uint32_t*)host(l->exchange + prompt.maps);
  if (map[0] != 0x3a9 || map[32] != 0 || map[64] != 0x3a9) complain("the tensor maps of the matrices are not there");
  memset(host(l->exchange), 0xff, 1024);
  memset(host(l->exchange + 4096), 0xff, prompt.workspace - 4096);
  now_ms += decode_us / 1000.;
  long lost = lost_row;
  if (prompt_lost >= 0) lost_row = prompt_lost;
  for (int i = 0; i < l->steps && !sticky_code; i++) {
    int chosen = step(l, i, l->steps, forced[i], 0, (Decoded){0});
    if (chosen < 0) break;
    if (l->chooses) ((uint64_t*)host(l->exchange))[1] = (uint64_t)0xc0000000 << 32 | (uint32_t)~(chosen + prompt_picks);
    if (prompt_off && l->logits) ((float*)host(l->logits))[(size_t)i * info.vocab] += 1e-6f;
  }
  lost_row = lost;
end:
  free(l);
}
