// Asynchronous copies. A bulk copy is an agent of its own: its bytes land in any order, at any time
// before its barrier completes. cp.async lands when its thread waits for it, or before.
#include "copy.h"

#include <algorithm>
#include <cstring>

#include "barrier.h"
#include "findings.h"
#include "model.h"
#include "sites.h"

namespace machine {

// ---- bulk copies ----------------------------------------------------------------------------------

namespace {

using Range = BulkCopy::Range;
std::vector<BulkCopy> copies;  // the oldest first

void move(BulkCopy& copy, Range part) {
  if (!copy.box)
    return order().copy_bytes(copy.id, copy.to + part.begin, copy.from + part.begin,
                              part.end - part.begin);
  static constexpr u8 kZeros[kMostRowBytes] = {};
  for (u32 at = part.begin; at < part.end;) {
    const Box::Run run = copy.box->run(at, part.end);
    order().copy_bytes(copy.id, copy.to + at, run.from ? run.from : kZeros, run.bytes);
    at += run.bytes;
  }
}

// All of its bytes are there.
void end(u32 which) {
  const BulkCopy copy = std::move(copies[which]);
  copies.erase(copies.begin() + which);
  order().bulk_end(copy.id, copy.barrier);
  complete_bytes(copy.barrier, copy.bytes, copy.site);
}

void land_all(u32 which) {
  for (const Range& part : copies[which].left) move(copies[which], part);
  end(which);
}

constexpr u32 kLine = 16;  // bytes that land together

void begin(BulkCopy copy) {
  copy.id = order().bulk_begin(current().id, number_of(copy.site));
  copy.home = current().home;
  copy.left.push_back({0, copy.bytes});
  order().bulk_completes_on(copy.id, copy.barrier);
  copies.push_back(std::move(copy));
  if (choose(2, Choice::kCopy)) land_all(u32(copies.size()) - 1);
}

}  // namespace

void copies_begin() { copies.clear(); }

void copy_bulk(void* to, const void* from, u32 bytes, u64* barrier, Site site) {
  choice_point(Next::kCommutes);
  polls_end();
  if (bytes == 0 || bytes % kLine || reinterpret_cast<uintptr_t>(to) % kLine ||
      reinterpret_cast<uintptr_t>(from) % kLine || !running_inside(to, bytes) ||
      !running_inside(barrier, sizeof *barrier)) {
    report_fatal(kCopies, "a bulk copy of bytes that are not whole lines of 16, or to outside of "
                          "the block's shared memory", {here(site)});
  }
  begin({0, static_cast<u8*>(to), static_cast<const u8*>(from), {}, bytes, barrier, nullptr, site, {}});
}

void copy_box(void* to, const void* map, const int32_t* at, u32 rank, u64* barrier, Site site) {
  choice_point(Next::kCommutes);
  polls_end();
  read_constant(map, kTensorMapBytes, site);
  Box box;
  if (const char* what = find_box(map, at, rank, box)) report_fatal(kCopies, what, {here(site)});
  if (reinterpret_cast<uintptr_t>(to) % 128 || !running_inside(to, box.bytes()) ||
      !running_inside(barrier, sizeof *barrier)) {
    report_fatal(kCopies, "a copy of a box to an address that is not a multiple of 128, or to outside "
                          "of the block's shared memory", {here(site)});
  }
  begin({0, static_cast<u8*>(to), nullptr, box, box.bytes(), barrier, nullptr, site, {}});
}

void prefetch_bulk(const void* from, u32 bytes, Site site) {
  if (order().is_inside(from, bytes)) return;
  report(kCopies, "a prefetch of bytes that are not allocated: " + order().describe(from),
         {here(site)});
}

bool land_copies_of(const u64* barrier) {
  bool landed = false;
  for (u32 i = 0; i < copies.size();) {
    if (copies[i].barrier != barrier) {
      ++i;
      continue;
    }
    if (!landed && choose(2, Choice::kCopy)) return false;
    land_all(i);
    landed = true;
  }
  return landed;
}

const BulkCopy* copy_to(const u64* barrier) {
  for (const BulkCopy& copy : copies) {
    if (copy.barrier == barrier) return &copy;
  }
  return nullptr;
}

u32 copies_under_way() { return u32(copies.size()); }

void land_part(u32 which) {
  BulkCopy& copy = copies[which];
  if (copy.left.empty()) return end(which);
  Range& first = copy.left.front();
  const u32 lines = (first.end - first.begin) / kLine;
  const u32 way = choose(4, Choice::kCopy);
  if (way == 0 || lines == 1) return land_all(which);
  const u32 middle = first.begin + lines / 2 * kLine;
  Range part{};
  switch (way) {
    case 1:  // the first half
      part = {first.begin, middle};
      first.begin = middle;
      break;
    case 2:  // the second half
      part = {middle, first.end};
      first.end = middle;
      break;
    default:  // a line in the middle
      part = {middle, middle + kLine};
      const Range after{middle + kLine, first.end};
      first.end = middle;
      if (after.begin < after.end) copy.left.push_back(after);
  }
  move(copy, part);
}

bool land_oldest() {
  if (copies.empty()) return false;
  land_all(0);
  return true;
}

void block_leaves_copies(const Block& block) {
  for (u32 i = 0; i < copies.size();) {
    if (copies[i].home != &block) {
      ++i;
      continue;
    }
    report(kCopies, "a block has ended while a copy to its shared memory is under way",
           {here(copies[i].site)});
    copies.erase(copies.begin() + i);
  }
}

// ---- cp.async -------------------------------------------------------------------------------------

namespace {

void land(AsyncCopy& copy) {
  if (copy.landed) return;
  copy.landed = true;
  order().copy_bytes(copy.id, copy.to, copy.from, kLine);
  order().async_end(copy.id);
}

}  // namespace

void copy_async_16(void* to, const void* from, Site site) {
  polls_end();
  const u32 where = number_of(site);
  if (reinterpret_cast<uintptr_t>(to) % kLine || reinterpret_cast<uintptr_t>(from) % kLine ||
      !running_inside(to, kLine)) {
    report_fatal(kCopies, "an asynchronous copy that is not aligned to 16 bytes, or to outside of "
                          "the block's shared memory", {here(site)});
  }
  Fiber& fiber = current();
  fiber.copies.push_back({order().async_begin(fiber.id, where), fiber.copy_group,
                          static_cast<u8*>(to), static_cast<const u8*>(from), false});
  if (choose(2, Choice::kCopy)) land(fiber.copies.back());
}

void commit_copies() {
  order().async_commit(current().id);
  ++current().copy_group;
}

void wait_copies(u32 left) {
  choice_point(Next::kCommutes);
  polls_end();
  Fiber& fiber = current();
  const u32 groups = fiber.copy_group - std::min(left, fiber.copy_group);
  auto& list = fiber.copies;
  for (AsyncCopy& copy : list) {
    if (copy.group < groups) land(copy);
  }
  list.erase(std::remove_if(list.begin(), list.end(),
                            [&](const AsyncCopy& c) { return c.group < groups; }),
             list.end());
  order().async_wait(fiber.id, left);
}

void thread_leaves_copies(Fiber& fiber) {
  for (AsyncCopy& copy : fiber.copies) land(copy);
  fiber.copies.clear();
}

}  // namespace machine
