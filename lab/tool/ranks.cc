#include "lab/tool/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lab/engine/cores.h"
#include "lab/ranks/module.h"

namespace culprit::lab {
namespace {

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  int value = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc() && *end == 0 ? std::optional<int>(value) : std::nullopt;
}

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

// An error as text that travels: what, where and hint behind the code, each ended by a zero.
using Message = std::array<float, 512>;
Message packed(const Error& error) {
  std::string text(1, static_cast<char>(error.code));
  for (const std::string* const part : {&error.what, &error.where, &error.hint})
    text += part->substr(0, 600) + '\0';
  Message message{};
  std::memcpy(message.data(), text.data(), std::min(text.size(), sizeof message));
  return message;
}
Error unpacked(const Message& message, std::size_t rank) {
  const std::string text(reinterpret_cast<const char*>(message.data()), sizeof message);
  Error error;
  error.code = static_cast<Error::Code>(text[0]);
  std::size_t at = 1;
  for (std::string* const part : {&error.what, &error.where, &error.hint}) {
    *part = text.c_str() + at;
    at += part->size() + 1;
  }
  error.where = fmt::format("rank {}{}{}", rank, error.where.empty() ? "" : ": ", error.where);
  return error;
}

}  // namespace

std::optional<Place> place_in_run() {
  constexpr std::pair<const char*, const char*> kLaunchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& [rank, size] : kLaunchers)
    if (const auto at = number_in(rank), of = number_in(size); at && of) return Place{*at, *of};
  return std::nullopt;
}

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

Status agreed(Ranks* ranks, Status mine) {
  if (ranks == nullptr) return mine;
  const float failed = mine.ok() ? 0 : 1;
  std::vector<float> all(static_cast<std::size_t>(ranks->size()));
  ranks->all_gather(&failed, 1, all.data());
  const auto first = std::find(all.begin(), all.end(), 1.0F);
  if (first == all.end()) return Ok{};
  const auto rank = static_cast<std::size_t>(first - all.begin());
  const Message own = mine.ok() ? Message{} : packed(mine.error());
  std::vector<Message> messages(all.size());
  ranks->all_gather(own.data(), std::ssize(own), messages.front().data());
  return unpacked(messages[rank], rank);
}

}  // namespace culprit::lab
