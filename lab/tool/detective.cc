#include "lab/tool/detective.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

namespace culprit::lab {
namespace {

using Json = nlohmann::json;

Error failed(std::string what, std::string where) {
  return {.code = Error::Code::kCannotRead,
          .what = std::move(what),
          .where = std::move(where),
          .hint = {},
          .note_code = {}};
}

// In the child, where only what is safe behind a fork may be called; nothing there returns.
[[noreturn]] void become(const std::string& program, const std::string& folder, char* const* args,
                         int out) {
  if (chdir(folder.c_str()) == 0 && dup2(out, STDOUT_FILENO) >= 0) execv(program.c_str(), args);
  _exit(127);
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const ssize_t count = read(file, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return text;
  }
}

// What this program says when it is called so, in that folder.
Result<Json> ask(const Folder& folder, std::vector<std::string> words) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return failed("its own program is not to be found", "/proc/self/exe");
  words.insert(words.begin(), "culprit");
  std::vector<char*> args;
  args.reserve(words.size() + 1);
  for (std::string& word : words) args.push_back(word.data());
  args.push_back(nullptr);
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return failed("no pipe is to be had", program);
  const pid_t child = fork();
  if (child == 0) become(program, folder.path(), args.data(), pipe_ends[1]);
  close(pipe_ends[1]);
  const std::string text = child > 0 ? read_all(pipe_ends[0]) : std::string();
  close(pipe_ends[0]);
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  Json answer = Json::parse(text, nullptr, false);
  const bool answered = child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!answered || answer.is_discarded())
    return failed("no answer", fmt::format("{}", fmt::join(words, " ")));
  return answer;
}

Nanos expected(const Json& with_gain) {
  return with_gain.at("gain").at("step_ns_after").at("expected").get<Nanos>();
}

Accusation accusation_of(const Json& suspect) {
  return {.id = suspect.at("id"),
          .verdict = suspect.at("verdict"),
          .confidence = suspect.at("confidence"),
          .now = suspect.at("gain").at("step_ns_now"),
          .after = expected(suspect)};
}

std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Result<Folder> Folder::make() {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / "culprit-lab-XXXXXX").string();
  if (error || mkdtemp(path.data()) == nullptr)
    return failed("no temporary folder can be made", path);
  return Folder(std::move(path));
}

Folder::~Folder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<Finding> diagnose(const Folder& folder, std::string_view trace, std::string_view option) {
  TRY(const Json answer, ask(folder, {std::string(trace), "--json", "--all", "--quiet"}));
  Finding finding;
  finding.step = answer.at("steps").at("mean_ns").get<Nanos>();
  finding.median = answer.at("steps").at("median_ns").get<Nanos>();
  for (const Json& suspect : answer.at("suspects"))
    finding.suspects.push_back(accusation_of(suspect));
  if (!finding.suspects.empty()) {
    for (const Json& each : answer.at("suspects").front().at("fix").at("options"))
      if (each.at("name") == option) finding.suspects.front().after = expected(each);
  }
  if (!answer.at("budget").empty()) finding.owner = answer.at("budget").front().at("owner");
  for (const Json& kernel : answer.at("kernels")) {
    if (kernel.at("kind") != finding.owner) continue;
    finding.owner_kernel = kernel.at("name");
    break;
  }
  return finding;
}

Result<Nanos> what_if(const Folder& folder, std::string_view trace, const std::string& kernel,
                      double scale) {
  TRY(const Json answer, ask(folder, {"whatif", std::string(trace), "--json", "--quiet", "--scale",
                                      fmt::format("{}={}", escaped(kernel), scale)}));
  return expected(answer.at("whatif"));
}

Result<Nanos> bench_step(const Folder& folder, const std::string& line, std::string_view file,
                         std::int64_t warmup, std::int64_t steps) {
  std::vector<std::string> words{"lab", "bench"};
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  for (std::string word : {"--json", "--quiet", "--steps"}) words.push_back(std::move(word));
  words.push_back(std::to_string(warmup + steps));
  if (!file.empty()) {
    for (const std::string_view word :
         {std::string_view("--profile"), file, std::string_view("--profile-warmup")})
      words.emplace_back(word);
    words.push_back(std::to_string(warmup));
    words.emplace_back("--profile-steps");
    words.push_back(std::to_string(steps));
  }
  TRY(const Json answer, ask(folder, std::move(words)));
  return answer.at("runs").front().at("tpot_median_ns").get<Nanos>();
}

}  // namespace culprit::lab
