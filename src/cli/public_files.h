// Which files belong to public libraries: their place in the library names no user, host or project.
#pragma once

#include <optional>
#include <string_view>

namespace culprit::cli {

// "site-packages/torch/nn/modules/module.py" of a path with that end; of "/home/x/sglang/python/sglang/
// srt/a.py" "sglang/srt/a.py"; none for any other file. `path` has slashes. A folder that is merely
// called like a library does not count: it must lie where packages are installed, be followed by a
// folder that the library has, or begin the path, which Kineto cuts at the search path.
std::optional<std::string_view> public_part(std::string_view path);
bool is_public_package(std::string_view name);

}  // namespace culprit::cli
