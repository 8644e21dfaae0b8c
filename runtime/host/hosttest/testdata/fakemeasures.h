// What the fake has for measurements: forms of the decode step that take a time of their own, and a plain read.

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
  if (epoch_of(e) != l->first_epoch) complain("the epoch is not the number of steps since the pages were cleared");
  e->variant_plus_one = variant_of(l->position) + 1;
  for (int i = 0; i < l->steps; i++, e->steps++) *row(l->cache, l->position + i) = 0xdead;
  now_ms += l->steps * drain_us / 1000.;
  free(l);
}

static void ceiling(void* arg) {
  now_ms += ((Launch*)arg)->steps * ceiling_us / 1000.;
  free(arg);
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

// amk::PartLaunch
enum { kPartStages = 16, kEmbed = 0 };
typedef struct PartLaunch {
  Launch launch;
  Ptr residual, token;
  uint32_t layer, ended, before, follows, count, stages[kPartStages], reserved;
} PartLaunch;

// What the part before has left: each stage ends an exchange, of which the next part is told the number, and who was the
// last to end one.
static struct { uint32_t layer, ended, before; } left_off;

// Parts of a step follow one another without a gap. One without stages does nothing, and the one with lm_head has done the
// step.
static void run_part(void* arg) {
  PartLaunch* p = arg;
  Exchange* e = host(p->launch.exchange);
  if (sticky_code || gives_up_too(&p->launch)) goto end;
  now_ms += launch_us / 1000.;
  if (p->count == 0) goto end;
  if (p->count > kPartStages) complain("a part of more stages than it has room for");
  now_ms += part_us * (p->stages[0] + 1) / 1000.;
  if (p->stages[0] == kEmbed) {
    left_off.layer = left_off.ended = 0;
    left_off.before = UINT32_MAX;
  }
  if (p->ended != left_off.ended || p->before != left_off.before || p->layer - left_off.layer > 1)
    complain("a part that does not follow the one before");
  left_off.layer = p->layer;
  for (uint32_t i = 0; i < p->count; i++, left_off.ended++) {
    if (i > 0 && p->stages[i] <= p->stages[i - 1]) complain("a part whose stages are in another order");
    left_off.before = p->stages[i];
  }
  if (epoch_of(e) != p->launch.first_epoch) complain("the epoch is not the number of steps since the pages were cleared");
  if (p->launch.steps != 1) complain("parts of several steps");
  if (p->layer < info.layers || sticky_code) goto end;  // the last part is of no layer
  int* token = host(p->token);
  int chosen = step(&p->launch, 0, 1, p->follows ? *token : p->launch.token, 0, (Decoded){0});
  if (chosen < 0) goto end;
  *token = part_picks ? chosen + 1 : chosen;
  e->variant_plus_one = variant_of(p->launch.position) + 1;
  e->steps++;
end:
  free(p);
}
