// TempFile: a file with given content, removed at the end of the test.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace culprit::test {

class TempFile {
 public:
  explicit TempFile(std::string_view content, std::string_view suffix = ".json") {
    std::string name = "/tmp/culprit-test-XXXXXX" + std::string(suffix);
    const int fd = mkstemps(name.data(), static_cast<int>(suffix.size()));
    path_ = name;
    std::FILE* file = fdopen(fd, "wb");
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
  }
  ~TempFile() { std::remove(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace culprit::test
