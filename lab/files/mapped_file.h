// A file's bytes, mapped for reading: pages come in when they are looked at, and several processes
// share them. Whoever shortens the file meanwhile ends the process that reads it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace culprit::lab {

class MappedFile {
 public:
  // An error where there is nothing to map: no such file, a folder, no permission, no bytes.
  static Result<MappedFile> open(const std::string& path);
  std::span<const std::byte> bytes() const { return {data_.get(), data_.get_deleter().bytes}; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(const std::byte* data) const;
  };
  explicit MappedFile(std::unique_ptr<const std::byte, Unmap> data) : data_(std::move(data)) {}
  std::unique_ptr<const std::byte, Unmap> data_;
};

}  // namespace culprit::lab
