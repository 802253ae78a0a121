// The tool's own answer to a recording: `culprit TRACE --json`, this same program, in a process of its
// own and in a folder that holds nothing but the trace. What the laboratory knows does not get there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"

namespace culprit::lab {

// A new empty folder under the system's for temporary files; gone with its content at the end.
class Folder {
 public:
  static Result<Folder> make();
  ~Folder();
  Folder(Folder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  Folder& operator=(Folder&&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct Accusation {
  std::string id, verdict, confidence;  // "culprit", "certain"
  Nanos now = 0, after = 0;             // the step, and what it is expected to be with the fix
};

struct Finding {
  std::vector<Accusation> suspects;  // the first is the largest
  Nanos step = 0, median = 0;        // mean and median
  std::string owner, owner_kernel;   // of the largest part of the budget; its largest kernel
};

// `option`: of the first suspect's fix, whose prediction is taken; empty: the suspect's own.
Result<Finding> diagnose(const Folder& folder, std::string_view trace, std::string_view option);
// The step in which that kernel takes `scale` of its time.
Result<Nanos> what_if(const Folder& folder, std::string_view trace, const std::string& kernel,
                      double scale);

// The median step of `lab bench LINE`, run by this program in that folder: for what takes processes of
// its own. With `file` it is recorded there, one file per rank.
Result<Nanos> bench_step(const Folder& folder, const std::string& line, std::string_view file,
                         std::int64_t warmup, std::int64_t steps);

}  // namespace culprit::lab
