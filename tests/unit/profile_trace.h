// What the tests of the recording hook share: a folder of their own, and a trace parsed strictly.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "culprit/profile.h"

namespace culprit::profile {

using Json = nlohmann::json;

class Folder {
 public:
  Folder() : path_(std::filesystem::path(testing::TempDir()) / name()) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return path_ / name; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename());
    return names;
  }

 private:
  static std::string name() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return std::string("profile-") + test->name() + "-" + std::to_string(getpid());
  }
  std::filesystem::path path_;
};

// Plain or in gzip.
inline std::string read(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  char part[1 << 14];
  for (int got = 0; (got = gzread(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  gzclose(file);
  return text;
}

struct Trace {
  Json document;
  std::vector<Json> all(const std::string& category) const {
    std::vector<Json> events;
    for (const Json& event : document.at("traceEvents"))
      if (event.value("cat", "") == category) events.push_back(event);
    return events;
  }
  // The one event of that name.
  Json one(const std::string& name) const {
    Json found;
    for (const Json& event : document.at("traceEvents")) {
      if (event.at("name") != name) continue;
      EXPECT_TRUE(found.is_null()) << "twice: " << name;
      found = event;
    }
    EXPECT_FALSE(found.is_null()) << "no event: " << name;
    return found;
  }
};

// Strict: nlohmann-json takes no comma too many, no bare word and no broken UTF-8.
inline Trace parse(const std::string& path) { return {Json::parse(read(path))}; }

// On, in the folder, deaf to the environment, and a buffer that takes no time to set up.
inline Options options_for(const Folder& folder, std::int64_t warmup, std::int64_t steps) {
  Options options;
  options.on = true;
  options.environment = false;
  options.warmup = warmup;
  options.steps = steps;
  options.output = folder.file("t.json");
  options.buffer_bytes = std::size_t{1} << 20;
  return options;
}

// One kernel, run where it is launched.
inline void run_kernel(Name name, const Work& work = {}) {
  const Launch launch;
  const Kernel kernel(launch.ticket(), name, work);
}

}  // namespace culprit::profile
