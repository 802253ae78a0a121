#include "lab/files/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace culprit::lab {
namespace {

Error cannot_write(const std::string& path, int error) {
  return {Error::Code::kCannotRead, fmt::format("cannot write it: {}", std::strerror(error)), path,
          "choose a place that can be written to and has room"};
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  std::FILE* const file = std::fopen((path + ".partial").c_str(), "wbe");
  if (file == nullptr) return cannot_write(path, errno);
  return OutputFile({file, Close()}, path);
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) unlink(partial().c_str());
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Ok{};
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    return cannot_write(path_, errno);
  written_ += static_cast<std::int64_t>(bytes.size());
  return Ok{};
}

Status OutputFile::write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

Status OutputFile::pad(std::int64_t alignment) {
  const std::int64_t missing = (alignment - written_ % alignment) % alignment;
  return write(std::vector<std::byte>(static_cast<std::size_t>(missing)));
}

Status OutputFile::commit() {
  std::FILE* const file = file_.release();
  const bool flushed = std::fflush(file) == 0;
  const int error = errno;
  if (std::fclose(file) == 0 && flushed && rename(partial().c_str(), path_.c_str()) == 0)
    return Ok{};
  const int late = flushed ? errno : error;
  unlink(partial().c_str());
  return cannot_write(path_, late);
}

}  // namespace culprit::lab
