// Compressed bytes, gzip and zstd. The first byte chooses the format and into what pieces input and output are cut: that must
// not change the text. Built for libFuzzer with the `fuzz` preset; in ordinary builds replay.cc feeds the seeds.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/inflate.h"

using namespace culprit;

namespace {

struct Unpacked {
  std::string text;
  std::optional<SourceFault> fault;
  bool whole = false;  // nothing was left to read
};

Unpacked unpack(Compression format, std::string_view packed, std::size_t in, std::size_t out) {
  constexpr std::size_t kMostText = std::size_t{1} << 18;
  std::size_t at = 0;
  const auto inflater = make_inflater(format, [&](char* buffer, std::size_t room) {
    const std::size_t n = std::min({in, room, packed.size() - at});
    if (n > 0) std::memcpy(buffer, packed.data() + at, n);
    at += n;
    return static_cast<std::int64_t>(n);
  });
  Unpacked result;
  std::string piece(out, '\0');
  while (!result.whole && result.text.size() < kMostText) {
    const std::size_t n = inflater->read(piece.data(), out);
    if (n > out) std::abort();
    result.text.append(piece, 0, n);
    result.whole = n < out;
  }
  result.fault = inflater->fault();
  return result;
}

// Does a zstd frame in it ask for a window that is allowed, but costs the sanitizer seconds to set up?
bool asks_for_much(std::string_view packed) {
  constexpr std::string_view kMagic = "\x28\xb5\x2f\xfd";
  constexpr unsigned kSingleSegment = 0x20, kLarge = 27 - 10, kLargest = 31 - 10;
  for (std::size_t at = packed.find(kMagic); at != std::string_view::npos;
       at = packed.find(kMagic, at + 1)) {
    if (at + 6 > packed.size()) return false;
    const auto descriptor = static_cast<unsigned char>(packed[at + 4]);
    const unsigned exponent = static_cast<unsigned char>(packed[at + 5]) >> 3U;
    if ((descriptor & kSingleSegment) == 0 && exponent >= kLarge && exponent <= kLargest)
      return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  constexpr std::array<std::size_t, 8> kPieces{1, 2, 3, 7, 16, 61, 256, 4096};
  const Compression format = (data[0] & 1U) != 0 ? Compression::kZstd : Compression::kGzip;
  const std::string_view packed(reinterpret_cast<const char*>(data) + 1, size - 1);
  // Of the formats from before zstd 1.0 the library does not tell an early end. No trace begins with one.
  for (std::size_t at = packed.find("\xb5\x2f\xfd"); at != std::string_view::npos;
       at = packed.find("\xb5\x2f\xfd", at + 1))
    if (at == 0 || packed[at - 1] != '\x28') return 0;
  if (asks_for_much(packed)) return 0;
  const Unpacked large = unpack(format, packed, std::size_t{1} << 16, std::size_t{1} << 16);
  const Unpacked small =
      unpack(format, packed, kPieces[data[0] >> 1 & 7U], kPieces[data[0] >> 4 & 7U]);
  const std::size_t both = std::min(large.text.size(), small.text.size());
  if (large.text.compare(0, both, small.text, 0, both) != 0) std::abort();
  if (large.whole && small.whole) {
    if (large.fault.has_value() != small.fault.has_value()) std::abort();
    if (!large.fault && large.text.size() != small.text.size()) std::abort();
  }
  for (const auto* each : {&large, &small})
    if (each->fault && (each->fault->code.empty() || each->fault->what.empty())) std::abort();
  return 0;
}
