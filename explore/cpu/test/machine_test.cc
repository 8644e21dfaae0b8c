// The machine by itself: fibers and warps, barriers, copies and polls, under all strategies, with
// what each of them has to find. Kernels are functions here.
#include "machine_test.h"

#include "../amk_cpu/copy.h"
#include "../machine/tensor.h"

extern "C" void __tsan_write4(void* p);  // tsan.cc

namespace {

template <class T>
T* allocate(u32 n) {
  u8* p = m::arena_allocate(n * sizeof(T));
  m::order().add_region(m::RegionKind::kGlobal, p, n * sizeof(T), "a buffer");
  m::order().host_write(p, n * sizeof(T));
  return reinterpret_cast<T*>(p);
}
template <class T>
void clear(T* p, u32 n) {
  m::order().host_write(p, n * sizeof(T));
  memset(p, 0, n * sizeof(T));
}

m::Schedule random_schedule(u64 seed) {
  m::Schedule s;
  s.strategy = m::Strategy::kRandom;
  s.seed = seed;
  return s;
}

// Runs a body under the plain schedule, a hundred random ones and fifty of priorities. It is told
// whether it ended; findings are those of each run.
template <class Body, class Then>
void under_schedules(const char* name, u32 blocks, u32 threads, u32 shared, Body&& body, Then&& then) {
  test = name;
  for (u64 seed = 0; seed <= 150 && failures == 0; ++seed) {
    m::Schedule s = random_schedule(seed);
    if (seed == 0) s.strategy = m::Strategy::kReplay;
    if (seed > 100) s.strategy = m::Strategy::kPriorities, s.expected = 1000;
    m::begin_schedule(s);
    m::clear_reports();
    then(launch(blocks, threads, shared, body));
  }
}

// ---- warps ----------------------------------------------------------------------------------------

void warps() {
  u32* out = allocate<u32>(4 * 64);
  under_schedules("collectives", 4, 64, 0, [=] {
    const u32 t = thread_index(), lane = t % 32;
    u32 sum = lane;
    for (int offset = 16; offset; offset >>= 1) sum += shuffle_xor(sum, offset);
    const u32 up = shuffle_up(lane, 1), from = shuffle(lane * 2, 5);
    const u32 odd = warp_ballot(lane & 1);
    const bool any = warp_any(lane == 7), all = warp_all(lane < 31);
    const u32 most = warp_max(lane * 3);
    warp_sync();
    const bool right = sum == 496 && up == (lane ? lane - 1 : 0) && from == 10 &&
                       odd == 0xaaaaaaaa && any && !all && most == 93;
    out[block_index() * 64 + t] = right ? 1 + sum : 0;
  }, [=](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    for (int i = 0; i < 256; ++i) CHECK(out[i] == 497);
  });

  under_schedules("different collectives", 1, 32, 0, [] {
    if (thread_index() < 16) warp_any(true);
    else shuffle(1, 0);
  }, [](m::Outcome o) { CHECK(o == m::Outcome::kAbandoned && found(m::kCollectives)); });

  under_schedules("a lane that has ended", 1, 32, 0, [] {
    if (thread_index() == 3) return;
    warp_sync();
  }, [](m::Outcome o) { CHECK(o == m::Outcome::kAbandoned && found(m::kCollectives)); });
}

// ---- barriers -------------------------------------------------------------------------------------

void barriers() {
  u32* out = allocate<u32>(2);
  under_schedules("a warp of three lanes", 2, 35, 0, [=] {
    block_sync();
    add_relaxed(out + block_index(), 1);
  }, [=](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    CHECK(out[0] == 35 && out[1] == 35);
    clear(out, 2);
  });
  under_schedules("bar.sync", 2, 96, 1024, [=] {
    u32* shared = reinterpret_cast<u32*>(block_memory());
    const u32 t = thread_index();
    if (t < 64) {
      for (u32 round = 0; round < 3; ++round) {
        shared[t] = t + round;
        named_barrier_sync<1, 64>();
        const u32 other = shared[63 - t];
        if (other != 63 - t + round) add_relaxed(out + block_index(), 1);
        named_barrier_sync<1, 64>();
      }
    }
    block_sync();
  }, [=](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    CHECK(out[0] == 0 && out[1] == 0);
  });

  under_schedules("other participants", 1, 64, 0, [] {
    if (thread_index() < 32) named_barrier_sync<1, 64>();
    else named_barrier_sync<1, 96>();
  }, [](m::Outcome o) { CHECK(o == m::Outcome::kAbandoned && found(m::kParticipants)); });

  under_schedules("a barrier that nobody else comes to", 1, 64, 0, [] {
    if (thread_index() < 32) named_barrier_sync<1, 64>();
  }, [](m::Outcome o) { CHECK(o == m::Outcome::kAbandoned && found(m::kStall)); });
}

// Two warps take turns: each works when the other has come to its barrier, and does not wait for the
// other there.
void turns(u32* out, bool early) {
  u32* shared = reinterpret_cast<u32*>(block_memory());
  const u32 warp = thread_index() / 32, lane = thread_index() % 32;
  if (warp == 1) named_barrier_arrive<64>(2);
  for (u32 round = 0; round < 3; ++round) {
    if (warp == 0) named_barrier_sync<2, 64>();
    else named_barrier_sync<3, 64>();
    if (early) warp == 0 ? named_barrier_arrive<64>(3) : named_barrier_arrive<64>(2);
    __tsan_write4(&shared[lane]);
    shared[lane] = round == 0 && warp == 0 ? 1 : shared[lane] * 2 + warp;
    if (!early && warp == 0) named_barrier_arrive<64>(3);
    if (!early && warp == 1 && round < 2) named_barrier_arrive<64>(2);
  }
  if (warp == 1) add_relaxed(out, shared[lane]);
}

void arrivals() {
  u32* out = allocate<u32>(1);
  under_schedules("turns of two warps", 1, 64, 1024, [=] { turns(out, false); }, [=](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    CHECK(*out == 32 * 53);
    clear(out, 1);
  });
  under_schedules("a turn that is given up early", 1, 64, 1024, [=] { turns(out, true); },
                  [](m::Outcome) { CHECK(found("race")); });
  under_schedules("arrivals of halves of warps", 1, 96, 0, [] {
    if (thread_index() < 32) named_barrier_sync<1, 64>();
    else if (thread_index() % 32 < 16) named_barrier_arrive<64>(1);
  }, [](m::Outcome) { CHECK(found(m::kParticipants)); });
}

// ---- registers ------------------------------------------------------------------------------------

void registers() {
  // 384 threads begin with 168 each.
  under_schedules("registers that one group gives up", 1, 384, 0, [] {
    if (thread_index() < 256) raise_registers<240>();
    else lower_registers<24>();
  }, [](m::Outcome o) { CHECK(o == m::Outcome::kDone && m::reports().empty()); });
  under_schedules("registers that nobody gives up", 1, 384, 0, [] {
    if (thread_index() < 256) raise_registers<240>();
    else lower_registers<40>();
  }, [](m::Outcome o) { CHECK(o == m::Outcome::kAbandoned && found(m::kStall)); });
  under_schedules("registers that are raised to fewer", 1, 384, 0, [] { raise_registers<160>(); },
                  [](m::Outcome) { CHECK(found(m::kCollectives)); });
}

// ---- memory of the host -------------------------------------------------------------------------

void pinned() {
  u8* p = m::arena_allocate(64);
  m::order().add_region(m::RegionKind::kPinned, p, 64, "memory of the host");
  u32* word = reinterpret_cast<u32*>(p);
  under_schedules("at system scope", 1, 32, 0, [=] {
    if (thread_index() == 0) store_system(word, load_system(word) + 1);
  }, [](m::Outcome o) { CHECK(o == m::Outcome::kDone && m::reports().empty()); });
  under_schedules("a load at gpu scope", 1, 32, 0, [=] { load_relaxed(word); },
                  [](m::Outcome) { CHECK(found("race")); });
  under_schedules("a store at gpu scope", 1, 32, 0, [=] {
    if (thread_index() == 0) store_relaxed(word, 1u);
  }, [](m::Outcome) { CHECK(found("race")); });
}

// ---- mbarriers and copies -------------------------------------------------------------------------

// A producer thread streams n chunks through a ring of two slots, which a warp adds up.
constexpr u32 kChunk = 512, kSlots = 2;
struct Ring {
  u8 slots[kSlots][kChunk];
  u64 full[kSlots], empty[kSlots];
};

void stream(const u8* source, u32 chunks, u32* sum, u32 arrivals, bool fence = true) {
  Ring& ring = *reinterpret_cast<Ring*>(block_memory());
  if (thread_index() == 0) {
    for (u32 i = 0; i < kSlots; ++i) barrier_init(&ring.full[i], 1), barrier_init(&ring.empty[i], 1);
    if (fence) fence_barrier_init();
  }
  block_sync();
  if (thread_index() == 32) {
    for (u32 c = 0; c < chunks; ++c) {
      const u32 slot = c % kSlots, phase = c / kSlots & 1;
      while (!barrier_try_wait(&ring.empty[slot], phase ^ 1, 1)) {
      }
      barrier_arrive_expect(&ring.full[slot], kChunk);
      copy_bulk(ring.slots[slot], source + c * kChunk, kChunk, &ring.full[slot]);
    }
  } else if (thread_index() < 32) {
    u32 own = 0;
    for (u32 c = 0; c < chunks; ++c) {
      const u32 slot = c % kSlots, phase = c / kSlots & 1;
      while (!barrier_try_wait(&ring.full[slot], phase, 1)) {
      }
      for (u32 i = 0; i < kChunk / 32; ++i) own += ring.slots[slot][thread_index() * (kChunk / 32) + i];
      fence_proxy_async_shared();
      warp_sync();
      if (thread_index() == 0) barrier_arrive(&ring.empty[slot], arrivals);
    }
    add_relaxed(sum, own);
  }
}

void copies() {
  constexpr u32 kChunks = 7;
  u8* source = allocate<u8>(kChunks * kChunk);
  u32* sum = allocate<u32>(1);
  u32 right = 0;
  for (u32 i = 0; i < kChunks * kChunk; ++i) right += source[i] = u8(i * 7 + i / 256);
  under_schedules("a ring of bulk copies", 1, 64, sizeof(Ring), [=] {
    stream(source, kChunks, sum, 1);
  }, [=](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    CHECK(*sum == right);
    clear(sum, 1);
  });
  under_schedules("arrivals beyond a count", 1, 64, sizeof(Ring), [=] {
    stream(source, kChunks, sum, 2);
  }, [=](m::Outcome o) { CHECK(o == m::Outcome::kAbandoned && found(m::kArrivals)); });

  under_schedules("barriers that copies may not see", 1, 64, sizeof(Ring), [=] {
    stream(source, kChunks, sum, 1, false);
  }, [](m::Outcome) { CHECK(found("proxy")); });

  clear(sum, 1);
  under_schedules("cp.async", 1, 32, 2048, [=] {
    u8* shared = block_memory();
    const u32 t = thread_index();
    copy_async_16(shared + t * 16, source + t * 16);
    commit_copies();
    copy_async_16(shared + 512 + t * 16, source + 512 + t * 16);
    commit_copies();
    wait_copies<1>();
    warp_sync();
    u32 own = shared[(31 - t) * 16];
    wait_copies<0>();
    warp_sync();
    own += shared[512 + (31 - t) * 16];
    add_relaxed(sum, own);
  }, [=](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    u32 expected = 0;
    for (u32 t = 0; t < 64; ++t) expected += source[t * 16];
    CHECK(*sum == expected);
    clear(sum, 1);
  });
}

// ---- boxes of tensors -----------------------------------------------------------------------------

// A tensor of four dimensions of 16-bit elements, and a box of it at a coordinate, element by element.
constexpr u32 kDims[4] = {40, 3, 5, 4}, kSides[4] = {16, 2, 1, 3};
constexpr u64 kStrides[3] = {96, 320, 1664};
constexpr u32 kBoxBytes = 16 * 2 * 3 * 2, kTensorBytes = 1664 * 4;
struct Boxes {
  u8 box[2][(kBoxBytes + 127) / 128 * 128];
  u64 full;
};

TensorMap* map_of(u8* tensor) {
  TensorMap* map = allocate<TensorMap>(1);
  const u64 dims[4] = {kDims[0], kDims[1], kDims[2], kDims[3]};
  const u32 ones[4] = {1, 1, 1, 1};
  CHECK(m::encode_tensor({1, 4, tensor, dims, kStrides, kSides, ones, 0, 0, 0}, map) == m::Encoded::kDone);
  return map;
}

void copy_boxes(const TensorMap* map, const int (&at)[4], const u8* tensor, bool expects, u32* wrong) {
  Boxes& shared = *reinterpret_cast<Boxes*>(block_memory());
  if (thread_index() == 0) {
    barrier_init(&shared.full, 1);
    fence_barrier_init();
    // Another one is under way when the first is waited for, to no harm if it is expected.
    copy_tensor(shared.box[0], map, at, &shared.full);
    copy_tensor(shared.box[1], map, at, &shared.full);
    barrier_arrive_expect(&shared.full, expects ? 2 * kBoxBytes : kBoxBytes);
  }
  block_sync();
  while (!barrier_try_wait(&shared.full, 0, 1)) {
  }
  for (u32 i = thread_index(); i < kBoxBytes; i += 32) {
    u32 rest = i / 2;
    bool inside = true;
    u64 from = i % 2;
    for (u32 d = 0; d < 4; ++d) {
      const int index = at[d] + int(rest % kSides[d]);
      rest /= kSides[d];
      inside &= index >= 0 && index < int(kDims[d]);
      from += u64(index) * (d == 0 ? 2 : kStrides[d - 1]);
    }
    for (const auto& box : shared.box)
      if (box[i] != (inside ? tensor[from] : 0)) add_relaxed(wrong, 1);
  }
}

void boxes() {
  u8* tensor = allocate<u8>(kTensorBytes);
  u32* wrong = allocate<u32>(1);
  for (u32 i = 0; i < kTensorBytes; ++i) tensor[i] = u8(i * 31 + i / 251 + 1);
  const TensorMap* map = map_of(tensor);
  constexpr int kAt[][4] = {{0, 0, 0, 0}, {16, 1, 4, 1}, {21, 0, 2, 0}, {30, 2, 3, 2},
                            {-3, -1, 1, -2}, {40, 0, 0, 0}, {0, 0, -1, 0}, {37, 2, 4, 3}};
  for (const auto& at : kAt) {
    clear(wrong, 1);
    under_schedules("a box of a tensor", 1, 32, sizeof(Boxes), [&] {
      copy_boxes(map, at, tensor, true, wrong);
    }, [=](m::Outcome o) { CHECK(o == m::Outcome::kDone && m::reports().empty() && *wrong == 0); });
  }
  u32 early = 0;
  under_schedules("a box whose bytes nobody expects", 1, 32, sizeof(Boxes), [&] {
    copy_boxes(map, kAt[0], tensor, false, wrong);
  }, [&](m::Outcome) {
    CHECK(found(m::kArrivals) || found(m::kStall));
    early += found(m::kArrivals);
  });
  CHECK(early > 0);
  m::clear_reports();
  under_schedules("a map of another rank", 1, 32, sizeof(Boxes), [=] {
    Boxes& shared = *reinterpret_cast<Boxes*>(block_memory());
    if (thread_index() == 0) copy_tensor(shared.box[0], map, {0, 0, 0}, &shared.full);
  }, [](m::Outcome) { CHECK(found(m::kCopies)); });
  under_schedules("a map that the kernel has written", 1, 32, sizeof(Boxes), [&] {
    Boxes& shared = *reinterpret_cast<Boxes*>(block_memory());
    if (thread_index() != 0) return;
    barrier_init(&shared.full, 1);
    fence_barrier_init();
    add_relaxed(const_cast<u64*>(map->words + 15), 0);
    copy_tensor(shared.box[0], map, kAt[0], &shared.full);
    barrier_arrive_expect(&shared.full, kBoxBytes);
    while (!barrier_try_wait(&shared.full, 0, 1)) {
    }
  }, [](m::Outcome) { CHECK(found("constant")); });

  test = "tensors that cannot be encoded";
  const u64 dims[2] = {64, 8}, odd[1] = {72}, strides[1] = {128};
  const u32 sides[2] = {32, 8}, narrow[2] = {4, 8}, high[2] = {32, 257}, ones[2] = {1, 1}, twos[2] = {2, 1};
  alignas(64) TensorMap to[2];
  const m::TensorArguments good{1, 2, tensor, dims, strides, sides, ones, 0, 0, 0};
  const auto encoded = [&](auto&& change, void* at) {
    m::TensorArguments a = good;
    change(a);
    return m::encode_tensor(a, at);
  };
  using A = m::TensorArguments&;
  CHECK(m::encode_tensor(good, to) == m::Encoded::kDone);
  CHECK(m::encode_tensor(good, &to[0].words[1]) == m::Encoded::kInvalid);
  CHECK(encoded([&](A a) { a.address = tensor + 8; }, to) == m::Encoded::kInvalid);
  CHECK(encoded([&](A a) { a.strides = odd; }, to) == m::Encoded::kInvalid);
  CHECK(encoded([&](A a) { a.box = narrow; }, to) == m::Encoded::kInvalid);
  CHECK(encoded([&](A a) { a.box = high; }, to) == m::Encoded::kInvalid);
  CHECK(encoded([](A a) { a.rank = 6; }, to) == m::Encoded::kInvalid);
  CHECK(encoded([&](A a) { a.element_strides = twos; }, to) == m::Encoded::kNotModelled);
  CHECK(encoded([](A a) { a.swizzle = 3; }, to) == m::Encoded::kNotModelled);
  CHECK(encoded([](A a) { a.type = 10; }, to) == m::Encoded::kNotModelled);
}

// ---- polls ----------------------------------------------------------------------------------------

void polls() {
  u32* words = allocate<u32>(64);
  // Each block waits for the one before, through a word of its own, and hands on.
  under_schedules("a chain of polls", 4, 32, 0, [=] {
    if (thread_index() != 0) return;
    const u32 b = block_index();
    for (u32 round = 1; round <= 5; ++round) {
      const u32 wanted = b ? round : round - 1;
      while (load_relaxed(words + (b + 3) % 4 * 16) < wanted) {
      }
      store_relaxed(words + b * 16, round);
    }
  }, [=](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    for (u32 i = 0; i < 4; ++i) CHECK(words[i * 16] == 5);
    clear(words, 64);
  });

  // A round loads a word in an access of 4 bytes and in one of 16, and finds two values.
  u32* wide = allocate<u32>(4);
  wide[1] = 1;
  m::limit_steps(10000);
  under_schedules("a poll of two widths", 2, 32, 0, [=] {
    if (thread_index() != 0) return;
    if (block_index()) return store_relaxed(wide, 1u);
    while ((load_relaxed_16(wide).x | load_relaxed(wide)) == 0) {
    }
  }, [=](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    clear(wide, 1);
  });
  m::limit_steps(~u64(0));

  // A bounded wait for what never comes ends by the clock.
  u64 limit = 5000000000;
  under_schedules("a bounded wait", 2, 64, 0, [=] {
    if (thread_index() % 32) return;
    const u64 start = global_timer_ns();
    u32 n = 0;
    while (load_relaxed(words) == 0) {
      if (++n % 256 == 0 && global_timer_ns() - start > limit) break;
    }
    add_relaxed(words + 16, 1);
  }, [=](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty() && words[16] == 4);
    clear(words, 64);
  });

  under_schedules("a wait without a bound", 1, 32, 0, [=] {
    while (load_acquire(words) == 0) {
    }
  }, [](m::Outcome o) { CHECK(o == m::Outcome::kAbandoned && found(m::kStall)); });

  m::limit_steps(1000);
  under_schedules("no end", 1, 32, 0, [=] {
    for (;;) add_relaxed(words + 32, 1);
  }, [](m::Outcome o) { CHECK(o == m::Outcome::kAbandoned && found(m::kEndless)); });
  m::limit_steps(~u64(0));
}

// ---- strategies -----------------------------------------------------------------------------------

// Two threads each add 1 in two steps: some schedule loses one.
void lose_one(u32* word) {
  if (thread_index() % 32) return;
  const u32 v = load_relaxed(word);
  store_relaxed(word, v + 1);
}

void strategies() {
  u32* word = allocate<u32>(1);
  test = "exhaustive";
  m::Schedule s;
  s.strategy = m::Strategy::kExhaustive;
  s.depth = 1;
  m::begin_schedule(s);
  u32 runs = 0, lost = 0;
  std::vector<m::Deviation> script;
  do {
    clear(word, 1);
    CHECK(launch(1, 64, 0, [=] { lose_one(word); }) == m::Outcome::kDone);
    ++runs;
    if (*word == 1) {
      ++lost;
      script = m::deviations();
      CHECK(script.size() == 1);
    } else {
      CHECK(*word == 2);
    }
  } while (m::next_schedule() && runs < 10000);
  CHECK(lost > 0 && lost < runs && runs < 1000);

  test = "replay";
  s.strategy = m::Strategy::kReplay;
  s.deviations = script;
  m::begin_schedule(s);
  clear(word, 1);
  launch(1, 64, 0, [=] { lose_one(word); });
  CHECK(*word == 1 && m::deviations().size() == 1);
  s.deviations.clear();
  m::begin_schedule(s);
  clear(word, 1);
  launch(1, 64, 0, [=] { lose_one(word); });
  CHECK(*word == 2 && m::deviations().empty());

  // Reduced schedules see the same outcomes, of fewer runs: warps change places before loads and
  // stores, not at the barriers between them.
  test = "reduced";
  const auto barriers_too = [=] {
    named_barrier_sync<1, 64>();
    lose_one(word);
    named_barrier_sync<1, 64>();
    if (thread_index() == 0) add_relaxed(word, 10);
  };
  u32 ways[2] = {}, outcomes[2] = {};
  for (const bool reduced : {false, true}) {
    s = {};
    s.strategy = m::Strategy::kExhaustive;
    s.depth = 1;
    s.reduced = reduced;
    m::begin_schedule(s);
    do {
      clear(word, 1);
      CHECK(launch(1, 64, 0, barriers_too) == m::Outcome::kDone);
      CHECK(*word == 11 || *word == 12);
      outcomes[reduced] |= 1u << (*word - 10);
      if (*word == 11) script = m::deviations();
      ++ways[reduced];
    } while (m::next_schedule() && ways[reduced] < 100000);
  }
  CHECK(outcomes[0] == 6 && outcomes[1] == 6 && ways[1] * 10 < ways[0]);
  s.strategy = m::Strategy::kReplay;
  s.deviations = script;
  m::begin_schedule(s);
  clear(word, 1);
  launch(1, 64, 0, barriers_too);
  CHECK(*word == 11);
  // Two words, stored one after the other, may be seen one by one: a store is late, or a load early.
  u32* flag = allocate<u32>(1);
  u32* got = allocate<u32>(1);
  s.strategy = m::Strategy::kExhaustive;
  s.depth = 2;
  for (const bool releases : {false, true}) {
    m::begin_schedule(s);
    u32 stale = 0;
    do {
      clear(word, 1), clear(flag, 1), clear(got, 1);
      launch(2, 32, 0, [=] {
        if (thread_index() != 0) return;
        if (block_index() == 0) {
          store_relaxed(word, 1u);
          if (releases) add_release(flag, 1);
          else store_relaxed(flag, 1u);
        } else {
          while (load_acquire(flag) == 0) {
          }
          store_relaxed(got, load_relaxed(word) + 1);
        }
      });
      CHECK(*got == 1 || *got == 2);
      stale += *got == 1;
    } while (m::next_schedule());
    CHECK(releases ? stale == 0 : stale > 0);
  }

  for (const auto strategy : {m::Strategy::kRandom, m::Strategy::kPriorities}) {
    test = strategy == m::Strategy::kRandom ? "random" : "priorities";
    u32 losses = 0;
    for (u64 seed = 1; seed <= 200; ++seed) {
      s = random_schedule(seed);
      s.strategy = strategy;
      s.expected = 8;
      m::begin_schedule(s);
      clear(word, 1);
      launch(1, 64, 0, [=] { lose_one(word); });
      const u32 first = *word;
      losses += first == 1;
      // Its deviations by themselves are the same run.
      s.strategy = m::Strategy::kReplay;
      s.deviations = m::deviations();
      m::begin_schedule(s);
      clear(word, 1);
      launch(1, 64, 0, [=] { lose_one(word); });
      CHECK(*word == first);
    }
    CHECK(losses > 10 && losses < 190);
  }
}

// Runs a kernel of two blocks under a schedule, and once more by its deviations alone. Returns what
// the word holds in the end, which is the same.
template <class Kernel>
u32 run_twice(m::Schedule s, u32* word, u32 words, Kernel kernel) {
  u32 first = 0;
  for (const bool again : {false, true}) {
    m::begin_schedule(s);
    clear(word, words);
    CHECK(launch(2, 64, 0, kernel) == m::Outcome::kDone);
    if (again) CHECK(*word == first);
    first = *word;
    s.strategy = m::Strategy::kReplay;
    s.deviations = m::deviations();
  }
  return first;
}

void lateness() {
  // A block that runs last goes on when the other has ended.
  u32* words = allocate<u32>(5064);
  test = "the last block";
  for (u64 seed = 1; seed <= 20; ++seed) {
    m::Schedule s;
    s.strategy = m::Strategy::kPriorities;
    s.seed = seed;
    s.depth = u32(seed % 5);
    s.expected = 500;
    s.last = u32(1 + seed % 4);
    const u32 last = (s.last - 1) % 2;
    run_twice(s, words, 64, [=] {
      if (thread_index() % 32) return;
      u64 before = 0;
      for (int i = 0; i < 20; ++i) {
        before = m::update_word(words + 16, 4, m::Update::kAdd, 1, m::Ordering::kRelaxed,
                                m::Scope::kGpu, {__FILE__, __LINE__});
      }
      words[32 + block_index() * 2 + thread_index() / 32] = u32(before);
    });
    const u32* ends = words + 32;
    CHECK(ends[2 * last] >= 59 && ends[2 * last + 1] >= 59);
    CHECK(ends[2 - 2 * last] <= 41 && ends[3 - 2 * last] <= 41);
  }

  // Two stores of a word, which nobody has read in between, become visible in either order, however
  // much is done between them.
  test = "held";
  for (const auto strategy : {m::Strategy::kRandom, m::Strategy::kPriorities}) {
    u32 late = 0;
    for (u64 seed = 1; seed <= 200; ++seed) {
      m::Schedule s = random_schedule(seed);
      s.strategy = strategy;
      const u32 word = run_twice(s, words, 64, [=] {
        if (thread_index()) return;
        if (block_index() == 0) {
          store_relaxed(words, 1u);
          store_relaxed(words + 16, 1u);
        } else {
          while (load_relaxed(words + 16) == 0) {
          }
          for (int i = 0; i < 5000; ++i) load_relaxed(words + 64 + i);
          store_relaxed(words, 2u);
        }
      });
      late += word == 1;
    }
    CHECK(late > 2 && late < 100);
  }

  // It is not so if the other block has read the first value.
  test = "held, and read";
  for (u64 seed = 1; seed <= 200; ++seed) {
    CHECK(run_twice(random_schedule(seed), words, 64, [=] {
            if (thread_index()) return;
            if (block_index() == 0) {
              store_relaxed(words, 1u);
            } else {
              while (load_relaxed(words) == 0) {
              }
              store_relaxed(words, 2u);
            }
          }) == 2);
  }
}

}  // namespace

int main() {
  if (!m::arena_begin()) return puts("no arena"), 1;
  warps();
  barriers();
  arrivals();
  registers();
  pinned();
  copies();
  boxes();
  polls();
  strategies();
  lateness();
  if (failures == 0) puts("ok");
  return failures != 0;
}
