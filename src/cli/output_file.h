// Output files: written beside their final name and renamed, so that a file is there whole or not
// at all, also after an interrupt.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit::cli {

// Whether `path` may be written: it does not exist, is empty, is no regular file, or holds an
// answer of culprit. kUsage error otherwise, naming the file.
Status may_write_answer(const std::string& path);
Status write_answer_file(const std::string& path, std::string_view content);

// Async-signal-safe: removes the file that is being written, if any.
void remove_partial_file();

}  // namespace culprit::cli
