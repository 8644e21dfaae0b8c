// What the tests of the memory model share.
#pragma once

#include <cstdio>

#include "../machine/order.h"

extern int failures;
#define CHECK(condition, ...)                                     \
  do {                                                            \
    if (!(condition)) {                                           \
      ++failures;                                                 \
      std::printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      std::printf(__VA_ARGS__);                                   \
      std::printf("\n");                                          \
    }                                                             \
  } while (0)

constexpr size_t kArenaBytes = size_t(64) << 20;
extern machine::u8* arena;

void random_programs(machine::u32 programs, machine::u64 seed);  // order_random.cc
void speed();                                                    // order_speed.cc
