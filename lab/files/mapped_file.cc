#include "lab/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace culprit::lab {
namespace {

Error cannot_read(const std::string& path, const std::string& why) {
  return {Error::Code::kCannotRead, "cannot read it: " + why, path,
          "pass a folder with config.json and .safetensors files, or a .gguf file"};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

void MappedFile::Unmap::operator()(const std::byte* data) const {
  munmap(const_cast<std::byte*>(data), bytes);  // NOLINT: it was mapped for reading only
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0)
    return cannot_read(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return cannot_read(path, "it is no regular file");
  if (info.st_size == 0)
    return Error{Error::Code::kBadInput, "the file is empty", path,
                 "it was not written completely; fetch it again"};
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* const data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return cannot_read(path, std::strerror(errno));
  return MappedFile({static_cast<const std::byte*>(data), Unmap{bytes}});
}

}  // namespace culprit::lab
