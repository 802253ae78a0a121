// Strings: each distinct text once, addressed by StringId in order of first appearance. Id 0 is the
// empty string. Texts live in large blocks that never move, so views stay valid as long as the
// pool. Lookup: one hash, one compare.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace culprit::store {

using StringId = Id<struct StringTag>;

class Strings {
 public:
  Strings();
  StringId intern(std::string_view text);
  std::string_view operator[](StringId id) const {
    return views_[id.index];
  }  // id must be of this pool
  std::string_view or_empty(StringId id) const {
    return id.valid() ? views_[id.index] : std::string_view{};
  }
  // Gives every text for which `with` returns another one that text; ids stay. Two ids may then have
  // equal texts. Views of replaced texts stay valid, too.
  void rewrite(const std::function<std::optional<std::string>(StringId)>& with);
  std::size_t size() const { return views_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id = StringId::kNone;
  };
  std::string_view store(std::string_view text);
  void grow();

  std::vector<Slot> slots_;  // open addressing, power of two
  std::vector<std::string_view> views_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_used_ = 0, block_size_ = 0, bytes_ = 0;
};

}  // namespace culprit::store
