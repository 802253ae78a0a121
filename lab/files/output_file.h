// A file that is there whole or not at all: written under another name beside its place, and renamed
// at the end. One that is given up is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit::lab {

class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&&) = default;
  OutputFile& operator=(OutputFile&&) = delete;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);
  Status pad(std::int64_t alignment);  // zeros up to a multiple of it
  Status commit();                     // to the disk, then to its place
  std::int64_t written() const { return written_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  OutputFile(std::unique_ptr<std::FILE, Close> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  std::string partial() const { return path_ + ".partial"; }

  std::unique_ptr<std::FILE, Close> file_;  // null: committed, or moved from
  std::string path_;
  std::int64_t written_ = 0;
};

}  // namespace culprit::lab
