#include "store/strings.h"

#include <cstring>

namespace culprit::store {
namespace {

constexpr std::size_t kBlockSize = std::size_t{256} << 10;

std::uint64_t load64(const char* p) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return v;
}

__extension__ typedef unsigned __int128 Wide;  // g++ and clang have it on every 64-bit target

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Multiply-and-fold over 16 bytes at a time, the last 16 overlapping; 2-3 ns for a name of 60
// bytes.
std::uint32_t hash_of(std::string_view text) {
  constexpr std::uint64_t k0 = 0x9e3779b97f4a7c15, k1 = 0xbf58476d1ce4e5b9;
  const char* p = text.data();
  std::size_t n = text.size();
  std::uint64_t h = mix(n ^ k0, k1);
  while (n > 16) {
    h = mix(h ^ load64(p), k0 ^ load64(p + 8));
    p += 16;
    n -= 16;
  }
  std::uint64_t a = 0, b = 0;
  if (n >= 8) {
    a = load64(p);
    b = load64(p + n - 8);
  } else if (n > 0) {
    std::memcpy(&a, p, n);
  }
  h = mix(h ^ a, k0 ^ b);
  return static_cast<std::uint32_t>(h ^ (h >> 32));
}

}  // namespace

Strings::Strings() : slots_(1024) { intern(""); }

StringId Strings::intern(std::string_view text) {
  const std::uint32_t hash = hash_of(text);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id != StringId::kNone) {
    if (slots_[at].hash == hash && views_[slots_[at].id] == text) {
      return StringId(slots_[at].id);
    }
    at = (at + 1) & mask;
  }
  const StringId id(views_.size());
  slots_[at] = {hash, id.index};
  views_.push_back(store(text));
  if (views_.size() * 2 > slots_.size()) grow();
  return id;
}

void Strings::rewrite(const std::function<std::optional<std::string>(StringId)>& with) {
  for (std::size_t i = 0; i < views_.size(); ++i)
    if (const auto text = with(StringId(i))) views_[i] = store(*text);
  slots_.assign(slots_.size(), Slot{});
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const std::uint32_t hash = hash_of(views_[i]);
    std::size_t at = hash & mask;
    while (slots_[at].id != StringId::kNone) at = (at + 1) & mask;
    slots_[at] = {hash, StringId(i).index};
  }
}

std::string_view Strings::store(std::string_view text) {
  bytes_ += text.size();
  if (text.size() > block_size_ - block_used_) {
    block_size_ = text.size() > kBlockSize ? text.size() : kBlockSize;
    blocks_.push_back(std::make_unique<char[]>(block_size_));
    block_used_ = 0;
  }
  char* to = blocks_.empty() ? nullptr : blocks_.back().get() + block_used_;
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  block_used_ += text.size();
  return {to, text.size()};
}

void Strings::grow() {
  std::vector<Slot> bigger(slots_.size() * 2);
  const std::size_t mask = bigger.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.id == StringId::kNone) continue;
    std::size_t at = slot.hash & mask;
    while (bigger[at].id != StringId::kNone) at = (at + 1) & mask;
    bigger[at] = slot;
  }
  slots_ = std::move(bigger);
}

}  // namespace culprit::store
