// The fake's plain kernels, which agree with what its steps decode to the bit.

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
  int qkv = 1 + exchanges_of_layer * r->layer;  // its ordinal
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
        float want = exchanged(*h, qkv, reference_step[1].elements - half + e);
        put_bf16(out + 2 * e, kept ? want : -1);
        put_bf16(out + 2 * (half + e), want);
      }
      break;
    }
    case 4: write_logits((float*)out, *h, (int)((*h >> 20) % info.vocab)); break;
  }
  free(r);
}
