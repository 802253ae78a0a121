#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "report/report.h"
#include "slice/slice.h"

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;

// What remove_partial_file() unlinks; null: nothing is being written. Read by a signal handler.
std::atomic<const char*> partial_file{nullptr};
static_assert(std::atomic<const char*>::is_always_lock_free);

Error cannot_write(const std::string& path, int error) {
  return {.code = Error::Code::kCannotRead,
          .what = fmt::format("cannot be written: {}", std::strerror(error)),
          .where = path,
          .hint = "check the folder and its permissions",
          .note_code = {}};
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Status write_in_place(const std::string& path, std::string_view content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return cannot_write(path, errno);
  const bool written = write_all(fd, content);
  const int error = errno;
  close(fd);
  if (!written) return cannot_write(path, error);
  return Ok{};
}

Status write_and_rename(const std::string& path, std::string_view content) {
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return cannot_write(path, errno);
  partial_file = temporary.c_str();
  // mkstemp makes files private; an answer is as readable as any file that the user makes.
  const mode_t mask = umask(0);
  umask(mask);
  bool done = fchmod(fd, 0666 & ~mask) == 0 && write_all(fd, content);
  int error = errno;
  if (close(fd) != 0 && done) {
    done = false;
    error = errno;
  }
  if (done && rename(temporary.c_str(), path.c_str()) != 0) {
    done = false;
    error = errno;
  }
  if (!done) unlink(temporary.c_str());
  partial_file = nullptr;
  if (!done) return cannot_write(path, error);
  return Ok{};
}

}  // namespace

Status may_write_answer(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (fs::is_directory(status)) {
    return Error{.code = Error::Code::kUsage,
                 .what = "is a folder",
                 .where = path,
                 .hint = "name a file for the answer",
                 .note_code = {}};
  }
  if (!fs::is_regular_file(status)) return Ok{};
  std::array<char, 64> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  const std::string_view text(head.data(), static_cast<std::size_t>(file.gcount()));
  const bool ours = text.starts_with("{\n  \"schema_version\":") ||
                    text.starts_with(report::kMarkdownBegin) ||
                    text.starts_with(report::kHtmlBegin) || text.starts_with(slice::kBegin) ||
                    slice::is_gzip_of_slice(text);
  if (text.empty() || ours) return Ok{};
  return Error{.code = Error::Code::kUsage,
               .what = "exists and is no answer of culprit; it is not overwritten",
               .where = path,
               .hint = "name another file, or remove this one",
               .note_code = {}};
}

Status write_answer_file(const std::string& path, std::string_view content) {
  Status allowed = may_write_answer(path);
  if (!allowed.ok()) return allowed;
  std::error_code failed;
  if (fs::exists(path, failed) && !fs::is_regular_file(path, failed)) {
    return write_in_place(path, content);
  }
  // A link keeps pointing at its file, which is replaced.
  const fs::path target =
      fs::is_symlink(path, failed) ? fs::canonical(path, failed) : fs::path(path);
  return write_and_rename(target.empty() ? path : target.string(), content);
}

void remove_partial_file() {
  if (const char* path = partial_file.exchange(nullptr)) unlink(path);
}

}  // namespace culprit::cli
