// Random programs, each run by an Order and by an oracle. The oracle is slow and simple: every event
// of every actor has a number, clocks are whole vectors, and all accesses of all bytes are kept. The
// two must find the first fault of a program at the same event. The values that loads return must
// be coherent, by the oracle's own happens-before.
#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "order_test.h"

using namespace machine;

namespace {

using Clock = std::map<u32, u32>;  // actor: its events that are known

void join_into(Clock& to, const Clock& from) {
  for (auto& c : from) to[c.first] = std::max(to[c.first], c.second);
}
bool knows(const Clock& c, u32 actor, u32 event) {
  const auto at = c.find(actor);
  return at != c.end() && at->second >= event;
}

enum { kG, kS, kP, kClocks };  // generic, async proxy of shared memory, and of global memory

struct Clocks {
  Clock of[kClocks];
  void join(const Clocks& other) {
    for (int k = 0; k < kClocks; ++k) join_into(of[k], other.of[k]);
  }
};

struct Event {
  u32 actor, number;
  AccessKind kind;
  bool writes;
  bool block_scope;
  u32 block;
  u32 thread, group;  // of cp.async
};

struct Release {
  Clocks everybody, own_block;
  bool has_everybody = false, has_own_block = false;
};

struct WordStore {
  u32 actor, number, block;
  bool block_scope;
  Release release;
};

struct OracleThread {
  u32 actor, block, events = 0;
  Clocks clocks;
  Release fenced;
  std::map<const u8*, Release> released;  // by word
  Clocks seen;
  u32 groups = 0;
  std::vector<std::pair<u32, u32>> copies;  // of cp.async: group, actor
};

struct OracleCopy {
  u32 actor, thread, block, group;
  bool bulk;
  Clocks clocks;
};

constexpr Fault kNoFault = Fault(255);

struct Oracle {
  std::map<const u8*, std::vector<Event>> accesses;
  std::map<const u8*, bool> written;  // in place of the host: all of global memory is
  std::vector<OracleThread> threads;
  std::map<u32, OracleCopy> copies;
  u32 actors = 0;
  std::map<const u8*, Clocks> under_way, complete;
  std::map<std::pair<const u8*, u64>, WordStore> stores;  // by word and value
  const u8 *shared_begin, *shared_end, *unwritten_begin, *unwritten_end;

  bool is_shared(const u8* p) const { return p >= shared_begin && p < shared_end; }
  bool is_written(const u8* p) {
    if (p < unwritten_begin || p >= unwritten_end) return true;
    const auto at = written.find(p);
    return at != written.end() && at->second;
  }

  static bool strong(AccessKind k) { return k == AccessKind::kRelaxed || k == AccessKind::kAtomic; }

  // Checks an access of bytes and keeps it.
  Fault access(const u8* p, u32 bytes, Event e, const Clocks& clocks, bool bulk) {
    const Fault fault = check(p, bytes, e, clocks, bulk);
    const bool is_copy = e.kind == AccessKind::kBulkCopy || e.kind == AccessKind::kAsyncCopy;
    for (const u8* at = p; at < p + bytes; ++at) {
      accesses[at].push_back(e);
      if (e.writes && !is_copy) written[at] = true;
      // What a plain write leaves was stored by nobody.
      const u8* word = at - reinterpret_cast<uintptr_t>(at) % 4;
      if (e.writes && !strong(e.kind))
        stores.erase(stores.lower_bound({word, 0}), stores.lower_bound({word, ~u64(0)}));
    }
    return fault;
  }
  Fault check(const u8* p, u32 bytes, Event e, const Clocks& clocks, bool bulk) {
    Fault fault = kNoFault;
    const auto worse = [&](Fault f) {
      // Of several, the one that no proxy fence would end.
      if (fault == Fault::kRace) return;
      if (fault == kNoFault || f == Fault::kRace || f == Fault::kProxy) fault = f;
    };
    for (const u8* at = p; at < p + bytes; ++at) {
      const Clock& clock = clocks.of[!bulk ? kG : is_shared(at) ? kS : kP];
      for (const Event& old : accesses[at]) {
        if (!old.writes && !e.writes) continue;
        if (strong(old.kind) && strong(e.kind) &&
            ((!old.block_scope && !e.block_scope) || old.block == e.block))
          continue;
        if (old.kind == AccessKind::kAsyncCopy && e.kind == AccessKind::kAsyncCopy &&
            old.thread == e.thread && old.group == e.group)
          continue;
        if (old.actor == e.actor && e.kind == AccessKind::kBulkCopy) continue;
        if (!knows(clock, old.actor, old.number)) {
          worse(bulk && knows(clocks.of[kG], old.actor, old.number) ? Fault::kProxy : Fault::kRace);
        } else if ((old.kind == AccessKind::kConstant && e.writes) ||
                   (e.kind == AccessKind::kConstant && old.writes)) {
          worse(Fault::kConstant);
        }
      }
      const bool is_copy = e.kind == AccessKind::kBulkCopy || e.kind == AccessKind::kAsyncCopy;
      if ((!e.writes || e.kind == AccessKind::kAtomic) && !is_copy && !is_written(at))
        worse(Fault::kUnwritten);
    }
    return fault;
  }

  Event event(u32 thread, AccessKind kind, bool writes, bool block_scope = false) {
    OracleThread& t = threads[thread];
    t.clocks.of[kG][t.actor] = ++t.events;
    return {t.actor, t.events, kind, writes, block_scope, t.block, thread, 0};
  }
  void acquire(u32 thread, const WordStore& s, bool acquires, bool block_scope) {
    OracleThread& t = threads[thread];
    if ((s.block_scope || block_scope) && s.block != t.block) return;
    Clocks& to = acquires ? t.clocks : t.seen;
    if (s.release.has_everybody) to.join(s.release.everybody);
    if (s.release.has_own_block && s.block == t.block) to.join(s.release.own_block);
  }
};

struct Chance : Listener {
  std::mt19937_64 random;
  u32 weak = 0;  // of 100
  std::vector<Finding> findings;
  std::vector<const void*> changes;
  std::map<const u8*, std::vector<u64>> order;  // of the values of a word

  u32 choose(u32 n, Weak) override {
    return random() % 100 < weak ? u32(random() % n) : 0;
  }
  void found(const Finding& f) override { findings.push_back(f); }
  void changed(const void* word) override {
    u32 value;
    std::memcpy(&value, word, 4);
    auto& values = order[static_cast<const u8*>(word)];
    if (values.empty() || values.back() != value) values.push_back(value);
  }
};

// An access of a word that must respect coherence.
struct WordEvent {
  const u8* word;
  u32 actor, number;
  u64 value;   // that is stored
  u64 before;  // that is read
  bool reads, writes;
  Clock known;
};

std::string trace;
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
void say(const char* format, ...) {
  char line[200];
  va_list args;
  va_start(args, format);
  std::vsnprintf(line, sizeof line, format, args);
  va_end(args);
  trace += line;
}

// Runs one program. Returns whether it had a fault.
bool run(u64 seed, u64& all_steps) {
  trace.clear();
  Chance chance;
  chance.random.seed(seed);
  auto pick = [&](u32 n) { return u32(chance.random() % n); };
  chance.weak = pick(3) * 30;
  // How much synchronisation a program has, so that some run long without a fault.
  const u32 synced = pick(4) == 0 ? 100 : 30 + pick(70);
  const bool words_alone = pick(4) == 0;  // no word is accessed plainly, or copied over
  const u32 at_home = pick(101);          // how often a thread accesses what is its own

  const u32 kThreads = 64;  // of each of two blocks
  u8 *global = arena, *shared = arena + 8192, *fresh = arena + 16384;
  std::vector<u32> who = {0, 1, 2, 33, 64, 65};
  for (u32 fewer = pick(5); fewer; --fewer) who.erase(who.begin() + pick(u32(who.size())));
  std::memset(global, 0, 32768);
  Order order(arena, kArenaBytes, &chance);
  // Words that loads may see have values of their own, from 1 on.
  order.add_region(RegionKind::kGlobal, global, 4096, "global");
  order.host_write(global, 4096);
  order.add_region(RegionKind::kGlobal, fresh, 4096, "fresh");
  order.begin_launch(2, kThreads);
  order.add_region(RegionKind::kShared, shared, 4096, "shared memory", 0);

  Oracle oracle;
  oracle.shared_begin = shared;
  oracle.shared_end = shared + 4096;
  oracle.unwritten_begin = shared;
  oracle.unwritten_end = fresh + 4096;
  oracle.threads.resize(2 * kThreads);
  for (u32 t = 0; t < 2 * kThreads; ++t) {
    oracle.threads[t].actor = oracle.actors++;
    oracle.threads[t].block = t / kThreads;
  }
  // mbarriers, made before anything else.
  u8* const barriers[2] = {shared + 2048, shared + 2056};
  std::vector<u32> all;
  for (u32 t = 0; t < kThreads; ++t) all.push_back(t);
  for (u8* b : barriers) {
    order.barrier_init(0, b, 1);
    oracle.event(0, AccessKind::kBarrier, true);
  }
  order.join(all.data(), kThreads);
  for (u32 t = 1; t < kThreads; ++t) {
    join_into(oracle.threads[t].clocks.of[kG], oracle.threads[0].clocks.of[kG]);
  }

  struct UnderWay {
    u32 copy, oracle;
    u8* barrier;
    u32 thread;
    bool bulk;
  };
  std::vector<UnderWay> under_way;
  std::vector<WordEvent> words;
  u64 value = 0;
  u32 copies = 0;
  Fault fault = kNoFault;
  u32 step = 0;
  const u32 steps = 200;
  // Most accesses that would be a fault are left out.
  const u32 careful = 80 + pick(21);
  const auto leaves_out = [&](Fault f) {
    if (f == kNoFault || pick(100) >= careful) return false;
    say("  left out\n");
    return true;
  };
  // Bytes that are accessed: few, so that threads meet.
  const auto place = [&](u32 thread, u32 bytes) -> u8* {
    const u32 which = pick(thread < kThreads ? 10 : 6);
    u8* base = which < 5 ? global : which < 6 ? fresh : shared;
    const u32 home = u32(std::find(who.begin(), who.end(), thread) - who.begin()) * 16;
    if (pick(100) < at_home) return base + home + pick(16 / bytes) * bytes;
    return base + pick(96 / bytes) * bytes;
  };
  for (; step < steps && fault == kNoFault && chance.findings.empty(); ++step) {
    const u32 thread = who[pick(u32(who.size()))];
    OracleThread& t = oracle.threads[thread];
    const u32 where = step + 1;
    const u32 kind = pick(100);
    const u32 bytes_of[] = {1, 2, 4, 4, 8, 16};
    if (kind < 100 - synced) {
      const u32 bytes = bytes_of[pick(6)];
      u8* p = place(thread, bytes);
      const u32 how = pick(12);
      const bool writes = how < 5, constant = how == 11 && p < fresh + 4096 && p >= fresh;
      say("%u: thread %u %s %u at %ld\n", step, thread,
          writes ? "writes" : constant ? "reads constant" : "reads", bytes, long(p - arena));
      const Event e = oracle.event(
          thread, constant ? AccessKind::kConstant : AccessKind::kPlain, writes);
      if (leaves_out(oracle.check(p, bytes, e, t.clocks, false))) continue;
      fault = oracle.access(p, bytes, e, t.clocks, false);
      if (writes) {
        order.write(thread, p, bytes, where);
        std::memset(p, 0, bytes);
      } else if (constant) {
        order.read_constant(thread, p, bytes, where);
      } else {
        order.read(thread, p, bytes, where);
      }
      continue;
    }
    switch (pick(17)) {
      case 0: case 1: case 2: case 3: case 4: case 5: {  // words
        // Those of shared memory, and of global memory: some of them plain too.
        u8* word = (thread < kThreads && pick(3) == 0 ? shared : global) +
                   (words_alone ? 512 : 64) + pick(5) * 4;
        if (!words_alone && pick(4) == 0) word = place(thread, 4);
        const auto ordering = Ordering(pick(4));
        const bool releases = ordering == Ordering::kRelease || ordering == Ordering::kBoth;
        const bool acquires = ordering == Ordering::kAcquire || ordering == Ordering::kBoth;
        // Scopes that do not meet are tested by hand: words of global memory have that of the GPU.
        const bool block_scope = word >= shared && word < shared + 4096 && pick(2);
        const Scope scope = block_scope ? Scope::kBlock : Scope::kGpu;
        const u32 how = pick(3);
        const bool reads = how != 1, writes = how != 0;
        say("%u: thread %u word %s at %ld, %s%s%s\n", step, thread,
            how == 0 ? "load" : how == 1 ? "store" : "exchange", long(word - arena),
            releases ? "release " : "", acquires ? "acquire " : "", block_scope ? "block" : "");
        const Event e = oracle.event(
            thread, how == 2 ? AccessKind::kAtomic : AccessKind::kRelaxed, writes, block_scope);
        if (leaves_out(oracle.check(word, 4, e, t.clocks, false))) break;
        fault = oracle.access(word, 4, e, t.clocks, false);
        u64 before = 0;
        const u64 next = ++value;
        WordEvent w{word, t.actor, e.number, next, 0, reads, writes, t.clocks.of[kG]};
        // The model is asked before the oracle moves its clocks.
        const Ordering as_load = acquires ? Ordering::kAcquire : Ordering::kRelaxed;
        const Ordering as_store = releases ? Ordering::kRelease : Ordering::kRelaxed;
        if (how == 0) before = order.load(thread, word, 4, as_load, scope, where).value;
        else if (how == 1) order.store(thread, word, 4, next, as_store, scope, where);
        else before = order.update(thread, word, 4, Update::kExchange, next, ordering, scope, where);
        if (fault != kNoFault || !chance.findings.empty()) break;
        w.before = before;
        WordStore s{t.actor, e.number, t.block, block_scope, {}};
        const auto stored = oracle.stores.find({word, before});
        if (reads && stored != oracle.stores.end()) {
          const WordStore& from = stored->second;
          oracle.acquire(thread, from, acquires, block_scope);
          if (writes && ((!from.block_scope && !block_scope) || from.block == t.block)) {
            s.release.has_everybody = from.release.has_everybody;
            s.release.everybody = from.release.everybody;
            if (from.block == t.block) {
              s.release.has_own_block = from.release.has_own_block;
              s.release.own_block = from.release.own_block;
            }
          }
        }
        if (writes) {
          if (t.fenced.has_everybody) s.release.has_everybody = true, s.release.everybody.join(t.fenced.everybody);
          if (t.fenced.has_own_block) s.release.has_own_block = true, s.release.own_block.join(t.fenced.own_block);
          Release& own = t.released[word];
          if (own.has_everybody) s.release.has_everybody = true, s.release.everybody.join(own.everybody);
          if (own.has_own_block) s.release.has_own_block = true, s.release.own_block.join(own.own_block);
          if (releases) {
            (block_scope ? own.has_own_block : own.has_everybody) = true;
            (block_scope ? own.own_block : own.everybody) = t.clocks;
            (block_scope ? s.release.has_own_block : s.release.has_everybody) = true;
            (block_scope ? s.release.own_block : s.release.everybody).join(t.clocks);
          }
          oracle.stores[{word, next}] = s;
        }
        words.push_back(w);
        break;
      }
      case 6: {  // fences
        const auto ordering = Ordering(1 + pick(3));
        const bool block_scope = pick(2);
        say("%u: thread %u fence %d\n", step, thread, int(ordering));
        order.fence(thread, ordering, block_scope ? Scope::kBlock : Scope::kGpu);
        if (ordering != Ordering::kRelease) t.clocks.join(t.seen);
        if (ordering != Ordering::kAcquire) {
          (block_scope ? t.fenced.has_own_block : t.fenced.has_everybody) = true;
          (block_scope ? t.fenced.own_block : t.fenced.everybody) = t.clocks;
        }
        break;
      }
      case 7: case 8: {  // proxy fences
        const bool all_memory = pick(2);
        say("%u: thread %u proxy fence %d\n", step, thread, all_memory);
        order.fence_proxy(thread, all_memory ? Proxy::kAll : Proxy::kShared);
        join_into(t.clocks.of[kS], t.clocks.of[kG]);
        if (all_memory) join_into(t.clocks.of[kP], t.clocks.of[kG]);
        break;
      }
      case 9: {  // threads of a block join
        std::vector<u32> some;
        const u32 block = pick(2);
        for (u32 w : who) {
          if (w / kThreads == block && pick(4) != 0) some.push_back(w);
        }
        if (some.empty()) break;
        say("%u: join of %zu from %u\n", step, some.size(), some[0]);
        order.join(some.data(), u32(some.size()));
        Clocks sum;
        for (u32 w : some) sum.join(oracle.threads[w].clocks);
        for (u32 w : some) oracle.threads[w].clocks.join(sum);
        break;
      }
      case 10: case 11: {  // mbarriers
        if (thread >= kThreads) break;
        u8* b = barriers[pick(2)];
        const u32 how = pick(3);
        say("%u: thread %u mbarrier %u at %ld\n", step, thread, how, long(b - arena));
        if (how == 0) {
          order.barrier_arrive(thread, b, where);
          oracle.under_way[b].join(t.clocks);
        } else if (how == 1) {
          order.barrier_complete(b);
          oracle.complete[b] = oracle.under_way[b];
        } else {
          order.barrier_wait(thread, b, where);
          t.clocks.join(oracle.complete[b]);
        }
        break;
      }
      case 12: {  // a copy begins
        if (thread >= kThreads) break;
        const bool bulk = pick(2);
        const u32 copy = bulk ? order.bulk_begin(thread, where) : order.async_begin(thread, where);
        OracleCopy c{oracle.actors++, thread, t.block, t.groups, bulk, t.clocks};
        if (!bulk) t.copies.push_back({t.groups, c.actor});
        say("%u: thread %u begins %s %u\n", step, thread, bulk ? "bulk" : "cp.async", copies);
        under_way.push_back({copy, copies, barriers[pick(2)], thread, bulk});
        oracle.copies[copies++] = c;
        break;
      }
      case 13: case 14: {  // a copy moves bytes, and perhaps ends
        if (under_way.empty()) break;
        const u32 i = pick(u32(under_way.size()));
        const UnderWay u = under_way[i];
        const OracleCopy c = oracle.copies[u.oracle];
        if (pick(2)) {
          u8* from = global + pick(6) * 16;
          u8* to = shared + pick(6) * 16;
          say("%u: copy %u moves from %ld to %ld\n", step, u.oracle, long(from - arena), long(to - arena));
          const AccessKind k = u.bulk ? AccessKind::kBulkCopy : AccessKind::kAsyncCopy;
          Event e{c.actor, 1, k, false, false, 0, c.thread, c.group};
          if (leaves_out(oracle.check(from, 16, e, c.clocks, u.bulk))) break;
          Event w = e;
          w.writes = true;
          if (leaves_out(oracle.check(to, 16, w, c.clocks, u.bulk))) break;
          const Fault read = oracle.access(from, 16, e, c.clocks, u.bulk);
          e = w;
          const Fault write = oracle.access(to, 16, e, c.clocks, u.bulk);
          for (u32 b = 0; b < 16; ++b) oracle.written[to + b] = oracle.is_written(from + b);
          fault = read != kNoFault ? read : write;
          order.copy_bytes(u.copy, to, from, 16);
        } else {
          say("%u: copy %u ends\n", step, u.oracle);
          if (u.bulk) {
            order.bulk_end(u.copy, u.barrier);
            for (auto& clock : oracle.under_way[u.barrier].of) clock[c.actor] = 1;
          } else {
            order.async_end(u.copy);
          }
          under_way.erase(under_way.begin() + i);
        }
        break;
      }
      case 15: {
        say("%u: thread %u commits its group\n", step, thread);
        order.async_commit(thread);
        ++t.groups;
        break;
      }
      case 16: {
        const u32 left = pick(2);
        bool over = true;  // copies of the groups must have ended
        for (auto& u : under_way) {
          over = over && !(u.thread == thread && !u.bulk &&
                           oracle.copies[u.oracle].group + left < t.groups);
        }
        if (!over) break;
        say("%u: thread %u waits for all but %u\n", step, thread, left);
        order.async_wait(thread, left);
        for (auto& c : t.copies) {
          if (c.first + left < t.groups) t.clocks.of[kG][c.second] = 1;
        }
        break;
      }
    }
    if (fault != kNoFault || !chance.findings.empty()) break;
    if (order.pending_count() && pick(3) == 0) order.commit(pick(order.pending_count()));
  }
  all_steps += step;
  const bool found = !chance.findings.empty();
  bool same = found == (fault != kNoFault);
  if (same && found) {
    same = false;
    for (auto& f : chance.findings) same = same || f.fault == fault;
  }
  for (auto& f : chance.findings) {
    say("%s: thread %u in step %u %s, thread %u in step %u, at %ld\n", name_of(f.fault),
        f.first.thread, f.first.where - 1, name_of(f.first.kind), f.second.thread,
        f.second.where - 1, long(static_cast<const u8*>(f.address) - arena));
  }
  CHECK(same, "seed %llu, step %u: the model finds %s, the oracle %s\n%s",
        static_cast<unsigned long long>(seed), step,
        found ? name_of(chance.findings[0].fault) : "nothing",
        fault == kNoFault ? "nothing" : name_of(fault), trace.c_str());
  order.end_launch();
  if (found || fault != kNoFault) return true;
  if (!words_alone) return false;

  // Coherence of the values.
  std::map<std::pair<const u8*, u64>, size_t> position;
  for (auto& w : chance.order) {
    for (size_t i = 0; i < w.second.size(); ++i) position[{w.first, w.second[i]}] = i + 1;
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const WordEvent& late = words[i];
    const auto at = [&](u64 v) { return v ? position[{late.word, v}] : 0; };
    if (late.reads && late.writes)
      CHECK(at(late.value) == at(late.before) + 1, "seed %llu: an exchange is not at once\n%s",
            static_cast<unsigned long long>(seed), trace.c_str());
    for (size_t j = 0; j < i; ++j) {
      const WordEvent& early = words[j];
      if (early.word != late.word || !knows(late.known, early.actor, early.number)) continue;
      const size_t least = std::max(early.writes ? at(early.value) : 0,
                                    early.reads ? at(early.before) : 0);
      if (late.reads)
        CHECK(at(late.before) >= least, "seed %llu: a load goes back\n%s",
              static_cast<unsigned long long>(seed), trace.c_str());
      if (late.writes)
        CHECK(at(late.value) > least, "seed %llu: a store goes back\n%s",
              static_cast<unsigned long long>(seed), trace.c_str());
    }
  }
  return false;
}

}  // namespace

void random_programs(u32 programs, u64 seed) {
  u32 faults = 0;
  u64 steps = 0;
  for (u32 i = 0; i < programs && failures < 3; ++i) faults += run(seed * 1000003 + i, steps);
  std::printf("%u random programs, %u with a fault, %.1f steps each\n", programs, faults,
              double(steps) / programs);
  CHECK(faults > programs / 4 && faults < programs - programs / 8, "%u of %u programs have a fault",
        faults, programs);
}
