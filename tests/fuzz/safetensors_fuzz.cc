// From a folder of safetensors to bound weights. The input is config.json, a zero byte, the index (none
// where it is empty), a zero byte, and the files: with an index two of them, the first as long as four
// bytes say. Built for libFuzzer with the `fuzz` preset; in ordinary builds replay.cc feeds the seeds.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "bound.h"

using namespace culprit;

namespace {

// A folder in memory, with one set of files at a time.
class Folder {
 public:
  Folder() : path_("/dev/shm/culprit fuzz " + std::to_string(getpid())) {
    mkdir(path_.c_str(), 0700);
  }
  ~Folder() {
    clear();
    rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  void write(const char* name, std::string_view bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
  }
  void clear() const {
    for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json",
                             "a.safetensors", "b.safetensors"})
      unlink((path_ + "/" + name).c_str());
  }

 private:
  std::string path_;
};

std::string_view until_zero(std::string_view& bytes) {
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  const std::string_view part = bytes.substr(0, end);
  bytes.remove_prefix(std::min(end + 1, bytes.size()));
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  folder.write("config.json", until_zero(bytes));
  const std::string_view index = until_zero(bytes);
  if (index.empty()) {
    folder.write("model.safetensors", bytes);
  } else {
    std::uint32_t first = 0;
    std::memcpy(&first, bytes.data(), std::min(sizeof first, bytes.size()));
    bytes.remove_prefix(std::min(sizeof first, bytes.size()));
    folder.write("model.safetensors.index.json", index);
    folder.write("a.safetensors", bytes.substr(0, first));
    folder.write("b.safetensors", bytes.substr(std::min<std::size_t>(first, bytes.size())));
  }
  fuzz::check(lab::open_checkpoint(folder.path()), lab::Naming::kHf);
  folder.clear();
  return 0;
}
