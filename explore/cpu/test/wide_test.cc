// Products on the machine: collectives of a warp, and wgmma with its proxy, its order and its sums.
// Kernels are functions here.
#include "machine_test.h"

#include "../amk_cpu/copy.h"
#include "../amk_cpu/math.h"
#include "../amk_cpu/mma.h"
#include "../machine/tensor.h"
#include "products.h"

extern "C" void __tsan_write2(void* p);  // tsan.cc

namespace {

bool says(const char* words) {
  for (const m::Report& r : m::reports())
    if (r.message.find(words) != std::string::npos) return true;
  return false;
}

// Under the plain schedule and a few random ones.
template <class Body, class Then>
void under_schedules(const char* name, u32 threads, Body&& body, Then&& then) {
  test = name;
  for (u64 seed = 0; seed <= 20 && failures == 0; ++seed) {
    m::Schedule s;
    s.strategy = seed == 0 ? m::Strategy::kReplay : m::Strategy::kRandom;
    s.seed = seed;
    m::begin_schedule(s);
    m::clear_reports();
    then(launch(2, threads, 1 << 14, body));
  }
}

// ---- products of a warp ---------------------------------------------------------------------------

uint16_t a_of(int row, int k) {
  return encode16(7, (row ^ k) & 1, (row * 5 + k * 3) % 7 - 3, u32(row * 31 + k * 17));
}
uint16_t b_of(int column, int k) {
  return encode16(7, (column + k) % 3 == 0, (column + k * 5) % 5 - 2, u32(column * 13 + k * 29));
}
u32 pair(uint16_t low, uint16_t high) { return u32(high) << 16 | low; }

float sums_of_warp[2][32][4];
int integers_of_warp[2][32][4];
u32 transposed[2][32];

void warps() {
  under_schedules("a warp", 32, [] {
    const int lane = int(thread_index()), g = lane / 4, t = lane % 4 * 2;
    const auto a = [&](int row, int k) { return pair(a_of(row, k), a_of(row, k + 1)); };
    float d[4] = {1, 2, 3, 4};
    mma_bf16(d, a(g, t), a(g + 8, t), a(g, t + 8), a(g + 8, t + 8), pair(b_of(g, t), b_of(g, t + 1)),
             pair(b_of(g, t + 8), b_of(g, t + 9)));
    memcpy(sums_of_warp[block_index()][lane], d, sizeof d);
    int i[4] = {lane, 0, 0, -lane};
    mma_u8s8(i, 0x01010101u * u32(lane), ~0u, 0, 0x80808080u, 0xffffffffu, 0x01020304u);
    memcpy(integers_of_warp[block_index()][lane], i, sizeof i);
    transposed[block_index()][lane] = transpose8x8(u32(lane * 2) | u32(lane * 2 + 1) << 16);
  }, [](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    const Statement statement;
    for (int block = 0; block < 2; ++block) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 4; ++i) {
          const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
          uint16_t a[16], b[16];
          for (int k = 0; k < 16; ++k) a[k] = a_of(row, k), b[k] = b_of(column, k);
          CHECK(bits_of(sums_of_warp[block][lane][i]) == statement.product(a, b, bits_of(float(i + 1)), 16));
        }
        // Row lane / 4: lanes 4 * row to + 3 in columns 0 to 15, of which each has four bytes, times -1.
        const int* const d = integers_of_warp[block][lane];
        int first = 0;
        for (int j = 0; j < 4; ++j) first -= 4 * (lane / 4 * 4 + j);
        CHECK(d[0] == lane + first && d[1] == first);
        CHECK(d[2] == -16 * 255 + 4 * 128 * 10 && d[3] == d[2] - lane);
        const int row = lane / 4, column = lane % 4 * 2;
        CHECK(transposed[block][lane] == (u32(column * 8 + row) | u32((column + 1) * 8 + row) << 16));
      }
    }
  });
}

// ---- wgmma ----------------------------------------------------------------------------------------

constexpr u32 kNextColumns = 64 * 16, kNextRows = 8 * 16, kDepth = 2;  // chained products
float sums[2][128][32];

// B of a product, written by the threads of a block.
void write_b(u8* to, int product) {
  for (int i = int(thread_index()); i < 64 * 16; i += 128) {
    const int column = i / 16, k = i % 16;
    u8* p = to + k / 8 * kNextColumns + u32(column) / 8 * kNextRows + u32(column) % 8 * 16 + k % 8 * 2;
    __tsan_write2(p);
    const uint16_t v = b_of(column, k + product * 16);
    memcpy(p, &v, 2);
  }
}
uint4 a_of_lane(int product) {
  const int lane = int(thread_index()) % 32, row = int(thread_index()) / 32 * 16 + lane / 4;
  const auto a = [&](int r, int k) { return pair(a_of(r, k), a_of(r, k + 1)); };
  const int k = product * 16 + lane % 4 * 2;
  return make_uint4(a(row, k), a(row + 8, k), a(row, k + 8), a(row + 8, k + 8));
}
u8* part(int product) { return block_memory() + product * 2048; }

struct Wrong {
  bool fence = true, begin = true, wait = true, writes_b = false, writes_d = false, reads_d = false,
       shifted = false, unlike = false, sets_a = false, uses_d = false;
  int times = 1;
};
void multiply(const Wrong& wrong) {
  for (int i = 0; i < int(kDepth); ++i) write_b(part(i), i);
  if (wrong.fence) fence_proxy_async_shared();
  block_sync();
  float d[32];
  uint4 a[kDepth] = {a_of_lane(0), a_of_lane(1)};
  opaque_in_order(a[1]);
  if (wrong.begin) wgmma_begin();
  if (wrong.sets_a) opaque_in_order(a[1]);
  for (int turn = 1; turn < wrong.times; ++turn) {
    wgmma_bf16(d, a[0], wide_operand<kNextColumns, kNextRows>(part(0)), false);
    wgmma_commit();
  }
  for (int i = 0; i < int(kDepth); ++i) {
    const bool other = wrong.unlike && thread_index() % 32 == 3;
    wgmma_bf16(d, a[i], wide_operand<kNextColumns, kNextRows>(part(i ^ other) + (wrong.shifted ? 2 : 0)), i > 0);
  }
  wgmma_commit();
  if (wrong.writes_b && thread_index() == 5) write_b(part(1), 0);
  if (wrong.writes_d) d[7] = 1;
  float early = 0;
  if (wrong.reads_d) early = d[9];
  if (wrong.uses_d) opaque_in_order(d[31]);
  if (wrong.wait) wgmma_wait<0>();
  opaque_in_order(d[31]);
  memcpy(sums[block_index()][thread_index()], d, sizeof d);
  if (wrong.reads_d) sums[block_index()][thread_index()][9] = early;
}

void check_sums(bool all_but_9) {
  Statement statement;
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < 32; ++i) {
      const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      uint16_t a[32], b[32];
      for (int k = 0; k < 32; ++k) a[k] = a_of(row, k), b[k] = b_of(column, k);
      const u32 want = statement.product(a, b, 0, 32);
      for (int block = 0; block < 2; ++block) {
        const float got = sums[block][thread][i];
        if (all_but_9 && i == 9) CHECK(got != got);
        else CHECK(bits_of(got) == want);
      }
    }
  }
}

void wide() {
  const auto with = [](const char* name, const Wrong& wrong, auto&& then) {
    under_schedules(name, 128, [wrong] { multiply(wrong); }, then);
  };
  with("wgmma", {}, [](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    check_sums(false);
  });
  Wrong w;
  w.fence = false;
  with("wgmma without a proxy fence", w, [](m::Outcome) { CHECK(found("proxy")); });
  w = {};
  w.begin = false;
  with("wgmma without wgmma_begin", w, [](m::Outcome) { CHECK(says("no wgmma_begin")); });
  w = {};
  w.wait = false;
  with("wgmma without a wait", w, [](m::Outcome) { CHECK(says("before a wgmma is waited for")); });
  w = {};
  w.wait = false;
  w.times = 70;
  with("wgmma without an end", w, [](m::Outcome) { CHECK(says("groups")); });
  w = {};
  w.writes_b = true;
  with("an operand that is written", w, [](m::Outcome) { CHECK(found("race")); });
  w = {};
  w.writes_d = true;
  with("sums that are written", w, [](m::Outcome) { CHECK(says("written before")); });
  w = {};
  w.reads_d = true;
  with("sums that are read", w, [](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    check_sums(true);
  });
  w = {};
  w.sets_a = true;
  with("an operand that is set after the fence", w, [](m::Outcome) { CHECK(says("since registers were set")); });
  w = {};
  w.uses_d = true;
  with("sums that are used", w, [](m::Outcome) { CHECK(says("used before it is waited for")); });
  w = {};
  w.shifted = true;
  with("an operand that is not aligned", w, [](m::Outcome) { CHECK(says("want a multiple of 16")); });
  w = {};
  w.unlike = true;
  with("operands that differ", w, [](m::Outcome) { CHECK(says("name different operands")); });
}

// ---- both operands in shared memory, and products that overlap -------------------------------------

// Sums of two chains of kDepth products in turn: while one is computed the other's registers are used.
// A has 64 rows, eight columns after eight; B groups of eight rows, of which each has all its columns.
constexpr u32 kA = 0, kB = 4096, kTurns = 6;
float sums_of_turns[2][kTurns][128][64];

template <int kSums>
void multiply_shared(u32 warps, bool alike) {
  constexpr int kColumns = 2 * kSums;
  for (int i = int(thread_index()); i < (64 + kColumns) * 32; i += int(warps) * 32) {
    const int row = i / 32, k = i % 32, column = row - 64;
    u8* p = block_memory() + (row < 64 ? kA + u32(k) / 8 * 1024 + u32(row) * 16
                                       : kB + u32(column) / 8 * 512 + u32(k) / 8 * 128 + u32(column) % 8 * 16);
    __tsan_write2(p + k % 8 * 2);
    const uint16_t v = row < 64 ? a_of(row, k) : b_of(column, k);
    memcpy(p + k % 8 * 2, &v, 2);
  }
  fence_proxy_async_shared();
  block_sync();
  if (thread_index() >= 128) return;
  float d[2][kSums];
  const WideOperand a = wide_operand<1024, 128>(block_memory() + kA);
  const WideOperand b = wide_operand<128, 512>(block_memory() + kB);
  const auto keep = [&](u32 turn) {
    memcpy(sums_of_turns[block_index()][turn][thread_index()], d[turn % 2], sizeof d[0]);
    opaque_in_order(d[turn % 2][0]);
  };
  for (u32 turn = 0; turn < kTurns; ++turn) {
    wgmma_begin();
    for (u32 k = 0; k < kDepth; ++k) {
      const u32 of_warp = alike || thread_index() / 32 != 2 ? k : kDepth - 1 - k;
      wgmma_bf16(d[turn % 2], further(a, of_warp * 2048), further(b, of_warp * 256), k > 0);
    }
    wgmma_commit();
    wgmma_wait<1>();
    if (turn > 0) keep(turn - 1);
  }
  wgmma_wait<0>();
  keep(kTurns - 1);
}

template <int kSums>
void check_turns() {
  Statement statement;
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < kSums; ++i) {
      const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      uint16_t a[32], b[32];
      for (int k = 0; k < 32; ++k) a[k] = a_of(row, k), b[k] = b_of(column, k);
      const u32 want = statement.product(a, b, 0, 32);
      for (auto& block : sums_of_turns)
        for (auto& turn : block) CHECK(bits_of(turn[thread][i]) == want);
    }
  }
}

void shared() {
  under_schedules("wgmma of 128 columns", 128, [] { multiply_shared<64>(4, true); }, [](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    check_turns<64>();
  });
  under_schedules("wgmma of 24 columns", 128, [] { multiply_shared<12>(4, true); }, [](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    check_turns<12>();
  });
  under_schedules("a warp that begins other products", 128, [] { multiply_shared<32>(4, false); },
                  [](m::Outcome) { CHECK(says("warps of a group begin different products")); });
  under_schedules("wgmma of three warps", 96, [] { multiply_shared<32>(3, true); },
                  [](m::Outcome) { CHECK(says("fewer than four warps")); });
  under_schedules("wgmma that a warp leaves out", 128, [] {
    float d[32];
    if (thread_index() / 32 == 3) return;
    wgmma_begin();
    wgmma_bf16(d, a_of_lane(0), wide_operand<kNextColumns, kNextRows>(part(0)), false);
    wgmma_commit();
    wgmma_wait<0>();
  }, [](m::Outcome) { CHECK(says("not all four warps")); });
  under_schedules("sums of two shapes", 128, [] {
    float d[64];
    float(&half)[32] = reinterpret_cast<float(&)[32]>(d);
    wgmma_begin();
    wgmma_bf16(d, a_of_lane(0), wide_operand<kNextColumns, kNextRows>(part(0)), false);
    wgmma_bf16(half, a_of_lane(0), wide_operand<kNextColumns, kNextRows>(part(0)), true);
  }, [](m::Outcome) { CHECK(says("of different shapes")); });
}

// ---- a ring of operands ----------------------------------------------------------------------------

// A thread copies the operands of a stage, 16 columns of A and a box of B, and four warps multiply them.
constexpr u32 kStages = 6, kSlots = 2, kPart = 64 * 16 * 2;
struct Ring {
  u8 a[kSlots][kPart], b[kSlots][kPart];
  u64 full[kSlots], empty[kSlots];
};
struct Operands {
  u8 a[kStages][kPart], b[kStages][kPart];
  TensorMap map;
};
enum class Fault {
  kNone,
  kEarly,       // a slot is given back while a product reads it
  kOneForAll,   // one warp gives it back for all four
  kUnexpected,  // nobody expects the bytes of B
  kWrongPhase,  // consumers wait for the phase before
  kUnseen,      // one warp does not wait for a slot
  kNoWait,      // a slot is filled again without a wait
  kUnordered,   // the operand is written by threads, without a proxy fence
};
float sums_of_ring[2][128][32];

Operands& operands() {
  static Operands* const all = [] {
    u8* p = m::arena_allocate(sizeof(Operands));
    m::order().add_region(m::RegionKind::kGlobal, p, sizeof(Operands), "operands");
    return reinterpret_cast<Operands*>(p);
  }();
  return *all;
}
void place_operands() {
  Operands& to = operands();
  m::order().host_write(&to, sizeof to);
  for (u32 stage = 0; stage < kStages; ++stage) {
    for (int row = 0; row < 64; ++row) {
      for (int k = 0; k < 16; ++k) {
        // A: eight columns after eight. B: groups of eight rows.
        const uint16_t a = a_of(row, int(stage) * 16 + k), b = b_of(row, int(stage) * 16 + k);
        memcpy(to.a[stage] + k / 8 * 1024 + row * 16 + k % 8 * 2, &a, 2);
        memcpy(to.b[stage] + row / 8 * 256 + k / 8 * 128 + row % 8 * 16 + k % 8 * 2, &b, 2);
      }
    }
  }
  // Groups of eight rows, of which each has 128 elements of a stage.
  const u64 dims[4] = {128, 8, kStages, 1}, strides[3] = {256, kPart, kPart * kStages};
  const u32 sides[4] = {128, 8, 1, 1}, ones[4] = {1, 1, 1, 1};
  CHECK(m::encode_tensor({1, 4, to.b, dims, strides, sides, ones, 0, 0, 0}, &to.map) == m::Encoded::kDone);
}

void wait_for(u64* barrier, u32 parity, u32 arrivals) {
  while (!barrier_try_wait(barrier, parity, arrivals)) {
  }
}

void produce(Ring& ring, Fault fault) {
  for (u32 stage = 0; stage < kStages; ++stage) {
    const u32 slot = stage % kSlots, phase = stage / kSlots & 1;
    if (fault != Fault::kNoWait) wait_for(&ring.empty[slot], phase ^ 1, 4);
    barrier_arrive_expect(&ring.full[slot], fault == Fault::kUnexpected ? kPart : 2 * kPart);
    copy_bulk(ring.a[slot], operands().a[stage], kPart, &ring.full[slot]);
    copy_tensor(ring.b[slot], &operands().map, {0, 0, int(stage), 0}, &ring.full[slot]);
  }
}
void consume(Ring& ring, Fault fault) {
  const u32 warp = thread_index() / 32;
  float d[32];
  const auto give_back = [&](u32 stage) {
    warp_sync();
    if (thread_index() % 32 != 0) return;
    if (fault != Fault::kOneForAll) barrier_arrive(&ring.empty[stage % kSlots], 1);
    else if (warp == 0) barrier_arrive(&ring.empty[stage % kSlots], 4);
  };
  for (u32 stage = 0; stage < kStages; ++stage) {
    const u32 slot = stage % kSlots, phase = stage / kSlots & 1;
    const bool wrong = fault == Fault::kWrongPhase;
    if (fault != Fault::kUnseen || warp != 2) wait_for(&ring.full[slot], phase ^ wrong, 1);
    wgmma_begin();
    wgmma_bf16(d, wide_operand<1024, 128>(ring.a[slot]), wide_operand<128, 256>(ring.b[slot]), stage > 0);
    wgmma_commit();
    if (fault == Fault::kEarly) {
      give_back(stage);
      wgmma_wait<0>();
    } else {
      wgmma_wait<1>();
      if (stage > 0) give_back(stage - 1);
    }
  }
  wgmma_wait<0>();
  memcpy(sums_of_ring[block_index()][thread_index()], d, sizeof d);
}
void ring_of_operands(Fault fault) {
  Ring& ring = *reinterpret_cast<Ring*>(block_memory());
  if (thread_index() == 0) {
    for (u32 i = 0; i < kSlots; ++i) barrier_init(&ring.full[i], 1), barrier_init(&ring.empty[i], 4);
    fence_barrier_init();
    if (fault == Fault::kUnordered) __tsan_write2(operands().a[0]);
  }
  block_sync();
  if (thread_index() == 128) produce(ring, fault);
  if (thread_index() < 128) consume(ring, fault);
}

void rings() {
  const auto with = [](const char* name, Fault fault, auto&& then) {
    under_schedules(name, 160, [fault] {
      ring_of_operands(fault);
    }, [&](m::Outcome o) {
      then(o);
      place_operands();
    });
  };
  place_operands();
  with("a ring of operands", Fault::kNone, [](m::Outcome o) {
    CHECK(o == m::Outcome::kDone && m::reports().empty());
    Statement statement;
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < 32; ++i) {
        const int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        uint16_t a[16 * kStages], b[16 * kStages];
        for (int k = 0; k < 16 * int(kStages); ++k) a[k] = a_of(row, k), b[k] = b_of(column, k);
        const u32 want = statement.product(a, b, 0, 16 * int(kStages));
        for (const auto& block : sums_of_ring) CHECK(bits_of(block[thread][i]) == want);
      }
    }
  });
  const auto finds = [&](const char* name, Fault fault, const char* kind) {
    with(name, fault, [kind](m::Outcome) { CHECK(found(kind)); });
  };
  finds("a slot that is given back while a product reads it", Fault::kEarly, "race");
  finds("one warp that gives a slot back for four", Fault::kOneForAll, "race");
  finds("a warp that does not wait for operands", Fault::kUnseen, "race");
  finds("an operand that threads have written", Fault::kUnordered, "race");
  // Or all have read what was not there yet, and wait for one phase too many in the end.
  with("a wait for the phase before", Fault::kWrongPhase, [](m::Outcome) {
    CHECK(found("race") || found(m::kStall));
  });
  for (Fault fault : {Fault::kUnexpected, Fault::kNoWait}) {
    with(fault == Fault::kNoWait ? "a slot that is filled again without a wait" : "bytes that nobody expects",
         fault, [](m::Outcome) { CHECK(found("race") || found(m::kArrivals)); });
  }
}

}  // namespace

int main() {
  if (!m::arena_begin()) return puts("no arena"), 1;
  warps();
  wide();
  shared();
  rings();
  if (failures == 0) puts("ok");
  return failures != 0;
}
