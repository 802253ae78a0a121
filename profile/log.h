// What spans leave behind: a Log per thread, a chain of blocks filled with Records. Blocks come from
// one Arena, touched in advance: taking one is an atomic addition. Only its own thread writes a log;
// others may read at any time what is published, which is every record that was begun.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

#include "culprit/profile.h"
#include "profile/clock.h"

namespace culprit::profile::detail {

enum class Kind : std::uint8_t { kStep, kMark, kOp, kLaunch, kWait, kKernel, kCopy, kCollective };

inline bool is_work(Kind kind) { return kind >= Kind::kKernel; }

// A span. Behind it stands the tail of its kind.
struct Record {
  Ticks begin = 0;
  std::atomic<Ticks> end{0};  // 0: open
  Name name;
  std::uint64_t id = 0;      // of an operator, launch or wait; of work: its launch's
  std::uint64_t parent = 0;  // the operator around it; 0: none
  std::uint32_t size = 0;    // bytes with the tail, a multiple of 8
  std::uint32_t count = 0;   // inputs of an operator, works of a launch
  Kind kind = Kind::kOp;
};

using StepTail = Mark;
using OpTail = Location;  // its inputs stand behind it, each an Input and its extents
using WorkTail = Work;
struct CollectiveTail {
  Work work;
  Message message;
};

// A tail of the record, or what stands `offset` bytes behind its begin.
template <class Tail>
Tail* tail(Record* record, std::size_t offset = 0) {
  static_assert(sizeof(Tail) % 8 == 0 && alignof(Tail) <= 8 && std::is_trivially_copyable_v<Tail>);
  return reinterpret_cast<Tail*>(reinterpret_cast<std::byte*>(record + 1) + offset);
}
template <class Tail>
const Tail* tail(const Record* record, std::size_t offset = 0) {
  return reinterpret_cast<const Tail*>(reinterpret_cast<const std::byte*>(record + 1) + offset);
}
inline const Work& work_of(const Record& record) {
  return record.kind == Kind::kCollective ? tail<CollectiveTail>(&record)->work
                                          : *tail<WorkTail>(&record);
}

struct Block {
  static constexpr std::size_t kBytes = std::size_t{16} << 10;
  std::atomic<Block*> next{nullptr};
  std::atomic<std::size_t> used{0};  // bytes of records
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  static constexpr std::size_t capacity() { return kBytes - sizeof(Block); }
};

class Arena {
 public:
  explicit Arena(std::size_t bytes);  // at least one block; blocks() is 0 without the memory
  std::size_t blocks() const { return blocks_; }
  Block* take();  // null: all are taken

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t blocks_ = 0;
  std::atomic<std::size_t> taken_{0};
};

// A counter that one thread changes and others read.
class Count {
 public:
  void add(std::uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }
  std::uint64_t get() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct Log {
  static constexpr std::uint32_t kMost = 1024;  // of a session

  std::uint32_t index = 0;  // below kMost; part of every id that is given here
  std::int64_t thread = 0;  // the system's number
  std::string name;         // guarded by the recorder's lock

  // Of its own thread.
  std::byte* at = nullptr;
  std::byte* limit = nullptr;
  Block* block = nullptr;
  std::uint64_t ids = 0;  // given
  std::uint64_t op = 0;   // the open operator

  std::atomic<Block*> first{nullptr};
  Count launched, ended;  // works
  Count refused;          // spans that found the arena empty

  std::uint64_t next_id() { return ++ids * kMost + index; }

  bool open_block(Arena& arena);  // false: the arena is empty
  // Space for a record; null: the arena is empty.
  std::byte* take(std::size_t bytes, Arena& arena) {
    if (static_cast<std::size_t>(limit - at) < bytes && !open_block(arena)) return nullptr;
    std::byte* taken = at;
    at += bytes;
    return taken;
  }
  void publish() {
    block->used.store(static_cast<std::size_t>(at - block->data()), std::memory_order_release);
  }
};

// Calls look(const Record&) for each published record, oldest first.
template <class Look>
void for_each_record(const Log& log, Look look) {
  for (Block* block = log.first.load(std::memory_order_acquire); block != nullptr;
       block = block->next.load(std::memory_order_acquire)) {
    const std::size_t used = block->used.load(std::memory_order_acquire);
    for (std::size_t at = 0; at < used;) {
      const auto* record = std::launder(reinterpret_cast<const Record*>(block->data() + at));
      look(*record);
      at += record->size;
    }
  }
}

}  // namespace culprit::profile::detail
