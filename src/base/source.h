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

#include "base/result.h"

namespace culprit {

enum class Compression : std::uint8_t { kNone, kGzip, kZstd };

// One taken block. `size` < the block size only for the last one; 0: the end was reached before.
struct Block {
  std::int64_t index = 0;
  std::int64_t offset = 0;  // in the decompressed text
  std::size_t size = 0;
};

class Source {
 public:
  virtual ~Source() = default;
  // Fills `buffer` (block_size bytes) with the next block. Errors: cannot read, broken compression
  // at the very start. Damage further on ends the text early: see fault().
  virtual Result<Block> next(char* buffer) = 0;
  virtual std::int64_t consumed() const = 0;  // bytes of the file (compressed) taken so far
  std::int64_t file_bytes() const { return file_bytes_; }  // 0: unknown (a pipe)
  Compression compression() const { return compression_; }
  std::size_t block_size() const { return block_size_; }
  // Set after the last block if the text ended for another reason than its end: "gzip data ends
  // early", ...
  virtual std::optional<std::string> fault() const { return std::nullopt; }

 protected:
  std::int64_t file_bytes_ = 0;
  Compression compression_ = Compression::kNone;
  std::size_t block_size_ = 0;
};

// `path` "-" is standard input. Errors name the path and what to do: no such file, a folder, no
// permission, a container that is not read (zip). An empty file is no error here.
Result<std::unique_ptr<Source>> open_source(const std::string& path, std::size_t block_size);

}  // namespace culprit
