// Products on the machine: collectives of a warp, and wgmma with its proxy, its order and its sums.
// Kernels are functions here.
#include "machine_test.h"

#include "../amk_cpu/math.h"
#include "../amk_cpu/mma.h"
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

}  // namespace

int main() {
  if (!m::arena_begin()) return puts("no arena"), 1;
  warps();
  wide();
  if (failures == 0) puts("ok");
  return failures != 0;
}
