#include "ranks/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace culprit {
namespace {

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  int value = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc() && *end == 0 ? std::optional<int>(value) : std::nullopt;
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

bool started_by_launcher() {
  return place_in_run().has_value() || std::getenv("PMIX_RANK") != nullptr;
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

}  // namespace culprit
