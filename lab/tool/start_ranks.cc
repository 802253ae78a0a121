// Starting mpirun on this machine, and what becomes of it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "base/term.h"
#include "lab/tool/ranks.h"
#include "lab/tool/screen.h"
#include "ranks/module.h"

namespace culprit::lab {
namespace {

constexpr int kNotFound = 127;  // of a shell, too

std::string this_program() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(length > 0 ? length : 0)};
}

// As many ranks as are asked for, whoever the user is and however few cores there are; each rank finds
// its own cores. mpirun's own rule, that a rank which ends badly ends the others, must stand.
std::vector<std::string> mpirun_of(std::span<const std::string_view> args, std::int64_t ranks) {
  std::vector<std::string> words{
      "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
      // Seconds that the others have to write their recordings, once one is lost.
      "--mca", "odls_base_sigkill_timeout", "10", "-n"};
  words.push_back(std::to_string(ranks));
  words.push_back(this_program());
  words.emplace_back("lab");
  words.insert(words.end(), args.begin(), args.end());
  return words;
}

// In the new process: never returns.
[[noreturn]] void become(std::vector<std::string>& words, std::FILE* err) {
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // who stops us stops them
#endif
  if (const int nothing = open("/dev/null", O_RDONLY); nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (term::is_terminal(err)) {
    const auto columns = term::terminal_columns(err);
    if (columns) setenv("COLUMNS", std::to_string(*columns).c_str(), 0);
    setenv(kDrawsBehindMpirun, "1", 1);
  }
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv.front(), argv.data());
  _exit(kNotFound);
}

Error no_mpirun(std::string what) {
  return {Error::Code::kUnsupported, std::move(what), "mpirun",
          "install Open MPI (Debian: openmpi-bin), or start the ranks by an MPI launcher of yours"};
}

}  // namespace

Result<int> start_ranks(std::span<const std::string_view> args, std::int64_t ranks,
                        std::FILE* err) {
  TRY([[maybe_unused]] const std::string module, find_mpi_module());
  std::vector<std::string> words = mpirun_of(args, ranks);
  const pid_t child = fork();
  if (child < 0) return no_mpirun(std::strerror(errno));
  if (child == 0) become(words, err);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return no_mpirun(std::strerror(errno));
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == kNotFound) return no_mpirun("it is not installed, or not on the PATH");
  if (code >= 0 && code <= 2) return code;
  return Error{Error::Code::kUnusable,
               fmt::format("a rank was lost, and the run of {} ranks ended with it (status {})",
                           ranks, code),
               "mpirun",
               "the lines above name the rank and the signal, and what of a recording is kept"};
}

}  // namespace culprit::lab
