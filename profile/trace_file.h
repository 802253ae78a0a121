// The file of a trace while it is written: under another name until it is whole, so that nobody
// takes half a trace for one. Compressed where the name ends in ".gz". Errors of write() are kept
// for commit().
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "culprit/profile.h"

struct gzFile_s;

namespace culprit::profile::detail {

class TraceFile {
 public:
  TraceFile() = default;
  explicit TraceFile(std::string path);  // open() comes next
  TraceFile(TraceFile&& other) noexcept;
  TraceFile& operator=(TraceFile&& other) noexcept;
  ~TraceFile();  // without commit(), nothing is left

  std::optional<Error> open();
  void write(std::string_view text);
  std::optional<Error> commit();
  const std::string& path() const { return path_; }

 private:
  std::string part() const { return path_ + ".part"; }
  std::string path_;
  gzFile_s* file_ = nullptr;
  int failed_ = 0;  // errno of the first failed write
};

}  // namespace culprit::profile::detail
