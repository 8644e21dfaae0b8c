#include "clock.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace machine {
namespace {

// Blocks of memory of a size that have been given back.
struct Pool {
  size_t bytes;
  std::vector<void*> free;
};

void* take(Pool& pool, size_t bytes) {
  if (pool.bytes != bytes) {
    for (void* p : pool.free) std::free(p);
    pool.free.clear();
    pool.bytes = bytes;
  }
  if (pool.free.empty()) return std::malloc(bytes);
  void* p = pool.free.back();
  pool.free.pop_back();
  return p;
}
void give(Pool& pool, size_t bytes, void* p) {
  if (pool.bytes == bytes) pool.free.push_back(p);
  else std::free(p);
}

// Never destroyed: other static objects have clocks.
Pool& chunks = *new Pool{};
Pool& vectors = *new Pool{};

size_t bytes_of_chunk(u32 count) { return sizeof(Chunk) + count * sizeof(u32); }
size_t bytes_of_vector(u32 blocks) { return sizeof(Vector) + blocks * sizeof(Ref<Chunk>); }

// A chunk whose components are not set.
Ref<Chunk> raw_chunk(u32 count) {
  auto* chunk = static_cast<Chunk*>(take(chunks, bytes_of_chunk(count)));
  chunk->references = 0;
  chunk->count = count;
  return Ref<Chunk>(chunk);
}

Ref<Vector> copy_of(const Vector& from) {
  Ref<Vector> v = Vector::make(from.blocks);
  for (u32 i = 0; i < from.blocks; ++i) v->of(i) = from.of(i);
  return v;
}

// Components that are compared at once, as any machine has them. Epochs are below 2^31 (order.cc).
constexpr u32 kSeveral = 4;
using Several = int __attribute__((vector_size(kSeveral * sizeof(int))));
inline Several several(const u32* p) {
  Several v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline bool any(const Several& v) {
  int all = 0;
  for (u32 i = 0; i < kSeveral; ++i) all |= v[i];
  return all;
}

// The larger of each component; a or b itself where nothing differs from it.
Ref<Chunk> join_chunks(const Ref<Chunk>& a, const Ref<Chunk>& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  const u32 both = a->count < b->count ? a->count : b->count;
  Several a_lacks = {}, b_lacks = {};
  const u32 *x = a->epoch, *y = b->epoch;
  for (u32 i = 0; i < both; i += kSeveral) {
    const Several u = several(x + i), v = several(y + i);
    a_lacks |= u < v;
    b_lacks |= v < u;
  }
  if (!any(a_lacks) && a->count >= b->count) return a;
  if (!any(b_lacks) && b->count >= a->count) return b;
  const Chunk& longer = a->count > b->count ? *a : *b;
  Ref<Chunk> chunk = raw_chunk(longer.count);
  u32* z = chunk->epoch;
  for (u32 i = 0; i < both; i += kSeveral) {
    const Several u = several(x + i), v = several(y + i), less = u < v;
    const Several most = (v & less) | (u & ~less);
    std::memcpy(z + i, &most, sizeof most);
  }
  std::memcpy(z + both, longer.epoch + both, (longer.count - both) * sizeof(u32));
  return chunk;
}

// What join() was asked, and said. Many lanes ask the same one after the other.
struct Asked {
  Ref<Vector> a, b, result;
};
constexpr size_t kAsked = 128;
Asked asked[kAsked];

Asked& asked_of(const Ref<Vector>& a, const Ref<Vector>& b) {
  const u64 hash = (u64(uintptr_t(a.get())) * 0x9e3779b97f4a7c15u ^ u64(uintptr_t(b.get()))) *
                   0xc2b2ae3d27d4eb4fu;
  return asked[hash >> 57];
}

}  // namespace

Ref<Chunk> Chunk::make(u32 count) {
  Ref<Chunk> chunk = raw_chunk(count);
  std::memset(chunk->epoch, 0, count * sizeof(u32));
  return chunk;
}
void Chunk::destroy(Chunk* chunk) { give(chunks, bytes_of_chunk(chunk->count), chunk); }

Ref<Vector> Vector::make(u32 blocks) {
  auto* v = static_cast<Vector*>(take(vectors, bytes_of_vector(blocks)));
  v->references = 0;
  v->blocks = blocks;
  for (u32 i = 0; i < blocks; ++i) new (&v->of(i)) Ref<Chunk>();
  return Ref<Vector>(v);
}
void Vector::destroy(Vector* v) {
  for (u32 i = 0; i < v->blocks; ++i) v->of(i).~Ref<Chunk>();
  give(vectors, bytes_of_vector(v->blocks), v);
}

Ref<Vector> join(const Ref<Vector>& a, const Ref<Vector>& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  Asked& same = asked_of(a, b);
  if (same.a == a && same.b == b) return same.result;
  bool is_a = true, is_b = true;
  Ref<Vector> result;
  for (u32 i = 0; i < a->blocks; ++i) {
    Ref<Chunk> chunk = join_chunks(a->of(i), b->of(i));
    is_a = is_a && chunk == a->of(i);
    is_b = is_b && chunk == b->of(i);
    if (!is_a && !is_b && !result) {
      result = Vector::make(a->blocks);
      for (u32 j = 0; j < i; ++j) result->of(j) = join_chunks(a->of(j), b->of(j));
    }
    if (result) result->of(i) = std::move(chunk);
  }
  same = Asked{a, b, is_a ? a : is_b ? b : result};
  return same.result;
}

void forget_joins() {
  for (Asked& each : asked) each = Asked{};
}

Ref<Vector> raise(const Ref<Vector>& v, const Component* components, size_t n) {
  Ref<Vector> result;
  u32 copied = ~0u;  // the block whose chunk is the result's own
  for (size_t i = 0; i < n; ++i) {
    const u32 block = block_of(components[i].actor), place = place_of(components[i].actor);
    const u32 epoch = components[i].epoch;
    const Chunk* known = (result ? result : v)->of(block).get();
    if (epoch == 0 || (known && place < known->count && known->epoch[place] >= epoch)) continue;
    if (!result) result = copy_of(*v);
    if (block != copied || place >= known->count) {
      const u32 old = known ? known->count : 0;
      const u32 count = place < old ? old : place / 32 * 32 + 32;
      Ref<Chunk> chunk = raw_chunk(count);
      if (old) std::memcpy(chunk->epoch, known->epoch, old * sizeof(u32));
      std::memset(chunk->epoch + old, 0, (count - old) * sizeof(u32));
      result->of(block) = std::move(chunk);
      copied = block;
    }
    result->of(block)->epoch[place] = epoch;
  }
  return result ? result : v;
}

void Stamp::add(const Extra& e) {
  for (u32 i = 0; i < extras; ++i) {
    if (extra[i].actor != e.actor) continue;
    for (u32 k = 0; k < kViews; ++k) {
      if (extra[i].epoch[k] < e.epoch[k]) extra[i].epoch[k] = e.epoch[k];
    }
    return;
  }
  if (extras == kMost) fold();
  extra[extras++] = e;
}

void Stamp::add(const Stamp& other) {
  for (u32 k = 0; k < kViews; ++k) v[k] = join(v[k], other.v[k]);
  for (u32 i = 0; i < other.extras; ++i) add(other.extra[i]);
}

void Stamp::fold() {
  for (u32 k = 0; k < kViews; ++k) {
    Component components[kMost];
    for (u32 i = 0; i < extras; ++i) components[i] = {extra[i].actor, extra[i].epoch[k]};
    v[k] = raise(v[k], components, extras);
  }
  extras = 0;
}

Ref<Stamp> Stamp::make(const Stamp& of) {
  auto* stamp = new Stamp(of);
  stamp->references = 0;
  return Ref<Stamp>(stamp);
}

}  // namespace machine
