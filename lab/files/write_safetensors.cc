#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "lab/files/safetensors.h"
#include "lab/files/write.h"

namespace culprit::lab {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::int64_t kHeaderAlignment = 8;

using Part = std::span<PlannedTensor>;  // the tensors of one file

// Cuts the list where a file would grow beyond the limit; a tensor stays whole.
std::vector<Part> shards_of(std::vector<PlannedTensor>& tensors, std::int64_t limit) {
  std::vector<Part> shards;
  std::size_t first = 0;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (i > first && bytes + tensors[i].bytes > limit) {
      shards.push_back(Part(tensors).subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += tensors[i].bytes;
  }
  shards.push_back(Part(tensors).subspan(first));
  return shards;
}

std::string header_of(Part tensors) {
  OrderedJson header;
  header["__metadata__"] = {{"format", "pt"}};
  std::int64_t end = 0;
  for (const PlannedTensor& tensor : tensors) {
    const std::int64_t begin = std::exchange(end, end + tensor.bytes);
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  const std::int64_t length = std::ssize(text);
  const std::int64_t padded = (length + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment;
  text.resize(static_cast<std::size_t>(padded), ' ');
  return text;
}

Result<OutputFile> write_shard(const std::string& path, Part tensors) {
  // Values of four bytes first, then of two: all are aligned then, whatever the extents.
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return safetensors_value_bytes(a.dtype) > safetensors_value_bytes(b.dtype);
  });
  TRY(OutputFile file, OutputFile::create(path));
  const std::string header = header_of(tensors);
  const std::uint64_t length = header.size();
  TRY([[maybe_unused]] const Ok prefix, file.write(std::as_bytes(std::span(&length, 1))));
  TRY([[maybe_unused]] const Ok head, file.write(header));
  for (const PlannedTensor& tensor : tensors) {
    TRY([[maybe_unused]] const Ok written, tensor.write(file));
  }
  return file;
}

Status write_text(const std::string& path, const std::string& text) {
  TRY(OutputFile file, OutputFile::create(path));
  TRY([[maybe_unused]] const Ok written, file.write(text));
  return file.commit();
}

}  // namespace

Result<std::int64_t> write_safetensors(const std::string& folder,
                                       std::vector<PlannedTensor> tensors,
                                       const std::vector<TextFile>& texts,
                                       std::int64_t shard_bytes) {
  const std::vector<Part> shards = shards_of(tensors, shard_bytes);
  std::vector<OutputFile> files;
  OrderedJson index;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        shards.size() == 1 ? std::string(kSafetensorsFile)
                           : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    TRY(OutputFile file, write_shard(fmt::format("{}/{}", folder, name), shards[i]));
    for (const PlannedTensor& tensor : shards[i]) index["weight_map"][tensor.name] = name;
    bytes += file.written();
    files.push_back(std::move(file));
  }
  // One from before would be read in the file's stead.
  if (shards.size() == 1) unlink((folder + "/" + kSafetensorsIndex).c_str());
  for (OutputFile& file : files) {
    TRY([[maybe_unused]] const Ok committed, file.commit());
  }
  if (shards.size() > 1) {
    index["metadata"]["total_size"] = bytes;
    TRY([[maybe_unused]] const Ok written,
        write_text(folder + "/" + kSafetensorsIndex, index.dump(1) + "\n"));
  }
  for (const TextFile& each : texts) {
    TRY([[maybe_unused]] const Ok written,
        write_text(fmt::format("{}/{}", folder, each.name), each.text));
  }
  return bytes;
}

}  // namespace culprit::lab
