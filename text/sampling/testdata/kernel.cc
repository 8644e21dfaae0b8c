// Draws with the header of the kernel, compiled for the CPU. Reads one request from stdin and writes what it asks for:
// "noise" and numbers of tokens to -ln E of each; "draws", logits and a number to that many tokens at the positions from
// 0 on of one seed, and as many of other seeds at one position. All numbers are little-endian.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#define AMK_BULK_COPY 1
#define AMK_ASYNC_COPY 1
#define AMK_TENSOR_CORES 1
#include "sampling.cuh"
using namespace amk;

template <class T> static T read() {
  T v;
  if (fread(&v, sizeof v, 1, stdin) != 1) exit(3);
  return v;
}
template <class T> static void write(T v) { fwrite(&v, sizeof v, 1, stdout); }

static void draw(const std::vector<float>& logits, double temperature, u64 seed, int position) {
  const Sampling settings{temperature, seed};
  const Draw draw(&settings, position - 1);
  Leader leader;
  for (size_t id = 0; id < logits.size(); ++id) draw.offer(leader, logits[id], int(id), draw.uniform(int(id)));
  if (leader.others < leader.low) return write(leader.token);
  Drawn best;
  for (size_t id = 0; id < logits.size(); ++id) draw.offer(best, logits[id], int(id));
  write(best.token);
}

// Whether the bounds of a token's sum are right, with logits and temperatures of all sizes, and close enough to be of use.
static bool is_between(u64 seed, u64 position, u32 token, u32 n) {
  const float logit = ldexpf(float(int(n * 2654435761u)), int(n % 40) - 51);
  const Sampling settings{pow(10, int(n % 13) - 6), seed};
  Draw draw(&settings, 0);
  draw.position = position;
  for (float towards : {-1.0f, 1.0f}) {
    direction = towards;
    Leader leader;
    draw.offer(leader, logit, int(token), draw.uniform(int(token)));
    const double sum = draw.sum(double(logit), draw.uniform(int(token)));
    if (!(leader.low <= sum && sum <= leader.high)) return false;
    if (leader.high - leader.low > 1e-4 + 4e-6 * fabs(sum)) return false;
  }
  return true;
}

int main(int, char** arguments) {
  if (strcmp(arguments[1], "noise") == 0) {
    for (u32 n = read<u32>(); n; --n) {
      const u64 seed = read<u64>(), position = read<u64>();
      const u32 token = read<u32>();
      if (!is_between(seed, position, token, n)) return 4;
      write(gumbel_of(uniform_of(noise_of(seed, position, token / 2), int(token))));
    }
    return 0;
  }
  const double temperature = read<double>();
  const u64 at = read<u64>();
  const u32 n = read<u32>();
  std::vector<float> logits(read<u32>());
  for (float& x : logits) x = read<float>();
  for (u32 i = 0; i < n; ++i) draw(logits, temperature, at, int(i));
  for (u32 i = 0; i < n; ++i) draw(logits, temperature, u64(i) << 20, int(at));
}
