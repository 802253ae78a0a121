#include "base/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/inflate.h"

namespace culprit {
namespace {

constexpr std::size_t kSniffSize = 16;
// Traces shrink 10 to 60 times. What unfolds further than this, and beyond this size, is no recording: it is not read on.
constexpr std::int64_t kBombText = std::int64_t{1} << 30, kBombRatio = 256;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Error cannot_read(const std::string& path, int error) {
  return {Error::Code::kCannotRead, std::string("cannot read it: ") + std::strerror(error), path,
          "check the path and its permissions"};
}

// A plain regular file: every thread reads its own block.
class FileSource : public Source {
 public:
  FileSource(std::string path, std::unique_ptr<Descriptor> fd, std::int64_t size, std::size_t block)
      : path_(std::move(path)), fd_(std::move(fd)) {
    file_bytes_ = size;
    block_size_ = block;
  }
  Result<Block> next(char* buffer) override {
    const std::int64_t index = next_.fetch_add(1);
    const auto offset = index * static_cast<std::int64_t>(block_size_);
    std::size_t done = 0;
    while (done < block_size_) {
      const ssize_t n = pread(fd_->get(), buffer + done, block_size_ - done,
                              static_cast<off_t>(offset) + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return cannot_read(path_, errno);
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    return Block{index, offset, done};
  }
  void skip_to(std::int64_t offset) override {
    next_ = std::max(next_.load(), offset / static_cast<std::int64_t>(block_size_));
  }
  std::int64_t consumed() const override {
    return std::min(file_bytes_, next_.load() * static_cast<std::int64_t>(block_size_));
  }

 private:
  std::string path_;
  std::unique_ptr<Descriptor> fd_;
  std::atomic<std::int64_t> next_{0};
};

// A pipe, or compressed bytes: one thread at a time fills a block, the others parse theirs
// meanwhile.
class StreamSource : public Source {
 public:
  StreamSource(std::string path, std::unique_ptr<Descriptor> fd, std::int64_t size,
               std::size_t block, Compression compression, std::string head)
      : path_(std::move(path)), fd_(std::move(fd)), head_(std::move(head)) {
    file_bytes_ = size;
    block_size_ = block;
    compression_ = compression;
    if (compression != Compression::kNone) {
      inflater_ =
          make_inflater(compression, [this](char* out, std::size_t n) { return read_raw(out, n); });
    }
  }
  Result<Block> next(char* buffer) override {
    const std::lock_guard lock(mutex_);
    Block block{index_, offset_, 0};
    if (ended_) return block;
    block.size = inflater_ ? inflater_->read(buffer, block_size_) : read_plain(buffer);
    if (read_error_ != 0 && block.size == 0 && index_ == 0) return cannot_read(path_, read_error_);
    ended_ = block.size < block_size_;
    ++index_;
    offset_ += static_cast<std::int64_t>(block.size);
    bomb_ = inflater_ && offset_ > kBombText && offset_ / kBombRatio > consumed_.load();
    ended_ |= bomb_;
    return block;
  }
  std::int64_t consumed() const override { return consumed_.load(); }
  std::optional<SourceFault> fault() const override {
    const std::lock_guard lock(mutex_);
    if (read_error_ != 0)
      return SourceFault{"truncated",
                         std::string("reading stopped: ") + std::strerror(read_error_)};
    if (bomb_)
      return SourceFault{"limit",
                         "the compressed data unfold more than 256-fold, beyond 1 GiB: reading "
                         "stopped there; unpack the "
                         "file if it is right"};
    return inflater_ ? inflater_->fault() : std::nullopt;
  }

 private:
  std::int64_t read_raw(char* out, std::size_t size) {
    if (!head_.empty()) {
      const std::size_t n = std::min(size, head_.size());
      std::memcpy(out, head_.data(), n);
      head_.erase(0, n);
      consumed_ += static_cast<std::int64_t>(n);
      return static_cast<std::int64_t>(n);
    }
    ssize_t n = 0;
    do n = read(fd_->get(), out, size);
    while (n < 0 && errno == EINTR);
    if (n < 0) read_error_ = errno;
    if (n > 0) consumed_ += n;
    return n;
  }
  std::size_t read_plain(char* buffer) {
    std::size_t done = 0;
    while (done < block_size_) {
      const std::int64_t n = read_raw(buffer + done, block_size_ - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  std::string path_;
  std::unique_ptr<Descriptor> fd_;
  std::string head_;  // bytes read for sniffing
  std::unique_ptr<Inflater> inflater_;
  mutable std::mutex mutex_;
  std::int64_t index_ = 0, offset_ = 0;
  std::atomic<std::int64_t> consumed_{0};
  bool ended_ = false, bomb_ = false;
  int read_error_ = 0;
};

Compression sniff(const std::string& head) {
  auto begins = [&](std::string_view magic) {
    return std::string_view(head).substr(0, magic.size()) == magic;
  };
  if (begins("\x1f\x8b")) return Compression::kGzip;
  if (begins("\x28\xb5\x2f\xfd")) return Compression::kZstd;
  return Compression::kNone;
}

}  // namespace

Result<std::unique_ptr<Source>> open_source(const std::string& path, std::size_t block_size) {
  const bool is_stdin = path == "-";
  const int raw = is_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (raw < 0) return cannot_read(path, errno);
  auto fd = std::make_unique<Descriptor>(raw);
  struct stat info {};
  if (fstat(raw, &info) != 0) return cannot_read(path, errno);
  if (S_ISDIR(info.st_mode)) return cannot_read(path, EISDIR);
  const bool regular = S_ISREG(info.st_mode);

  std::string head(kSniffSize, '\0');
  std::size_t got = 0;
  while (got < head.size()) {
    const ssize_t n = read(raw, head.data() + got, head.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_read(path, errno);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  head.resize(got);
  const Compression compression = sniff(head);
  const std::int64_t size = regular ? static_cast<std::int64_t>(info.st_size) : 0;
  const std::string name = is_stdin ? "standard input" : path;
  if (regular && compression == Compression::kNone && !is_stdin) {
    return std::unique_ptr<Source>(
        std::make_unique<FileSource>(name, std::move(fd), size, block_size));
  }
  return std::unique_ptr<Source>(std::make_unique<StreamSource>(
      name, std::move(fd), size, block_size, compression, std::move(head)));
}

}  // namespace culprit
