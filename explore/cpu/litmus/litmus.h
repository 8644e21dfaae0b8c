// A litmus test: a small kernel on functions of the device runtime, and an outcome that must not
// happen. It is run under every schedule with at most n deviations from the plain one: which
// warp acts next, when a store commits or a copy lands, which store a load sees. A test that holds
// has no finding and no such outcome under any of them. Its counterpart, with an order weakened or
// left out, must have one.
//
// Schedules are reduced ones (machine/choice.h): warps change places before operations that others
// can see, and lanes of a warp act together. What is to happen in any order is of several warps.
#pragma once

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "../machine/arena.h"
#include "../machine/model.h"

namespace litmus {

using machine::u16;
using machine::u32;
using machine::u64;
using machine::u8;

// Memory that all threads can reach, of one kind. It is allocated once, and set before each run.
template <class T>
T* allocate(u32 n, const char* name, machine::RegionKind kind = machine::RegionKind::kGlobal) {
  u8* p = machine::arena_allocate(n * sizeof(T));
  machine::order().add_region(kind, p, n * sizeof(T), name);
  return reinterpret_cast<T*>(p);
}
// Bytes that the host writes before a launch.
template <class T>
void fill(T* p, u32 n, T value) {
  machine::order().host_write(p, n * sizeof(T));
  for (u32 i = 0; i < n; ++i) p[i] = value;
}
// Bytes that nobody has written yet.
template <class T>
void forget(T* p, u32 n) {
  machine::order().forget(p, n * sizeof(T));
}

struct Test {
  std::string name;
  u32 blocks = 2, threads = 32, shared = 0;
  u32 gpus = 1;  // that the blocks run on, as many on each
  std::function<void()> setup;  // what the host does before
  // What each thread does: kernels that are launched one after the other.
  std::vector<std::function<void()>> kernels;
  // What is there in the end: nothing, or the outcome that must not happen, in words.
  std::function<std::string()> outcome = [] { return std::string(); };
  u32 bound = 3;                  // most deviations of a schedule
  const char* without = nullptr;  // an assumption that does not hold
};

// Runs a test under all its schedules: none has a finding or the outcome.
void holds(const Test& test);
// Runs one until it has failed in the way that is given: a kind of findings, or "outcome". No
// schedule before may fail in another way.
void fails(const Test& test, const char* how);

// Notes what a thread has seen, for `outcome`. Each place is one thread's.
extern u64 seen[64];

// The program: the tests of one configuration. `--deeper` N allows N deviations more.
int run(int argc, char** argv, const char* program, void (*tests)());

}  // namespace litmus
