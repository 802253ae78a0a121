// What the commands of the lab say: the answer on one stream, progress on the other, and tables of
// columns that line up.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/term.h"
#include "lab/tool/options.h"

namespace culprit::lab {

// Set for ranks that mpirun started for a user at a terminal, which they see as a pipe.
inline constexpr const char* kDrawsBehindMpirun = "CULPRIT_LAB_ON_TERMINAL";

class Screen {
 public:
  // speaks: false for ranks but the first, which say nothing.
  Screen(std::FILE* out, std::FILE* err, const Options& options, bool speaks = true);

  void progress(std::string_view line);  // shown from half a second on, on a terminal only
  // A part of the text of an answer that takes long, once it is known; answer() gives the rest.
  Status part(const std::string& text);
  // The answer as text, and as JSON where that was asked for.
  Status answer(const std::string& text, const std::string& json);

 private:
  std::FILE* out_;
  bool speaks_;
  term::Progress progress_;
  const Options& options_;
};

// Rows of cells; the first `left` columns are aligned to the left, all others to the right.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

}  // namespace culprit::lab
