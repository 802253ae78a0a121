// From a call to the line of user code behind it: up the Python frames around the call, past those
// of the framework. A frame's own line is that of its `def`; the line that made the call is in the
// CallFrom of the frame below it (newer PyTorch), for the address in a C call's name says nothing.
#include <algorithm>
#include <array>
#include <charconv>

#include "run/run.h"

namespace culprit::run {
namespace {

using store::FrameRow;
using store::OpRow;

// "path/file.py(595): forward_decode"
struct FileFrame {
  std::string_view file, function;
  std::int64_t line = 0;
};

std::optional<std::int64_t> to_line(std::string_view text) {
  std::int64_t line = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line);
  if (error != std::errc{} || end != text.data() + text.size() || line < 0) return std::nullopt;
  return line;
}

std::optional<FileFrame> read_file_frame(std::string_view name) {
  const std::size_t colon = name.find("): ");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::size_t open = name.rfind('(', colon);
  if (open == std::string_view::npos || open == 0) return std::nullopt;
  const auto line = to_line(name.substr(open + 1, colon - open - 1));
  if (!line || name.front() == '<') return std::nullopt;  // <string>, <frozen importlib>, ...
  return FileFrame{name.substr(0, open), name.substr(colon + 3), *line};
}

// "<built-in method to of Tensor object at 0x..>" -> "Tensor.to". Functions of torch itself are
// methods of a nameless "type": "torch.empty". "<built-in function linear>" -> "linear".
std::string read_c_call(std::string_view name) {
  const auto after = [&](std::string_view prefix) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string_view{};
  };
  if (const auto function = after("<built-in function "); !function.empty())
    return std::string(function.substr(0, function.find('>')));
  const auto method = after("<built-in method ");
  const std::size_t of = method.find(" of ");
  if (of == std::string_view::npos) return {};
  std::string_view owner = method.substr(of + 4);
  owner = owner.substr(0, owner.find_first_of(" >"));
  owner.remove_prefix(std::min(owner.size(), owner.rfind('.') + 1));
  if (owner == "type") owner = "torch";
  return std::string(owner) + "." + std::string(method.substr(0, of));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view base_name(std::string_view path) {
  return path.substr(std::min(path.size(), path.find_last_of("/\\") + 1));
}

// The line in `file` from which the frame below was called: "file:LINE", the file spelled with more
// or less of its path.
std::optional<std::int64_t> call_line(std::string_view call_from, std::string_view file) {
  const std::size_t colon = call_from.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  if (base_name(call_from.substr(0, colon)) != base_name(file)) return std::nullopt;
  return to_line(call_from.substr(colon + 1));
}

}  // namespace

// PyTorch, the Triton launcher, Python's library. Kineto cuts the search
// path off a file's name, so theirs begin with the package or are bare names.
bool is_framework(std::string_view written) {
  std::string file(written);  // on Windows with backslashes
  std::replace(file.begin(), file.end(), '\\', '/');
  constexpr std::array<std::string_view, 2> kPackages{"-packages/torch/", "-packages/triton/"};
  constexpr std::array<std::string_view, 3> kLauncher{"triton/runtime/", "triton/compiler/",
                                                      "triton/backends/"};
  constexpr std::array<std::string_view, 14> kLibrary{
      "contextlib.py",  "threading.py",       "functools.py", "enum.py",  "typing.py",  "copy.py",
      "dataclasses.py", "inspect.py",         "runpy.py",     "queue.py", "weakref.py", "abc.py",
      "selectors.py",   "_collections_abc.py"};
  constexpr std::array<std::string_view, 5> kLibraryFolders{
      "asyncio/", "concurrent/futures/", "multiprocessing/", "logging/", "collections/"};
  if (file.starts_with("torch/")) return true;
  for (const auto part : kPackages)
    if (contains(file, part)) return true;
  for (const auto part : kLauncher)
    if (contains(file, part)) return true;
  for (const auto name : kLibrary)
    if (file == name) return true;
  for (const auto folder : kLibraryFolders)
    if (file.starts_with(folder)) return true;
  return contains(file, "/lib/python3") && !contains(file, "-packages/");
}

std::vector<store::StringId> op_chain(const Run& run, OpRow op) {
  std::vector<store::StringId> chain;
  for (; op.valid(); op = run.op_parent[op.index]) chain.push_back(run.trace->ops.name[op.index]);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::optional<Source> source_of(const Run& run, store::CallRow call) {
  if (!call.valid() || run.call_frame.empty()) return std::nullopt;
  return source_of(run, run.call_frame[call.index]);
}

std::optional<Source> source_of(const Run& run, FrameRow innermost) {
  const store::Trace& trace = *run.trace;
  std::optional<Source> found;
  std::string via;
  std::array<std::string_view, 2> called_from;  // of the two frames below
  for (FrameRow f = innermost; f.valid(); f = run.frame_parent[f.index]) {
    const std::string_view name = trace.strings[trace.frames.name[f.index]];
    const auto frame = read_file_frame(name);
    if (!frame) {
      if (via.empty() && !found) via = read_c_call(name);
    } else if (const bool framework = is_framework(frame->file); !framework || !found) {
      found =
          Source{std::string(frame->file), frame->line, std::string(frame->function), false, via};
      // A module's own frame may stand in between and tell no line.
      auto line = call_line(called_from[0], frame->file);
      if (!line) line = call_line(called_from[1], frame->file);
      if (line) {
        found->line = *line;
        found->exact = true;
      }
      if (!framework) return found;
    }
    const bool in_between = name.starts_with("nn.Module: ");
    called_from[1] = in_between ? called_from[0] : std::string_view{};
    called_from[0] = trace.strings.or_empty(trace.frames.call_from[f.index]);
  }
  return found;  // framework code alone
}

}  // namespace culprit::run
