#include "profile/trace_file.h"

#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace culprit::profile::detail {
namespace {

Error cannot_write(const std::string& path, int number) {
  return {"the trace cannot be written: " + std::generic_category().message(number), path,
          "name a file in a folder that can be written: CULPRIT_PROFILE_OUTPUT or Options::output"};
}

}  // namespace

TraceFile::TraceFile(std::string path) : path_(std::move(path)) {}

TraceFile::TraceFile(TraceFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, nullptr)),
      failed_(other.failed_) {}

TraceFile& TraceFile::operator=(TraceFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(failed_, other.failed_);
  return *this;
}

TraceFile::~TraceFile() {
  if (file_ == nullptr) return;
  gzclose(file_);
  std::remove(part().c_str());
}

// Level 1 takes a quarter of the time of the usual level 6 for a sixth more bytes.
std::optional<Error> TraceFile::open() {
  errno = 0;
  file_ = gzopen(part().c_str(), path_.ends_with(".gz") ? "wb1" : "wbT");
  if (file_ == nullptr) return cannot_write(path_, errno != 0 ? errno : ENOMEM);
  gzbuffer(file_, 1U << 17);
  return std::nullopt;
}

void TraceFile::write(std::string_view text) {
  if (failed_ != 0 || text.empty()) return;
  errno = 0;
  const auto size = static_cast<unsigned>(text.size());
  if (gzwrite(file_, text.data(), size) != static_cast<int>(size))
    failed_ = errno != 0 ? errno : EIO;
}

std::optional<Error> TraceFile::commit() {
  errno = 0;
  if (gzclose(std::exchange(file_, nullptr)) != Z_OK && failed_ == 0)
    failed_ = errno != 0 ? errno : EIO;
  if (failed_ == 0 && std::rename(part().c_str(), path_.c_str()) != 0) failed_ = errno;
  if (failed_ == 0) return std::nullopt;
  std::remove(part().c_str());
  return cannot_write(path_, failed_);
}

}  // namespace culprit::profile::detail
