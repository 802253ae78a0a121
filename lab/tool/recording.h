// What --profile and CULPRIT_PROFILE_* ask for: a recording of a run's steps, about a device whose
// properties are those of this machine: its cores, and the bandwidth that it shows when it is asked.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "culprit/profile.h"
#include "lab/tool/options.h"
#include "lab/tool/rescue.h"
#include "lab/tool/screen.h"
#include "ranks/ranks.h"

namespace culprit::lab {

// Whether steps are to be recorded. Then the host launches, unless told otherwise: only its
// operators have shapes and lines.
bool wants_recording(const Options& options);
LaunchMode launch_mode(const Options& options);

// This machine as a trace tells of it. Measures the memory: about a second.
Result<profile::Device> this_machine(const Options& options, Screen& screen);

class Recording {
 public:
  // Off where nobody asked. Measures the memory (about a second); an error where the file cannot be
  // written. A signal that ends the process leaves what was recorded.
  static Result<std::optional<Recording>> begin(const Options& options, const Ranks* ranks,
                                                Screen& screen);
  // The same of a file and a window that are told, whatever the environment says.
  static Result<Recording> of(const std::string& file, std::int64_t warmup, std::int64_t steps,
                              const profile::Device& device);
  // Between steps: writes the file. The text is a table of the kernels; an error where the window
  // did not come about.
  Result<std::string> end();

 private:
  explicit Recording(const profile::Options& options)
      : session_(std::make_unique<profile::Session>(options)) {}
  std::unique_ptr<profile::Session> session_;
  std::unique_ptr<Rescue> rescue_;  // ends before the session
};

}  // namespace culprit::lab
