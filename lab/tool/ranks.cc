#include "lab/tool/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "lab/engine/cores.h"
#include "ranks/module.h"

namespace culprit::lab {
namespace {

// Whether mpirun has given the ranks of this machine cores of their own already.
bool apart(Ranks& ranks, const std::vector<int>& cores) {
  const Ranks::Local local = ranks.local();
  const std::array<float, 3> mine{static_cast<float>(local.first),
                                  static_cast<float>(cores.empty() ? -1 : cores.front()),
                                  static_cast<float>(cores.size())};
  std::vector<std::array<float, 3>> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(mine.data(), std::ssize(mine), all.front().data());
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& other) { return other[0] == mine[0] && other != mine; });
}

}  // namespace

std::vector<int> cores_of(const std::vector<int>& cores, int rank, int size) {
  const auto count = static_cast<int>(cores.size());
  if (count == 0) return {};
  if (count < size) return {cores[static_cast<std::size_t>(rank % count)]};
  return {cores.begin() + count * rank / size, cores.begin() + count * (rank + 1) / size};
}

Status join_ranks(std::int64_t wanted, std::unique_ptr<Ranks>& ranks) {
  TRY(const std::string module, find_mpi_module());
  TRY(ranks, open_mpi(module));
  if (ranks->size() != wanted)
    return Error{Error::Code::kUsage,
                 fmt::format("mpirun started {} ranks, --tp asks for {}", ranks->size(), wanted),
                 "", fmt::format("mpirun -n {} culprit lab ...", wanted)};
  const std::vector<int>& cores = usable_cores();
  const Ranks::Local local = ranks->local();
  if (!apart(*ranks, cores)) keep_process_to(cores_of(cores, local.rank, local.size));
  return Ok{};
}

}  // namespace culprit::lab
