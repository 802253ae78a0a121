// Source: a file or standard input as decompressed blocks of a fixed size, in order. Compression
// (gzip, also multi-member; zstd) is told by content, never by name. Blocks can be taken from
// several threads at once: plain files are read in parallel with pread into the caller's buffer
// (mapped pages would count as resident memory), streams are inflated under one lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace culprit {

enum class Compression : std::uint8_t { kNone, kGzip, kZstd };

// Memory for the kernel to read into, on a cache-line boundary: where a large vector<char> begins
// (16 bytes into a page), AMD CPUs with fast short `rep movsb` (Zen 3) copy at a sixth of the speed
// (measured: 1.7 against 10.7 GB/s).
class ReadBuffer {
 public:
  ReadBuffer() = default;
  explicit ReadBuffer(std::size_t size) : lines_((size + sizeof(Line) - 1) / sizeof(Line)) {}
  bool empty() const { return lines_.empty(); }
  std::size_t size() const { return lines_.size() * sizeof(Line); }  // at least the size asked for
  char* data() { return reinterpret_cast<char*>(lines_.data()); }

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> lines_;
};

// One taken block. `size` < the block size only for the last one; 0: the end was reached before.
struct Block {
  std::int64_t index = 0;
  std::int64_t offset = 0;  // in the decompressed text
  std::size_t size = 0;
};

// Why the text ended otherwise than at its end. `code` is that of the note: "truncated"; "compression-damaged"; "limit";
// "trailing-data": all of the text is there, but bytes that are no text follow.
struct SourceFault {
  std::string code;
  std::string what;
};

class Source {
 public:
  virtual ~Source() = default;
  // Fills `buffer` (block_size bytes) with the next block. Errors: cannot read, broken compression
  // at the very start. Damage further on ends the text early: see fault().
  virtual Result<Block> next(char* buffer) = 0;
  // Nothing in front of byte `offset` of the text is wanted: whole blocks there may be left out from
  // now on, where that saves reading. For one thread.
  virtual void skip_to(std::int64_t /*offset*/) {}
  virtual std::int64_t consumed() const = 0;  // bytes of the file (compressed) taken so far
  std::int64_t file_bytes() const { return file_bytes_; }  // 0: unknown (a pipe)
  Compression compression() const { return compression_; }
  std::size_t block_size() const { return block_size_; }
  virtual std::optional<SourceFault> fault() const { return std::nullopt; }  // after the last block

 protected:
  std::int64_t file_bytes_ = 0;
  Compression compression_ = Compression::kNone;
  std::size_t block_size_ = 0;
};

// `path` "-" is standard input. Errors name the path and what to do: no such file, a folder, no
// permission, a container that is not read (zip). An empty file is no error here.
Result<std::unique_ptr<Source>> open_source(const std::string& path, std::size_t block_size);

}  // namespace culprit
