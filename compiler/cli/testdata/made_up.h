// Numbers that the tests make up: those of a sequence, which is the same in every run, and those of a place.
#pragma once

#include "build.h"

static unsigned random_bits() {
  static uint64_t state = 1;
  return unsigned((state = state * 6364136223846793005 + 1442695040888963407) >> 33);
}
static float random_value(int least, int most) {  // from 2^least to 2^most, of either sign
  const float v = ldexpf(1 + random_bits() % 4096 / 4096.0f, least + int(random_bits() % (most - least)));
  return random_bits() % 2 ? v : -v;
}
static float within(float scale, unsigned bits) { return scale * (int(bits & 0xffff) - 0x8000) / 0x8000; }
static float random_within(float scale) { return rounded<Element>(within(scale, random_bits())); }

static unsigned bits_at(unsigned which, unsigned element) {
  unsigned h = (which + 1) * 2654435761u ^ element * 40503u;
  for (int i = 0; i < 3; ++i) h = (h ^ h >> 15) * 2246822519u;
  return h ^ h >> 13;
}
// Of many magnitudes: sums in another order have other bits.
static float value_at(unsigned which, unsigned element, float scale) {
  const unsigned bits = bits_at(which, element);
  return ldexpf(within(scale, bits), -int(bits >> 16 & 15));
}

template <class E>
static void put(u8* to, float v) {
  const typename E::Bits bits = E::from_float(v);
  memcpy(to, &bits, sizeof bits);
}
