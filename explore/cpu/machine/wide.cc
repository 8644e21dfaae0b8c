#include "wide.h"

#include <algorithm>
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
constexpr u32 kGroupWarps = 4;

struct WideLane {
  WideOperands of;
  u32 a[4];
  float* d;
};

// Where the last lane of a warp is: the one that does the warp's part.
Site last_site;

// Which of its group of four a warp is.
u32 member(const Warp& warp) { return warp.lanes[0]->thread / kWarpSize % kGroupWarps; }
Warp& first_of_group(const Warp& warp) { return *warps_at_once()[warp.number - member(warp)]; }

// The four warps of a group begin the same products, in the same order.
void begin_alike(Warp& warp, const WideOperands& of) {
  Warp& first = first_of_group(warp);
  const u32 first_thread = first.lanes[0]->thread;
  if (first_thread + kGroupWarps * kWarpSize > self->threads)
    report_fatal(kWide, "a wgmma of fewer than four warps", {here(last_site)});
  const WideBegun now{of.shared_a, of.b, of.columns, of.type, of.adds, last_site};
  auto& log = first.wide.log;
  const u64 at = warp.wide.begun++ - first.wide.logged;
  if (at == log.size()) {
    log.push_back(now);
  } else if (const WideBegun& other = log[at]; other.a != now.a || other.b != now.b ||
             other.columns != now.columns || other.type != now.type || other.adds != now.adds) {
    report_fatal(kWide, "warps of a group begin different products", {here(other.site), here(last_site)});
  }
  u64 all = ~u64(0);
  for (u32 i = 0; i < kGroupWarps; ++i)
    all = std::min(all, warps_at_once()[first.number + i]->wide.begun);
  log.erase(log.begin(), log.begin() + long(all - first.wide.logged));
  first.wide.logged = all;
}

SharedOperand decoded(u64 descriptor) {
  SharedOperand operand;
  if (const char* what = decode_operand(descriptor, operand)) report_fatal(kWide, what, {here(last_site)});
  return operand;
}

// The memory model sees a read of some rows that goes on until the wait. What it reads is read then.
void begin_reading(WideState& state, const SharedOperand& operand, int first, int rows) {
  if (state.copy == 0)
    state.copy = order().bulk_begin(current().id, number_of(last_site)) + 1;
  static u8 read[kMostWideColumns * kWideDepth * 2];
  u32 begin = 0, end = 0;
  const auto read_run = [&] {
    if (begin != end)
      order().copy_bytes(state.copy - 1, read, self->memory + operand.start + begin, end - begin);
  };
  const auto add = [&](int row, int k) {
    const u32 at = operand.offset(row, k);
    if (at != end) read_run(), begin = at;
    end = at + 128;
  };
  if (operand.next_rows < operand.next_k) {
    for (int k = 0; k < kWideDepth; k += 8)
      for (int row = first; row < first + rows; row += 8) add(row, k);
  } else {
    for (int row = first; row < first + rows; row += 8)
      for (int k = 0; k < kWideDepth; k += 8) add(row, k);
  }
  read_run();
}

// The sums whose registers these are: they are the products' until a wait.
u32 take_sums(WideState& state, const WideLane* lanes) {
  u32 at = 0, unused = u32(state.sums.size());
  for (; at < state.sums.size(); ++at) {
    if (state.sums[at].products == 0) unused = at;
    else if (state.sums[at].registers[0] == lanes[0].d) break;
  }
  if (at < state.sums.size()) {
    if (state.sums[at].count != u32(lanes[0].of.columns) / 2)
      report_fatal(kWide, "two wgmma of different shapes add to the same sums", {here(last_site)});
    return at;
  }
  if (unused == state.sums.size()) state.sums.emplace_back();
  WideAccumulator& sums = state.sums[unused];
  sums.count = u32(lanes[0].of.columns) / 2;
  for (int lane = 0; lane < 32; ++lane) {
    sums.registers[lane] = lanes[lane].d;
    memcpy(sums.values + lane * sums.count, lanes[lane].d, sums.count * 4);
    for (u32 i = 0; i < sums.count; ++i) memcpy(&lanes[lane].d[i], &kPoison, 4);
  }
  return unused;
}

void begin(WideLane* lanes) {
  Warp& warp = *current().warp;
  WideState& state = warp.wide;
  WideProduct product{};
  product.of = lanes[0].of;
  for (int lane = 1; lane < 32; ++lane) {
    const WideOperands& of = lanes[lane].of;
    if (of.b != product.of.b || of.shared_a != product.of.shared_a || of.adds != product.of.adds)
      report_fatal(kWide, "lanes of a wgmma name different operands", {here(last_site)});
  }
  begin_alike(warp, product.of);
  product.site = last_site;
  product.group = state.groups;
  // Registers of operands and sums are the lanes' until a fence says otherwise.
  if (!state.fenced)
    report(kWide, "a wgmma with no wgmma_begin since the last wait, or since registers were set", {here(last_site)});
  product.sums = take_sums(state, lanes);
  ++state.sums[product.sums].products;
  product.b = decoded(product.of.b);
  begin_reading(state, product.b, 0, product.of.columns);
  if (product.of.a) {
    for (int lane = 0; lane < 32; ++lane)
      memcpy(product.registers[lane], lanes[lane].a, sizeof product.registers[lane]);
  } else {
    product.a = decoded(product.of.shared_a);
    begin_reading(state, product.a, int(member(warp)) * kWideRows, kWideRows);
  }
  state.products.push_back(product);
}

void gather(const SharedOperand& operand, int first, int rows, u16 (*to)[kWideDepth]) {
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < kWideDepth; k += 8)
      memcpy(&to[row][k], self->memory + operand.start + operand.offset(first + row, k), 16);
}

void compute(const Warp& warp, WideState& state, const WideProduct& product) {
  u16 a[kWideRows][kWideDepth], b[kMostWideColumns][kWideDepth];
  gather(product.b, 0, product.of.columns, b);
  if (product.of.a) rows_of_registers(product.registers, a);
  else gather(product.a, int(member(warp)) * kWideRows, kWideRows, a);
  WideAccumulator& sums = state.sums[product.sums];
  wgmma_m64k16(tensor_core, product.of.type, a, b, product.of.columns, product.of.adds, sums.values);
  if (--sums.products != 0) return;
  bool written = false;
  for (int lane = 0; lane < 32; ++lane) {
    for (u32 i = 0; i < sums.count; ++i)
      written |= memcmp(&sums.registers[lane][i], &kPoison, 4) != 0;
    memcpy(sums.registers[lane], sums.values + lane * sums.count, sums.count * 4);
  }
  if (written)
    report(kWide, "the sums of a wgmma are written before it is waited for",
           {here(product.site)});
}

void finish(Warp& warp, u32 left) {
  WideState& state = warp.wide;
  const u64 until = state.groups > left ? state.groups - left : 0;
  size_t n = 0;
  for (; n < state.products.size() && state.products[n].group < until; ++n)
    compute(warp, state, state.products[n]);
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

u64 wide_descriptor(const void* operand, u32 next_k, u32 next_rows, Site site) {
  const u64 at = u64(static_cast<const u8*>(operand) - self->memory);
  if (at >= kAddresses || at % 16 != 0) {
    report_fatal(kWide, "an operand of wgmma at byte " + std::to_string(int64_t(at)) +
                 " of shared memory: want a multiple of 16 below 2^18", {here(site)});
  }
  return at >> 4 | u64(next_k >> 4) << 16 | u64(next_rows >> 4) << 32;
}

void wide_multiply(const WideOperands& of, float* d, Site site) {
  WideLane lane{of, {}, d};
  if (of.a) memcpy(lane.a, of.a, sizeof lane.a);
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
    if (sums.products != 0 && at >= d && at < d + sums.count)
      report(kWide, "the sums of a wgmma are used before it is waited for", {here(site)});
  }
}

void thread_leaves_products(Fiber& fiber) {
  if (fiber.warp->wide.products.empty()) return;
  report_fatal(kWide, "a lane ends before a wgmma is waited for",
               {here(fiber.warp->wide.products[0].site)});
}

void block_leaves_products(const Block& block) {
  for (const auto& warp : warps_at_once()) {
    if (warp->home != &block || warp->wide.begun == 0) continue;
    const auto& log = first_of_group(*warp).wide.log;
    if (log.empty()) continue;
    report(kWide, "a wgmma that not all four warps of a group have begun", {here(log[0].site)});
    return;
  }
}

}  // namespace machine
