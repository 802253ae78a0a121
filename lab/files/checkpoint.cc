#include "lab/files/checkpoint.h"

#include <sys/stat.h>

#include <span>
#include <utility>

#include "base/text.h"
#include "lab/files/bind.h"
#include "lab/files/gguf.h"
#include "lab/files/mapped_file.h"
#include "lab/files/safetensors.h"

namespace culprit::lab {
namespace {

bool is_folder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<Checkpoint> open_folder(const std::string& folder) {
  const std::string config_path = folder + "/config.json";
  TRY(const MappedFile file, MappedFile::open(config_path));
  const std::span<const std::byte> bytes = file.bytes();
  TRY(const ModelConfig config,
      config_from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, config_path));
  Checkpoint checkpoint;
  TRY(checkpoint.container, Safetensors::open(folder));
  TRY(checkpoint.weights, bind_hf(*checkpoint.container, config));
  return checkpoint;
}

Result<Checkpoint> open_gguf(const std::string& path) {
  TRY(std::unique_ptr<Gguf> file, Gguf::open(path));
  TRY(const ModelConfig config, config_from_gguf(*file));
  Checkpoint checkpoint;
  TRY(checkpoint.weights, bind_gguf(*file, config));
  checkpoint.container = std::move(file);
  return checkpoint;
}

}  // namespace

const Stored* Container::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Result<Checkpoint> open_checkpoint(const std::string& path) {
  Result<Checkpoint> opened = is_folder(path) ? open_folder(path) : open_gguf(path);
  if (opened.ok()) return opened;
  Error error = opened.error();  // names in it come from the file
  error.what = text::clean(error.what);
  error.where = text::clean(error.where.empty() ? path : error.where);
  return error;
}

}  // namespace culprit::lab
