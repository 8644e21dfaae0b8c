// How the fake kernel chooses a token from logits: as docs/sampling.md says, in code of its own. Tables are where pointers
// of the fake GPU say.

// amk::Sampling, amk::Choice and the size of amk::Rounds
typedef struct Sampling { double temperature; uint64_t seed; } Sampling;
typedef struct Choice {
  Ptr bias, uses, allowed, recent;
  double repetition, frequency, presence, rest, min_p;
  int top_k, n_recent, counts, set;
} Choice;
enum { kNoToken = 0x7ffffffe, kRounds = 64 + 3 * 8 * 3088 };

// The ids that a launch has decoded behind the first token.
typedef struct Decoded { const int* ids; int n, stride; } Decoded;

// The natural logarithm by the operations of docs/sampling.md, and the token that they draw from logits.
static double ln(double x) {
  int k;
  double m = frexp(x, &k);
  if (m < 0x1.6a09e667f3bcdp-1) m *= 2, k--;
  double f = m - 1, s = f / (2 + f), z = s * s, q = 1. / 23;
  for (int n = 21; n >= 3; n -= 2) q = fma(q, z, 1. / n);
  double zq = z * q, tail = 2 * s * zq, low = fma(k, 0x1.a39ef35793c76p-33, tail), sum = 2 * s + low;
  return fma(k, 0x1.62e42fee00000p-1, sum);
}

static double exp_of(double y) {
  if (y < -700) return 0;
  double k = nearbyint(y * 0x1.71547652b82fep+0), r = fma(-k, 0x1.a39ef35793c76p-33, fma(-k, 0x1.62e42fee00000p-1, y));
  static const double factorials[] = {6227020800., 479001600., 39916800., 3628800., 362880., 40320., 5040., 720., 120.,
                                      24., 6., 2., 1., 1.};
  double q = 1 / factorials[0];
  for (int n = 1; n < 14; n++) q = fma(q, r, 1 / factorials[n]);
  return ldexp(q, (int)k);
}

// Scores, and which tokens are left, by the steps of docs/sampling.md: -inf is the score of a token that is not.
static double* scores;
static void score(const float* logits, const Choice* by, Decoded decoded) {
  const double* bias = host(by->bias);
  const int *uses = host(by->uses), *recent = host(by->recent);
  const uint64_t* allowed = host(by->allowed);
  for (uint32_t id = 0; id < info.vocab; id++) {
    double x = logits[id];
    if (by->bias) x += bias[id];
    if (by->uses) {
      int n = uses[id];
      for (int i = 0; i < by->n_recent; i++) if (recent[i] == (int)id) n = (n < 0 ? 0 : n) + 1;
      for (int i = 0; by->counts && i < decoded.n; i++)
        if (decoded.ids[i * decoded.stride] == (int)id) n = (n < 0 ? 0 : n) + 1;
      if (n >= 0) x = x < 0 ? x * by->repetition : x / by->repetition;
      double taken = by->frequency * n;
      if (n > 0) x -= taken, x -= by->presence;
    }
    scores[id] = by->allowed && !(allowed[id / 64] >> id % 64 & 1) ? -INFINITY : x;
  }
}

static int ahead(const void* a, const void* b) {
  int i = *(const int*)a, k = *(const int*)b;
  return scores[i] != scores[k] ? scores[i] > scores[k] ? -1 : 1 : k - i;
}

static void leave_out(const Choice* by, double temperature) {
  static int* order;
  if (!order) order = malloc(info.vocab * sizeof *order);
  uint32_t n = 0;
  for (uint32_t id = 0; id < info.vocab; id++) if (scores[id] > -INFINITY) order[n++] = id;
  if (!n) return;
  qsort(order, n, sizeof *order, ahead);
  const double largest = scores[order[0]];
  uint32_t left = n;
  if (by->top_k && by->top_k < (int)n)
    for (left = by->top_k; left < n && scores[order[left]] == scores[order[by->top_k - 1]];) left++;
  for (uint32_t i = left; i < n; i++) scores[order[i]] = -INFINITY;
  n = left;
  if (by->rest > 0) {
    int bits = 0, exponent;
    while ((info.vocab - 1) >> bits) bits++;
    uint64_t total = 0, before = 0, out;
    for (uint32_t i = 0; i < n; i++)
      total += (uint64_t)nearbyint(ldexp(exp_of((scores[order[i]] - largest) / temperature), 62 - bits));
    unsigned __int128 product = (uint64_t)ldexp(frexp(by->rest, &exponent), 53);
    out = 53 - exponent > 127 ? 0 : (uint64_t)(product * total >> (53 - exponent));
    for (uint32_t i = 0; i < n; i++) {
      uint64_t weight = (uint64_t)nearbyint(ldexp(exp_of((scores[order[i]] - largest) / temperature), 62 - bits));
      if (i && before + out + 1 > total) scores[order[i]] = -INFINITY;
      before += weight;
    }
  }
  for (uint32_t i = 0; i < n; i++)
    if (exp_of((scores[order[i]] - largest) / temperature) < by->min_p) scores[order[i]] = -INFINITY;
}

// The token at a position.
static int draw(const float* logits, const Sampling* by, const Choice* choice, uint64_t position, Decoded decoded) {
  double most = -INFINITY;
  const int set = choice && choice->set;
  int chosen = set || by->temperature != 0 ? kNoToken : 0;
  if (!scores) scores = malloc(info.vocab * sizeof *scores);
  for (uint32_t id = 0; id < info.vocab; id++) {
    if ((isnan(logits[id]) || logits[id] == INFINITY) && chosen == kNoToken) return kNoToken;
    scores[id] = logits[id];
  }
  if (set) score(logits, choice, decoded);
  if (set && by->temperature != 0) leave_out(choice, by->temperature);
  for (uint32_t id = 0; id < info.vocab; id++) {
    double x = scores[id];
    if (!(x > -INFINITY)) continue;
    uint32_t w[4] = {id / 2, 0, position, position >> 32}, key[2] = {by->seed, by->seed >> 32};
    for (int round = 0; round < 10; round++) {
      uint64_t a = 0xD2511F53ull * w[0], b = 0xCD9E8D57ull * w[2];
      uint32_t next[4] = {b >> 32 ^ w[1] ^ key[0], b, a >> 32 ^ w[3] ^ key[1], a};
      memcpy(w, next, sizeof w);
      key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
    }
    uint64_t v = ((uint64_t)w[id % 2 * 2 + 1] << 32 | w[id % 2 * 2]) >> 12 << 1 | 1;
    if (by->temperature != 0) {
      double share = x / by->temperature, u = ldexp((double)((1ull << 53) - v), -53);
      x = share - ln(-ln(u));
    }
    if (x > most) most = x, chosen = id;
  }
  return chosen;
}
