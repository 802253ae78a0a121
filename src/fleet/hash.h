// Hash: 64 bits that tell texts apart, the same on every machine and in every version: they name files.
// FNV-1a; O(n). No protection against a text that was made to collide.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::fleet {

constexpr std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325;  // offset basis and prime of FNV-1a, 64 bits
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value;
}

}  // namespace culprit::fleet
