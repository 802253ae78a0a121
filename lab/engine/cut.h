// Cut: items of given lengths, each cut into parts of at most a given size, all numbered through: the
// pieces of a launch. Rows of weights, positions of requests, numbers of a pool. Finding the part of a
// piece costs a binary search over the items.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lab/engine/memory.h"

namespace culprit::lab {

class Cut {
 public:
  struct Part {
    std::int64_t item = 0, begin = 0, end = 0;
  };

  void carve(Carver& carver, std::int64_t most_items) {
    items_ = carver.take<Item>(most_items);
    clear();
  }
  void clear() { count_ = pieces_ = 0; }
  void add(std::int64_t length, std::int64_t part) {
    items_[count_++] = {pieces_, length, std::max<std::int64_t>(part, 1)};
    pieces_ += (length + items_[count_ - 1].part - 1) / items_[count_ - 1].part;
  }
  std::int64_t pieces() const { return pieces_; }
  Part operator[](std::int64_t piece) const {
    const Item* after = std::upper_bound(
        items_, items_ + count_, piece,
        [](std::int64_t wanted, const Item& item) { return wanted < item.first_piece; });
    const Item& item = after[-1];
    const std::int64_t begin = (piece - item.first_piece) * item.part;
    return {after - 1 - items_, begin, std::min(begin + item.part, item.length)};
  }

 private:
  struct Item {
    std::int64_t first_piece = 0, length = 0, part = 1;
  };
  Item* items_ = nullptr;
  std::int64_t count_ = 0, pieces_ = 0;
};

}  // namespace culprit::lab
