#include "profile/log.h"

#include <algorithm>
#include <cstring>

namespace culprit::profile::detail {

// Every page is touched here, since the first touch of one costs more than the spans that fit it.
Arena::Arena(std::size_t bytes) {
  const std::size_t blocks = std::max<std::size_t>(bytes / Block::kBytes, 1);
  memory_.reset(new (std::nothrow) std::byte[blocks * Block::kBytes]);
  if (memory_ == nullptr) return;
  std::memset(memory_.get(), 0, blocks * Block::kBytes);
  blocks_ = blocks;
}

Block* Arena::take() {
  const std::size_t index = taken_.fetch_add(1, std::memory_order_relaxed);
  return index < blocks_ ? new (memory_.get() + index * Block::kBytes) Block : nullptr;
}

bool Log::open_block(Arena& arena) {
  Block* fresh = arena.take();
  if (fresh == nullptr) return false;
  (block == nullptr ? first : block->next).store(fresh, std::memory_order_release);
  block = fresh;
  at = fresh->data();
  limit = at + Block::capacity();
  return true;
}

}  // namespace culprit::profile::detail
