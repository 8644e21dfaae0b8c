#include "wide.h"

#include <cstring>
#include <string>

#include "findings.h"
#include "model.h"
#include "scheduler.h"
#include "sites.h"

namespace machine {

namespace {

constexpr u32 kPoison = 0x7fa5a5a5;
constexpr u64 kMostGroups = 64;      // under way: a kernel with more has forgotten to wait
constexpr u32 kAddresses = 1 << 18;  // bytes of shared memory that a descriptor can name

struct WideLane {
  u32 a[4];
  u64 b;
  float* d;
  Half type;
  bool adds;
};

// Where the last lane of a warp is: the one that does the warp's part.
Site last_site;

void begin(WideLane* lanes) {
  Warp& warp = *current().warp;
  WideState& state = warp.wide;
  for (int lane = 1; lane < 32; ++lane) {
    if (lanes[lane].b != lanes[0].b || lanes[lane].adds != lanes[0].adds)
      report_fatal(kWide, "lanes of a wgmma name different operands", {here(last_site)});
  }
  WideProduct product{};
  product.type = lanes[0].type;
  product.adds = lanes[0].adds;
  product.site = last_site;
  product.group = state.groups;
  if (const char* what = decode_operand(lanes[0].b, product.operand))
    report_fatal(kWide, what, {here(last_site)});
  product.b = self->memory + product.operand.start;
  // Registers of operands and sums are the lanes' until a fence says otherwise.
  if (!state.fenced)
    report(kWide, "a wgmma with no wgmma_begin since the last wait, or since registers were set", {here(last_site)});

  u32 at = 0;
  while (at < state.sums.size() && state.sums[at].registers[0] != lanes[0].d) ++at;
  if (at == state.sums.size()) {
    WideAccumulator& sums = state.sums.emplace_back();
    sums.products = 0;
    for (int lane = 0; lane < 32; ++lane) {
      sums.registers[lane] = lanes[lane].d;
      memcpy(sums.values[lane], lanes[lane].d, sizeof sums.values[lane]);
      for (int i = 0; i < kWideSums; ++i) memcpy(&lanes[lane].d[i], &kPoison, 4);
    }
  }
  ++state.sums[at].products;
  product.sums = at;
  for (int lane = 0; lane < 32; ++lane) memcpy(product.a[lane], lanes[lane].a, sizeof product.a[lane]);

  // The memory model sees a read that goes on until the wait. What it reads is read then.
  if (state.copy == 0)
    state.copy = order().bulk_begin(current().id, number_of(last_site)) + 1;
  for (int column = 0; column < kWideColumns; column += 8) {
    for (int k = 0; k < kWideDepth; k += 8) {
      u8 core[128];
      order().copy_bytes(state.copy - 1, core, product.b + product.operand.offset(column, k),
                         sizeof core);
    }
  }
  state.products.push_back(product);
}

void compute(WideState& state, const WideProduct& product) {
  u16 b[kWideColumns][kWideDepth];
  for (int column = 0; column < kWideColumns; ++column)
    for (int k = 0; k < kWideDepth; k += 8)
      memcpy(&b[column][k], product.b + product.operand.offset(column, k), 16);
  WideAccumulator& sums = state.sums[product.sums];
  wgmma_m64n64k16(tensor_core, product.type, product.a, b, product.adds, sums.values);
  if (--sums.products != 0) return;
  bool written = false;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < kWideSums; ++i)
      written |= memcmp(&sums.registers[lane][i], &kPoison, 4) != 0;
    memcpy(sums.registers[lane], sums.values[lane], sizeof sums.values[lane]);
  }
  sums.registers[0] = nullptr;
  if (written)
    report(kWide, "the sums of a wgmma are written before it is waited for",
           {here(product.site)});
}

void finish(Warp& warp, u32 left) {
  WideState& state = warp.wide;
  const u64 until = state.groups > left ? state.groups - left : 0;
  size_t n = 0;
  for (; n < state.products.size() && state.products[n].group < until; ++n)
    compute(state, state.products[n]);
  state.products.erase(state.products.begin(), state.products.begin() + n);
  if (state.products.empty()) state.sums.clear();
  for (; state.done < until; ++state.done) {
    const u32 copy = state.copies.front();
    if (copy != 0) order().bulk_end(copy - 1, &warp.wide.barrier);
    state.copies.erase(state.copies.begin());
  }
  state.fenced = false;
  order().barrier_complete(&warp.wide.barrier);
}

}  // namespace

void begin_products(Warp& warp) {
  warp.wide = {};
  order().barrier_init(0, &warp.wide.barrier, 0);  // no memory of the GPU: nothing is written
}

void wide_begin(Site site) {
  const u8 nothing = 0;
  converge(Collective::kWide, &nothing, 1, [](void*) { current().warp->wide.fenced = true; }, site);
}

u64 wide_descriptor(const void* b, u32 next_columns, u32 next_rows, Site site) {
  const u64 at = u64(static_cast<const u8*>(b) - self->memory);
  if (at >= kAddresses || at % 16 != 0) {
    report_fatal(kWide, "an operand of wgmma at byte " + std::to_string(int64_t(at)) +
                 " of shared memory: want a multiple of 16 below 2^18", {here(site)});
  }
  return at >> 4 | u64(next_columns >> 4) << 16 | u64(next_rows >> 4) << 32;
}

void wide_multiply(Half type, float* d, const u32* a, u64 b, bool adds, Site site) {
  WideLane lane{{a[0], a[1], a[2], a[3]}, b, d, type, adds};
  last_site = site;
  converge(Collective::kWide, &lane, sizeof lane,
           [](void* lanes) { begin(static_cast<WideLane*>(lanes)); }, site);
}

void wide_commit(Site site) {
  const u8 nothing = 0;
  last_site = site;
  converge(Collective::kWide, &nothing, 1, [](void*) {
    WideState& state = current().warp->wide;
    if (++state.groups - state.done > kMostGroups) {
      report_fatal(kWide, "more than " + std::to_string(kMostGroups) +
                   " groups of wgmma that nobody waits for", {here(last_site)});
    }
    state.copies.push_back(state.copy);
    state.copy = 0;
  }, site);
}

void wide_wait(u32 left, Site site) {
  const u32 where = number_of(site);
  Warp& warp = *current().warp;
  converge(Collective::kWide, &left, sizeof left,
           [](void* lanes) { finish(*current().warp, *static_cast<const u32*>(lanes)); }, site);
  order().barrier_wait(current().id, &warp.wide.barrier, where);
}

void wide_register(const void* at, Site site) {
  WideState& state = current().warp->wide;
  state.fenced = false;
  for (const WideAccumulator& sums : state.sums) {
    const float* d = sums.registers[current().lane];
    if (sums.products != 0 && at >= d && at < d + kWideSums)
      report(kWide, "the sums of a wgmma are used before it is waited for", {here(site)});
  }
}

void thread_leaves_products(Fiber& fiber) {
  if (fiber.warp->wide.products.empty()) return;
  report_fatal(kWide, "a lane ends before a wgmma is waited for",
               {here(fiber.warp->wide.products[0].site)});
}

}  // namespace machine
