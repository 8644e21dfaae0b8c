// Tests of the memory model: litmus programs over all schedules and all choices, rules one by one,
// and random programs against an oracle that keeps every access and full vector clocks.
//   order_test [programs [seed]]       what order_test.go runs
//   order_test speed                   accesses per second
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "order_test.h"

using namespace machine;

int failures = 0;
u8* arena;

namespace {

// A depth-first walk over the answers of choose().
struct Walk : Listener {
  std::vector<u32> path, ways;
  size_t at = 0;
  std::vector<Finding> findings;
  std::vector<const void*> changes;

  u32 choose(u32 n, Weak) override { return pick(n); }
  u32 pick(u32 n) {
    if (n <= 1) return 0;
    if (at == path.size()) {
      path.push_back(0);
      ways.push_back(n);
    }
    CHECK(ways[at] == n, "the walk repeats its choices");
    return path[at++];
  }
  bool next() {
    at = 0;
    while (!path.empty() && ++path.back() == ways.back()) {
      path.pop_back();
      ways.pop_back();
    }
    return !path.empty();
  }
  void found(const Finding& f) override { findings.push_back(f); }
  void changed(const void* word) override { changes.push_back(word); }
};

// A program of a few threads, each a list of operations, over all interleavings and choices.
struct Litmus {
  u8* x = arena;              // global memory, a word in each 64 bytes
  u8* shared = arena + 65536; // of block 0
  Walk walk;
  Order* order = nullptr;
  std::map<std::string, u64> registers;
  using Op = std::function<void(u32 thread)>;
  std::vector<std::pair<u32, std::vector<Op>>> threads;  // number, operations
  std::vector<std::string> off;   // assumptions
  u32 blocks = 4;
  std::set<std::string> outcomes;
  std::set<Fault> faults;
  u64 runs = 0;
  std::function<std::string(Litmus&)> outcome = [](Litmus& l) {
    std::string s;
    for (auto& r : l.registers) s += r.first + "=" + std::to_string(r.second) + " ";
    return s;
  };

  u8* word(int i) { return x + 64 * i; }
  Op store(int i, u64 v, Ordering o = Ordering::kRelaxed, Scope s = Scope::kGpu, u32 bytes = 4) {
    return [=](u32 t) { order->store(t, word(i), bytes, v, o, s, 1); };
  }
  Op load(int i, std::string r, Ordering o = Ordering::kRelaxed, Scope s = Scope::kGpu,
          u32 bytes = 4) {
    return [=](u32 t) { registers[r] = order->load(t, word(i), bytes, o, s, 2).value; };
  }
  Op add(int i, u64 v, std::string r, Ordering o = Ordering::kRelaxed, Scope s = Scope::kGpu) {
    return [=](u32 t) { registers[r] = order->update(t, word(i), 4, Update::kAdd, v, o, s, 3); };
  }
  Op write(int i, u32 v, u32 bytes = 4) {
    return [=](u32 t) {
      order->write(t, word(i), bytes, 4);
      std::memcpy(word(i), &v, bytes);
    };
  }
  Op read(int i, std::string r, u32 bytes = 4) {
    return [=](u32 t) {
      order->read(t, word(i), bytes, 5);
      u32 v = 0;
      std::memcpy(&v, word(i), bytes);
      registers[r] = v;
    };
  }
  Op fence(Ordering o, Scope s = Scope::kGpu) {
    return [=](u32 t) { order->fence(t, o, s); };
  }
  // The operation, if a register has a value.
  Op when(std::string r, u64 v, Op then) {
    return [=](u32 t) {
      if (registers[r] == v) then(t);
    };
  }

  void run(bool weak = true) {
    do {
      ++runs;
      registers.clear();
      walk.findings.clear();
      std::memset(x, 0, 4096);
      Order o(arena, kArenaBytes, &walk);
      order = &o;
      o.add_region(RegionKind::kGlobal, x, 4096, "global");
      o.host_write(x, 4096);
      for (auto& name : off) CHECK(o.assume(name.c_str(), false), "%s", name.c_str());
      o.begin_launch(blocks, 32);
      o.add_region(RegionKind::kShared, shared, 4096, "shared memory of block 0", 0);
      std::vector<size_t> done(threads.size());
      for (;;) {
        // A thread goes on, or a pending store commits.
        std::vector<size_t> ready;
        for (size_t i = 0; i < threads.size(); ++i)
          if (done[i] < threads[i].second.size()) ready.push_back(i);
        if (ready.empty()) break;
        const u32 commits = weak ? o.pending_count() : 0;
        const u32 choice = walk.pick(u32(ready.size()) + commits);
        if (choice < ready.size()) {
          const size_t i = ready[choice];
          threads[i].second[done[i]++](threads[i].first);
        } else {
          o.commit(choice - u32(ready.size()));
        }
      }
      o.end_launch();
      outcomes.insert(outcome(*this));
      for (auto& f : walk.findings) faults.insert(f.fault);
    } while (walk.next());
  }
  bool has(const std::string& s) const { return outcomes.count(s); }
  std::string all() const {
    std::string s;
    for (auto& o : outcomes) s += "{" + o + "} ";
    for (auto f : faults) s += std::string("<") + name_of(f) + "> ";
    return s;
  }
};

constexpr Ordering kRelaxed = Ordering::kRelaxed, kAcquire = Ordering::kAcquire,
                   kRelease = Ordering::kRelease;
constexpr u32 A = 0, B = 32, C = 64, D = 96;  // threads of four blocks

void message_passing() {
  {
    Litmus l;
    l.threads = {{A, {l.write(0, 7), l.store(1, 1, kRelease)}},
                 {B, {l.load(1, "flag", kAcquire), l.when("flag", 1, l.read(0, "data"))}}};
    l.run();
    CHECK(l.faults.empty(), "%s", l.all().c_str());
    CHECK(l.has("data=7 flag=1 ") && l.has("flag=0 ") && l.outcomes.size() == 2, "%s",
          l.all().c_str());
  }
  for (int left_out = 0; left_out < 2; ++left_out) {
    Litmus l;
    l.threads = {
        {A, {l.write(0, 7), l.store(1, 1, left_out == 0 ? kRelaxed : kRelease)}},
        {B,
         {l.load(1, "flag", left_out == 1 ? kRelaxed : kAcquire),
          l.when("flag", 1, l.read(0, "data"))}}};
    l.run();
    CHECK(l.faults == std::set<Fault>{Fault::kRace}, "%s", l.all().c_str());
  }
  {  // the data is a relaxed word: no race, but it may be old without the release
    for (bool released : {false, true}) {
      Litmus l;
      l.threads = {{A, {l.store(0, 7), l.store(1, 1, released ? kRelease : kRelaxed)}},
                   {B, {l.load(1, "flag", kAcquire), l.load(0, "data")}}};
      l.run();
      CHECK(l.faults.empty(), "%s", l.all().c_str());
      CHECK(l.has("data=0 flag=1 ") == !released, "%s", l.all().c_str());
      CHECK(l.has("data=7 flag=1 ") && l.has("data=7 flag=0 "), "%s", l.all().c_str());
    }
  }
  {  // through fences
    for (int left_out = 0; left_out < 3; ++left_out) {
      Litmus l;
      const auto nothing = [](u32) {};
      l.threads = {{A,
                    {l.write(0, 7), left_out == 1 ? nothing : l.fence(kRelease), l.add(1, 1, "a")}},
                   {B,
                    {l.load(1, "flag"), left_out == 2 ? nothing : l.fence(kAcquire),
                     l.when("flag", 1, l.read(0, "data"))}}};
      l.run();
      CHECK(l.faults.empty() == (left_out == 0), "%s", l.all().c_str());
    }
  }
  {  // a release sequence: atomics go on with it, a store of another thread ends it
    for (bool atomic : {true, false}) {
      Litmus l;
      l.threads = {{A, {l.write(0, 7), l.store(1, 1, kRelease)}},
                   {B, {atomic ? l.add(1, 1, "b") : l.store(1, 2)}},
                   {C, {l.load(1, "flag", kAcquire), l.when("flag", 2, l.read(0, "data"))}}};
      l.run();
      CHECK(l.faults.empty() == atomic, "%s", l.all().c_str());
    }
  }
  {  // two add_release: who sees both has what both have written
    Litmus l;
    l.threads = {{A, {l.write(0, 7), l.add(1, 1, "a", kRelease)}},
                 {B, {l.write(2, 8), l.add(1, 1, "b", kRelease)}},
                 {C,
                  {l.load(1, "n", kAcquire), l.when("n", 2, l.read(0, "x")),
                   l.when("n", 2, l.read(2, "y"))}}};
    l.run();
    CHECK(l.faults.empty(), "%s", l.all().c_str());
    CHECK(l.has("a=0 b=1 n=2 x=7 y=8 "), "%s", l.all().c_str());
  }
  {  // a scope of the block does not reach another block, and does reach its own
    for (u32 reader : {B, A + 1}) {
      Litmus l;
      l.threads = {{A, {l.write(0, 7), l.store(1, 1, kRelease, Scope::kBlock)}},
                   {reader,
                    {l.load(1, "flag", kAcquire, Scope::kBlock),
                     l.when("flag", 1, l.read(0, "data"))}}};
      l.run();
      CHECK(l.faults.empty() == (reader != B), "%s", l.all().c_str());
    }
  }
  {  // cumulativity: A to B to C, and a word that B has read
    Litmus l;
    l.threads = {{A, {l.write(0, 7), l.store(1, 1, kRelease)}},
                 {B, {l.load(1, "b", kAcquire), l.when("b", 1, l.store(2, 1, kRelease))}},
                 {C, {l.load(2, "c", kAcquire), l.when("c", 1, l.read(0, "data"))}}};
    l.run();
    CHECK(l.faults.empty() && l.has("b=1 c=1 data=7 "), "%s", l.all().c_str());
  }
}

void coherence() {
  {  // store buffering: relaxed words allow it, and so do release and acquire
    for (bool strong : {false, true}) {
      Litmus l;
      l.threads = {
          {A, {l.store(0, 1, kRelaxed), l.load(1, "a", strong ? kAcquire : kRelaxed)}},
          {B, {l.store(1, 1, kRelaxed), l.load(0, "b", strong ? kAcquire : kRelaxed)}}};
      l.run();
      CHECK(l.has("a=0 b=0 ") && l.has("a=1 b=1 ") && l.has("a=0 b=1 "), "%s", l.all().c_str());
    }
  }
  {  // CoRR: two loads of a word do not go back
    Litmus l;
    l.threads = {{A, {l.store(0, 1)}}, {B, {l.load(0, "b1"), l.load(0, "b2")}}};
    l.run();
    CHECK(!l.has("b1=1 b2=0 ") && l.outcomes.size() == 3, "%s", l.all().c_str());
  }
  {  // CoRR through happens-before
    Litmus l;
    l.threads = {{A, {l.store(0, 1)}},
                 {B, {l.load(0, "b"), l.store(1, 1, kRelease)}},
                 {C, {l.load(1, "c1", kAcquire), l.load(0, "c2")}}};
    l.run();
    CHECK(!l.has("b=1 c1=1 c2=0 ") && l.has("b=1 c1=0 c2=0 "), "%s", l.all().c_str());
  }
  {  // CoWW and CoWR of one thread
    Litmus l;
    l.threads = {{A, {l.store(0, 1), l.store(0, 2), l.load(0, "a")}},
                 {B, {l.load(0, "b1"), l.load(0, "b2")}}};
    l.run();
    for (auto& o : l.outcomes) {
      CHECK(o.find("a=2") == 0, "%s", o.c_str());
      CHECK(o.find("b1=2 b2=1") == std::string::npos && o.find("b1=1 b2=0") == std::string::npos,
            "%s", o.c_str());
    }
  }
  {  // CoRW: what a thread has read is before what it stores
    Litmus l;
    l.threads = {{A, {l.store(0, 1)}}, {B, {l.load(0, "b"), l.when("b", 1, l.store(0, 2))}}};
    l.outcome = [](Litmus& m) {
      u32 end;
      std::memcpy(&end, m.word(0), 4);
      return "b=" + std::to_string(m.registers["b"]) + " end=" + std::to_string(end);
    };
    l.run();
    CHECK(l.has("b=1 end=2") && !l.has("b=1 end=1") && l.has("b=0 end=1"), "%s", l.all().c_str());
  }
  {  // two stores of two threads in either order, whoever was first
    Litmus l;
    l.threads = {{A, {l.store(0, 1), l.store(1, 1, kRelaxed)}},
                 {B, {l.load(1, "b"), l.when("b", 1, l.store(0, 2))}}};
    l.outcome = [](Litmus& m) {
      u32 end;
      std::memcpy(&end, m.word(0), 4);
      return "b=" + std::to_string(m.registers["b"]) + " end=" + std::to_string(end);
    };
    l.run();
    CHECK(l.has("b=1 end=1") && l.has("b=1 end=2"), "%s", l.all().c_str());
  }
  {  // and in order after a release
    Litmus l;
    l.threads = {{A, {l.store(0, 1), l.store(1, 1, kRelease)}},
                 {B, {l.load(1, "b", kAcquire), l.when("b", 1, l.store(0, 2))}}};
    l.outcome = [](Litmus& m) {
      u32 end;
      std::memcpy(&end, m.word(0), 4);
      return "b=" + std::to_string(m.registers["b"]) + " end=" + std::to_string(end);
    };
    l.run();
    CHECK(!l.has("b=1 end=1") && l.has("b=1 end=2"), "%s", l.all().c_str());
  }
  {  // IRIW
    Litmus l;
    l.threads = {{A, {l.store(0, 1)}},
                 {B, {l.store(1, 1)}},
                 {C, {l.load(0, "c0"), l.load(1, "c1")}},
                 {D, {l.load(1, "d1"), l.load(0, "d0")}}};
    l.run();
    CHECK(l.has("c0=1 c1=0 d0=0 d1=1 "), "%s", l.all().c_str());
  }
  {  // atomics act on the newest store: no update is lost
    Litmus l;
    l.threads = {{A, {l.add(0, 1, "a")}}, {B, {l.add(0, 1, "b"), l.load(0, "end")}}};
    l.run();
    CHECK(l.outcomes == (std::set<std::string>{"a=0 b=1 end=2 ", "a=1 b=0 end=1 ",
                                               "a=1 b=0 end=2 "}),
          "%s", l.all().c_str());
  }
}

// A word whose only reader runs on the SM that wrote it, and another SM that then writes it: the
// first store may come last if an SM can read its own store before it is in L2.
void own_stores() {
  for (int off = 0; off < 3; ++off) {
    for (u32 reader : {A + 1, B}) {
      Litmus l;
      if (off) l.off = {off == 1 ? "l2-single-copy" : "l2-store-atomicity"};
      l.threads = {{A, {l.store(0, 1)}},
                   {reader, {l.load(0, "r"), l.when("r", 1, l.store(1, 1))}},
                   {C, {l.load(1, "c"), l.when("c", 1, l.store(0, 2))}}};
      l.outcome = [](Litmus& m) {
        u32 end;
        std::memcpy(&end, m.word(0), 4);
        return "c=" + std::to_string(m.registers["c"]) + " end=" + std::to_string(end);
      };
      l.run();
      const bool weak = off == 2 || (off == 1 && reader == A + 1);
      CHECK(l.has("c=1 end=2") && l.has("c=1 end=1") == weak, "off %d reader %u: %s", off, reader,
            l.all().c_str());
    }
  }
  // An own store is read, whatever is pending.
  for (const char* off : {"", "l2-single-copy", "l2-store-atomicity"}) {
    Litmus l;
    if (*off) l.off = {off};
    l.threads = {{A, {l.store(0, 1), l.load(0, "a1"), l.load(0, "a2")}}, {B, {l.store(0, 2)}}};
    l.run();
    for (auto& o : l.outcomes) {
      CHECK(o.find("a1=0") == std::string::npos && o.find("a2=0") == std::string::npos, "%s",
            o.c_str());
    }
    CHECK(l.has("a1=1 a2=2 ") && l.has("a1=2 a2=2 "), "%s", l.all().c_str());
    CHECK(!l.has("a1=2 a2=1 "), "%s", l.all().c_str());
  }
}

void widths() {
  for (bool on : {true, false}) {
    Litmus l;
    if (!on) l.off = {"overlapping-words"};
    l.threads = {{A, {l.store(0, 0x0000000500000006u, kRelaxed, Scope::kGpu, 8)}},
                 {B, {l.load(0, "low"), l.load(0, "both", kRelaxed, Scope::kGpu, 8)}}};
    l.run();
    CHECK(l.faults.count(Fault::kWidth) == !on, "%s", l.all().c_str());
    if (!on) continue;
    CHECK(l.has("both=21474836486 low=6 ") && l.has("both=0 low=0 ") &&
              l.has("both=21474836486 low=0 ") && l.outcomes.size() == 3,
          "%s", l.all().c_str());
  }
  {  // a plain write between stores to one half, and a store to the other that stays known
    Litmus l;
    const auto high = [&](u64 v) {
      return [&l, v](u32 t) { l.order->store(t, l.word(0) + 4, 4, v, kRelaxed, Scope::kGpu, 1); };
    };
    const auto plain = [&](u32 t) {
      l.order->write(t, l.word(0) + 4, 4, 4);
      const u32 v = 7;
      std::memcpy(l.word(0) + 4, &v, 4);
    };
    const auto read_high = [&](u32 t) {
      l.registers["high"] = l.order->load(t, l.word(0) + 4, 4, kRelaxed, Scope::kGpu, 2).value;
    };
    l.threads = {{A, {high(5), l.store(0, 6), plain, l.store(1, 1, kRelease), l.load(2, "after"),
                      read_high}},
                 {B, {l.load(1, "flag", kAcquire), l.when("flag", 1, high(9)),
                      l.when("flag", 1, l.store(2, 1))}}};
    l.run();
    CHECK(l.faults.empty() && l.outcomes == (std::set<std::string>{"after=0 flag=0 high=7 ",
                                                                   "after=0 flag=1 high=7 ",
                                                                   "after=0 flag=1 high=9 ",
                                                                   "after=1 flag=1 high=7 ",
                                                                   "after=1 flag=1 high=9 "}),
          "%s", l.all().c_str());
  }
  {  // halves are words of their own
    Litmus l;
    const auto high = [&](u32 t) { l.order->store(t, l.word(0) + 4, 4, 2, kRelaxed, Scope::kGpu, 1); };
    l.threads = {{A, {l.store(0, 1)}},
                 {B, {high}},
                 {C, {l.load(0, "c1"), l.load(0, "c2"), l.load(0, "all", kRelaxed, Scope::kGpu, 8)}}};
    l.run();
    CHECK(l.faults.empty() && l.has("all=1 c1=1 c2=1 ") && l.has("all=8589934592 c1=0 c2=0 ") &&
              l.has("all=8589934593 c1=0 c2=0 "),
          "%s", l.all().c_str());
    for (auto& o : l.outcomes) CHECK(o.find("c1=1 c2=0") == std::string::npos, "%s", o.c_str());
  }
}

// One Order, called by hand.
struct Machine {
  u8* global = arena;
  u8* weights = arena + (1 << 20);
  u8* cache = arena + (2 << 20);
  u8* shared = arena + (3 << 20);
  u8* shared1 = arena + (4 << 20);
  Walk walk;
  Order order{arena, kArenaBytes, &walk};
  Machine() {
    std::memset(global, 0, 65536);
    std::memset(cache, 0, 65536);
    order.add_region(RegionKind::kGlobal, global, 65536, "global");
    order.add_region(RegionKind::kWeights, weights, 65536, "weights");
    order.add_region(RegionKind::kCache, cache, 65536, "cache");
    order.host_write(global, 32768);
    order.host_write(cache, 65536);
    launch();
  }
  void launch() {
    order.begin_launch(2, 64);
    order.add_region(RegionKind::kShared, shared, 40000, "shared memory of block 0", 0);
    order.add_region(RegionKind::kShared, shared1, 40000, "shared memory of block 1", 1);
  }
  void end() {
    order.end_launch();
    order.remove_region(shared);
    order.remove_region(shared1);
  }
  // What was found since the last call.
  std::string found() {
    std::string s;
    for (auto& f : walk.findings) s += std::string(name_of(f.fault)) + " at " + f.place + "; ";
    walk.findings.clear();
    return s;
  }
};

void plain_accesses() {
  {
    Machine m;
    m.order.read(0, m.shared + 4, 4, 1);
    CHECK(m.found() == "read of bytes that nobody has written at shared memory of block 0 + 0x4; ",
          "unwritten");
    m.order.write(0, m.shared, 8, 2);
    m.order.read(0, m.shared, 8, 3);
    CHECK(m.found().empty(), "written");
    m.order.read(0, m.shared, 9, 4);
    CHECK(m.found() == "read of bytes that nobody has written at shared memory of block 0 + 0x8; ",
          "one byte more");
    m.order.read(0, m.global + 32760, 8, 5);
    CHECK(m.found().empty(), "the host has written it");
    m.order.read(0, m.global + 32764, 8, 6);
    CHECK(m.found() == "read of bytes that nobody has written at global + 0x8000; ", "half of it");
    m.order.write(0, m.global + 65536, 4, 7);
    CHECK(m.found().find("outside") != std::string::npos, "after a region");
    m.order.write(0, m.shared + 39998, 2, 8);
    CHECK(m.found().empty(), "the last bytes of a region");
    m.order.write(0, m.shared + 39998, 4, 9);
    CHECK(m.found() == "access to bytes outside of all memory of its block at no allocation, "
                       "address " +
                           [&] {
                             char s[32];
                             std::snprintf(s, sizeof s, "%p", static_cast<void*>(m.shared + 40000));
                             return std::string(s);
                           }() +
                           "; ",
          "after the last bytes");
    m.order.write(64, m.shared, 4, 10);
    CHECK(m.found().find("outside") != std::string::npos, "another block's shared memory");
    m.order.write(3, m.weights + 8, 4, 11);
    CHECK(m.found() == "write to weights at weights + 0x8; ", "weights");
    m.order.read(3, m.weights + 8, 16, 12);
    CHECK(m.found().empty(), "weights are read");
    m.order.load(3, m.global + 2, 4, kRelaxed, Scope::kGpu, 13);
    CHECK(m.found().find("aligned") != std::string::npos, "misaligned");
    m.order.host_read(m.global + 32700, 200);
    CHECK(m.found() == "read of bytes that nobody has written at global + 0x8000; ", "by the host");
    m.end();
    m.launch();
    m.order.read(0, m.shared, 4, 14);
    CHECK(m.found().find("nobody has written") != std::string::npos,
          "shared memory of another launch");
  }
  {  // races, and what orders
    Machine m;
    m.order.write(0, m.shared, 16, 21);
    m.order.read(1, m.shared + 12, 4, 22);
    CHECK(m.walk.findings.size() == 1 && m.walk.findings[0].fault == Fault::kRace &&
              m.walk.findings[0].first.where == 21 && m.walk.findings[0].first.thread == 0 &&
              m.walk.findings[0].first.writes && m.walk.findings[0].second.where == 22 &&
              m.walk.findings[0].second.thread == 1 && !m.walk.findings[0].second.writes,
          "write and read: %s", m.found().c_str());
    m.found();
    const u32 both[] = {0, 1, 2};
    m.order.join(both, 3);
    m.order.read(1, m.shared, 16, 23);
    m.order.read(2, m.shared, 16, 24);
    CHECK(m.found().empty(), "after a join");
    m.order.write(0, m.shared + 8, 1, 25);
    CHECK(m.walk.findings.size() == 1, "a write and two reads of a warp: %s", m.found().c_str());
    m.found();
    m.order.join(both, 2);
    m.order.write(1, m.shared + 8, 1, 26);  // thread 2 is missing
    CHECK(m.found().empty(), "its read of this byte is forgotten once found");
    m.order.write(1, m.shared + 4, 2, 27);
    CHECK(m.walk.findings.size() == 1 && m.walk.findings[0].first.thread == 2,
          "a participant that is missing: %s", m.found().c_str());
    m.found();
    // Neighbours in a line.
    for (u32 t = 0; t < 16; ++t) m.order.write(t, m.shared + 1024 + t, 1, 30 + t);
    CHECK(m.found().empty(), "bytes of their own");
    m.order.read(0, m.shared + 1024, 4, 50);
    CHECK(m.walk.findings.size() == 3, "three of them: %s", m.found().c_str());
    m.found();
    // Across lines and pages.
    m.order.write(0, m.shared + 4090, 12, 60);
    m.order.read(5, m.shared + 4100, 1, 61);
    CHECK(!m.found().empty(), "across a page");
    // Lanes that read together, and one that has not joined.
    std::vector<u32> warp;
    m.order.write(0, m.shared + 2048, 16, 70);
    for (u32 t = 0; t < 32; ++t) warp.push_back(t);
    m.order.join(warp.data(), 32);
    for (u32 t = 0; t < 32; ++t) m.order.read(t, m.shared + 2048, 16, 71);
    m.order.join(warp.data(), 31);
    m.order.write(0, m.shared + 2048, 16, 72);
    CHECK(m.walk.findings.size() == 1 && m.walk.findings[0].first.thread == 31, "lane 31: %s",
          m.found().c_str());
  }
  {  // constants
    Machine m;
    m.order.read_constant(0, m.global, 16, 1);
    m.order.read_constant(0, m.weights, 16, 1);
    m.order.write(0, m.global + 16, 4, 2);
    CHECK(m.found().empty(), "other bytes");
    m.order.write(0, m.global + 4, 4, 2);
    CHECK(m.found().find("constant load") != std::string::npos, "a write after it");
    m.order.read_constant(0, m.global + 16, 4, 3);
    CHECK(m.found().find("constant load") != std::string::npos, "a write before it");
    m.end();
    m.launch();
    m.order.read_constant(0, m.global + 16, 4, 3);
    m.order.read(0, m.global, 16, 4);
    m.order.write(0, m.global, 4, 5);
    CHECK(m.found().empty(), "of another launch");
  }
}

// Bytes that nobody has written, where what they hold does not matter.
void any_bytes() {
  std::set<u32> values;
  Walk walk;
  do {
    Machine m;
    m.walk.path = walk.path;
    m.walk.ways = walk.ways;
    std::memset(m.shared, 5, 16);
    m.order.write(0, m.shared, 8, 1);
    m.order.read_any(0, m.shared, 16, 2);
    CHECK(m.found().empty(), "no finding");
    CHECK(m.shared[7] == 5, "a byte that is written");
    u32 value;
    std::memcpy(&value, m.shared + 8, 4);
    values.insert(value);
    m.order.read_any(1, m.shared, 16, 3);
    CHECK(m.found().find("data race") == 0, "it races like any read");
    m.order.read(0, m.shared, 16, 4);
    CHECK(m.found().find("nobody has written") != std::string::npos, "and others may not read them");
    walk.path = m.walk.path;
    walk.ways = m.walk.ways;
  } while (walk.next());
  CHECK(values.size() > 2, "%zu values", values.size());
}

// More arrivals on a phase than a stamp keeps apart.
void many_arrive() {
  Machine m;
  m.order.barrier_init(0, m.shared, 1);
  std::vector<u32> block;
  for (u32 t = 0; t < 64; ++t) block.push_back(t);
  m.order.join(block.data(), 64);
  for (u32 t = 0; t < 63; ++t) {
    m.order.write(t, m.shared + 1024 + 16 * t, 16, 1);
    if (t != 40) m.order.barrier_arrive(t, m.shared, 2);
  }
  m.order.barrier_complete(m.shared);
  m.order.barrier_wait(63, m.shared, 3);
  for (u32 t = 0; t < 63; ++t) {
    m.order.read(63, m.shared + 1024 + 16 * t, 16, 4 + t);
    CHECK(m.found().empty() == (t != 40), "thread %u", t);
  }
}

// More warps read the same bytes, again and again, than are looked at each time. A write comes after
// all of them but one.
void many_read() {
  constexpr u32 kBlocks = 50, kThreads = 64, kWarps = kBlocks * kThreads / 32, kWriter = 5;
  for (u32 missing : {0u, 1u, 6u, 49u, 98u, kWarps - 1, kWarps}) {
    Walk walk;
    Order o(arena, kArenaBytes, &walk);
    o.add_region(RegionKind::kGlobal, arena, 65536, "global");
    o.host_write(arena, 65536);
    for (int launch = 0; launch < 2; ++launch) {
      o.begin_launch(kBlocks, kThreads);
      for (u32 read = 0; read < 20; ++read) {
        for (u32 w = 0; w < kWarps; ++w) o.read(w * 32 + read % 2, arena, 4, 100 + w);
      }
      for (u32 w = 0; w < kWarps; ++w) {
        for (u32 lane = 0; w != missing && lane < 2; ++lane) {
          o.update(w * 32 + lane, arena + 64, 4, Update::kAdd, 1, kRelease, Scope::kGpu, 2);
        }
      }
      o.load(kWriter * 32, arena + 64, 4, kAcquire, Scope::kGpu, 3);
      o.write(kWriter * 32, arena, 4, 4);
      CHECK(walk.findings.size() == (missing < kWarps), "without warp %u: %zu findings", missing,
            walk.findings.size());
      for (const Finding& f : walk.findings) {
        CHECK(f.first.where == 100 + missing && f.first.thread / 32 == missing, "without warp %u",
              missing);
      }
      o.end_launch();
      if (missing < kWarps) break;  // a finding is told once
    }
  }
}

void words_and_plain() {
  Machine m;
  m.order.store(0, m.global, 4, 1, kRelaxed, Scope::kGpu, 1);
  m.order.read(64, m.global, 4, 2);
  CHECK(m.walk.findings.size() == 1 && m.walk.findings[0].first.kind == AccessKind::kRelaxed,
        "a relaxed store and a plain read: %s", m.found().c_str());
  m.found();
  m.order.write(0, m.global + 8, 4, 3);
  m.order.load(64, m.global + 8, 4, kAcquire, Scope::kGpu, 4);
  CHECK(!m.found().empty(), "a plain write and a load");
  m.order.read(0, m.global + 16, 4, 5);
  m.order.update(64, m.global + 16, 4, Update::kAdd, 1, kRelaxed, Scope::kGpu, 6);
  CHECK(!m.found().empty(), "a plain read and an atomic");
  m.order.write(0, m.global + 24, 4, 7);
  m.order.load(0, m.global + 24, 4, kRelaxed, Scope::kGpu, 8);
  m.order.write(64, m.global + 40, 4, 9);
  CHECK(m.found().empty(), "other words");
  m.order.write(64, m.global + 24, 4, 9);
  CHECK(!m.found().empty(), "a load and a plain write");
  m.order.store(0, m.global + 48, 4, 1, kRelaxed, Scope::kBlock, 10);
  m.order.load(1, m.global + 48, 4, kRelaxed, Scope::kGpu, 11);
  CHECK(m.found().empty(), "in scope");
  m.order.load(64, m.global + 48, 4, kRelaxed, Scope::kGpu, 12);
  CHECK(!m.found().empty(), "not in scope");
  m.order.store(0, m.shared, 4, 1, kRelaxed, Scope::kBlock, 13);
  m.order.load(1, m.shared, 4, kRelaxed, Scope::kBlock, 14);
  m.order.read(0, m.shared, 4, 15);
  CHECK(m.found().empty(), "a word in shared memory is written by its store");
  m.order.load(1, m.shared + 4, 4, kRelaxed, Scope::kBlock, 14);
  CHECK(m.found().find("nobody") != std::string::npos, "and the next one is not");
  m.order.update(1, m.shared + 8, 4, Update::kAdd, 1, kRelaxed, Scope::kBlock, 14);
  CHECK(m.found().find("nobody") != std::string::npos, "nor is one that is updated");
  u32 value;
  m.order.store(0, m.global + 64, 4, 5, kRelaxed, Scope::kGpu, 1);
  m.order.update(0, m.global + 64, 4, Update::kMaxSigned, u32(-3), kRelaxed, Scope::kGpu, 1);
  std::memcpy(&value, m.global + 64, 4);
  CHECK(value == 5, "%u", value);
  m.order.update(0, m.global + 64, 4, Update::kMax, u32(-3), kRelaxed, Scope::kGpu, 1);
  std::memcpy(&value, m.global + 64, 4);
  CHECK(value == u32(-3), "%u", value);
  CHECK(m.order.update(0, m.global + 64, 4, Update::kCompareAndSwap, 9, kRelaxed, Scope::kGpu, 1,
                       u32(-3)) == u32(-3),
        "swapped");
  std::memcpy(&value, m.global + 64, 4);
  CHECK(value == 9, "%u", value);
}

// A ring slot: a bulk copy fills it, a consumer reads it and gives it back, the next copy fills it.
void slot_reuse() {
  // 0: as it should be; then without the proxy fence, without the arrival's order, with a wait of
  // the consumer left out, with the fence of the other kind for global memory, before any of it.
  for (int left_out = 0; left_out < 5; ++left_out) {
    Machine m;
    u8 *full = m.shared, *empty = m.shared + 8, *slot = m.shared + 1024;
    const u32 producer = 63, consumer = 5;
    m.order.barrier_init(producer, full, 1);
    m.order.barrier_init(producer, empty, 1);
    std::vector<u32> block;
    for (u32 i = 0; i < 64; ++i) block.push_back(i);
    m.order.join(block.data(), 64);
    const u32 first = m.order.bulk_begin(producer, 2);
    m.order.barrier_arrive(producer, full, 2);
    m.order.copy_bytes(first, slot + 64, m.weights + 64, 64);
    m.order.copy_bytes(first, slot, m.weights, 64);
    m.order.bulk_end(first, full);
    m.order.barrier_complete(full);
    if (left_out != 3) m.order.barrier_wait(consumer, full, 3);
    m.order.read(consumer, slot + 16, 16, 4);
    CHECK(m.found().empty() == (left_out != 3), "a consumer that does not wait");
    if (left_out != 1) {
      m.order.fence_proxy(consumer, left_out == 4 ? Proxy::kAll : Proxy::kShared);
    }
    if (left_out != 2) m.order.barrier_arrive(consumer, empty, 5);
    m.order.barrier_complete(empty);
    m.order.barrier_wait(producer, empty, 6);
    m.order.barrier_wait(producer, full, 6);
    const u32 second = m.order.bulk_begin(producer, 7);
    m.order.copy_bytes(second, slot, m.weights, 128);
    const std::string found = m.found();
    if (left_out == 1) {
      CHECK(found.find("proxy fence") != std::string::npos, "no fence: %s", found.c_str());
    } else if (left_out == 2 || left_out == 3) {
      CHECK(left_out == 3 || found.find("data race at") == 0, "no arrival: %s", found.c_str());
    } else {
      CHECK(found.empty(), "%d: %s", left_out, found.c_str());
    }
    m.order.bulk_end(second, full);
  }
  {  // rows of a cache that an earlier step has stored
    for (int left_out = 0; left_out < 3; ++left_out) {
      Machine m;
      m.order.assume("torn-cache-rows", false);
      u8* full = m.shared;
      m.order.barrier_init(1, full, 1);
      m.order.write(70, m.cache + 32, 16, 1);
      m.order.update(70, m.global, 4, Update::kAdd, 1, kRelease, Scope::kGpu, 2);
      m.order.load(0, m.global, 4, kAcquire, Scope::kGpu, 3);
      m.order.store(0, m.shared + 64, 4, 1, kRelease, Scope::kBlock, 4);
      m.order.load(1, m.shared + 64, 4, kAcquire, Scope::kBlock, 5);
      if (left_out != 1) m.order.fence_proxy(1, left_out == 2 ? Proxy::kShared : Proxy::kAll);
      const u32 copy = m.order.bulk_begin(1, 6);
      m.order.copy_bytes(copy, m.shared + 1024, m.cache, 64);
      m.order.bulk_end(copy, full);
      const std::string found = m.found();
      CHECK(found.empty() == (left_out == 0), "%s", found.c_str());
      if (left_out) CHECK(found.find("proxy fence") != std::string::npos, "%s", found.c_str());
    }
  }
}

void torn_rows() {
  for (bool on : {true, false}) {
    for (int way = 0; way < 3; ++way) {
      std::set<int> values;
      Walk walk;
      bool raced = false;
      do {
        Machine m;
        m.walk.path = walk.path;
        m.walk.ways = walk.ways;
        m.order.assume("torn-cache-rows", on);
        std::memset(m.cache, 3, 64);
        m.order.write(70, m.cache + 16, 16, 1);
        u8 got[32] = {};
        if (way == 0) {
          m.order.barrier_init(1, m.shared, 1);
          const u32 copy = m.order.bulk_begin(1, 6);
          m.order.copy_bytes(copy, m.shared + 1024, m.cache, 32);
          m.order.bulk_end(copy, m.shared);
          std::memcpy(got, m.shared + 1024, 32);
        } else if (way == 1) {
          const u32 copy = m.order.async_begin(1, 6);
          m.order.copy_bytes(copy, m.shared + 1024, m.cache, 32);
          m.order.async_end(copy);
          std::memcpy(got, m.shared + 1024, 32);
        } else {
          for (int i = 0; i < 8; ++i) {
            const u64 v =
                m.order.load(1, m.cache + 4 * i, 4, kRelaxed, Scope::kGpu, 7).value;
            std::memcpy(got + 4 * i, &v, 4);
          }
        }
        for (int i = 0; i < 16; ++i) CHECK(got[i] == 3, "bytes that nobody writes");
        values.insert(got[16] << 8 | got[17]);
        raced |= m.found().find("data race") != std::string::npos;
        // A write after the copy.
        m.order.write(70, m.cache, 4, 8);
        raced |= m.found().find("data race") != std::string::npos;
        walk.path = m.walk.path;
        walk.ways = m.walk.ways;
      } while (way < 2 && walk.next());
      CHECK(raced == !on, "torn-cache-rows %d, way %d", on, way);
      if (way < 2) CHECK((values.size() > 2) == on, "%zu values", values.size());
    }
  }
}

void async_copies() {
  // 0: as it should be; no wait; a wait that leaves the group; another thread without a join.
  for (int left_out = 0; left_out < 4; ++left_out) {
    Machine m;
    std::memset(m.global, 9, 64);
    const u32 first = m.order.async_begin(0, 1);
    m.order.async_commit(0);
    const u32 second = m.order.async_begin(0, 2);
    m.order.async_commit(0);
    m.order.copy_bytes(second, m.shared + 16, m.global + 16, 16);
    m.order.async_end(second);
    m.order.copy_bytes(first, m.shared, m.global, 16);
    m.order.async_end(first);
    if (left_out != 1) m.order.async_wait(0, left_out == 2 ? 1 : 0);
    CHECK(m.found().empty(), "the copies alone");
    m.order.read(0, m.shared, 16, 3);
    CHECK(m.found().empty() == (left_out != 1), "own group, %d", left_out);
    m.order.read(0, m.shared + 16, 16, 4);
    CHECK(m.found().empty() == (left_out == 0 || left_out == 3), "the second group, %d", left_out);
    const u32 both[] = {0, 1};
    if (left_out != 3) m.order.join(both, 2);
    m.order.read(1, m.shared + 16, 16, 5);
    CHECK(m.found().empty() == (left_out == 0), "another thread, %d", left_out);
  }
  {  // an access of its thread after the issue, and one before it
    Machine m;
    m.order.write(0, m.shared, 16, 1);
    const u32 copy = m.order.async_begin(0, 2);
    m.order.write(0, m.shared + 16, 16, 3);
    m.order.copy_bytes(copy, m.shared, m.global, 16);
    CHECK(m.found().empty(), "a write before the issue");
    m.order.copy_bytes(copy, m.shared + 16, m.global, 16);
    CHECK(!m.found().empty(), "a write after the issue");
  }
  {  // bytes that nobody has written are copied, and not to be read
    Machine m;
    const u32 copy = m.order.async_begin(0, 2);
    m.order.async_commit(0);
    m.order.copy_bytes(copy, m.shared, m.global + 32768 - 8, 16);
    m.order.async_end(copy);
    m.order.async_wait(0, 0);
    m.order.read(0, m.shared, 8, 3);
    CHECK(m.found().empty(), "those that were written");
    m.order.read(0, m.shared + 8, 8, 4);
    CHECK(m.found().find("nobody has written") != std::string::npos, "those that were not");
    m.order.write(0, m.shared + 8, 8, 5);
    m.order.read(0, m.shared + 8, 8, 6);
    CHECK(m.found().empty(), "and are written now");
  }
}

// Pending stores, and those that are held.
void delays() {
  struct Late : Listener {
    std::vector<u32> answers;  // of stores, one after the other; then 0
    const void* awaited = nullptr;
    u64 changes = 0;
    u32 choose(u32 n, Weak kind) override {
      if (kind == Weak::kLoad) return n - 1;
      if (kind != Weak::kStore || answers.empty()) return 0;
      const u32 answer = answers.front();
      CHECK(answer < n, "%u of %u", answer, n);
      answers.erase(answers.begin());
      return answer;
    }
    void changed(const void*) override { ++changes; }
    bool is_awaited(const void* word, u32) override { return word == awaited; }
  } late;
  constexpr u32 kPending = 1, kHeld = 2;
  Order o(arena, kArenaBytes, &late);
  Bounds bounds;
  bounds.stale = 20;
  o.set_bounds(bounds);
  std::memset(arena, 0, 4096);
  o.add_region(RegionKind::kGlobal, arena, 4096, "global");
  o.host_write(arena, 4096);
  o.begin_launch(3, 32);
  const auto store = [&](u32 thread, u32 word, u32 value, u32 how) {
    late.answers = {how};
    o.store(thread, arena + 4 * word, 4, value, kRelaxed, Scope::kGpu, 1);
  };
  const auto now = [&](u32 word) {
    u32 value;
    std::memcpy(&value, arena + 4 * word, 4);
    return value;
  };

  // A pending store stays so, and a load that may see an old one does so for a while.
  store(A, 0, 1, kPending);
  for (int i = 0; i < 5000; ++i) {
    const Loaded got = o.load(B, arena, 4, kRelaxed, Scope::kGpu, 2);
    CHECK(got.value == 0 && got.newest, "it is the newest that has been committed");
  }
  CHECK(o.pending_count() == 1 && late.changes == 0, "%u", o.pending_count());
  o.commit(0);
  int polls = 0;
  Loaded got;
  while (got = o.load(B, arena, 4, kRelaxed, Scope::kGpu, 2), got.value == 0 && ++polls < 1000)
    CHECK(!got.newest, "there is a newer one");
  CHECK(polls == 20, "%d polls", polls);
  CHECK(got.newest && late.changes == 1, "%d", int(late.changes));

  // One that is held is none that the machine commits; another thread's store to its word ends that.
  store(A, 16, 1, kHeld);
  store(A, 17, 2, kHeld);
  CHECK(o.pending_count() == 0 && now(16) == 0, "%u", o.pending_count());
  store(A, 32, 3, 0);
  CHECK(now(16) == 0, "a store to another word does not");
  store(B, 16, 4, kPending);
  CHECK(now(16) == 0, "nor does one that is pending");
  o.commit(0);
  CHECK(now(16) == 1 && now(17) == 0, "it comes after that store: %u, %u", now(16), now(17));
  store(A, 17, 5, 0);
  CHECK(now(17) == 5, "stores of one thread keep their order: %u", now(17));
  store(A, 18, 6, kHeld);
  o.update(B, arena + 4 * 18, 4, Update::kAdd, 1, kRelaxed, Scope::kGpu, 3);
  CHECK(now(18) == 6, "after an update too: %u", now(18));

  // What somebody waits for comes first.
  store(A, 19, 1, kHeld);
  store(A, 20, 2, kHeld);
  store(A, 21, 3, kPending);
  late.awaited = arena + 4 * 20;
  CHECK(o.commit_awaited() && now(19) == 0 && now(20) == 2 && now(21) == 0, "%u", now(20));
  CHECK(!o.commit_awaited(), "nobody waits for the others");
  CHECK(o.settle() && now(19) == 1 && now(21) == 3 && o.pending_count() == 0, "settled");
  CHECK(o.load(B, arena, 4, kRelaxed, Scope::kGpu, 2).value == 1, "the newest");
  CHECK(!o.settle(), "nothing is left");
  store(A, 0, 3, kHeld);
  o.end_launch();
  CHECK(now(0) == 3, "what is pending ends with the launch: %u", now(0));
}

}  // namespace

int main(int argc, char** argv) {
  arena = static_cast<u8*>(mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (argc > 1 && !std::strcmp(argv[1], "speed")) {
    speed();
    return 0;
  }
  message_passing();
  coherence();
  own_stores();
  widths();
  plain_accesses();
  any_bytes();
  many_arrive();
  many_read();
  words_and_plain();
  slot_reuse();
  torn_rows();
  async_copies();
  delays();
  random_programs(argc > 1 ? u32(std::atoi(argv[1])) : 4000,
                  argc > 2 ? u64(std::atoll(argv[2])) : 1);
  if (failures) std::printf("%d checks failed\n", failures);
  else std::printf("ok\n");
  return failures != 0;
}
