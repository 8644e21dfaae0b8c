// Vector clocks. An actor is whatever has accesses that are in order: a thread, a copy, the copies
// of a thread's cp.async. Its component counts what it has released. A Vector is immutable and
// shared: after a barrier all threads have the same one, and each has its own component apart
// (View). It consists of chunks, one for each block, which vectors share too.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "order.h"

namespace machine {

// An actor: its block, and its place among the actors of the block. The first places are those of
// threads; 32 in a row from a multiple of 32 are a warp.
using Actor = u32;
constexpr Actor kNobody = 0x0fffffff;
constexpr Actor actor_of(u32 block, u32 place) { return block << 16 | place; }
constexpr u32 block_of(Actor a) { return a >> 16; }
constexpr u32 place_of(Actor a) { return a & 0xffff; }
constexpr u32 kMostBlocks = 4095, kMostPlaces = 65536;

// A counted reference. All of the model runs on one thread of the system.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_) ++object_->references;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  ~Ref() { drop(); }
  Ref& operator=(const Ref& other) {
    if (object_ != other.object_) {
      drop();
      object_ = other.object_;
      if (object_) ++object_->references;
    }
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }
  bool operator!=(const Ref& other) const { return object_ != other.object_; }

 private:
  void drop() {
    if (object_ && --object_->references == 0) T::destroy(object_);
  }
  T* object_ = nullptr;
};

// The components of one block's actors. Those from `count` on, a multiple of 32, are 0.
struct Chunk {
  u32 references;
  u32 count;
  u32 epoch[];

  static Ref<Chunk> make(u32 count);  // zeros
  static void destroy(Chunk* chunk);
};

struct alignas(Ref<Chunk>) Vector {
  u32 references;
  u32 blocks;

  // The chunk of a block, null: zeros. They follow in memory: arrays of no size have no destructors.
  Ref<Chunk>& of(u32 block) const {
    return reinterpret_cast<Ref<Chunk>*>(const_cast<Vector*>(this) + 1)[block];
  }
  static Ref<Vector> make(u32 blocks);  // zeros
  static void destroy(Vector* vector);
};

// The larger of each component. Vectors of equal numbers of blocks.
Ref<Vector> join(const Ref<Vector>& a, const Ref<Vector>& b);
// Forgets what join() keeps for when it is asked the same again.
void forget_joins();

// Components that are to be at least so large.
struct Component {
  Actor actor;
  u32 epoch;
};
Ref<Vector> raise(const Ref<Vector>& v, const Component* components, size_t n);

// What somebody knows: a vector, and components that differ from it.
struct View {
  Ref<Vector> v;
  u32 first = 1;           // what was before this epoch is ordered before everything: host, launches
  Actor self = kNobody;    // known up to self_epoch
  u32 self_epoch = 0;
  Actor other = kNobody;   // known up to other_epoch, and other_now
  u32 other_epoch = 0;
  u32 other_now = 0;

  bool orders(Actor actor, u32 epoch) const {
    if (epoch < first) return true;
    if (actor == self && epoch <= self_epoch) return true;
    if (actor == other && (epoch <= other_epoch || epoch == other_now)) return true;
    const Chunk* chunk = v->of(block_of(actor)).get();
    const u32 place = place_of(actor);
    return chunk && place < chunk->count && epoch <= chunk->epoch[place];
  }
  // The same of some of the 32 actors from a multiple of 32 on, `warp` times 32.
  bool orders_lanes(u32 block, u32 warp, u32 lanes, u32 epoch) const {
    if (epoch < first) return true;
    const Actor begin = actor_of(block, warp * 32);
    if ((self & ~31u) == begin && epoch <= self_epoch) lanes &= ~(1u << (self & 31));
    if ((other & ~31u) == begin && (epoch <= other_epoch || epoch == other_now)) {
      lanes &= ~(1u << (other & 31));
    }
    if (lanes == 0) return true;
    const Chunk* chunk = v->of(block).get();
    if (!chunk || warp * 32 >= chunk->count) return false;
    const u32* known = chunk->epoch + warp * 32;
    if (lanes == ~0u) {
      u32 unknown = 0;
      for (u32 i = 0; i < 32; ++i) unknown |= u32(known[i] < epoch);
      return !unknown;
    }
    for (; lanes; lanes &= lanes - 1) {
      if (known[__builtin_ctz(lanes)] < epoch) return false;
    }
    return true;
  }
};

// The clocks that a thread has, and that synchronisation passes on together.
enum ViewKind : u32 {
  kGeneric,      // what is ordered before what the thread does next
  kAsyncShared,  // the same for accesses of shared memory through the async proxy
  kAsyncGlobal,  // and for those of global memory
  kViews
};

// What a release publishes: vectors, and components of some actors that are not in them yet.
struct Stamp {
  static constexpr u32 kMost = 6;
  struct Extra {
    Actor actor;
    u32 epoch[kViews];
  };
  u32 references = 0;
  u32 extras = 0;
  Ref<Vector> v[kViews];
  Extra extra[kMost];

  void add(const Extra& e);
  void add(const Stamp& other);
  void fold();  // leaves no extras

  static Ref<Stamp> make(const Stamp& of);
  static void destroy(Stamp* stamp) { delete stamp; }
};

}  // namespace machine
