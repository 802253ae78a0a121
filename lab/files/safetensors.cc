#include "lab/files/safetensors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "base/text.h"
#include "lab/files/layout.h"
#include "lab/files/safetensors_header.h"
#include "lab/model/json.h"

namespace culprit::lab {
namespace {

constexpr std::uint64_t kMostHeader = 100'000'000;  // what the format itself allows
constexpr std::size_t kLengthBytes = 8;

struct Dtype {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<Dtype, 16> kDtypes{{{"BOOL", 1},
                                         {"U8", 1},
                                         {"I8", 1},
                                         {"F8_E4M3", 1},
                                         {"F8_E5M2", 1},
                                         {"F8_E8M0", 1},
                                         {"I16", 2},
                                         {"U16", 2},
                                         {"F16", 2},
                                         {"BF16", 2},
                                         {"I32", 4},
                                         {"U32", 4},
                                         {"F32", 4},
                                         {"I64", 8},
                                         {"U64", 8},
                                         {"F64", 8}}};

Error damaged(std::string what, std::string where) {
  return {Error::Code::kBadInput, std::move(what), std::move(where),
          "the file is damaged or was not written completely; fetch it again"};
}

// The header's text; what follows it is the data.
Result<std::string_view> header_of(std::span<const std::byte> bytes, const std::string& file) {
  std::uint64_t length = 0;
  if (bytes.size() < kLengthBytes)
    return damaged("the file ends within the length of its header", file + ": byte 0");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMostHeader || length > bytes.size() - kLengthBytes)
    return damaged(
        fmt::format("the header would be {} bytes of a file of {}", length, bytes.size()),
        file + ": byte 0");
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                          static_cast<std::size_t>(length));
}

// An entry against the data that it points into. `begins`: the byte of the file that data begin at.
Result<Stored> stored(const HeaderEntry& entry, std::span<const std::byte> data, std::size_t begins,
                      const std::string& file) {
  const auto fault = [&](std::string_view what) {
    return damaged(fmt::format("tensor \"{}\" {}", entry.name, what),
                   fmt::format("{}: byte {}", file, kLengthBytes));
  };
  if (entry.offsets.size() != 2) return fault("does not state two \"data_offsets\"");
  if (entry.dtype.empty()) return fault("states no \"dtype\"");
  const std::uint64_t begin = entry.offsets[0], end = entry.offsets[1];
  if (begin > end || end > data.size())
    return fault(fmt::format("lies at {} to {} of {} bytes of data", begin, end, data.size()));
  Stored result;
  result.dtype = entry.dtype;
  for (const std::uint64_t extent : entry.shape) {
    if (extent > kMostExtent) return fault(fmt::format("has an extent of {}", extent));
    result.shape.push_back(static_cast<std::int64_t>(extent));
  }
  result.bytes = static_cast<std::int64_t>(end - begin);
  result.data = data.data() + begin;
  result.where = fmt::format("{}: byte {}", file, begins + begin);
  const std::int64_t each = safetensors_value_bytes(entry.dtype);
  const auto values = product_of(result.shape);
  if (each > 0 && (!values || *values > kMostExtent / each || *values * each != result.bytes))
    return fault(fmt::format("of shape [{}] in {} cannot take {} bytes",
                             fmt::join(result.shape, ", "), entry.dtype, result.bytes));
  return result;
}

Result<std::set<std::string>> shards_of(const std::string& folder) {
  const std::string path = folder + "/" + kSafetensorsIndex;
  TRY(const MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  TRY(const Json root,
      parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kSafetensorsIndex));
  const auto map = root.is_object() ? root.find("weight_map") : root.end();
  if (!root.is_object() || map == root.end() || !map->is_object() || map->empty())
    return damaged("states no \"weight_map\"", kSafetensorsIndex);
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map->items()) {
    const bool plain = shard.is_string() && !shard.get_ref<const std::string&>().empty() &&
                       shard.get_ref<const std::string&>().find('/') == std::string::npos;
    if (!plain)
      return damaged(fmt::format("\"weight_map\" of \"{}\" is no file name", text::clean(tensor)),
                     kSafetensorsIndex);
    shards.insert(shard.get<std::string>());
  }
  return shards;
}

}  // namespace

std::int64_t safetensors_value_bytes(std::string_view dtype) {
  const auto* const found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                         [&](const Dtype& each) { return each.name == dtype; });
  return found == kDtypes.end() ? 0 : found->bytes;
}

Status Safetensors::add(const std::string& folder, const std::string& file) {
  TRY(MappedFile mapped, MappedFile::open(folder + "/" + file));
  const std::span<const std::byte> bytes = mapped.bytes();
  files_.push_back(std::move(mapped));
  TRY(const std::string_view header, header_of(bytes, file));
  TRY(const std::vector<HeaderEntry> entries, parse_safetensors_header(header, file));
  const std::size_t begins = kLengthBytes + header.size();
  Ranges ranges;
  for (const HeaderEntry& entry : entries) {
    TRY(Stored tensor, stored(entry, bytes.subspan(begins), begins, file));
    const auto [place, fresh] = tensors_.emplace(entry.name, std::move(tensor));
    if (!fresh)
      return damaged(fmt::format("tensor \"{}\" is there twice", entry.name), place->second.where);
    ranges.add(place->first, place->second);
  }
  return ranges.apart();
}

Result<std::unique_ptr<Container>> Safetensors::open(const std::string& folder) {
  auto container = std::make_unique<Safetensors>();
  if (access((folder + "/" + kSafetensorsIndex).c_str(), F_OK) != 0) {
    TRY([[maybe_unused]] const Ok added, container->add(folder, kSafetensorsFile));
    return std::unique_ptr<Container>(std::move(container));
  }
  TRY(const std::set<std::string> shards, shards_of(folder));
  for (const std::string& shard : shards) {
    TRY([[maybe_unused]] const Ok added, container->add(folder, shard));
  }
  return std::unique_ptr<Container>(std::move(container));
}

}  // namespace culprit::lab
