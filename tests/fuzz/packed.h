// PackedFile: text as a plain file, a gzip or zstd file or a pipe. Nothing is compressed: the containers hold the text as it is,
// so that what a fuzzer changes in it stays in sight.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "memory_file.h"

namespace culprit::fuzz {

enum class Packing : std::uint8_t { kNone, kGzip, kZstd, kPipe };

inline void append_number(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

inline std::uint32_t checksum(std::string_view text) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

inline std::string as_gzip(std::string_view text) {
  constexpr std::size_t kBlock = 999;
  std::string out("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03", 10);
  for (std::size_t at = 0;; at += kBlock) {
    const std::string_view block = text.substr(at, kBlock);
    const bool last = at + kBlock >= text.size();
    const auto size = static_cast<std::uint32_t>(block.size());
    append_number(out, last ? 1 : 0, 1);
    append_number(out, size, 2);
    append_number(out, ~size, 2);
    out.append(block);
    if (last) break;
  }
  append_number(out, checksum(text), 4);
  append_number(out, static_cast<std::uint32_t>(text.size()), 4);
  return out;
}

inline std::string as_zstd(std::string_view text) {
  constexpr std::size_t kBlock = 999;
  std::string out("\x28\xb5\x2f\xfd\x00\x38", 6);
  for (std::size_t at = 0;; at += kBlock) {
    const std::string_view block = text.substr(at, kBlock);
    const bool last = at + kBlock >= text.size();
    append_number(out, static_cast<std::uint32_t>(block.size()) << 3 | (last ? 1U : 0U), 3);
    out.append(block);
    if (last) return out;
  }
}

class PackedFile {
 public:
  PackedFile(std::string_view text, Packing packing) {
    constexpr std::size_t kPipeHolds = 65536;
    if (packing != Packing::kPipe || text.size() > kPipeHolds) {
      file_ = std::make_unique<MemoryFile>(packing == Packing::kGzip   ? as_gzip(text)
                                           : packing == Packing::kZstd ? as_zstd(text)
                                                                       : std::string(text));
      return;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    pipe_ = ends[0];
    if (write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
    close(ends[1]);
  }
  ~PackedFile() {
    if (pipe_ >= 0) close(pipe_);
  }
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;
  std::string path() const {
    return file_ ? file_->path() : "/proc/self/fd/" + std::to_string(pipe_);
  }

 private:
  std::unique_ptr<MemoryFile> file_;
  int pipe_ = -1;
};

}  // namespace culprit::fuzz
