// What images of the fake driver hold: a build's kernels, those of passes, of prompts, and the plain ones, with what an
// image says of them. Globals that the host reads are as the real kernels have them.

// amk::Info
static struct {
  uint32_t abi, sms, threads, shared, exchange, per_step, trace, vocab, max_seq, layers, hidden, element, variants, flagged;
  uint64_t weights, cache;
  uint32_t ends[8];
  uint32_t tokens, sequences, model, fragments;
} info;

// The kernel for passes of several rows, whose image says " rows=N", is that of one token with other exchange pages. It is
// asked for its info and functions before another image is loaded.
static int pass_rows, pass_more, is_pass;  // more: of a larger cache
static int pass_layout, pass_model;  // of another layout of the cache, or another model_config.h
static int batch;  // the sequences of passes of several, whose image says " sequences=N"; such a kernel counts as one of
enum { kBatch = 9, kMixed = 10 };  // so many rows, or if it says how many rows each sequence has, as one of so many
static int mixed_rows;
static uint32_t pass_exchange = 8192;

// amk::PromptInfo of the kernel for prompts, whose image says " prompt=N". It is the only one of its image.
static struct { uint32_t abi, tokens, threads, shared; uint64_t workspace, matrices, maps; uint32_t most, spans; } prompt;
static int is_prompt, prompt_short;
static long prompt_off, prompt_lost;  // a bit of its logits; at this position its row of the cache is another token's
static long prompt_picks;  // what is added to the id that it chooses
static Kernel prompt_kernel = {"amk_prompt", 1, {208}, 0};
static Kernel matrices_kernel = {"amk_prompt_matrices", 1, {208}, 0};

static long eos, eos_at, stall_at, hang_at, fault_at, slow_us, decode_us, ceiling_us, drain_us, profile_us, read_us, flaky, off;
static long runs, nan_at, bad_at, bad_ordinal, bad_element, lost_row, any_weights, pass_off, pass_picks;
static long batch_off, batch_writes, mixed_off, mixed_writes, mixed_picks, eager, dirty;
static long gpus, late, is_lean, has_parts, part_us, launch_us, part_picks;

static const struct { const char* key; uint32_t* word; long* value; long initial; } settings[] = {
    {"abi", &info.abi, 0, 11}, {"sms", &info.sms, 0, 4}, {"threads", &info.threads, 0, 288},
    {"shared", &info.shared, 0, 1 << 16}, {"exchange", &info.exchange, 0, 4096}, {"per_step", &info.per_step, 0, 14},
    {"trace", &info.trace, 0, 128},
    {"vocab", &info.vocab, 0, 4096}, {"max_seq", &info.max_seq, 0, 128}, {"layers", &info.layers, 0, 2},
    {"hidden", &info.hidden, 0, 64}, {"element", &info.element, 0, 2}, {"variants", &info.variants, 0, 1},
    {"end0", &info.ends[0], 0, 128}, {"end1", &info.ends[1], 0, 0}, {"end2", &info.ends[2], 0, 0},
    {"gpus", 0, &gpus, 1},              // that run the build, each the same
    {"eos", 0, &eos, 1},                // the id chosen
    {"eos_at", 0, &eos_at, -1},         // at this position
    {"stall_at", 0, &stall_at, -1},     // SM 1 gives up by itself
    {"hang_at", 0, &hang_at, -1},       // every SM waits for the abort word
    {"fault_at", 0, &fault_at, -1},     // an access to an illegal address, after which the context is of no use
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
    {"nan_at", 0, &nan_at, -1},         // at this position a logit is not a number
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
    {"lean", 0, &is_lean, 0},           // the image lacks what a search does not compile
    {"parts", 0, &has_parts, 0},        // the image has a step in parts
    {"part_us", 0, &part_us, 10},       // a part that does something; of the stage with number n it is n + 1 times that
    {"launch_us", 0, &launch_us, 3},    // and more for any launch of a part
    {"part_picks", 0, &part_picks, 0},  // a step in parts chooses the next token instead
    {"late", 0, &late, 0},              // epochs are counted from so many times 2^32 on
    {"any_weights", 0, &any_weights, 0},  // the weights are a model's, rather than those of hosttest
};

static Kernel build_kernels[] = {
    {"amk_decode", 1, {208}, 0}, {"amk_ceiling", 1, {208}, 0}, {"amk_trace", 1, {208}, 0},
    {"amk_profile", 1, {208}, 0}, {"amk_drain", 1, {208}, 0}, {"amk_read", 1, {32}, 0},
    {"amk_ref_embed", 1, {40}, 0}, {"amk_ref_qkv", 1, {40}, 0}, {"amk_ref_row", 1, {40}, 0},
    {"amk_ref_attn", 1, {40}, 0}, {"amk_ref_lm_head", 1, {40}, 0},
};
static Kernel part_kernel = {"amk_part", 1, {312}, 0};  // of an image that says " parts=1"
static Kernel pass_kernels[11][2] = {  // by rows
#define BOTH {{"amk_decode", 1, {208}, 0}, {"amk_ceiling", 1, {208}, 0}}
    BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH};
enum { kBuildKernels = sizeof build_kernels / sizeof *build_kernels, kDecode = 0, kCeiling, kTrace, kProfile, kDrain, kRead, kFirstReference };

// amk::ReferenceInfo and amk::Operation. The image says how many elements embed, qkv and attn hand over, and how many
// stages of a layer hand something over; the vectors lie one behind the other in the scratch memory.
static long exchanges_of_layer;
static struct { uint32_t abi, threads, layers, vocab; uint64_t scratch; } reference;
static uint32_t reference_kinds[] = {0};
static struct Operation {
  char kernel[32];
  uint32_t blocks, repeats, kind;
  char stage[32];
  uint32_t offset, elements, bytes;
} reference_step[] = {
    {"amk_ref_embed", 1, 0, 0, "embed", 0, 0, 2},
    {"amk_ref_qkv", 2, 1, 0, "L{i}.qkv", 0, 0, 2},
    {"amk_ref_row", 1, 2, 0, "L{i}.kv", 0, 8, 2},
    {"amk_ref_attn", 4, 1, 0, "L{i}.attn", 0, 0, 2},
    {"amk_ref_lm_head", 7, 0, 0, "lm_head", 0, 4096, 4},
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
    reference.abi = 11, reference.threads = 256, reference.layers = layers ? atol(layers + 8) : 2;
    exchanges_of_layer = number(image, "exchanges", 2);
    reference_step[0].elements = number(image, "embed", 64);
    reference_step[1].elements = number(image, "qkv", 128);
    reference_step[3].elements = number(image, "attn", 64);
    uint32_t next = 256;
    for (size_t i = 0; i < sizeof reference_step / sizeof *reference_step; i++) {
      reference_step[i].offset = next;
      next += (reference_step[i].elements * reference_step[i].bytes + 255) / 256 * 256;
    }
    reference.vocab = 4096, reference.scratch = next;
    return 0;
  }
  is_prompt = strstr(image, " prompt=") != 0, is_pass = 0;
  if (is_prompt) {
    prompt.abi = number(image, "prompt_abi", 11), prompt.tokens = number(image, "prompt", 0);
    prompt.threads = number(image, "prompt_threads", 256), prompt.shared = number(image, "prompt_shared", 1 << 15);
    prompt.workspace = number(image, "prompt_workspace", 1 << 16), prompt_short = number(image, "prompt_short", 0);
    prompt_off = number(image, "prompt_off", 0), prompt_picks = number(image, "prompt_picks", 0);
    prompt_lost = number(image, "prompt_lost", -1);
    pass_more = number(image, "more", 0), pass_layout = number(image, "layout", 0), pass_model = number(image, "model", 0);
    prompt.matrices = number(image, "prompt_list", 1024), prompt.maps = number(image, "prompt_maps", 2048);
    prompt.most = number(image, "prompt_matrices", 4), prompt.spans = number(image, "prompt_spans", 1);
    return 0;
  }
  const char *rows = strstr(image, " rows="), *sequences = strstr(image, " sequences=");
  if ((is_pass = rows || sequences)) {
    pass_rows = rows && sequences ? kMixed : rows ? atol(rows + 6) : kBatch;
    if (sequences) batch = atol(sequences + 11);
    if (pass_rows == kMixed) mixed_rows = atol(rows + 6);
    pass_more = strstr(image, " more=") != 0, pass_layout = number(image, "layout", 0), pass_model = number(image, "model", 0);
    return 0;
  }
  memset(&info, 0, sizeof info);
  info.tokens = info.sequences = 1;
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    long v = number(image, settings[i].key, settings[i].initial);
    if (settings[i].word) *settings[i].word = v;
    if (settings[i].value) *settings[i].value = v;
  }
  for (int i = 0; i < kRead; i++) build_kernels[i].sizes[0] = gpus > 1 ? 280 : 208;
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
  if (is_prompt && strcmp(name, "amk_prompt_matrices") == 0) { *f = &matrices_kernel; return 0; }
  for (int i = 0; is_pass && i < 2; i++)
    if (strcmp(pass_kernels[pass_rows][i].name, name) == 0) { *f = &pass_kernels[pass_rows][i]; return 0; }
  if (has_parts && strcmp(name, "amk_part") == 0) { *f = &part_kernel; return 0; }
  for (int i = 0; i < kBuildKernels; i++)
    if (!(is_lean && kTrace <= i && i <= kDrain) && strcmp(build_kernels[i].name, name) == 0) { *f = &build_kernels[i]; return 0; }
  return 500;
}

CUresult cuModuleGetGlobal_v2(Ptr* p, size_t* n, void* mod, const char* name) {
  ENTER_CONTEXT("cuModuleGetGlobal");
  static __typeof__(info) of_pass;
  of_pass = info, of_pass.sequences = pass_rows >= kBatch ? batch : 1;
  of_pass.tokens = pass_rows == kMixed ? batch * mixed_rows : pass_rows == kBatch ? batch : pass_rows;
  of_pass.exchange = pass_exchange, of_pass.cache += pass_more, of_pass.fragments ^= pass_layout, of_pass.model += pass_model;
  if (is_pass && strcmp(name, "amk_info") == 0) {
    *p = (Ptr)(uintptr_t)&of_pass | DEVICE;
    *n = sizeof of_pass;
    return 0;
  }
  if (is_prompt && strcmp(name, "amk_info") == 0) {
    of_pass = info, of_pass.cache += pass_more, of_pass.fragments ^= pass_layout, of_pass.model += pass_model;
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
